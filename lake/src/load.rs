//! Writes one generated table: chunks are built on all cores, and appended in order.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use futures::{StreamExt, stream};
use tarn_catalog::{Catalog, CatalogError, NewTable, PartitionField, WriteOptions};

use crate::columns::{Column, schema};
use crate::error::{LakeError, Result};
use crate::progress::Progress;

/// The table property that says a table was generated, and from what.
const MARK: &str = "tarn.generated";

/// What a writer takes for a row group by itself; a file that is to be smaller needs smaller row groups.
const ROW_GROUP_ROWS: u64 = 1 << 20;

/// The columns of one chunk of rows.
pub(crate) type Chunk = Vec<ArrayRef>;

/// A table to generate.
pub(crate) struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    pub partition: Vec<PartitionField>,
    /// Everything its rows depend on: the data set, its size, the version of its generator.
    pub mark: String,
    /// About how many rows there will be.
    pub rows: u64,
    /// How many chunks the rows come in; each fits in memory a few times.
    pub chunks: u64,
    /// Rows of a data file to aim at.
    pub file_rows: u64,
    /// Bytes of a row in Arrow's form, about.
    pub row_bytes: u64,
    /// Builds chunk `i` of `chunks`.
    pub chunk: Arc<dyn Fn(u64) -> Chunk + Send + Sync>,
}

/// Makes the table unless it is there, complete and with the same mark.
pub(crate) async fn load(
    catalog: &Catalog,
    database: &str,
    table: Table,
    progress: &dyn Progress,
) -> Result<()> {
    let Table {
        name,
        columns,
        partition,
        mark,
        rows,
        chunks,
        file_rows,
        row_bytes,
        chunk,
    } = table;
    let label = format!("{database}.{name}");
    match catalog.table(database, name).await {
        Ok(there) => match there.metadata().properties().get(MARK) {
            Some(found) if *found == mark => {
                progress.step(&label, rows, rows);
                return Ok(());
            }
            // Another size, or made by an older generator.
            Some(_) => catalog.drop_table(database, name, true, true).await?,
            None => {
                return Err(LakeError::ForeignTable {
                    table: there.name().to_string(),
                });
            }
        },
        Err(CatalogError::NoSuchTable { .. }) => {}
        Err(other) => return Err(other.into()),
    }
    progress.step(&label, 0, rows);
    let mut spec = NewTable::new(name, schema(name, columns)?);
    spec.partition = partition;
    spec.properties = HashMap::from([(MARK.to_string(), mark)]);
    if file_rows < ROW_GROUP_ROWS {
        let limit = (
            "write.parquet.row-group-limit".to_string(),
            file_rows.to_string(),
        );
        spec.properties.extend([limit]);
    }
    let options = WriteOptions {
        // A file ends with the row group that reaches this, so somewhat less than its rows will have.
        target_file_bytes: file_rows * row_bytes / 2,
        ..WriteOptions::default()
    };
    let mut writer = catalog.create_table_as(database, spec, options).await?;

    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let built = stream::iter(0..chunks).map(|i| {
        let chunk = Arc::clone(&chunk);
        tokio::task::spawn_blocking(move || chunk(i))
    });
    // Chunks come out in order, so that files hold ranges of keys; at most one more than there are cores is in memory.
    let mut built = built.buffered(cores);
    let mut done = 0;
    let result: Result<()> = async {
        while let Some(columns) = built.next().await {
            let columns = columns.map_err(|e| LakeError::Stopped {
                table: name.to_string(),
                reason: e.to_string(),
            })?;
            let batch = RecordBatch::try_new(writer.arrow_schema(), columns).map_err(|source| {
                LakeError::Rows {
                    table: name.to_string(),
                    source,
                }
            })?;
            done += batch.num_rows() as u64;
            writer.write(batch).await?;
            progress.step(&label, done.min(rows.saturating_sub(1)), rows);
        }
        Ok(())
    }
    .await;
    if let Err(e) = result {
        writer.abort().await;
        return Err(e);
    }
    writer.commit().await?;
    progress.step(&label, done, done);
    Ok(())
}
