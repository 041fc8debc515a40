//! Branches and tags: what a table has, and how they are changed.
//!
//! A change is one compare-and-swap on the reference: another writer's commit to the same reference makes it be looked
//! at anew, and what it asks for be checked again.

use std::collections::BTreeMap;

use iceberg::spec::{
    FormatVersion, MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadata,
};
use iceberg::{TableRequirement, TableUpdate};
use serde::Deserialize;

use crate::backend::CommitError;
use crate::catalog::Catalog;
use crate::commit_retry::CommitRetry;
use crate::error::{CatalogError, Result};
use crate::pinned::PinnedTable;
use crate::version::{known_names, snapshot_at, time_text};

/// A branch moves with each commit to it, a tag stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    Branch,
    Tag,
}

impl RefKind {
    fn name(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Tag => "tag",
        }
    }

    fn of(reference: &SnapshotReference) -> Self {
        match reference.is_branch() {
            true => Self::Branch,
            false => Self::Tag,
        }
    }
}

/// What happens if a reference of that name is there, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefCreation {
    /// `CREATE`: it must not be there.
    Create,
    /// `CREATE … IF NOT EXISTS`: one that is there stays as it is.
    IfNotExists,
    /// `CREATE OR REPLACE`
    CreateOrReplace,
    /// `REPLACE`: it must be there.
    Replace,
}

/// How long a reference, and the snapshots of a branch, are kept when snapshots are expired. What is `None` is left to
/// the table's properties, or to what the replaced reference had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RefRetention {
    pub max_ref_age_ms: Option<i64>,
    pub min_snapshots_to_keep: Option<i32>,
    pub max_snapshot_age_ms: Option<i64>,
}

/// A change of one reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefChange {
    Create {
        kind: RefKind,
        name: String,
        /// The current snapshot if it is not said.
        snapshot: Option<i64>,
        creation: RefCreation,
        retention: RefRetention,
    },
    Drop {
        kind: RefKind,
        name: String,
        if_exists: bool,
    },
    /// The main branch goes back to one of its own snapshots.
    RollbackTo { snapshot: i64 },
    /// The main branch goes back to its last snapshot from before that time, in microseconds since 1970.
    RollbackToTime { micros: i64 },
    /// The main branch gets any snapshot of the table.
    SetCurrent { snapshot: i64 },
    /// The main branch gets the snapshot of a branch or tag.
    SetCurrentToRef { name: String },
}

impl RefChange {
    fn reference(&self) -> &str {
        match self {
            Self::Create { name, .. } | Self::Drop { name, .. } => name,
            _ => MAIN_BRANCH,
        }
    }
}

/// What a change did to its reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefOutcome {
    pub previous: Option<i64>,
    pub now: Option<i64>,
    /// `false` if there was nothing to do.
    pub changed: bool,
}

/// The references of a table by name: `main` too, unless nothing was written yet.
///
/// The Iceberg crate does not give them out, but their text.
pub(crate) fn references(metadata: &TableMetadata) -> Result<BTreeMap<String, SnapshotReference>> {
    #[derive(Deserialize)]
    struct Refs {
        #[serde(default)]
        refs: BTreeMap<String, SnapshotReference>,
    }
    let refs = serde_json::to_vec(metadata)
        .and_then(|text| serde_json::from_slice::<Refs>(&text))
        .map_err(|error| {
            CatalogError::Internal(format!("the references of a table cannot be read: {error}"))
        })?;
    let mut refs = refs.refs;
    // The text of a version 1 table has no references; its current snapshot is the main branch's all the same.
    if let Some(id) = metadata.current_snapshot_id() {
        refs.entry(MAIN_BRANCH.to_owned()).or_insert_with(|| {
            SnapshotReference::new(id, SnapshotRetention::branch(None, None, None))
        });
    }
    Ok(refs)
}

/// What is set for the main branch.
pub(crate) fn retention_of_main(metadata: &TableMetadata) -> SnapshotRetention {
    references(metadata)
        .ok()
        .and_then(|mut refs| refs.remove(MAIN_BRANCH))
        .map_or_else(
            || SnapshotRetention::branch(None, None, None),
            |reference| reference.retention,
        )
}

impl Catalog {
    /// Changes a reference of a table.
    pub async fn change_ref(
        &self,
        database: &str,
        table: &str,
        change: &RefChange,
    ) -> Result<RefOutcome> {
        let mut base = self.table(database, table).await?;
        let name = base.name().clone();
        let uuid = base.metadata().uuid();
        let mut retry = CommitRetry::of(&base);
        loop {
            let refs = references(base.metadata())?;
            let previous = refs
                .get(change.reference())
                .map(|reference| reference.snapshot_id);
            let wanted = wanted(&base, &refs, change)?;
            let now = match &wanted {
                Wanted::Nothing => {
                    return Ok(RefOutcome {
                        previous,
                        now: previous,
                        changed: false,
                    });
                }
                Wanted::Set(reference) => Some(reference.snapshot_id),
                Wanted::Removed => None,
            };
            let requirements = vec![
                TableRequirement::UuidMatch { uuid },
                TableRequirement::RefSnapshotIdMatch {
                    r#ref: change.reference().to_owned(),
                    snapshot_id: previous,
                },
            ];
            let ref_name = change.reference().to_owned();
            let update = match &wanted {
                Wanted::Set(reference) => TableUpdate::SetSnapshotRef {
                    ref_name,
                    reference: reference.clone(),
                },
                _ => TableUpdate::RemoveSnapshotRef { ref_name },
            };
            let done = RefOutcome {
                previous,
                now,
                changed: true,
            };
            let reason = match self
                .backend()
                .commit(&base, requirements, vec![update])
                .await
            {
                Ok(()) => return Ok(done),
                Err(CommitError::Failed(error)) => return Err(error),
                Err(CommitError::Unknown(reason)) => {
                    let after = self.table(database, table).await.ok();
                    let is_so = after
                        .and_then(|after| references(after.metadata()).ok())
                        .is_some_and(|refs| match &wanted {
                            Wanted::Set(reference) => {
                                refs.get(change.reference()) == Some(reference)
                            }
                            _ => !refs.contains_key(change.reference()),
                        });
                    return match is_so {
                        true => Ok(done),
                        false => Err(CatalogError::CommitUnknown {
                            table: name,
                            reason,
                        }),
                    };
                }
                Err(CommitError::Conflict(reason)) => reason,
            };
            base = retry.next_base(self, &name, reason).await?;
        }
    }
}

/// What a reference is to be.
#[derive(Debug, PartialEq)]
enum Wanted {
    Nothing,
    Set(SnapshotReference),
    Removed,
}

fn wanted(
    base: &PinnedTable,
    refs: &BTreeMap<String, SnapshotReference>,
    change: &RefChange,
) -> Result<Wanted> {
    let table = base.name();
    let metadata = base.metadata();
    let invalid = |reason: String| CatalogError::InvalidTable {
        table: table.to_string(),
        reason,
    };
    let existing = |id: i64| base.version(&crate::TableVersion::Snapshot(id)).map(|_| id);
    let main = |id: i64| {
        Wanted::Set(SnapshotReference::new(
            id,
            refs.get(MAIN_BRANCH).map_or_else(
                || SnapshotRetention::branch(None, None, None),
                |main| main.retention.clone(),
            ),
        ))
    };
    match change {
        RefChange::Create {
            kind,
            name,
            snapshot,
            creation,
            retention,
        } => {
            if metadata.format_version() == FormatVersion::V1 && name != MAIN_BRANCH {
                return Err(CatalogError::Unsupported {
                    table: table.clone(),
                    feature: "branches and tags in version 1 of the Iceberg table format"
                        .to_owned(),
                });
            }
            if name.trim().is_empty() {
                return Err(invalid(format!("the name of a {} is empty", kind.name())));
            }
            let known = refs.get(name);
            match (known, creation) {
                (Some(_), RefCreation::IfNotExists) => return Ok(Wanted::Nothing),
                (Some(known), RefCreation::Create) => {
                    let is = RefKind::of(known).name();
                    return Err(invalid(format!("it has a {is} '{name}' already")));
                }
                (None, RefCreation::Replace) => {
                    return Err(no_such(base, refs, *kind, name));
                }
                (Some(known), _) if RefKind::of(known) != *kind => {
                    return Err(invalid(format!(
                        "'{name}' is a {}, not a {}",
                        RefKind::of(known).name(),
                        kind.name()
                    )));
                }
                _ => {}
            }
            if name == MAIN_BRANCH && *kind == RefKind::Tag {
                return Err(invalid(format!("'{name}' is its main branch")));
            }
            let id = match snapshot.or(metadata.current_snapshot_id()) {
                Some(id) => existing(id)?,
                None => {
                    return Err(invalid(format!(
                        "nothing was written to it yet, so there is no snapshot for the {} '{name}'",
                        kind.name()
                    )));
                }
            };
            let retention = merged(*kind, known, retention);
            let reference = SnapshotReference::new(id, retention);
            match known == Some(&reference) {
                true => Ok(Wanted::Nothing),
                false => Ok(Wanted::Set(reference)),
            }
        }
        RefChange::Drop {
            kind,
            name,
            if_exists,
        } => match refs.get(name) {
            None if *if_exists => Ok(Wanted::Nothing),
            None => Err(no_such(base, refs, *kind, name)),
            Some(known) if RefKind::of(known) != *kind => Err(invalid(format!(
                "'{name}' is a {}, not a {}",
                RefKind::of(known).name(),
                kind.name()
            ))),
            Some(_) if name == MAIN_BRANCH => {
                Err(invalid("its main branch cannot be dropped".to_owned()))
            }
            Some(_) => Ok(Wanted::Removed),
        },
        RefChange::RollbackTo { snapshot } => {
            let id = existing(*snapshot)?;
            if !base.is_current_ancestor(id) {
                return Err(invalid(format!(
                    "it cannot be rolled back to snapshot {id}, which is not an ancestor of its current one"
                )));
            }
            Ok(unless_there(metadata, id, main))
        }
        RefChange::RollbackToTime { micros } => {
            // Of the ancestors, not of the log: a snapshot that was rolled back is not to come again.
            let ancestor = base
                .ancestors()
                .into_iter()
                .find(|ancestor| ancestor.timestamp_ms().saturating_mul(1000) < *micros);
            match ancestor {
                Some(ancestor) => Ok(unless_there(metadata, ancestor.snapshot_id(), main)),
                None => {
                    // Says when its history begins, if that is why.
                    snapshot_at(table, metadata, *micros)?;
                    Err(invalid(format!(
                        "its current snapshot has no ancestor from before {} UTC",
                        time_text(*micros)
                    )))
                }
            }
        }
        RefChange::SetCurrent { snapshot } => {
            Ok(unless_there(metadata, existing(*snapshot)?, main))
        }
        RefChange::SetCurrentToRef { name } => match refs.get(name) {
            Some(reference) => Ok(unless_there(metadata, reference.snapshot_id, main)),
            None => Err(CatalogError::NoSuchVersion {
                table: table.clone(),
                version: format!("branch or tag '{name}'"),
                hint: known_names(name, refs.keys().map(String::as_str)),
            }),
        },
    }
}

fn unless_there(metadata: &TableMetadata, id: i64, set: impl Fn(i64) -> Wanted) -> Wanted {
    match metadata.current_snapshot_id() == Some(id) {
        true => Wanted::Nothing,
        false => set(id),
    }
}

fn no_such(
    base: &PinnedTable,
    refs: &BTreeMap<String, SnapshotReference>,
    kind: RefKind,
    name: &str,
) -> CatalogError {
    let of_kind = refs
        .iter()
        .filter(|(_, reference)| RefKind::of(reference) == kind)
        .map(|(name, _)| name.as_str());
    CatalogError::NoSuchVersion {
        table: base.name().clone(),
        version: format!("{} '{name}'", kind.name()),
        hint: known_names(name, of_kind),
    }
}

/// What the statement says of retention, over what the reference had.
fn merged(
    kind: RefKind,
    known: Option<&SnapshotReference>,
    new: &RefRetention,
) -> SnapshotRetention {
    let old = match known.map(|known| &known.retention) {
        Some(SnapshotRetention::Branch {
            min_snapshots_to_keep,
            max_snapshot_age_ms,
            max_ref_age_ms,
        }) => RefRetention {
            max_ref_age_ms: *max_ref_age_ms,
            min_snapshots_to_keep: *min_snapshots_to_keep,
            max_snapshot_age_ms: *max_snapshot_age_ms,
        },
        Some(SnapshotRetention::Tag { max_ref_age_ms }) => RefRetention {
            max_ref_age_ms: *max_ref_age_ms,
            ..RefRetention::default()
        },
        None => RefRetention::default(),
    };
    let max_ref_age_ms = new.max_ref_age_ms.or(old.max_ref_age_ms);
    match kind {
        RefKind::Tag => SnapshotRetention::Tag { max_ref_age_ms },
        RefKind::Branch => SnapshotRetention::branch(
            new.min_snapshots_to_keep.or(old.min_snapshots_to_keep),
            new.max_snapshot_age_ms.or(old.max_snapshot_age_ms),
            max_ref_age_ms,
        ),
    }
}
