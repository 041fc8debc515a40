use datafusion::datasource::listing::{FileRange, PartitionedFile};
use std::collections::BTreeMap;

/// Some bytes of a file: the unit that is given to a worker.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The file as the planner gave it; its own range is replaced by `start..end`.
    pub file: PartitionedFile,
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// What is hashed to find the piece's worker: the path, and the chunk where the file has several.
    pub key: String,
}

impl Piece {
    /// Bytes in the piece.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// The file to scan, with the piece's range (none when the piece is the whole file).
    pub fn to_file(&self) -> PartitionedFile {
        let mut file = self.file.clone();
        let whole = self.start == 0 && self.end >= file.object_meta.size;
        file.range = (!whole).then(|| FileRange {
            start: i64::try_from(self.start).unwrap_or(i64::MAX),
            end: i64::try_from(self.end).unwrap_or(i64::MAX),
        });
        file
    }

    /// Cuts the piece into `parts` of nearly equal size.
    pub fn cut(self, parts: u64) -> Vec<Piece> {
        let parts = parts.clamp(1, self.bytes().max(1));
        let bytes = self.bytes();
        let at =
            |i: u64| self.start + (u128::from(bytes) * u128::from(i) / u128::from(parts)) as u64;
        (0..parts)
            .map(|i| Piece {
                file: self.file.clone(),
                start: at(i),
                end: at(i + 1),
                key: self.key.clone(),
            })
            .collect()
    }
}

/// How many chunks a file of `size` bytes has. Depends on nothing else, so every query cuts it alike.
fn chunk_count(size: u64, split_bytes: u64) -> u64 {
    ((size + split_bytes / 2) / split_bytes.max(1)).max(1)
}

/// Cuts files into chunks of about `split_bytes`.
///
/// The planner may have cut a file already, where it pleased, to spread it over the partitions of one process:
/// adjacent ranges are joined first, and the chunks are those of the file's own grid. A file that is wanted in
/// part stays in part. Files are taken apart only along bytes; each byte that was asked for is in exactly one
/// piece, and files come out in the order they first came in.
pub fn split_files(
    files: impl IntoIterator<Item = PartitionedFile>,
    split_bytes: u64,
) -> Vec<Piece> {
    let mut wanted: Vec<(PartitionedFile, Vec<(u64, u64)>)> = Vec::new();
    let mut by_path: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for file in files {
        let range = wanted_range(&file);
        let path = file.object_meta.location.to_string();
        let same = by_path.entry(path).or_default();
        // The same path with other partition values would be another file to the reader: keep it apart.
        match same
            .iter()
            .find(|&&i| wanted[i].0.partition_values == file.partition_values)
        {
            Some(&i) => wanted[i].1.push(range),
            None => {
                same.push(wanted.len());
                wanted.push((file, vec![range]));
            }
        }
    }

    let mut pieces = Vec::new();
    for (file, ranges) in wanted {
        let size = file.object_meta.size;
        let path = file.object_meta.location.to_string();
        let chunks = chunk_count(size, split_bytes);
        let edge = |i: u64| (u128::from(size) * u128::from(i) / u128::from(chunks)) as u64;
        for (start, end) in join_adjacent(ranges) {
            if start == end {
                // An empty file or range still has a schema to report; it belongs to somebody.
                pieces.push(Piece {
                    file: file.clone(),
                    start,
                    end,
                    key: path.clone(),
                });
                continue;
            }
            for chunk in 0..chunks {
                let (from, to) = (edge(chunk).max(start), edge(chunk + 1).min(end));
                if from < to {
                    pieces.push(Piece {
                        file: file.clone(),
                        start: from,
                        end: to,
                        key: match chunks {
                            1 => path.clone(),
                            _ => format!("{path}#{chunk}"),
                        },
                    });
                }
            }
        }
    }
    pieces
}

/// The bytes a file is read for, within its size.
fn wanted_range(file: &PartitionedFile) -> (u64, u64) {
    let size = file.object_meta.size;
    match &file.range {
        None => (0, size),
        Some(range) => {
            let start = u64::try_from(range.start).unwrap_or(0).min(size);
            let end = u64::try_from(range.end).unwrap_or(0).clamp(start, size);
            (start, end)
        }
    }
}

/// Sorts ranges and joins those that touch. Ranges that overlap were asked for twice (a file listed twice is
/// read twice), so they stay apart.
fn join_adjacent(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for range in ranges {
        // An overlap leaves several runs open; the one to extend is the one that ends where this begins.
        match joined.iter_mut().rev().find(|last| last.1 == range.0) {
            Some(last) if range.0 < range.1 => last.1 = range.1,
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64, range: Option<(i64, i64)>) -> PartitionedFile {
        let mut file = PartitionedFile::new(path, size);
        file.range = range.map(|(start, end)| FileRange { start, end });
        file
    }

    fn ranges(pieces: &[Piece]) -> Vec<(String, u64, u64)> {
        pieces
            .iter()
            .map(|piece| (piece.key.clone(), piece.start, piece.end))
            .collect()
    }

    #[test]
    fn a_small_file_is_one_piece_without_a_range() {
        let pieces = split_files([file("a", 90, None)], 64);
        assert_eq!(ranges(&pieces), [("a".to_string(), 0, 90)]);
        assert!(pieces[0].to_file().range.is_none());
    }

    #[test]
    fn a_big_file_is_cut_along_its_own_grid() {
        // 200 bytes in chunks of about 64 are three chunks.
        let pieces = split_files([file("a", 200, None)], 64);
        assert_eq!(
            ranges(&pieces),
            [
                ("a#0".to_string(), 0, 66),
                ("a#1".to_string(), 66, 133),
                ("a#2".to_string(), 133, 200)
            ]
        );
    }

    #[test]
    fn the_planners_own_cuts_do_not_matter() {
        let whole = split_files([file("a", 200, None)], 64);
        let cut = split_files(
            [
                file("a", 200, Some((100, 200))),
                file("b", 10, None),
                file("a", 200, Some((0, 100))),
            ],
            64,
        );
        assert_eq!(ranges(&cut)[..3], ranges(&whole)[..]);
        assert_eq!(ranges(&cut)[3], ("b".to_string(), 0, 10));
    }

    #[test]
    fn a_part_stays_a_part_and_keeps_its_chunks() {
        let pieces = split_files([file("a", 200, Some((50, 140)))], 64);
        assert_eq!(
            ranges(&pieces),
            [
                ("a#0".to_string(), 50, 66),
                ("a#1".to_string(), 66, 133),
                ("a#2".to_string(), 133, 140)
            ]
        );
    }

    #[test]
    fn a_file_listed_twice_is_read_twice() {
        let pieces = split_files([file("a", 10, None), file("a", 10, None)], 64);
        assert_eq!(
            ranges(&pieces),
            [("a".to_string(), 0, 10), ("a".to_string(), 0, 10)]
        );
    }

    #[test]
    fn an_empty_file_is_one_piece() {
        assert_eq!(
            ranges(&split_files([file("a", 0, None)], 64)),
            [("a".to_string(), 0, 0)]
        );
    }

    #[test]
    fn cutting_covers_the_piece() {
        let piece = split_files([file("a", 10, None)], 64).remove(0);
        let cut = piece.cut(3);
        assert_eq!(
            ranges(&cut)
                .iter()
                .map(|(_, s, e)| (*s, *e))
                .collect::<Vec<_>>(),
            [(0, 3), (3, 6), (6, 10)]
        );
    }
}
