//! The bearer token of a REST catalog: given, or bought by OAuth2's client credentials.

use std::time::{Duration, Instant};

use url::Url;

use super::client::{RestClient, push_segments, reason};
use super::messages::Token;
use crate::error::{CatalogError, Result};
use crate::storage::root_cause;

/// A token is renewed this long before it ends.
const TOKEN_MARGIN: Duration = Duration::from_secs(60);

/// A token that was bought.
pub(super) struct HeldToken {
    token: String,
    renew_at: Option<Instant>,
}

impl RestClient {
    /// The token to send: the one given, or one bought with the credential.
    pub(super) async fn bearer(&self) -> Result<Option<String>> {
        let properties = &self.config.properties;
        if let Some(token) = properties.get("token") {
            return Ok(Some(token.clone()));
        }
        let Some(credential) = properties.get("credential") else {
            return Ok(None);
        };
        let mut held = self.token.lock().await;
        if let Some(held) = held.as_ref()
            && held.renew_at.is_none_or(|at| Instant::now() < at)
        {
            return Ok(Some(held.token.clone()));
        }
        let url = match properties.get("oauth2-server-uri") {
            Some(uri) => Url::parse(uri).map_err(|e| CatalogError::InvalidCatalog {
                catalog: self.config.catalog.clone(),
                reason: format!("oauth2-server-uri '{uri}' is not a URL: {e}"),
            })?,
            None => {
                let mut url = self.config.uri.clone();
                push_segments(&mut url, ["v1", "oauth", "tokens"]);
                url
            }
        };
        let (id, secret) = match credential.split_once(':') {
            Some((id, secret)) => (Some(id), secret),
            None => (None, credential.as_str()),
        };
        let scope = properties.get("scope").map_or("catalog", String::as_str);
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("client_secret", secret),
            ("scope", scope),
        ];
        form.extend(id.map(|id| ("client_id", id)));
        for key in ["audience", "resource"] {
            form.extend(properties.get(key).map(|value| (key, value.as_str())));
        }
        let answer = self.http().await?.post(url).form(&form).send().await;
        let response =
            answer.map_err(|e| self.unreachable(format!("no token: {}", root_cause(&e))))?;
        let status = response.status();
        let bytes = response
            .bytes()
            .await
            .map_err(|e| self.unreachable(format!("no token: {}", root_cause(&e))))?;
        if !status.is_success() {
            return Err(self.refused(format!("no token: {}", reason(status, &bytes))));
        }
        let token: Token = self.decode(bytes)?;
        let renew_at = token.expires_in.map(|seconds| {
            let lifetime = Duration::from_secs(seconds);
            Instant::now() + lifetime.saturating_sub(TOKEN_MARGIN.min(lifetime / 2))
        });
        *held = Some(HeldToken {
            token: token.access_token.clone(),
            renew_at,
        });
        Ok(Some(token.access_token))
    }
}
