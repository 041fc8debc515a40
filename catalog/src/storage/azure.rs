//! Opening a container of Azure Blob Storage or Data Lake Storage by Iceberg's property names.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::{Error, ObjectStore, Result};

use super::StoreSettings;
use super::client_options::{client_options, endpoint, retry_config, token};

/// The host of Microsoft's public cloud, less the account.
const PUBLIC_HOST: &str = "dfs.core.windows.net";

/// The account that the properties name, if they do.
pub(super) fn account(properties: &BTreeMap<String, String>) -> &str {
    let named = ["adls.account-name", "adls.auth.shared-key.account.name"]
        .iter()
        .find_map(|key| properties.get(*key));
    let connection = properties.get("adls.connection-string");
    let connected = || connection.and_then(|it| parts(it).find(|(name, _)| *name == "AccountName"));
    match named {
        Some(name) => name,
        None => connected().map_or("", |(_, name)| name),
    }
}

/// What a connection string says: `AccountName=…;AccountKey=…`.
fn parts(connection: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = connection.split(';');
    let named = parts.filter_map(|part| part.split_once('='));
    named.map(|(name, value)| (name.trim(), value.trim()))
}

/// Opens `container@host` or, in the account that the properties name, `container`. Without credentials of its own,
/// Azure's variables (`AZURE_STORAGE_ACCOUNT_KEY`, `AZURE_CLIENT_ID`, …) and the machine's identity are looked for.
pub(super) fn open_container(
    bucket: &str,
    properties: &BTreeMap<String, String>,
    settings: &StoreSettings,
) -> Result<Arc<dyn ObjectStore>> {
    let get = |key: &str| {
        properties
            .get(key)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    };
    let (container, host) = match bucket.split_once('@') {
        Some((container, host)) => (container, Some(host)),
        None => (bucket, None),
    };
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(container)
        .with_retry(retry_config(settings));
    let of_host = host.map(|host| host.split_once('.').unwrap_or((host, "")));
    let in_environment = || builder.get_config_value(&AzureConfigKey::AccountName);
    let account = match (of_host, account(properties)) {
        (Some((account, _)), _) => account.to_string(),
        (None, "") => in_environment().ok_or_else(|| Error::Generic {
            store: "Azure",
            source: format!(
                "the location names no account: say 'adls.account-name', or write abfss://{container}@ACCOUNT.{PUBLIC_HOST}/"
            )
            .into(),
        })?,
        (None, account) => account.to_string(),
    };
    // A property may be for one account only: Java's libraries add the account's host, PyIceberg its name.
    let for_account = |key: &str| {
        let hosts = [
            host.map(|host| format!("{key}.{host}")),
            host.map(|host| format!("{key}.{}", host.replacen(".dfs.", ".blob.", 1))),
            Some(format!("{key}.{account}.{PUBLIC_HOST}")),
            Some(format!("{key}.{account}")),
        ];
        hosts
            .iter()
            .flatten()
            .find_map(|key| get(key))
            .or_else(|| get(key))
    };
    let mut address = get("adls.endpoint").map(str::to_string);
    if address.is_none()
        && let Some((_, rest)) = of_host
        && rest != PUBLIC_HOST
        && !rest.is_empty()
    {
        // Another cloud, such as China's. Everything is asked of the blob service.
        let rest = rest.replacen("dfs.", "blob.", 1);
        address = Some(format!("https://{account}.{rest}"));
    }
    let mut key = for_account("adls.account-key").or_else(|| {
        get("adls.auth.shared-key.account.key")
            .filter(|_| get("adls.auth.shared-key.account.name").is_none_or(|name| name == account))
    });
    let mut sas = for_account("adls.sas-token");
    if let Some(connection) = for_account("adls.connection-string") {
        for (name, value) in parts(connection) {
            match name {
                "AccountKey" => key = key.or(Some(value)),
                "SharedAccessSignature" => sas = sas.or(Some(value)),
                "BlobEndpoint" if address.is_none() => address = Some(value.to_string()),
                _ => {}
            }
        }
    }
    let allow_http = address
        .as_ref()
        .is_some_and(|address| address.starts_with("http://"));
    builder = builder
        .with_account(account)
        .with_client_options(client_options(settings, allow_http));
    if let Some(address) = address {
        let address = endpoint("Azure", "adls.endpoint", &address)?;
        builder = builder.with_endpoint(address.to_string());
    }
    if let Some(host) = get("adls.authority-host") {
        builder = builder.with_authority_host(endpoint("Azure", "adls.authority-host", host)?);
    }
    let secret = (
        get("adls.client-id"),
        get("adls.client-secret"),
        get("adls.tenant-id"),
    );
    if get("adls.anon").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        builder = builder.with_skip_signature(true);
    } else if let Some(key) = key {
        builder = builder.with_access_key(key);
    } else if let Some(sas) = sas {
        builder = builder.with_config(AzureConfigKey::SasKey, sas);
    } else if let Some(bearer) = get("adls.token") {
        let bearer = token("Azure", "adls.token", bearer)?;
        builder = builder.with_bearer_token_authorization(bearer);
    } else if let (Some(id), Some(secret), Some(tenant)) = secret {
        builder = builder.with_client_secret_authorization(id, secret, tenant);
    }
    Ok(Arc::new(builder.build()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bucket: &str, properties: &[(&str, &str)]) -> Result<String> {
        let properties = properties
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        open_container(bucket, &properties, &StoreSettings::default())
            .map(|store| format!("{store:?}"))
    }

    #[test]
    fn account_and_service_are_told_by_the_location_or_by_properties() {
        for (bucket, properties, parts) in [
            (
                "box@acc.dfs.core.windows.net",
                vec![],
                vec![
                    "account: \"acc\"",
                    "container: \"box\"",
                    "acc.blob.core.windows.net",
                ],
            ),
            (
                "box@acc.dfs.core.chinacloudapi.cn",
                vec![],
                vec!["account: \"acc\"", "acc.blob.core.chinacloudapi.cn"],
            ),
            (
                "box",
                vec![
                    ("adls.account-name", "acc"),
                    ("adls.account-key", "aHVzaA=="),
                ],
                vec!["account: \"acc\"", "container: \"box\""],
            ),
            (
                "box",
                vec![
                    ("adls.account-name", "acc"),
                    ("adls.endpoint", "http://127.0.0.1:10000/acc/"),
                    ("adls.anon", "true"),
                ],
                vec!["/acc", "skip_signature: true"],
            ),
        ] {
            let shown = opened(bucket, &properties).unwrap();
            for part in parts {
                assert!(shown.contains(part), "{bucket} {properties:?}: {shown}");
            }
        }
        let connection = (
            "adls.connection-string",
            "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=aHVzaA==",
        );
        let shown = opened("box", &[connection]).unwrap();
        assert!(shown.contains("account: \"acc\""), "{shown}");
        let error = opened("box", &[]).unwrap_err().to_string();
        assert!(error.contains("adls.account-name"), "{error}");
    }

    #[test]
    fn a_token_may_be_for_one_account_only() {
        let token = "sv=2024-11-04&sig=x%3D";
        for key in [
            "adls.sas-token",
            "adls.sas-token.acc",
            "adls.sas-token.acc.dfs.core.windows.net",
            "adls.sas-token.acc.blob.core.windows.net",
        ] {
            let shown = opened("box@acc.dfs.core.windows.net", &[(key, token)]).unwrap();
            assert!(shown.contains("StaticCredentialProvider"), "{key}: {shown}");
        }
        let of_another = opened(
            "box@acc.dfs.core.windows.net",
            &[("adls.sas-token.other", token)],
        )
        .unwrap();
        assert!(
            !of_another.contains("StaticCredentialProvider"),
            "{of_another}"
        );
    }
}
