//! Locations, as Iceberg metadata spells them, and paths, as object stores spell them.
//!
//! | location                      | path                  |
//! |-------------------------------|-----------------------|
//! | `file:///a/b`, `file:/a/b`, `/a/b` | `file/a/b`       |
//! | `s3://bucket/k`, `s3a://bucket/k`, `s3n://bucket/k` | `s3/bucket/k` |
//!
//! A location is not a URL: nothing in it is percent-decoded. Spark writes keys such as `ts=2024-01-01T00%3A00`, whose
//! percent sign is part of the key, and a space is a space.

use object_store::path::Path;

use crate::error::{CatalogError, Result};

/// The first part of a path, which tells the kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    /// Local files.
    File,
    /// S3 and what speaks its protocol.
    S3,
}

impl Scheme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scheme::File => "file",
            Scheme::S3 => "s3",
        }
    }
}

/// A location taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location<'a> {
    pub(crate) scheme: Scheme,
    /// Empty for local files.
    pub(crate) bucket: &'a str,
    /// Without a leading slash.
    pub(crate) key: &'a str,
}

impl<'a> Location<'a> {
    pub(crate) fn parse(location: &'a str) -> Result<Self> {
        let invalid = |reason: &str| CatalogError::InvalidLocation {
            location: location.to_string(),
            reason: reason.to_string(),
        };
        if let Some(key) = location.strip_prefix('/') {
            return Ok(Self {
                scheme: Scheme::File,
                bucket: "",
                key,
            });
        }
        let Some((scheme, rest)) = location.split_once(':') else {
            return Err(invalid("it is neither an absolute path nor a URL"));
        };
        if scheme.eq_ignore_ascii_case("file") {
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
            return Ok(Self {
                scheme: Scheme::File,
                bucket: "",
                key,
            });
        }
        if ["s3", "s3a", "s3n"]
            .iter()
            .any(|s| scheme.eq_ignore_ascii_case(s))
        {
            let rest = rest
                .strip_prefix("//")
                .ok_or_else(|| invalid("'//' and a bucket must follow the scheme"))?;
            let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(invalid("it names no bucket"));
            }
            return Ok(Self {
                scheme: Scheme::S3,
                bucket,
                key,
            });
        }
        Err(invalid(&format!(
            "stores of scheme '{scheme}' are not supported (file and s3 are)"
        )))
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
    if scheme == Scheme::S3 {
        raw.push('/');
        raw.push_str(bucket);
    }
    // To a file system two slashes are one; to S3 they are another key, which object_store cannot spell.
    let segments: Box<dyn Iterator<Item = &str>> = match scheme {
        Scheme::File => Box::new(key.split('/').filter(|s| !s.is_empty() && *s != ".")),
        Scheme::S3 => Box::new(
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
        reason: "the path does not start with 'file' or 's3'".to_string(),
    };
    let (scheme, rest) = raw.split_once('/').ok_or_else(invalid)?;
    match scheme {
        "file" => Ok(format!("file:///{rest}")),
        "s3" => Ok(format!("s3://{rest}")),
        _ => Err(invalid()),
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
        ] {
            let path = Path::parse(path).unwrap();
            assert_eq!(path_to_location(&path).unwrap(), location);
            assert_eq!(location_to_path(location).unwrap(), path);
        }
        assert!(path_to_location(&Path::parse("gs/b/k").unwrap()).is_err());
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
            ("gs://bkt/key", "scheme 'gs'"),
            ("/a/../b", "illegal character sequence"),
            ("s3://bkt/a//b", "empty path segment"),
        ] {
            let error = location_to_path(location).unwrap_err().to_string();
            assert!(error.contains(reason), "{location}: {error}");
        }
    }
}
