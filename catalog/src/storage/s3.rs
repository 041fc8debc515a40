//! Opening a bucket of S3, or of something that speaks its protocol, by Iceberg's property names.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::{BackoffConfig, ClientOptions, ObjectStore, Result, RetryConfig};

use super::StoreSettings;

/// Opens `bucket`. Keys that are not given are looked for as the AWS tools do: environment, web identity, the
/// container's or the instance's role.
pub(crate) fn open_bucket(
    bucket: &str,
    properties: &BTreeMap<String, String>,
    settings: &StoreSettings,
) -> Result<Arc<dyn ObjectStore>> {
    let get = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| properties.get(*key))
            .filter(|value| !value.is_empty())
    };
    let flag =
        |keys: &[&str]| get(keys).map(|value| value.eq_ignore_ascii_case("true") || value == "1");

    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: settings.initial_backoff,
                max_backoff: settings.max_backoff,
                base: 2.0,
            },
            max_retries: settings.max_retries as usize,
            retry_timeout: settings.retry_timeout,
        });

    let endpoint = get(&["s3.endpoint"]);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
    }
    // Stores that are not Amazon's take any region, but a signature needs one.
    let region = get(&["s3.region", "client.region"]);
    match (region, endpoint) {
        (Some(region), _) => builder = builder.with_region(region),
        (None, Some(_))
            if std::env::var_os("AWS_REGION").is_none()
                && std::env::var_os("AWS_DEFAULT_REGION").is_none() =>
        {
            builder = builder.with_region("us-east-1");
        }
        _ => {}
    }
    if let Some(key) = get(&["s3.access-key-id", "client.access-key-id"]) {
        builder = builder.with_access_key_id(key);
    }
    if let Some(secret) = get(&["s3.secret-access-key", "client.secret-access-key"]) {
        builder = builder.with_secret_access_key(secret);
    }
    if let Some(token) = get(&["s3.session-token", "client.session-token"]) {
        builder = builder.with_token(token);
    }
    // Amazon wants the bucket in the host name, nearly everything else wants it in the path.
    let path_style = flag(&["s3.path-style-access"])
        .or_else(|| flag(&["s3.force-virtual-addressing"]).map(|host_style| !host_style))
        .unwrap_or(endpoint.is_some_and(|e| !e.contains(".amazonaws.com")));
    builder = builder.with_virtual_hosted_style_request(!path_style && endpoint.is_none());
    if !path_style && let Some(endpoint) = endpoint {
        builder = builder
            .with_virtual_hosted_style_request(true)
            .with_endpoint(host_style(endpoint, bucket));
    }
    if flag(&["s3.allow-anonymous", "s3.anonymous"]) == Some(true) {
        builder = builder.with_skip_signature(true);
    }
    if get(&["s3.sse.type"]).is_some_and(|kind| kind.eq_ignore_ascii_case("kms"))
        && let Some(key) = get(&["s3.sse.key"])
    {
        builder = builder.with_sse_kms_encryption(key);
    }
    // An endpoint of plain HTTP was asked for by whoever wrote it.
    let allow_http = flag(&["s3.allow-http"]).unwrap_or(false)
        || endpoint.is_some_and(|e| e.starts_with("http://"));
    builder = builder
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_client_options(
            ClientOptions::new()
                .with_allow_http(allow_http)
                .with_connect_timeout(settings.connect_timeout)
                .with_timeout(settings.request_timeout),
        );
    Ok(Arc::new(builder.build()?))
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
}
