use crate::error::WorkerError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::TrackConsumersPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use parking_lot::Mutex;
use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tarn_planner::MarginPool;

/// Consumers named in the error of a query that ran out of memory.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(5).unwrap();
const SPILL_PREFIX: &str = "tarn-spill-";
const LOCK_FILE: &str = "lock";

/// Locks of this process's spill directories, held until it ends: an unlocked directory is a dead process's.
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// The memory pool and the spill files of one process.
///
/// Operators that can spill share the most of `memory_bytes` fairly, so that one big sort does not starve the others;
/// what cannot spill is refused when the pool is full, with the biggest consumers named. Spill files live in a
/// directory of the process's own under `spill_dir`; what processes that died left there is removed.
pub fn runtime_env(
    memory_bytes: u64,
    spill_dir: &Path,
    spill_bytes: u64,
) -> Result<Arc<RuntimeEnv>, WorkerError> {
    let directory = own_spill_directory(spill_dir).map_err(|source| WorkerError::Spill {
        path: spill_dir.to_path_buf(),
        source,
    })?;
    let pool_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(TrackConsumersPool::new(
            MarginPool::new(pool_bytes),
            NAMED_CONSUMERS,
        )))
        .with_disk_manager_builder(
            DiskManagerBuilder::default()
                .with_mode(DiskManagerMode::Directories(vec![directory]))
                .with_max_temp_directory_size(spill_bytes),
        )
        .build()?;
    Ok(Arc::new(runtime))
}

fn own_spill_directory(spill_dir: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(spill_dir)?;
    for entry in fs::read_dir(spill_dir)?.flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(SPILL_PREFIX)
        {
            remove_if_abandoned(&entry.path());
        }
    }
    loop {
        let own = spill_dir.join(format!("{SPILL_PREFIX}{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&own)?;
        let lock = File::create(own.join(LOCK_FILE))?;
        lock.lock()?;
        // Between its making and its locking another process that starts may have taken it for abandoned.
        if own.join(LOCK_FILE).exists() {
            HELD.lock().push(lock);
            return Ok(own);
        }
    }
}

/// Removes a spill directory whose process is gone. A directory without a lock file was made this moment.
fn remove_if_abandoned(directory: &Path) {
    let Ok(lock) = File::open(directory.join(LOCK_FILE)) else {
        return;
    };
    if lock.try_lock().is_ok() {
        match fs::remove_dir_all(directory) {
            Ok(()) => {
                tracing::info!(directory = %directory.display(), "removed spill files of a process that ended")
            }
            Err(error) => {
                tracing::warn!(directory = %directory.display(), %error, "cannot remove old spill files")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spill_files_of_dead_processes_are_removed_and_those_of_living_ones_stay() {
        let root = tempfile::tempdir().unwrap();
        let dead = root.path().join(format!("{SPILL_PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK_FILE), "").unwrap();
        fs::write(dead.join("rows"), "left behind").unwrap();
        let other = root.path().join("not ours");
        fs::create_dir(&other).unwrap();

        let first = own_spill_directory(root.path()).unwrap();
        assert!(!dead.exists());
        assert!(other.exists());

        let second = own_spill_directory(root.path()).unwrap();
        assert!(first.exists(), "its process lives");
        assert_ne!(first, second);
    }

    #[test]
    fn the_pool_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        let runtime = runtime_env(1000, root.path(), 1 << 20).unwrap();
        let reservation = datafusion::execution::memory_pool::MemoryConsumer::new("join")
            .register(&runtime.memory_pool);
        assert!(reservation.try_grow(900).is_ok());
        assert!(reservation.try_grow(200).is_err());
    }

    #[test]
    fn a_spill_directory_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = runtime_env(1000, &file, 1).unwrap_err();
        assert!(error.to_string().contains("file"), "{error}");
    }
}
