//! What the server says, as far as it is used.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

/// Holds secrets, hence without `Debug`.
#[derive(Deserialize)]
pub(crate) struct ServerConfig {
    #[serde(default)]
    pub(crate) defaults: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) overrides: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ListNamespaces {
    #[serde(default)]
    pub(crate) namespaces: Vec<Vec<String>>,
    #[serde(default, rename = "next-page-token")]
    pub(crate) next_page_token: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Namespace {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(crate) properties: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ListTables {
    #[serde(default)]
    pub(crate) identifiers: Vec<Identifier>,
    #[serde(default, rename = "next-page-token")]
    pub(crate) next_page_token: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Identifier {
    pub(crate) name: String,
}

/// Holds secrets, hence without `Debug`.
#[derive(Deserialize)]
pub(crate) struct LoadTable {
    #[serde(default, rename = "metadata-location")]
    pub(crate) metadata_location: Option<String>,
    pub(crate) metadata: serde_json::Value,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(crate) config: BTreeMap<String, String>,
    #[serde(
        default,
        rename = "storage-credentials",
        deserialize_with = "null_is_empty"
    )]
    pub(crate) storage_credentials: Vec<StorageCredential>,
}

/// Holds secrets, hence without `Debug`.
#[derive(Deserialize)]
pub(crate) struct StorageCredential {
    #[serde(default)]
    pub(crate) prefix: String,
    #[serde(default)]
    pub(crate) config: BTreeMap<String, String>,
}

/// Holds secrets, hence without `Debug`.
#[derive(Deserialize)]
pub(crate) struct Token {
    pub(crate) access_token: String,
    /// Seconds.
    #[serde(default)]
    pub(crate) expires_in: Option<u64>,
}

/// The body of an error. Servers that are no catalog answer with something else.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorDetail,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ErrorDetail {
    #[serde(default)]
    pub(crate) message: String,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}
