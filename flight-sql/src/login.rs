//! What a call says about who makes it.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::status::invalid;

/// Credentials in the headers of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A token from a handshake.
    Token(String),
    /// User and password.
    Basic { user: String, password: String },
    /// Nothing: good enough for `root` as long as it has no password.
    Anonymous,
}

impl Credentials {
    /// Reads `authorization`, or `auth-token-bin` as clients of the older handshake send it.
    pub fn of(headers: &MetadataMap) -> Result<Self, Status> {
        if let Some(token) = headers.get_bin("auth-token-bin") {
            let token = token
                .to_bytes()
                .map_err(|_| invalid("the auth-token-bin header is not base64"))?;
            return String::from_utf8(token.to_vec())
                .map(Self::Token)
                .map_err(|_| invalid("the auth-token-bin header is not a token of this server"));
        }
        let Some(header) = headers.get("authorization") else {
            return Ok(Self::Anonymous);
        };
        let header = header
            .to_str()
            .map_err(|_| invalid("the authorization header is not text"))?;
        let (scheme, value) = header.split_once(' ').unwrap_or((header, ""));
        let value = value.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            Ok(Self::Token(value.to_owned()))
        } else if scheme.eq_ignore_ascii_case("basic") {
            basic(value)
        } else {
            Err(Status::unauthenticated(format!(
                "authorization scheme {scheme} is not known; use Basic or Bearer"
            )))
        }
    }
}

fn basic(value: &str) -> Result<Credentials, Status> {
    let bytes = BASE64_STANDARD
        .decode(value)
        .or_else(|_| BASE64_STANDARD_NO_PAD.decode(value))
        .map_err(|_| invalid("the Basic credentials are not base64"))?;
    let text =
        String::from_utf8(bytes).map_err(|_| invalid("the Basic credentials are not UTF-8"))?;
    let (user, password) = text
        .split_once(':')
        .ok_or_else(|| invalid("the Basic credentials are not user:password"))?;
    Ok(Credentials::Basic {
        user: user.to_owned(),
        password: password.to_owned(),
    })
}

/// The catalog and database that a client wants to begin in, from the headers that JDBC and ADBC
/// make of connection properties: `database`, or `catalog` and `schema`.
pub(crate) fn wanted_database(headers: &MetadataMap) -> Option<String> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .filter(|value| !value.is_empty())
    };
    let database = text("database").or_else(|| text("schema"));
    match (text("catalog"), database) {
        (Some(catalog), Some(database)) if !database.contains('.') => {
            Some(format!("{catalog}.{database}"))
        }
        (Some(catalog), None) => Some(format!("{catalog}.{}", tarn_catalog::DEFAULT_DATABASE)),
        (_, database) => database.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use tonic::metadata::MetadataValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> MetadataMap {
        let mut headers = MetadataMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn credentials_are_read_from_the_headers() {
        let table = [
            (
                "Basic cm9vdDpzOmU=",
                Credentials::Basic {
                    user: "root".into(),
                    password: "s:e".into(),
                },
            ),
            (
                "basic cm9vdDo",
                Credentials::Basic {
                    user: "root".into(),
                    password: String::new(),
                },
            ),
            ("Bearer abc", Credentials::Token("abc".into())),
            ("bearer abc", Credentials::Token("abc".into())),
        ];
        for (header, expected) in table {
            assert_eq!(
                Credentials::of(&headers(&[("authorization", header)])).unwrap(),
                expected
            );
        }
        assert_eq!(
            Credentials::of(&MetadataMap::new()).unwrap(),
            Credentials::Anonymous
        );
        let mut old = MetadataMap::new();
        old.insert_bin("auth-token-bin", MetadataValue::from_bytes(b"abc"));
        assert_eq!(
            Credentials::of(&old).unwrap(),
            Credentials::Token("abc".into())
        );
    }

    #[test]
    fn bad_credentials_are_errors() {
        for header in ["Digest x", "Basic ###", "Basic cm9vdA==", "Basic"] {
            assert!(
                Credentials::of(&headers(&[("authorization", header)])).is_err(),
                "{header}"
            );
        }
    }

    #[test]
    fn a_database_is_wanted_by_header() {
        let wanted = |pairs: &[(&'static str, &str)]| wanted_database(&headers(pairs));
        assert_eq!(wanted(&[]), None);
        assert_eq!(wanted(&[("database", "d")]), Some("d".into()));
        assert_eq!(
            wanted(&[("schema", "d"), ("catalog", "c")]),
            Some("c.d".into())
        );
        assert_eq!(wanted(&[("catalog", "c")]), Some("c.default".into()));
        assert_eq!(
            wanted(&[("database", "c.d"), ("catalog", "x")]),
            Some("c.d".into())
        );
    }
}
