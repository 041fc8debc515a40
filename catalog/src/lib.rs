//! Iceberg catalogs, storage, metadata caches, pinned tables and commits.
