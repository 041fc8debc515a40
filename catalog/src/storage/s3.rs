//! Opening a bucket of S3, or of something that speaks its protocol, by Iceberg's property names.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::aws::{
    AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider, S3ConditionalPut,
};
use object_store::{Error, ObjectStore, Result, StaticCredentialProvider};

use super::StoreSettings;
use super::aws_profile::{AwsKeys, Surroundings, profile};
use super::client_options::{client_options, retry_config};

/// Where a set of keys is looked for among the properties, first to last.
const OWN_KEYS: [&str; 2] = ["s3.", "client."];

/// The first of some properties that says anything.
fn get<'a>(properties: &'a BTreeMap<String, String>, keys: &[&str]) -> Option<&'a str> {
    keys.iter()
        .find_map(|key| properties.get(*key))
        .map(|value| value.trim())
        .filter(|value| !value.is_empty())
}

fn flag(properties: &BTreeMap<String, String>, keys: &[&str]) -> Option<bool> {
    get(properties, keys).map(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

fn wrong(reason: String) -> Error {
    Error::Generic {
        store: "S3",
        source: reason.into(),
    }
}

/// Keys among the properties that begin with `prefix`.
fn keys_of(properties: &BTreeMap<String, String>, prefix: &str) -> Result<Option<AwsKeys>> {
    let value = |name: &str| get(properties, &[&format!("{prefix}{name}")]).map(str::to_string);
    match (value("access-key-id"), value("secret-access-key")) {
        (Some(id), Some(secret)) => Ok(Some(AwsKeys {
            id,
            secret,
            token: value("session-token"),
        })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(wrong(format!(
            "'{prefix}access-key-id' is given without '{prefix}secret-access-key'"
        ))),
        (None, Some(_)) => Err(wrong(format!(
            "'{prefix}secret-access-key' is given without '{prefix}access-key-id'"
        ))),
    }
}

/// A builder with credentials and region: of the properties, else of a profile that they name, else of the environment
/// (keys, web identity), else of the profile that the environment names or the default one, else of the container or the
/// machine.
fn with_credentials(
    properties: &BTreeMap<String, String>,
    own_keys: &[&str],
    settings: &StoreSettings,
    around: &Surroundings<'_>,
) -> Result<AmazonS3Builder> {
    let variable = around.variable;
    let mut builder = AmazonS3Builder::from_env().with_retry(retry_config(settings));
    let mut keys = None;
    for prefix in own_keys {
        if keys.is_none() {
            keys = keys_of(properties, prefix)?;
        }
    }
    let named = get(properties, &["s3.profile-name", "client.profile-name"]);
    let in_environment = variable("AWS_ACCESS_KEY_ID").is_some()
        || (variable("AWS_WEB_IDENTITY_TOKEN_FILE").is_some()
            && variable("AWS_ROLE_ARN").is_some());
    let anonymous = flag(properties, &["s3.allow-anonymous", "s3.anonymous"]) == Some(true);
    let mut profile_region = None;
    if keys.is_none() && !anonymous && (named.is_some() || !in_environment) {
        let profile = profile(named, around).map_err(wrong)?.unwrap_or_default();
        keys = profile.keys;
        if let Some(identity) = profile.web_identity.filter(|_| keys.is_none()) {
            builder = builder
                .with_config(AmazonS3ConfigKey::WebIdentityTokenFile, identity.token_file)
                .with_config(AmazonS3ConfigKey::RoleArn, identity.role);
        }
        if let Some(endpoint) = profile.endpoint {
            builder = at_endpoint(builder, &endpoint);
        }
        profile_region = profile.region;
    }
    // As a whole, so that no part of them comes from the environment.
    if let Some(keys) = keys {
        let credential = AwsCredential {
            key_id: keys.id,
            secret_key: keys.secret,
            token: keys.token,
        };
        builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(credential)));
    }
    let region = get(properties, &["s3.region", "client.region"]).map(str::to_string);
    // Stores that are not Amazon's take any region, but a signature needs one: object_store's own is us-east-1.
    let of_environment = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    if let Some(region) = region.or(of_environment).or(profile_region) {
        builder = builder.with_region(region);
    }
    Ok(builder)
}

/// The credentials that requests to another service of Amazon's are signed with: those of the properties whose names begin
/// with one of `own_keys`, else as for S3.
pub(crate) fn aws_credentials(
    properties: &BTreeMap<String, String>,
    own_keys: &[&str],
    settings: &StoreSettings,
) -> Result<AwsCredentialProvider> {
    let builder = with_credentials(properties, own_keys, settings, &Surroundings::here())?;
    // Only what opens a bucket knows how credentials are found; the bucket is never asked for anything.
    let store = builder
        .with_bucket_name("none")
        .with_client_options(client_options(settings, false))
        .build()?;
    Ok(Arc::clone(store.credentials()))
}

/// The region that properties name, else the environment, else the profile.
pub(crate) fn aws_region(properties: &BTreeMap<String, String>) -> Option<String> {
    let around = Surroundings::here();
    let own = get(properties, &["glue.region", "client.region", "s3.region"]).map(str::to_string);
    own.or_else(|| (around.variable)("AWS_REGION"))
        .or_else(|| (around.variable)("AWS_DEFAULT_REGION"))
        .or_else(|| {
            let named = get(properties, &["s3.profile-name", "client.profile-name"]);
            profile(named, &around).ok().flatten()?.region
        })
}

/// Opens `bucket`.
pub(super) fn open_bucket(
    bucket: &str,
    properties: &BTreeMap<String, String>,
    settings: &StoreSettings,
) -> Result<Arc<dyn ObjectStore>> {
    let around = Surroundings::here();
    let mut builder =
        with_credentials(properties, &OWN_KEYS, settings, &around)?.with_bucket_name(bucket);
    let endpoint = get(properties, &["s3.endpoint"])
        .map(str::to_string)
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint))
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    let endpoint = endpoint
        .as_deref()
        .map(|address| super::client_options::endpoint("S3", "s3.endpoint", address))
        .transpose()?;
    if let Some(endpoint) = endpoint {
        builder = at_endpoint(builder, endpoint);
    }
    // Amazon wants the bucket in the host name, nearly everything else wants it in the path.
    let path_style = flag(properties, &["s3.path-style-access"])
        .or_else(|| {
            flag(properties, &["s3.force-virtual-addressing"]).map(|host_style| !host_style)
        })
        .unwrap_or(endpoint.is_some_and(|e| !e.contains(".amazonaws.com")));
    builder = builder.with_virtual_hosted_style_request(!path_style && endpoint.is_none());
    if !path_style && let Some(endpoint) = endpoint {
        builder = at_endpoint(builder, &host_style(endpoint, bucket))
            .with_virtual_hosted_style_request(true);
    }
    if flag(properties, &["s3.allow-anonymous", "s3.anonymous"]) == Some(true) {
        builder = builder.with_skip_signature(true);
    }
    if get(properties, &["s3.sse.type"]).is_some_and(|kind| kind.eq_ignore_ascii_case("kms"))
        && let Some(key) = get(properties, &["s3.sse.key"])
    {
        builder = builder.with_sse_kms_encryption(key);
    }
    // An endpoint of plain HTTP was asked for by whoever wrote it.
    let allow_http = flag(properties, &["s3.allow-http"]).unwrap_or(false)
        || endpoint.is_some_and(|e| e.starts_with("http://"));
    builder = builder
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_client_options(client_options(settings, allow_http));
    Ok(Arc::new(builder.build()?))
}

/// The environment may name an endpoint for all of Amazon's services and one for S3; this one goes before both.
fn at_endpoint(builder: AmazonS3Builder, endpoint: &str) -> AmazonS3Builder {
    let endpoint = endpoint.trim_end_matches('/');
    builder
        .with_endpoint(endpoint)
        .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint)
}

/// `https://host` becomes `https://bucket.host`.
fn host_style(endpoint: &str, bucket: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    match endpoint.split_once("://") {
        Some((scheme, host)) if !host.starts_with(&format!("{bucket}.")) => {
            format!("{scheme}://{bucket}.{host}")
        }
        _ => endpoint.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(properties: &[(&str, &str)]) -> String {
        let properties = properties
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        format!(
            "{:?}",
            open_bucket("bkt", &properties, &StoreSettings::default()).unwrap()
        )
    }

    #[test]
    fn the_bucket_is_in_the_path_or_in_the_host() {
        let path = opened(&[
            ("s3.endpoint", "http://localhost:9000/"),
            ("s3.access-key-id", "a"),
            ("s3.secret-access-key", "b"),
        ]);
        assert!(
            path.contains("bucket_endpoint: \"http://localhost:9000/bkt\""),
            "{path}"
        );
        let host = opened(&[
            ("s3.endpoint", "https://oss.example.com"),
            ("s3.path-style-access", "false"),
        ]);
        assert!(
            host.contains("bucket_endpoint: \"https://bkt.oss.example.com\""),
            "{host}"
        );
        let amazon = opened(&[("s3.region", "eu-central-1")]);
        assert!(
            amazon.contains("bkt.s3.eu-central-1.amazonaws.com"),
            "{amazon}"
        );
    }
    /// Who signs requests, and for which region.
    fn signer(properties: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<String> {
        let properties = properties
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string())
        };
        let file = |_: &std::path::Path| {
            Some(
                "[default]\naws_access_key_id = of-default\naws_secret_access_key = s\nregion = eu-west-3\n\
                 [other]\naws_access_key_id = of-other\naws_secret_access_key = s\naws_session_token = t\n"
                    .to_string(),
            )
        };
        let around = Surroundings {
            variable: &variable,
            read: &file,
        };
        let settings = StoreSettings::default();
        let built = with_credentials(&properties, &OWN_KEYS, &settings, &around)?
            .with_bucket_name("bkt")
            .build()?;
        let shown = format!("{built:?}");
        let after = |from: &str| {
            let rest = shown.split(from).nth(1).unwrap_or_default();
            rest.split('"').next().unwrap_or_default().to_string()
        };
        Ok(format!("{} {}", after("key_id: \""), after("region: \"")))
    }

    #[test]
    fn credentials_are_looked_for_from_near_to_far() {
        let home = ("HOME", "/home/me");
        let environment = [home, ("AWS_ACCESS_KEY_ID", "of-environment")];
        let own = [
            ("s3.access-key-id", "own"),
            ("s3.secret-access-key", "s"),
            ("s3.region", "own-1"),
        ];
        assert_eq!(signer(&own, &environment).unwrap(), "own own-1");
        assert_eq!(signer(&[], &[home]).unwrap(), "of-default eu-west-3");
        assert_eq!(
            signer(
                &[],
                &[home, ("AWS_PROFILE", "other"), ("AWS_REGION", "env-1")]
            )
            .unwrap(),
            "of-other env-1"
        );
        assert_eq!(
            signer(
                &[("s3.profile-name", "other"), ("client.region", "p-1")],
                &environment
            )
            .unwrap(),
            "of-other p-1"
        );
        // Those of the environment are read by object_store.
        assert!(!signer(&[], &environment).unwrap().contains("of-default"));
    }

    #[test]
    fn half_a_set_of_keys_is_refused() {
        let error = signer(&[("s3.access-key-id", "a")], &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("'s3.access-key-id' is given without 's3.secret-access-key'"),
            "{error}"
        );
        let error = signer(&[("s3.profile-name", "gone")], &[("HOME", "/h")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("no AWS profile 'gone'"), "{error}");
    }
}
