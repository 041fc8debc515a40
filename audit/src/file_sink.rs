use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::{AuditRecord, AuditSink, SinkStats};

/// How the log file is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSinkSettings {
    /// The folder of `audit.log` and its older generations `audit.log.1`, `audit.log.2`, ….
    pub dir: PathBuf,
    /// The file is rotated before it would grow past this size, in bytes.
    pub max_file_bytes: u64,
    /// How many older generations are kept.
    pub keep_files: usize,
    /// Records that may wait for the writer; one that comes when the queue is full is dropped and
    /// counted.
    pub queue_records: usize,
}

impl FileSinkSettings {
    /// 64 MiB a file, 10 older files, a queue of 10,000 records.
    pub fn in_dir(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            max_file_bytes: 64 << 20,
            keep_files: 10,
            queue_records: 10_000,
        }
    }
}

/// One JSON line per record in a rotating file, written by a thread of its own.
///
/// ```text
/// statement ──record()──▶ bounded queue ──▶ writer thread ──▶ audit.log ─▶ audit.log.1 ─▶ …
/// ```
///
/// The writer flushes whenever the queue is empty, so a quiet server's log is complete and a busy
/// one's is at most one queue behind.
#[derive(Debug)]
pub struct FileSink {
    queue: Mutex<Option<SyncSender<Message>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<Counters>,
    path: PathBuf,
}

enum Message {
    Record(Box<AuditRecord>),
    Flush(SyncSender<()>),
}

#[derive(Debug, Default)]
struct Counters {
    written: AtomicU64,
    dropped: AtomicU64,
}

impl FileSink {
    /// Opens (or goes on with) the log in `settings.dir`, and starts its writer.
    ///
    /// # Errors
    /// The folder or the file cannot be made.
    pub fn open(settings: FileSinkSettings) -> io::Result<Self> {
        fs::create_dir_all(&settings.dir)?;
        let path = settings.dir.join("audit.log");
        let log = RotatingFile::open(path.clone(), settings.max_file_bytes, settings.keep_files)?;
        let (queue, records) = mpsc::sync_channel(settings.queue_records.max(1));
        let counts = Arc::new(Counters::default());
        let writer = std::thread::Builder::new()
            .name("audit-writer".into())
            .spawn({
                let counts = Arc::clone(&counts);
                move || write_all(records, log, &counts)
            })?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            writer: Mutex::new(Some(writer)),
            counts,
            path,
        })
    }

    /// The file that is being written.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AuditSink for FileSink {
    fn record(&self, record: AuditRecord) {
        let sent = match self.queue.lock().as_ref() {
            Some(queue) => queue.try_send(Message::Record(Box::new(record))),
            None => Err(TrySendError::Disconnected(Message::Record(Box::new(
                record,
            )))),
        };
        if sent.is_err() {
            let before = self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            if before.is_multiple_of(1000) {
                tracing::warn!(file = %self.path.display(), "the audit log cannot keep up: records are dropped");
            }
        }
    }

    fn stats(&self) -> SinkStats {
        SinkStats {
            written: self.counts.written.load(Ordering::Relaxed),
            dropped: self.counts.dropped.load(Ordering::Relaxed),
        }
    }

    fn flush(&self) {
        let (done, wait) = mpsc::sync_channel(1);
        let queue = self.queue.lock().clone();
        if let Some(queue) = queue
            && queue.send(Message::Flush(done)).is_ok()
        {
            // The writer answers or is gone; either way nothing is left to wait for.
            let _ = wait.recv();
        }
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        self.queue.lock().take();
        if let Some(writer) = self.writer.lock().take()
            && writer.join().is_err()
        {
            tracing::error!("the audit log's writer panicked");
        }
    }
}

fn write_all(records: Receiver<Message>, mut log: RotatingFile, counts: &Counters) {
    while let Ok(first) = records.recv() {
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Record(record) => write_one(&mut log, &record, counts),
                Message::Flush(done) => {
                    report(log.flush(), &log.path);
                    let _ = done.send(());
                }
            }
            next = records.try_recv().ok();
        }
        report(log.flush(), &log.path);
    }
}

fn write_one(log: &mut RotatingFile, record: &AuditRecord, counts: &Counters) {
    let written = serde_json::to_vec(record)
        .map_err(io::Error::other)
        .and_then(|mut line| {
            line.push(b'\n');
            log.write_line(&line)
        });
    match written {
        Ok(()) => counts.written.fetch_add(1, Ordering::Relaxed),
        Err(error) => {
            tracing::warn!(file = %log.path.display(), %error, "an audit record could not be written");
            counts.dropped.fetch_add(1, Ordering::Relaxed)
        }
    };
}

fn report(result: io::Result<()>, path: &Path) {
    if let Err(error) = result {
        tracing::warn!(file = %path.display(), %error, "the audit log could not be flushed");
    }
}

/// A file that moves aside (`x`, `x.1`, `x.2`, …) before it grows past a size.
struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    keep: usize,
    file: BufWriter<File>,
    bytes: u64,
}

impl RotatingFile {
    fn open(path: PathBuf, max_bytes: u64, keep: usize) -> io::Result<Self> {
        let (file, bytes) = append_to(&path)?;
        Ok(Self {
            path,
            max_bytes,
            keep,
            file,
            bytes,
        })
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.max_bytes {
            self.rotate()?;
        }
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file.flush()?;
        for generation in (1..self.keep).rev() {
            rename_if_there(
                &self.generation(generation),
                &self.generation(generation + 1),
            )?;
        }
        if self.keep == 0 {
            fs::remove_file(&self.path)?;
        } else {
            rename_if_there(&self.path, &self.generation(1))?;
        }
        (self.file, self.bytes) = append_to(&self.path)?;
        Ok(())
    }

    fn generation(&self, n: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{n}"));
        name.into()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append_to(path: &Path) -> io::Result<(BufWriter<File>, u64)> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    // Statements hold values: no business of every account of the machine.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    let file = options.open(path)?;
    let bytes = file.metadata()?.len();
    Ok((BufWriter::new(file), bytes))
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    fn record(id: usize) -> AuditRecord {
        AuditRecord {
            query_id: format!("q{id}"),
            connection_id: 1,
            protocol: "mysql".into(),
            user: "root".into(),
            client: "127.0.0.1:5".into(),
            catalog: "lake".into(),
            database: "default".into(),
            kind: "SELECT".into(),
            statement: "SELECT 1".into(),
            start_ms: 0,
            end_ms: 1,
            planning_ms: 0,
            execution_ms: 1,
            outcome: Outcome::Ok,
            error: None,
            rows_returned: 1,
            bytes_returned: 8,
            rows_affected: 0,
            retries: 0,
            workers: 0,
            scans: vec![],
        }
    }

    fn ids(path: &Path) -> Vec<String> {
        fs::read_to_string(path)
            .expect("the log is there")
            .lines()
            .map(|line| {
                serde_json::from_str::<AuditRecord>(line)
                    .expect("a record")
                    .query_id
            })
            .collect()
    }

    #[test]
    fn every_record_is_one_line_and_a_restart_goes_on_in_the_same_file() {
        let dir = tempfile::tempdir().expect("a folder");
        for run in 0..2 {
            let sink = FileSink::open(FileSinkSettings::in_dir(dir.path())).expect("opens");
            sink.record(record(run * 2));
            sink.record(record(run * 2 + 1));
            sink.flush();
            assert_eq!(
                sink.stats(),
                SinkStats {
                    written: 2,
                    dropped: 0
                }
            );
        }
        assert_eq!(ids(&dir.path().join("audit.log")), ["q0", "q1", "q2", "q3"]);
    }

    #[test]
    fn a_full_file_moves_aside_and_the_oldest_generation_goes() {
        let dir = tempfile::tempdir().expect("a folder");
        let line = serde_json::to_vec(&record(0)).expect("json").len() as u64 + 1;
        let settings = FileSinkSettings {
            max_file_bytes: line * 2,
            keep_files: 2,
            ..FileSinkSettings::in_dir(dir.path())
        };
        let sink = FileSink::open(settings).expect("opens");
        (0..9).for_each(|id| sink.record(record(id)));
        sink.flush();
        // Two lines a file: q0 q1 | q2 q3 | q4 q5 | q6 q7 | q8; three files are kept.
        assert_eq!(ids(&dir.path().join("audit.log")), ["q8"]);
        assert_eq!(ids(&dir.path().join("audit.log.1")), ["q6", "q7"]);
        assert_eq!(ids(&dir.path().join("audit.log.2")), ["q4", "q5"]);
        assert!(!dir.path().join("audit.log.3").exists());
    }
}
