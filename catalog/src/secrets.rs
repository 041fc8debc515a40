//! Which properties are secrets, and how they are shown.

use std::collections::BTreeMap;
use std::fmt;

/// What stands in for a secret wherever properties are shown.
pub const MASK: &str = "******";

/// Whether the value of a property must not be shown. Errs on the side of hiding.
pub fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    // A header may hold anything.
    if key.starts_with("header.") || key.starts_with("http.header.") {
        return true;
    }
    [
        "secret",
        "token",
        "password",
        "credential",
        "access-key",
        "access_key",
        "private",
        "authorization",
        "customer-key",
        "account-key",
        "account.key",
        "connection-string",
        "sse.key",
    ]
    .iter()
    .any(|part| key.contains(part))
        && !matches!(
            key.as_str(),
            "oauth2-server-uri" | "token-exchange-enabled" | "rest.token-refresh-enabled"
        )
}

/// The value as it may be shown: secrets masked, and the user part of a URI too.
pub fn shown_value<'a>(key: &str, value: &'a str) -> &'a str {
    if is_secret(key) || uri_has_password(value) {
        MASK
    } else {
        value
    }
}

/// Shows properties in debug output, secrets masked.
pub(crate) struct Masked<'a>(pub(crate) &'a BTreeMap<String, String>);

impl fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(
                self.0
                    .iter()
                    .map(|(key, value)| (key, shown_value(key, value))),
            )
            .finish()
    }
}

/// Properties as they may be shown.
pub(crate) fn shown_properties(properties: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    properties
        .iter()
        .map(|(key, value)| (key.clone(), shown_value(key, value).to_string()))
        .collect()
}

/// A password may hold any character, so all up to the last `@` counts; some drivers take it as a parameter.
fn uri_has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else {
        return false;
    };
    let user = rest.rsplit_once('@').map_or("", |(user, _)| user);
    let parameters = rest
        .split_once('?')
        .map_or("", |(_, parameters)| parameters);
    user.contains(':') || parameters.to_ascii_lowercase().contains("password=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        for (key, value, shown) in [
            ("uri", "http://localhost:8181", "http://localhost:8181"),
            ("uri", "postgresql://me:pw@db:5432/x", MASK),
            ("uri", "postgresql://me:p/w@db:5432/x", MASK),
            ("uri", "postgresql://db/x?user=me&password=pw", MASK),
            ("uri", "postgresql://me@db/x", "postgresql://me@db/x"),
            ("header.X-Api-Key", "abc", MASK),
            ("token", "abc", MASK),
            ("credential", "id:secret", MASK),
            ("s3.secret-access-key", "abc", MASK),
            ("s3.access-key-id", "AKIA", MASK),
            ("s3.session-token", "abc", MASK),
            ("header.Authorization", "Bearer abc", MASK),
            ("adls.account-key", "abc", MASK),
            ("adls.auth.shared-key.account.key", "abc", MASK),
            ("adls.connection-string", "AccountKey=abc", MASK),
            ("adls.sas-token.acc", "abc", MASK),
            ("gcs.credentials-json", "{}", MASK),
            ("adls.account-name", "acc", "acc"),
            ("s3.region", "eu-central-1", "eu-central-1"),
            ("s3.path-style-access", "true", "true"),
        ] {
            assert_eq!(shown_value(key, value), shown, "{key}");
        }
    }
}
