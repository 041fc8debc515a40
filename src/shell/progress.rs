//! A bar on the terminal for a query that takes longer than a second.

use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::client::{Client, ClientError, collect};

/// Shorter queries need no bar.
const PATIENCE: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_millis(250);

/// While it is not known how much there is to read.
const CLOCK: &str = "{elapsed}  {msg}";
const SPLITS: &str = "{bar:30} {pos}/{len} splits  {msg}  {elapsed}";

/// Where a query is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Progress {
    splits_done: u64,
    splits_total: u64,
    rows: u64,
    bytes: u64,
}

/// The number of the client's connection, by which its statement is found in `tarn.system.queries`.
pub async fn connection_id(client: &dyn Client) -> Option<u64> {
    let batches = collect(client, "SELECT CONNECTION_ID()").await.ok()?;
    first_row(&batches)?.first().copied()
}

/// Draws the bar while what runs on connection `id` takes its time. It never ends by itself: drop it.
pub async fn watch(client: &dyn Client, id: u64) {
    tokio::time::sleep(PATIENCE).await;
    let Ok(observer) = client.another().await else {
        // Without a second connection there is only the clock to show.
        return clock().await;
    };
    let bar = Bar::new();
    let sql = format!(
        "SELECT splits_done, splits_total, rows_read, bytes_read FROM tarn.system.queries \
         WHERE connection_id = {id} ORDER BY started DESC LIMIT 1"
    );
    loop {
        match progress(observer.as_ref(), &sql).await {
            Ok(Some(progress)) => bar.show(progress),
            Ok(None) => {}
            Err(_) => return clock().await,
        }
        tokio::time::sleep(PERIOD).await;
    }
}

async fn clock() {
    let _bar = Bar::new();
    std::future::pending::<()>().await;
}

async fn progress(observer: &dyn Client, sql: &str) -> Result<Option<Progress>, ClientError> {
    let batches = collect(observer, sql).await?;
    Ok(first_row(&batches).and_then(|row| match row[..] {
        [splits_done, splits_total, rows, bytes] => Some(Progress {
            splits_done,
            splits_total,
            rows,
            bytes,
        }),
        _ => None,
    }))
}

/// The first row's numbers.
fn first_row(batches: &[RecordBatch]) -> Option<Vec<u64>> {
    let batch = batches.iter().find(|b| b.num_rows() > 0)?;
    batch
        .columns()
        .iter()
        .map(|column| {
            let numbers = cast(column, &DataType::UInt64).ok()?;
            let numbers = numbers.as_primitive::<UInt64Type>();
            Some(if numbers.is_null(0) {
                0
            } else {
                numbers.value(0)
            })
        })
        .collect()
}

/// Wiped from the terminal when it is dropped.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr())
            .with_style(style(CLOCK))
            .with_elapsed(PATIENCE);
        bar.enable_steady_tick(PERIOD);
        Self(bar)
    }

    fn show(&self, progress: Progress) {
        let read = format!(
            "{} rows  {}",
            HumanCount(progress.rows),
            HumanBytes(progress.bytes)
        );
        self.0.set_message(read);
        if progress.splits_total > 0 {
            if self.0.length() == Some(0) {
                self.0.set_style(style(SPLITS));
            }
            self.0.set_length(progress.splits_total);
            self.0
                .set_position(progress.splits_done.min(progress.splits_total));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, UInt64Array};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn numbers_of_the_first_row() {
        let schema = Schema::new(vec![
            Field::new("a", DataType::UInt64, true),
            Field::new("b", DataType::Int64, true),
        ]);
        let columns: Vec<arrow::array::ArrayRef> = vec![
            Arc::new(UInt64Array::from(vec![Some(3), None])),
            Arc::new(Int64Array::from(vec![None, Some(1)])),
        ];
        let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        assert_eq!(first_row(&[batch.slice(0, 0), batch]), Some(vec![3, 0]));
        assert_eq!(first_row(&[]), None);
    }

    #[test]
    fn the_templates_are_valid() {
        for template in [CLOCK, SPLITS] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
