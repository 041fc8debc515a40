//! Which state of a table a query reads.

use std::fmt;

use chrono::DateTime;
use iceberg::spec::{MAIN_BRANCH, SchemaRef, SnapshotRef, TableMetadata};

use crate::error::{CatalogError, Result};
use crate::name::TableName;
use crate::near_names::near_names;
use crate::refs::references;

/// The most branches and tags that an error lists.
const MAX_LISTED: usize = 8;

/// A state of a table: the current one, or one that its metadata still knows.
///
/// The schema that goes with each is the reference implementation's: a snapshot, a time or a tag is read with the
/// schema that was current when the snapshot was made; a branch is still being written to, and is read with the
/// table's schema of now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum TableVersion {
    /// The main branch.
    #[default]
    Current,
    /// The snapshot of that id, whether or not it is an ancestor of the current one.
    Snapshot(i64),
    /// The branch or tag of that name; if there is none and it is a number, the snapshot of that id.
    Named(String),
    Branch(String),
    Tag(String),
    /// What was current at that time, in microseconds since 1970 in UTC.
    AsOf(i64),
}

impl fmt::Display for TableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => Ok(()),
            Self::Snapshot(id) => write!(f, "FOR VERSION AS OF {id}"),
            Self::Named(name) => write!(f, "FOR VERSION AS OF '{name}'"),
            Self::Branch(name) => write!(f, "branch '{name}'"),
            Self::Tag(name) => write!(f, "tag '{name}'"),
            Self::AsOf(micros) => write!(f, "FOR TIMESTAMP AS OF '{}'", time_text(*micros)),
        }
    }
}

/// The snapshot of a version, and the schema it is read with.
pub(crate) fn resolve(
    table: &TableName,
    metadata: &TableMetadata,
    version: &TableVersion,
) -> Result<(Option<SnapshotRef>, SchemaRef)> {
    let current = || metadata.current_schema().clone();
    let by_id = |id: i64| {
        let snapshot = metadata
            .snapshot_by_id(id)
            .ok_or_else(|| no_snapshot(table, metadata, id))?;
        Ok((
            Some(snapshot.clone()),
            own_schema(table, metadata, snapshot)?,
        ))
    };
    match version {
        TableVersion::Current => Ok((metadata.current_snapshot().cloned(), current())),
        TableVersion::Snapshot(id) => by_id(*id),
        TableVersion::AsOf(micros) => by_id(snapshot_at(table, metadata, *micros)?),
        TableVersion::Named(name) | TableVersion::Branch(name) | TableVersion::Tag(name) => {
            // The main branch needs no look at the references, and is there before the first snapshot.
            if name == MAIN_BRANCH && !matches!(version, TableVersion::Tag(_)) {
                return Ok((metadata.current_snapshot().cloned(), current()));
            }
            let refs = references(metadata)?;
            match (refs.get(name), version) {
                (Some(reference), TableVersion::Named(_) | TableVersion::Branch(_))
                    if reference.is_branch() =>
                {
                    Ok((by_id(reference.snapshot_id)?.0, current()))
                }
                (Some(reference), TableVersion::Named(_) | TableVersion::Tag(_))
                    if !reference.is_branch() =>
                {
                    by_id(reference.snapshot_id)
                }
                (None, TableVersion::Named(_)) if name.trim().parse::<i64>().is_ok() => {
                    by_id(name.trim().parse().unwrap_or_default())
                }
                (found, _) => {
                    let (kind, other) = match version {
                        TableVersion::Branch(_) => ("branch", "tag"),
                        TableVersion::Tag(_) => ("tag", "branch"),
                        _ => ("branch or tag", ""),
                    };
                    let hint = match found {
                        Some(_) => format!("; there is a {other} of that name"),
                        None => known_names(name, refs.keys().map(String::as_str)),
                    };
                    Err(CatalogError::NoSuchVersion {
                        table: table.clone(),
                        version: format!("{kind} '{name}'"),
                        hint,
                    })
                }
            }
        }
    }
}

/// The schema that was current when the snapshot was made; the table's, for snapshots of writers that did not say.
fn own_schema(
    table: &TableName,
    metadata: &TableMetadata,
    snapshot: &SnapshotRef,
) -> Result<SchemaRef> {
    let Some(id) = snapshot.schema_id() else {
        return Ok(metadata.current_schema().clone());
    };
    metadata
        .schema_by_id(id)
        .cloned()
        .ok_or_else(|| CatalogError::InvalidTable {
            table: table.to_string(),
            reason: format!(
                "snapshot {} has the schema {id}, which the table's metadata does not have",
                snapshot.snapshot_id()
            ),
        })
}

/// The last snapshot in the snapshot log that was made current at or before that time.
pub(crate) fn snapshot_at(table: &TableName, metadata: &TableMetadata, micros: i64) -> Result<i64> {
    let found = logged_at(metadata, micros.div_euclid(1000));
    found.ok_or_else(|| {
        let hint = match metadata
            .history()
            .iter()
            .map(|entry| entry.timestamp_ms())
            .min()
        {
            Some(first) => format!(
                "; its history begins at {} UTC",
                time_text(first.saturating_mul(1000))
            ),
            None => "; nothing was written to it yet".to_owned(),
        };
        CatalogError::NoSuchVersion {
            table: table.clone(),
            version: format!("snapshot as old as {} UTC", time_text(micros)),
            hint,
        }
    })
}

/// The snapshot that was current at that time, by the snapshot log.
pub(crate) fn logged_at(metadata: &TableMetadata, millis: i64) -> Option<i64> {
    metadata
        .history()
        .iter()
        .rev()
        .find(|entry| entry.timestamp_ms() <= millis)
        .map(|entry| entry.snapshot_id)
}

fn no_snapshot(table: &TableName, metadata: &TableMetadata, id: i64) -> CatalogError {
    let known: Vec<String> = {
        let mut snapshots: Vec<_> = metadata.snapshots().collect();
        snapshots.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.timestamp_ms()));
        snapshots
            .iter()
            .map(|snapshot| snapshot.snapshot_id().to_string())
            .collect()
    };
    let hint = match (
        near_names(&id.to_string(), known.iter().map(String::as_str)),
        known.as_slice(),
    ) {
        (_, []) => "; nothing was written to it yet".to_owned(),
        (near, _) if !near.is_empty() => format!("; did you mean {}?", near.join(" or ")),
        (_, [newest, ..]) => format!(
            "; it has {} snapshot(s), the newest is {newest}",
            known.len()
        ),
    };
    CatalogError::NoSuchVersion {
        table: table.clone(),
        version: format!("snapshot {id} (it may have been expired)"),
        hint,
    }
}

/// Near names, or else the names there are.
pub(crate) fn known_names<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let quoted = |names: &[String]| {
        let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        quoted.join(", ")
    };
    let near = near_names(wanted, names.clone());
    if !near.is_empty() {
        return format!("; did you mean {}?", quoted(&near));
    }
    let all: Vec<String> = names.map(str::to_owned).collect();
    match all.len() {
        0 => "; it has none".to_owned(),
        n if n > MAX_LISTED => format!(
            "; it has {n} branches and tags, such as {}",
            quoted(&all[..MAX_LISTED])
        ),
        _ => format!("; it has {}", quoted(&all)),
    }
}

/// A time in UTC, to the millisecond or as fine as it is.
pub(crate) fn time_text(micros: i64) -> String {
    match DateTime::from_timestamp_micros(micros) {
        Some(time) if micros.rem_euclid(1000) == 0 => {
            time.format("%Y-%m-%d %H:%M:%S%.3f").to_string()
        }
        Some(time) => time.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
        None => format!("{micros} microseconds since 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two schemas, three snapshots, of which the first is tagged, the second is a branch's, and the third current.
    /// At 1500 the table was rolled back to the first one.
    fn metadata() -> TableMetadata {
        let schema = |id: i32, column: &str| {
            format!(
                r#"{{"type":"struct","schema-id":{id},"fields":[{{"id":1,"name":"{column}","required":false,"type":"int"}}]}}"#
            )
        };
        let snapshot = |id: i64, schema: &str, at: i64| {
            format!(
                r#"{{"snapshot-id":{id},"sequence-number":1,"timestamp-ms":{at},"summary":{{"operation":"append"}},"manifest-list":"s3://b/{id}.avro"{schema}}}"#
            )
        };
        let json = format!(
            r#"{{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t","last-sequence-number":1,
            "last-updated-ms":9000,"last-column-id":1,"current-schema-id":1,"schemas":[{},{}],"default-spec-id":0,
            "partition-specs":[{{"spec-id":0,"fields":[]}}],"last-partition-id":999,"default-sort-order-id":0,
            "sort-orders":[{{"order-id":0,"fields":[]}}],"properties":{{}},"current-snapshot-id":13,"snapshots":[{},{},{}],
            "snapshot-log":[{{"snapshot-id":11,"timestamp-ms":1000}},{{"snapshot-id":12,"timestamp-ms":1200}},
              {{"snapshot-id":11,"timestamp-ms":1500}},{{"snapshot-id":13,"timestamp-ms":2000}}],
            "refs":{{"main":{{"snapshot-id":13,"type":"branch"}},"release":{{"snapshot-id":11,"type":"tag"}},
              "dev":{{"snapshot-id":12,"type":"branch"}},"11":{{"snapshot-id":12,"type":"tag"}}}}}}"#,
            schema(0, "old"),
            schema(1, "new"),
            snapshot(11, r#","schema-id":0"#, 1000),
            snapshot(12, r#","schema-id":0"#, 1200),
            snapshot(13, "", 2000),
        );
        serde_json::from_str(&json).expect("valid metadata")
    }

    fn read(version: TableVersion) -> Result<(i64, String), String> {
        let name = TableName::new("lake", "db", "t");
        let (snapshot, schema) =
            resolve(&name, &metadata(), &version).map_err(|error| error.to_string())?;
        let id = snapshot.map_or(0, |snapshot| snapshot.snapshot_id());
        Ok((id, schema.as_struct().fields()[0].name.clone()))
    }

    fn named(name: &str) -> TableVersion {
        TableVersion::Named(name.to_owned())
    }

    #[test]
    fn a_snapshot_and_a_tag_have_their_own_schema_a_branch_the_tables() {
        for (version, id, column) in [
            (TableVersion::Current, 13, "new"),
            (TableVersion::Snapshot(11), 11, "old"),
            // It does not say with which schema it was made.
            (TableVersion::Snapshot(13), 13, "new"),
            (named("release"), 11, "old"),
            (TableVersion::Tag("release".into()), 11, "old"),
            (named("dev"), 12, "new"),
            (TableVersion::Branch("dev".into()), 12, "new"),
            (named("main"), 13, "new"),
            // A name goes before a number that is written as text.
            (named("11"), 12, "old"),
            (named("12"), 12, "old"),
        ] {
            assert_eq!(
                read(version.clone()),
                Ok((id, column.to_owned())),
                "{version:?}"
            );
        }
    }

    #[test]
    fn a_time_reads_what_was_current_then() {
        for (millis, id) in [
            (1000, 11),
            (1199, 11),
            (1200, 12),
            (1499, 12),
            // Rolled back.
            (1500, 11),
            (1999, 11),
            (2000, 13),
            (99_999, 13),
        ] {
            let read = read(TableVersion::AsOf(millis * 1000)).expect("there was a snapshot");
            assert_eq!(read.0, id, "at {millis}");
        }
        let almost = read(TableVersion::AsOf(1_999_999)).expect("there was a snapshot");
        assert_eq!(almost.0, 11, "a microsecond before the commit");
        assert_eq!(
            read(TableVersion::AsOf(999_999)),
            Err("table 'lake.db.t' has no snapshot as old as 1970-01-01 00:00:00.999999 UTC; its history begins at \
                 1970-01-01 00:00:01.000 UTC"
                .to_owned())
        );
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        for (version, said) in [
            (
                named("relaese"),
                "table 'lake.db.t' has no branch or tag 'relaese'; did you mean 'release'?",
            ),
            (
                named("nothing like it"),
                "table 'lake.db.t' has no branch or tag 'nothing like it'; it has '11', 'dev', 'main', 'release'",
            ),
            (
                TableVersion::Branch("release".into()),
                "table 'lake.db.t' has no branch 'release'; there is a tag of that name",
            ),
            (
                TableVersion::Tag("main".into()),
                "table 'lake.db.t' has no tag 'main'; there is a branch of that name",
            ),
            (
                TableVersion::Snapshot(77_777),
                "table 'lake.db.t' has no snapshot 77777 (it may have been expired); it has 3 snapshot(s), the newest is 13",
            ),
        ] {
            assert_eq!(read(version), Err(said.to_owned()));
        }
    }
}
