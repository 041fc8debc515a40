//! Runs one statement and prints what it gave.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use futures::StreamExt;

use super::format::Format;
use super::progress;
use crate::client::{Answer, Client, ClientError};

/// How a statement is run and its result shown.
#[derive(Debug, Clone, Copy)]
pub struct Display {
    pub format: Format,
    /// Most rows shown in a format for people; 0 is all.
    pub limit: u64,
    /// End with rows and time, in a format for people.
    pub summary: bool,
    /// Show time in that line.
    pub timing: bool,
    /// The number of the connection, for a progress bar; `None` shows none.
    pub progress: Option<u64>,
}

/// Why a statement has no (whole) result.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Failed(#[from] ClientError),
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    /// By Ctrl-C.
    #[error("cancelled")]
    Cancelled,
}

/// Runs `sql` and prints its result to `out`. Ctrl-C cancels the statement and comes back with
/// [`ExecuteError::Cancelled`].
pub async fn execute(
    client: &dyn Client,
    sql: &str,
    display: Display,
    out: &mut (dyn Write + Send),
) -> Result<(), ExecuteError> {
    let running = run(client, sql, display, out);
    let bar = async {
        match display.progress {
            Some(id) => progress::watch(client, id).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = running => result,
        () = interrupted(bar) => {
            client.cancel();
            Err(ExecuteError::Cancelled)
        }
    }
}

/// Comes back on Ctrl-C; polls the bar meanwhile.
async fn interrupted(bar: impl Future<Output = ()>) {
    tokio::select! {
        result = tokio::signal::ctrl_c() => {
            if result.is_err() {
                // No signals to be had: nothing can interrupt.
                std::future::pending::<()>().await;
            }
        }
        () = async { bar.await; std::future::pending::<()>().await } => {}
    }
}

async fn run(
    client: &dyn Client,
    sql: &str,
    display: Display,
    out: &mut (dyn Write + Send),
) -> Result<(), ExecuteError> {
    let begun = Instant::now();
    match client.run(sql).await? {
        Answer::Done {
            affected_rows,
            info,
        } => {
            if display.summary {
                let mut line = format!("OK, {} affected", rows_text(affected_rows));
                if !info.is_empty() {
                    line = format!("{line}; {info}");
                }
                writeln!(out, "{line}{}", time_text(display, begun.elapsed()))?;
            }
        }
        Answer::Rows { schema, mut rows } => {
            let limit = if display.format.for_people() && display.limit > 0 {
                display.limit
            } else {
                u64::MAX
            };
            let mut printer = None;
            let mut total = 0u64;
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                // The stream's own schema is the surer one: a server may only know it once the statement runs.
                let printer = printer.get_or_insert_with(|| display.format.printer(batch.schema()));
                let room = limit.saturating_sub(total).min(batch.num_rows() as u64) as usize;
                total += batch.num_rows() as u64;
                if room > 0 {
                    printer.batch(&batch.slice(0, room), out)?;
                }
            }
            if printer.is_none() && schema.fields().is_empty() {
                if display.summary {
                    writeln!(out, "OK{}", time_text(display, begun.elapsed()))?;
                }
                return Ok(out.flush()?);
            }
            let time = begun.elapsed();
            printer
                .unwrap_or_else(|| display.format.printer(schema))
                .end(out)?;
            if total > limit {
                writeln!(
                    out,
                    "(the first {limit} of {} rows; \\limit 0 shows all)",
                    total
                )?;
            }
            if display.summary && display.format.for_people() {
                writeln!(out, "{}{}", rows_text(total), time_text(display, time))?;
            }
        }
    }
    Ok(out.flush()?)
}

fn rows_text(rows: u64) -> String {
    if rows == 1 {
        "1 row".to_string()
    } else {
        format!("{rows} rows")
    }
}

fn time_text(display: Display, time: Duration) -> String {
    if display.timing {
        format!(" ({})", duration_text(time))
    } else {
        String::new()
    }
}

/// "12 ms", "3.41 s", "2 min 05 s".
pub fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 {
        format!("{} ms", time.as_millis())
    } else if seconds < 60.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    /// Answers any statement with so many rows.
    struct Rows(i64);

    #[async_trait::async_trait]
    impl Client for Rows {
        async fn run(&self, sql: &str) -> Result<Answer, ClientError> {
            if sql == "fail" {
                return Err(ClientError("no such thing".to_string()));
            }
            let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
            let numbers = Int64Array::from_iter_values(0..self.0);
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(numbers)]);
            let batch = batch.map_err(|e| ClientError(e.to_string()));
            Ok(Answer::Rows {
                schema,
                rows: futures::stream::iter([batch]).boxed(),
            })
        }
        async fn another(&self) -> Result<Box<dyn Client>, ClientError> {
            Ok(Box::new(Rows(self.0)))
        }
        async fn close(&self) {}
        fn cancel(&self) {}
        fn place(&self) -> String {
            String::new()
        }
    }

    async fn shown(rows: i64, format: Format, limit: u64) -> String {
        let display = Display {
            format,
            limit,
            summary: true,
            timing: false,
            progress: None,
        };
        let mut out = Vec::new();
        execute(&Rows(rows), "SELECT n", display, &mut out)
            .await
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn long_results_for_people_are_cut_and_say_so() {
        let text = shown(5, Format::Table, 2).await;
        assert!(text.contains("│ 1 │") && !text.contains("│ 2 │"), "{text}");
        assert!(
            text.ends_with("(the first 2 of 5 rows; \\limit 0 shows all)\n5 rows\n"),
            "{text}"
        );
        assert!(!shown(5, Format::Table, 0).await.contains("the first"));
    }

    #[tokio::test]
    async fn results_for_programs_are_never_cut() {
        assert_eq!(shown(3, Format::Csv, 1).await, "n\n0\n1\n2\n");
    }

    #[tokio::test]
    async fn errors_are_the_engines_words() {
        let display = Display {
            format: Format::Csv,
            limit: 0,
            summary: false,
            timing: false,
            progress: None,
        };
        let error = execute(&Rows(0), "fail", display, &mut Vec::new())
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "no such thing");
    }

    #[test]
    fn durations() {
        for (millis, text) in [(12, "12 ms"), (3_410, "3.41 s"), (125_000, "2 min 05 s")] {
            assert_eq!(duration_text(Duration::from_millis(millis)), text);
        }
    }
}
