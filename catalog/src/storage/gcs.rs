//! Opening a bucket of Google Cloud Storage by Iceberg's property names.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::{Error, ObjectStore, Result, StaticCredentialProvider};

use super::StoreSettings;
use super::client_options::{client_options, endpoint, retry_config, token};

/// Opens `bucket`. Without credentials of its own, Google's default ones are looked for: the file that
/// `GOOGLE_APPLICATION_CREDENTIALS` names, those of `gcloud`, the machine's.
pub(super) fn open_bucket(
    bucket: &str,
    properties: &BTreeMap<String, String>,
    settings: &StoreSettings,
) -> Result<Arc<dyn ObjectStore>> {
    let get = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| properties.get(*key))
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    };
    let host = get(&["gcs.service.host", "gcs.service.path"]);
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(retry_config(settings))
        .with_client_options(client_options(
            settings,
            host.is_some_and(|host| host.starts_with("http://")),
        ));
    if let Some(host) = host {
        builder = builder.with_base_url(endpoint("GCS", "gcs.service.host", host)?);
    }
    let anonymous = get(&["gcs.no-auth", "gcs.allow-anonymous"])
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if anonymous {
        // An empty credential keeps the builder from looking for another. Reads go without it.
        let none = GcpCredential {
            bearer: String::new(),
        };
        builder = builder
            .with_credentials(Arc::new(StaticCredentialProvider::new(none)))
            .with_skip_signature(true);
    } else if let Some(bearer) = get(&["gcs.oauth2.token"]) {
        let credential = GcpCredential {
            bearer: token("GCS", "gcs.oauth2.token", bearer)?.to_string(),
        };
        builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(credential)));
    } else if let Some(key) = get(&["gcs.credentials-json"]) {
        builder = builder.with_service_account_key(service_account(key)?);
    } else if let Some(path) = get(&["gcs.credentials-path"]) {
        builder = builder.with_application_credentials(path);
    }
    Ok(Arc::new(builder.build()?))
}

/// A service account's key, as JSON or as JSON in Base64.
fn service_account(key: &str) -> Result<String> {
    if key.starts_with('{') {
        return Ok(key.to_string());
    }
    let decoded = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, key)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|text| text.trim_start().starts_with('{'));
    decoded.ok_or_else(|| Error::Generic {
        store: "GCS",
        source: "'gcs.credentials-json' is neither JSON nor JSON in Base64".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(properties: &[(&str, &str)]) -> Result<String> {
        let properties = properties
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        open_bucket("bkt", &properties, &StoreSettings::default()).map(|store| format!("{store:?}"))
    }

    #[test]
    fn the_host_and_the_kind_of_credentials_are_as_the_properties_say() {
        let open = opened(&[
            ("gcs.service.host", "http://localhost:4443/"),
            ("gcs.no-auth", "true"),
        ])
        .unwrap();
        assert!(
            open.contains("http://localhost:4443") && open.contains("skip_signature: true"),
            "{open}"
        );
        let token = opened(&[("gcs.oauth2.token", "hush")]).unwrap();
        assert!(token.contains("https://storage.googleapis.com"), "{token}");
        let error = opened(&[("gcs.credentials-json", "hush")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("gcs.credentials-json") && !error.contains("hush"),
            "{error}"
        );
    }

    #[test]
    fn a_key_may_be_packed_in_base64() {
        assert_eq!(service_account("{\"a\":1}").unwrap(), "{\"a\":1}");
        assert_eq!(service_account("eyJhIjoxfQ==").unwrap(), "{\"a\":1}");
    }
}
