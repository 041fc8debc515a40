//! The parts of the file that are not single settings: catalogs, the storage of tables without one, and users.

use std::collections::BTreeMap;

/// `[catalog.<name>]`: a catalog and its properties, as `CREATE CATALOG … PROPERTIES` takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    pub name: String,
    pub properties: BTreeMap<String, String>,
    /// File and line.
    pub place: String,
}

/// `[storage]`: storage properties of tables that no catalog holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageEntry {
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
