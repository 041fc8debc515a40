//! AWS's signatures (SigV4) on requests to a REST catalog: Glue's, S3 Tables', one behind an API gateway.

use std::collections::BTreeMap;
use std::fmt;

use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{HttpRequest, HttpRequestBody};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use tokio::sync::OnceCell;

use crate::storage::{StoreSettings, aws_credentials, aws_region, root_cause};

/// Where keys are looked for among the properties, first to last.
const OWN_KEYS: [&str; 3] = ["rest.", "glue.", "client."];

/// The service that is meant if none is named, as in Iceberg's Java library: an API gateway.
const DEFAULT_SERVICE: &str = "execute-api";

/// A signature takes the place of a token, which then goes by this name, as in Iceberg's Java library.
const MOVED_TOKEN: HeaderName = HeaderName::from_static("original-authorization");

/// Signs requests.
pub(super) struct Signing {
    service: String,
    region: String,
    properties: BTreeMap<String, String>,
    settings: StoreSettings,
    credentials: OnceCell<AwsCredentialProvider>,
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signing")
            .field("service", &self.service)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

impl Signing {
    /// `None` if the properties do not ask for signatures.
    pub(super) fn of_properties(
        properties: &BTreeMap<String, String>,
        settings: &StoreSettings,
    ) -> Result<Option<Self>, String> {
        let asked = properties
            .get("rest.sigv4-enabled")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !asked {
            return Ok(None);
        }
        let region = properties
            .get("rest.signing-region")
            .cloned()
            .or_else(|| aws_region(properties))
            .ok_or("requests cannot be signed without property 'rest.signing-region' or 'client.region'")?;
        let service = properties
            .get("rest.signing-name")
            .map_or(DEFAULT_SERVICE, String::as_str);
        Ok(Some(Self {
            service: service.to_string(),
            region,
            properties: properties.clone(),
            settings: settings.clone(),
            credentials: OnceCell::new(),
        }))
    }

    /// Adds the signature, and what goes with it, to the headers of a request that is complete but for that.
    pub(super) async fn sign(&self, request: &mut reqwest::Request) -> Result<(), String> {
        let provider = self
            .credentials
            .get_or_try_init(|| async {
                aws_credentials(&self.properties, &OWN_KEYS, &self.settings)
                    .map_err(|error| root_cause(&error))
            })
            .await?;
        let credential = provider
            .get_credential()
            .await
            .map_err(|error| format!("no credentials to sign with: {}", root_cause(&error)))?;
        // The signer takes for granted that they can be sent.
        let token = credential.token.as_deref().unwrap_or_default();
        for part in [
            credential.key_id.as_str(),
            token,
            &self.region,
            &self.service,
        ] {
            HeaderValue::from_str(part)
                .map_err(|_| "the credentials to sign with hold characters that cannot be sent")?;
        }
        if let Some(token) = request.headers_mut().remove(AUTHORIZATION) {
            request.headers_mut().insert(MOVED_TOKEN, token);
        }
        let body = request
            .body()
            .and_then(|body| body.as_bytes())
            .map_or_else(HttpRequestBody::empty, |bytes| {
                HttpRequestBody::from(bytes::Bytes::copy_from_slice(bytes))
            });
        let mut signed = HttpRequest::new(body);
        *signed.method_mut() = request.method().clone();
        *signed.uri_mut() = request
            .url()
            .as_str()
            .parse()
            .map_err(|_| format!("'{}' cannot be signed", request.url()))?;
        *signed.headers_mut() = request.headers().clone();
        AwsAuthorizer::new(&credential, &self.service, &self.region).authorize(&mut signed, None);
        *request.headers_mut() = std::mem::take(signed.headers_mut());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signing(pairs: &[(&str, &str)]) -> Result<Option<Signing>, String> {
        let properties = pairs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        Signing::of_properties(&properties, &StoreSettings::default())
    }

    #[test]
    fn signatures_are_made_for_who_asks() {
        assert!(signing(&[("rest.signing-name", "glue")]).unwrap().is_none());
        assert!(
            signing(&[("rest.sigv4-enabled", "false")])
                .unwrap()
                .is_none()
        );
        let glue = signing(&[
            ("rest.sigv4-enabled", "true"),
            ("rest.signing-name", "glue"),
            ("rest.signing-region", "eu-west-1"),
            ("client.region", "us-east-1"),
        ]);
        assert_eq!(
            format!("{:?}", glue.unwrap().unwrap()),
            "Signing { service: \"glue\", region: \"eu-west-1\", .. }"
        );
        let gateway = signing(&[
            ("rest.sigv4-enabled", "TRUE"),
            ("client.region", "us-east-1"),
        ]);
        assert_eq!(
            format!("{:?}", gateway.unwrap().unwrap()),
            "Signing { service: \"execute-api\", region: \"us-east-1\", .. }"
        );
    }

    #[tokio::test]
    async fn the_body_the_token_and_the_session_are_signed() {
        let signing = signing(&[
            ("rest.sigv4-enabled", "true"),
            ("rest.signing-region", "eu-west-1"),
            ("rest.access-key-id", "AKIDEXAMPLE"),
            ("rest.secret-access-key", "hush"),
            ("rest.session-token", "session"),
        ])
        .unwrap()
        .unwrap();
        let url = "https://host.example:8443/v1/namespaces/a%1Fb?pageToken=x%20y";
        let mut request = reqwest::Client::new()
            .post(url)
            .bearer_auth("bought")
            .body("{}")
            .build()
            .unwrap();
        signing.sign(&mut request).await.unwrap();
        let header = |name: &str| request.headers()[name].to_str().unwrap().to_string();
        assert_eq!(request.url().as_str(), url);
        assert_eq!(header("host"), "host.example:8443");
        assert_eq!(header("original-authorization"), "Bearer bought");
        assert_eq!(header("x-amz-security-token"), "session");
        // SHA-256 of "{}".
        assert_eq!(
            header("x-amz-content-sha256"),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        let authorization = header("authorization");
        let day = &header("x-amz-date")[..8];
        assert!(
            authorization.starts_with(&format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{day}/eu-west-1/execute-api/aws4_request, SignedHeaders="
            )) && !authorization.contains("hush"),
            "{authorization}"
        );
    }
}
