use serde::{Deserialize, Serialize};

/// What one scan of an Iceberg table looked at, what it could leave out and what it read.
///
/// The advisor that learns sort keys reads `non_part_filter_cols` next to the files that remained:
/// a column that is filtered on often while most files remain is a candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanReport {
    pub catalog: String,
    pub database: String,
    pub table: String,
    /// `None` for a table that has no snapshot yet.
    pub snapshot_id: Option<i64>,
    pub schema_id: i32,
    /// The filter that reached the scan, as SQL text; empty without one.
    pub filter: String,
    /// Columns of the filter that no partition field of the current spec derives from.
    pub non_part_filter_cols: Vec<String>,
    pub projected_columns: Vec<String>,
    /// Data manifests of the snapshot.
    pub manifests: Counts,
    /// Data files of the snapshot. Files of skipped manifests count as skipped, from the counts in
    /// the manifest list.
    pub files: Counts,
    /// Of the data files that remained, those that were not read because their metadata answered for them.
    #[serde(default)]
    pub files_answered: u64,
    /// Data files that were opened, a part of one that a task has to itself counted for one. Fewer than remained, where
    /// the query learnt on its way that some cannot matter.
    #[serde(default)]
    pub files_opened: u64,
    /// Delete files of the snapshot, each deletion vector counted for one. Those that apply to no file that remained
    /// were skipped.
    #[serde(default)]
    pub delete_files: Counts,
    /// Data files that remained after pruning by metadata (`files.kept`, under the name that the
    /// log's readers know).
    pub result_data_files: u64,
    /// Sum of the sizes of the data files and delete files that remained to be read, in bytes.
    pub data_in_bytes: u64,
    /// Rows of the files that remained to be read, by metadata: less those that are deleted, as far as metadata tells.
    pub rows_in_files: u64,
    /// Rows that were left out because they are deleted.
    #[serde(default)]
    pub rows_deleted: u64,
    /// Rows that the scan gave to the query, after filters inside the files.
    pub rows_read: u64,
    /// Bytes that were read from storage or cache.
    pub bytes_read: u64,
    /// Row groups of the files that were opened.
    pub row_groups: Counts,
    /// Rows whose pages the page index ruled out.
    pub page_rows_skipped: u64,
}

/// How many there were, and how many of them were left out or kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub total: u64,
    pub skipped: u64,
    pub kept: u64,
}

impl Counts {
    /// `kept` of `total`; the others were skipped.
    pub fn kept_of(kept: u64, total: u64) -> Self {
        Self {
            total,
            kept,
            skipped: total.saturating_sub(kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_uses_the_names_its_readers_know() {
        let report = ScanReport {
            non_part_filter_cols: vec!["user_id".into()],
            files: Counts::kept_of(3, 10),
            result_data_files: 3,
            data_in_bytes: 4096,
            ..Default::default()
        };
        let json = serde_json::to_value(&report).expect("plain data serialises");
        assert_eq!(json["nonPartFilterCols"], serde_json::json!(["user_id"]));
        assert_eq!(json["resultDataFiles"], 3);
        assert_eq!(json["dataInBytes"], 4096);
        assert_eq!(
            json["files"],
            serde_json::json!({"total": 10, "skipped": 7, "kept": 3})
        );
    }
}
