//! The two parts of the file that are lists and not single settings: catalogs and users.

use std::collections::BTreeMap;

/// `[catalog.<name>]`: a catalog and its properties, as `CREATE CATALOG … PROPERTIES` takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    pub name: String,
    pub properties: BTreeMap<String, String>,
    /// File and line.
    pub place: String,
}

/// `[[users]]`: who may log in.
#[derive(Clone, PartialEq, Eq)]
pub struct UserEntry {
    pub name: String,
    pub password: UserPassword,
    /// File and line.
    pub place: String,
}

/// How the file gives a user's password.
#[derive(Clone, PartialEq, Eq)]
pub enum UserPassword {
    None,
    Plain(String),
    /// Hexadecimal digits of SHA256(SHA256(password)).
    Sha256(String),
}

impl std::fmt::Debug for UserEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the password.
        write!(f, "UserEntry({})", self.name)
    }
}

/// Whether a catalog property's value must not be shown.
pub fn is_secret(property: &str) -> bool {
    let property = property.to_ascii_lowercase();
    [
        "secret",
        "password",
        "token",
        "credential",
        "access-key",
        "session",
    ]
    .iter()
    .any(|word| property.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret() {
        for name in [
            "s3.secret-access-key",
            "s3.access-key-id",
            "token",
            "credential",
            "s3.session-token",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["uri", "warehouse", "s3.endpoint", "s3.region", "type"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
