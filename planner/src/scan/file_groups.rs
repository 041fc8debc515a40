//! How the files of a scan are dealt to its partitions.

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;

/// Spreads files over partitions of about equal size, in order.
pub(crate) fn group_by_size(files: Vec<PartitionedFile>, partitions: usize) -> Vec<FileGroup> {
    let partitions = partitions.clamp(1, files.len().max(1));
    let mut groups: Vec<(u64, Vec<PartitionedFile>)> = vec![(0, vec![]); partitions];
    for file in files {
        if let Some((bytes, group)) = groups.iter_mut().min_by_key(|(bytes, _)| *bytes) {
            *bytes += file.object_meta.size;
            group.push(file);
        }
    }
    groups
        .into_iter()
        .map(|(_, files)| FileGroup::new(files))
        .collect()
}
