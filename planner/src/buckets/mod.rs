//! Joins and aggregates that know the buckets of tables.
//!
//! Rows of one key are in one bucket of an Iceberg table that is partitioned by `bucket(n, key)`, and in the same bucket of
//! every other table that is. A join, an aggregate or a window by the key then needs no shuffle:
//!
//! ```text
//!   Join k = k                                BucketJoin k = k
//!     Repartition hash(k)                       events  [bucket 0] [bucket 1] … one partition for each group of buckets
//!       events                     ──▶          users   [bucket 0] [bucket 1] … the same buckets in the same places
//!     Repartition hash(k)
//!       users
//! ```
//!
//! [`file_buckets`] tells the bucket of each file, [`rule`] rewrites plans after all other rules, [`placement`] says which
//! worker reads a bucket, [`join`] is the join of buckets, and [`check`] looks at each row that is read for whether it is in
//! the bucket that its file says. Where only one side is bucketed, [`route`] sends the rows of the other to the buckets.

pub(crate) mod check;
mod distribution;
mod file_buckets;
mod hash;
mod hashes;
mod hinted;
mod join;
mod join_codec;
mod kind;
mod nodes;
mod origin;
mod placement;
mod route;
mod rule;
mod scan;
mod shared_build;
mod subtree;

pub(crate) use distribution::hash_join;
pub use distribution::{Distribution, JoinDistribution, join_distributions};
pub(crate) use file_buckets::{FileBucket, FileBuckets, SpecBuckets};
pub(crate) use join::BucketJoinExec;
pub(crate) use join_codec::{decode_join, encode_join, is_join};
pub(crate) use kind::column_of;
pub(crate) use placement::BucketPlacement;
pub(crate) use route::route_function;
pub(crate) use rule::BucketJoins;
pub(crate) use scan::{ScanBuckets, in_buckets};
pub(crate) use shared_build::SharedBuildExec;
