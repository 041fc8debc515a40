//! Locations, as Iceberg metadata spells them, and paths, as object stores spell them.
//!
//! | location                      | path                  |
//! |-------------------------------|-----------------------|
//! | `file:///a/b`, `file:/a/b`, `/a/b` | `file/a/b`       |
//! | `s3://bucket/k`, `s3a://bucket/k`, `s3n://bucket/k` | `s3/bucket/k` |
//! | `gs://bucket/k`               | `gs/bucket/k`         |
//! | `abfss://box@account.dfs.core.windows.net/k`, `abfs://…`, `wasbs://box@account.blob.core.windows.net/k`, `wasb://…` | `az/box@account.dfs.core.windows.net/k` |
//! | `az://box/k`, `abfss://box/k` | `az/box/k`            |
//! | `https://host:port/k`, `http://host:port/k` | `https/host:port/k`, `http/host:port/k` |
//!
//! A location is not a URL: nothing in it is percent-decoded. Spark writes keys such as `ts=2024-01-01T00%3A00`, whose
//! percent sign is part of the key, and a space is a space.

use object_store::path::Path;

use crate::error::{CatalogError, Result};
use crate::secrets::shown_value;

/// The first part of a path, which tells the kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    /// Local files.
    File,
    /// S3 and what speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure's blobs, also as Data Lake Storage.
    Azure,
    /// Files behind plain HTTP; read only, as the next.
    Http,
    Https,
}

/// Schemes as they are written, with what they mean.
const SCHEMES: [(&str, Scheme); 14] = [
    ("file", Scheme::File),
    ("s3", Scheme::S3),
    ("s3a", Scheme::S3),
    ("s3n", Scheme::S3),
    ("gs", Scheme::Gcs),
    ("gcs", Scheme::Gcs),
    ("abfss", Scheme::Azure),
    ("abfs", Scheme::Azure),
    ("wasbs", Scheme::Azure),
    ("wasb", Scheme::Azure),
    ("az", Scheme::Azure),
    ("azure", Scheme::Azure),
    ("http", Scheme::Http),
    ("https", Scheme::Https),
];

impl Scheme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scheme::File => "file",
            Scheme::S3 => "s3",
            Scheme::Gcs => "gs",
            Scheme::Azure => "az",
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The scheme of a path.
    pub(crate) fn of_path(first: &str) -> Option<Self> {
        let schemes = SCHEMES.iter().map(|(_, scheme)| *scheme);
        schemes.into_iter().find(|scheme| scheme.as_str() == first)
    }

    fn written(scheme: &str) -> Option<Self> {
        let known = |(name, _): &&(&str, Scheme)| scheme.eq_ignore_ascii_case(name);
        SCHEMES.iter().find(known).map(|(_, scheme)| *scheme)
    }
}

/// A location taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location<'a> {
    pub(crate) scheme: Scheme,
    /// The bucket; `container@host` or `container` on Azure; host and port for HTTP; empty for local files.
    pub(crate) bucket: String,
    /// Without a leading slash.
    pub(crate) key: &'a str,
}

impl<'a> Location<'a> {
    pub(crate) fn parse(location: &'a str) -> Result<Self> {
        let invalid = |reason: &str| CatalogError::InvalidLocation {
            location: shown_value("", location).to_string(),
            reason: reason.to_string(),
        };
        if let Some(key) = location.strip_prefix('/') {
            return Ok(Self::file(key));
        }
        let Some((written, rest)) = location.split_once(':') else {
            return Err(invalid("it is neither an absolute path nor a URL"));
        };
        let Some(scheme) = Scheme::written(written) else {
            return Err(invalid(&format!(
                "stores of scheme '{written}' are not supported (file, s3, gs, abfss, wasbs, az, http and https are)"
            )));
        };
        if scheme == Scheme::File {
            // One slash (Hadoop), three (RFC 8089), or two and a host, which can only be this one.
            let key = if let Some(after_host) = rest.strip_prefix("//") {
                let (host, key) = after_host
                    .split_once('/')
                    .ok_or_else(|| invalid("it has no path"))?;
                if !host.is_empty() && host != "localhost" {
                    return Err(invalid("files of another host cannot be read"));
                }
                key
            } else {
                rest.strip_prefix('/')
                    .ok_or_else(|| invalid("the path must be absolute"))?
            };
            return Ok(Self::file(key));
        }
        let rest = rest
            .strip_prefix("//")
            .ok_or_else(|| invalid("'//' and a bucket must follow the scheme"))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(invalid(match scheme {
                Scheme::Http | Scheme::Https => "it names no host",
                _ => "it names no bucket",
            }));
        }
        let bucket = match scheme {
            Scheme::Azure => azure_container(bucket).map_err(invalid)?,
            Scheme::Http | Scheme::Https if bucket.contains('@') => {
                return Err(invalid(
                    "a user in it would be shown wherever it is; say 'http.header.Authorization' instead",
                ));
            }
            _ => bucket.to_string(),
        };
        Ok(Self {
            scheme,
            bucket,
            key,
        })
    }

    fn file(key: &'a str) -> Self {
        Self {
            scheme: Scheme::File,
            bucket: String::new(),
            key,
        }
    }
}

/// A container and, if it is said, the host of its account. The two services of an account (`dfs`, `blob`) hold the same
/// objects.
fn azure_container(written: &str) -> Result<String, &'static str> {
    match written.split_once('@') {
        None => Ok(written.to_string()),
        Some(("", _)) => Err("it names no container"),
        Some((_, "")) => Err("it names no account"),
        Some((container, host)) => Ok(format!(
            "{container}@{}",
            host.replacen(".blob.", ".dfs.", 1)
        )),
    }
}

/// The path of a location in the one store that [`StorageDescriptor::open`](super::StorageDescriptor::open) gives.
pub fn location_to_path(location: &str) -> Result<Path> {
    let Location {
        scheme,
        bucket,
        key,
    } = Location::parse(location)?;
    let mut raw = String::with_capacity(location.len() + 8);
    raw.push_str(scheme.as_str());
    if scheme != Scheme::File {
        raw.push('/');
        raw.push_str(&bucket);
    }
    // To a file system two slashes are one; to an object store they are another key, which object_store cannot spell.
    let segments: Box<dyn Iterator<Item = &str>> = match scheme {
        Scheme::File => Box::new(key.split('/').filter(|s| !s.is_empty() && *s != ".")),
        _ => Box::new(
            key.strip_suffix('/')
                .unwrap_or(key)
                .split('/')
                .filter(|_| !key.is_empty()),
        ),
    };
    for segment in segments {
        raw.push('/');
        raw.push_str(segment);
    }
    // `parse` takes every segment as it is; `from` would escape percent signs once more.
    Path::parse(&raw).map_err(|e| CatalogError::InvalidLocation {
        location: location.to_string(),
        reason: e.to_string(),
    })
}

/// The canonical location of a path: `file/a/b` is `file:///a/b`, `s3/bucket/k` is `s3://bucket/k`.
pub fn path_to_location(path: &Path) -> Result<String> {
    let raw = path.as_ref();
    let invalid = || CatalogError::InvalidLocation {
        location: raw.to_string(),
        reason: "the path does not start with the scheme of a store".to_string(),
    };
    let (first, rest) = raw.split_once('/').ok_or_else(invalid)?;
    match Scheme::of_path(first).ok_or_else(invalid)? {
        Scheme::File => Ok(format!("file:///{rest}")),
        Scheme::Azure
            if rest
                .split('/')
                .next()
                .is_some_and(|container| container.contains('@')) =>
        {
            Ok(format!("abfss://{rest}"))
        }
        scheme => Ok(format!("{}://{rest}", scheme.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_become_paths() {
        for (location, path) in [
            ("file:///a/b.parquet", "file/a/b.parquet"),
            ("file:/a/b.parquet", "file/a/b.parquet"),
            ("file://localhost/a/b", "file/a/b"),
            ("/a/b", "file/a/b"),
            ("/a//b/./c/", "file/a/b/c"),
            ("FILE:///a", "file/a"),
            ("s3://bkt/k", "s3/bkt/k"),
            ("s3a://bkt/k/l", "s3/bkt/k/l"),
            ("s3n://bkt/k", "s3/bkt/k"),
            ("s3://bkt", "s3/bkt"),
            ("s3://bkt/", "s3/bkt"),
            ("s3://bkt/wh/", "s3/bkt/wh"),
            (
                "s3://bkt/ts=2024-01-01T00%3A00/f",
                "s3/bkt/ts=2024-01-01T00%3A00/f",
            ),
            (
                "/wh/ts=2024-01-01T00%3A00%25/f",
                "file/wh/ts=2024-01-01T00%3A00%25/f",
            ),
            ("file:///a b/c d.parquet", "file/a b/c d.parquet"),
            ("s3://bkt/größe=1/f?x#y", "s3/bkt/größe=1/f?x#y"),
            ("gs://bkt/a%20b", "gs/bkt/a%20b"),
            (
                "abfss://box@acc.dfs.core.windows.net/t/f",
                "az/box@acc.dfs.core.windows.net/t/f",
            ),
            (
                "wasbs://box@acc.blob.core.windows.net/t/f",
                "az/box@acc.dfs.core.windows.net/t/f",
            ),
            ("az://box/t", "az/box/t"),
            ("abfs://box/t", "az/box/t"),
            ("https://host/a/b", "https/host/a/b"),
            ("http://host:8080/a", "http/host:8080/a"),
        ] {
            assert_eq!(
                location_to_path(location).unwrap().as_ref(),
                path,
                "{location}"
            );
        }
    }

    #[test]
    fn paths_become_locations() {
        for (path, location) in [
            ("file/a/b c", "file:///a/b c"),
            (
                "s3/bkt/ts=2024-01-01T00%3A00/f",
                "s3://bkt/ts=2024-01-01T00%3A00/f",
            ),
            ("gs/b/k", "gs://b/k"),
            (
                "az/box@acc.dfs.core.windows.net/k",
                "abfss://box@acc.dfs.core.windows.net/k",
            ),
            ("az/box/k", "az://box/k"),
            ("http/host:80/k", "http://host:80/k"),
        ] {
            let path = Path::parse(path).unwrap();
            assert_eq!(path_to_location(&path).unwrap(), location);
            assert_eq!(location_to_path(location).unwrap(), path);
        }
        assert!(path_to_location(&Path::parse("ftp/b/k").unwrap()).is_err());
    }

    #[test]
    fn what_is_not_a_location_is_said() {
        for (location, reason) in [
            ("", "neither an absolute path nor a URL"),
            ("relative/path", "neither an absolute path nor a URL"),
            ("file:relative", "must be absolute"),
            ("file://other-host/a", "another host"),
            ("s3:///key", "names no bucket"),
            ("s3:bkt/key", "must follow the scheme"),
            ("hdfs://host/key", "scheme 'hdfs'"),
            ("abfss://@acc.dfs.core.windows.net/k", "names no container"),
            ("abfss://box@/k", "names no account"),
            ("http:///k", "names no host"),
            ("https://me:hush@host/k", "location '******' is not valid"),
            ("/a/../b", "illegal character sequence"),
            ("s3://bkt/a//b", "empty path segment"),
        ] {
            let error = location_to_path(location).unwrap_err().to_string();
            assert!(error.contains(reason), "{location}: {error}");
        }
    }
}
