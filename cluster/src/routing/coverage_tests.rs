//! Whatever the files, the workers and the partitions: every byte is read exactly once.

use super::{Piece, balance, place, split_files};
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use std::collections::BTreeMap;

/// A small generator of our own (Knuth's MMIX constants): the cases are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Files of very different sizes, some cut by a planner into touching ranges, some wanted in part.
fn files(random: &mut Random) -> Vec<PartitionedFile> {
    let mut files = Vec::new();
    for i in 0..random.below(40) {
        let size = 1 << random.below(28);
        let size = size + random.below(size);
        let mut file = PartitionedFile::new(format!("s3/lake/t/{i}.parquet"), size);
        match random.below(3) {
            0 => files.push(file),
            1 => {
                let cut = random.below(size) as i64;
                let mut second = file.clone();
                file.range = Some(FileRange { start: 0, end: cut });
                second.range = Some(FileRange {
                    start: cut,
                    end: size as i64,
                });
                files.push(second);
                files.push(file);
            }
            _ => {
                let start = random.below(size) as i64;
                file.range = Some(FileRange {
                    start,
                    end: size as i64,
                });
                files.push(file);
            }
        }
    }
    files
}

type Ranges = BTreeMap<String, Vec<(u64, u64)>>;

/// Non-empty ranges by path, sorted and with those that touch joined; panics where two overlap.
fn covered(ranges: impl IntoIterator<Item = (String, u64, u64)>) -> Ranges {
    let mut by_path = Ranges::new();
    for (path, start, end) in ranges {
        if start < end {
            by_path.entry(path).or_default().push((start, end));
        }
    }
    for (path, ranges) in &mut by_path {
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for &(start, end) in ranges.iter() {
            match joined.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                Some(last) if last.1 > start => panic!("{path}: {start}..{end} is read twice"),
                _ => joined.push((start, end)),
            }
        }
        *ranges = joined;
    }
    by_path
}

fn of_file(file: &PartitionedFile) -> (String, u64, u64) {
    let (start, end) = match &file.range {
        Some(range) => (range.start as u64, range.end as u64),
        None => (0, file.object_meta.size),
    };
    (file.object_meta.location.to_string(), start, end)
}

fn nodes(n: u64) -> Vec<String> {
    (0..n).map(|i| format!("http://10.0.0.{i}:9050/")).collect()
}

#[test]
fn every_byte_is_read_by_exactly_one_partition_of_one_worker() {
    let mut random = Random(7);
    for _ in 0..300 {
        let files = files(&mut random);
        let (workers, partitions) = (1 + random.below(7), 1 + random.below(6) as usize);
        let split_bytes = 1 << (16 + random.below(8));
        let wanted = covered(files.iter().map(of_file));

        let placement = place(split_files(files, split_bytes), &nodes(workers), 1.25);
        assert_eq!(placement.pieces.len(), workers as usize);
        let mut read = Vec::new();
        for pieces in placement.pieces {
            let groups = balance(pieces, partitions);
            assert_eq!(
                groups.len(),
                partitions,
                "every task has the same number of partitions"
            );
            read.extend(
                groups
                    .into_iter()
                    .flatten()
                    .map(|piece| of_file(&piece.to_file())),
            );
        }
        assert_eq!(covered(read), wanted);
    }
}

#[test]
fn a_repeated_scan_meets_the_same_workers_however_it_was_cut() {
    let mut random = Random(11);
    for _ in 0..50 {
        let size = 1 + random.below(1 << 30);
        let whole: Vec<_> = (0..20)
            .map(|i| PartitionedFile::new(format!("f{i}"), size / (1 + i)))
            .collect();
        let mut cut = Vec::new();
        for file in whole.iter().rev() {
            let middle = random.below(file.object_meta.size.max(1)) as i64;
            for (start, end) in [(middle, file.object_meta.size as i64), (0, middle)] {
                let mut part = file.clone();
                part.range = Some(FileRange { start, end });
                cut.push(part);
            }
        }
        let nodes = nodes(3);
        let owners = |files| {
            place(split_files(files, 32 << 20), &nodes, 1.25)
                .pieces
                .into_iter()
                .map(|pieces| covered(pieces.iter().map(|p| of_file(&p.to_file()))))
                .collect::<Vec<_>>()
        };
        assert_eq!(owners(whole), owners(cut));
    }
}

#[test]
fn a_new_worker_takes_about_its_share_and_little_else_moves() {
    let files: Vec<_> = (0..600)
        .map(|i| PartitionedFile::new(format!("s3/lake/t/{i:04}.parquet"), 10 << 20))
        .collect();
    let home = |workers: u64| -> BTreeMap<String, usize> {
        place(split_files(files.clone(), 32 << 20), &nodes(workers), 1.25)
            .pieces
            .into_iter()
            .enumerate()
            .flat_map(|(worker, pieces)| {
                pieces
                    .into_iter()
                    .map(move |piece: Piece| (piece.key, worker))
            })
            .collect()
    };
    let (before, after) = (home(3), home(4));
    let moved: Vec<_> = before
        .iter()
        .filter(|(key, worker)| after[*key] != **worker)
        .collect();
    let taken = after.values().filter(|worker| **worker == 3).count();
    // A quarter of 600 is 150; three standard deviations are 32.
    assert!((118..=182).contains(&taken), "{taken}");
    assert!(
        moved.len() - taken <= 20,
        "{} moved, {taken} of them to the new worker",
        moved.len()
    );
}

#[test]
fn a_tasks_partitions_have_nearly_the_same_bytes() {
    let mut random = Random(3);
    for _ in 0..100 {
        let files: Vec<_> = (0..1 + random.below(30))
            .map(|i| PartitionedFile::new(format!("f{i}"), 1 + random.below(100 << 20)))
            .collect();
        let total: u64 = files.iter().map(|file| file.object_meta.size).sum();
        let groups = balance(split_files(files, 32 << 20), 4);
        let heaviest = groups
            .iter()
            .map(|g| g.iter().map(Piece::bytes).sum::<u64>())
            .max()
            .unwrap();
        assert!(
            heaviest <= total / 4 * 3 / 2 + (2 << 20),
            "{heaviest} of {total}"
        );
    }
}
