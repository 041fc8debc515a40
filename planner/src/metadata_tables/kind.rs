//! Which metadata tables there are.

/// A metadata table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MetadataTable {
    Snapshots,
    History,
    Refs,
    MetadataLogEntries,
    Properties,
    Manifests,
    Files,
    DataFiles,
    DeleteFiles,
    Entries,
    Partitions,
    AllManifests,
    AllFiles,
    AllDataFiles,
    AllDeleteFiles,
    AllEntries,
}

impl MetadataTable {
    const ALL: [Self; 16] = [
        Self::Snapshots,
        Self::History,
        Self::Refs,
        Self::MetadataLogEntries,
        Self::Properties,
        Self::Manifests,
        Self::Files,
        Self::DataFiles,
        Self::DeleteFiles,
        Self::Entries,
        Self::Partitions,
        Self::AllManifests,
        Self::AllFiles,
        Self::AllDataFiles,
        Self::AllDeleteFiles,
        Self::AllEntries,
    ];

    /// The table of that name, in any case.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|table| table.name().eq_ignore_ascii_case(name))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Snapshots => "snapshots",
            Self::History => "history",
            Self::Refs => "refs",
            Self::MetadataLogEntries => "metadata_log_entries",
            Self::Properties => "properties",
            Self::Manifests => "manifests",
            Self::Files => "files",
            Self::DataFiles => "data_files",
            Self::DeleteFiles => "delete_files",
            Self::Entries => "entries",
            Self::Partitions => "partitions",
            Self::AllManifests => "all_manifests",
            Self::AllFiles => "all_files",
            Self::AllDataFiles => "all_data_files",
            Self::AllDeleteFiles => "all_delete_files",
            Self::AllEntries => "all_entries",
        }
    }

    /// Whether it tells of one snapshot, so that another one can be asked for.
    pub(crate) fn has_versions(self) -> bool {
        matches!(
            self,
            Self::Manifests
                | Self::Files
                | Self::DataFiles
                | Self::DeleteFiles
                | Self::Entries
                | Self::Partitions
        )
    }

    /// Whether it tells of every snapshot that the metadata still has.
    pub(super) fn is_of_all_snapshots(self) -> bool {
        matches!(
            self,
            Self::AllManifests
                | Self::AllFiles
                | Self::AllDataFiles
                | Self::AllDeleteFiles
                | Self::AllEntries
        )
    }

    /// Whether it has a row for each manifest entry, also of deleted files, and not for each live file.
    pub(super) fn is_of_entries(self) -> bool {
        matches!(self, Self::Entries | Self::AllEntries)
    }
}
