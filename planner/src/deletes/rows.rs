//! Rows of one file for columns given by field id: of a delete file, or of a data file whose keys are looked at.
//!
//! The one place that knows what file formats delete files may have.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion_datasource::morsel::MorselPlanner;
use futures::StreamExt;
use futures::stream::BoxStream;
use iceberg::spec::DataFileFormat;

use crate::formats::{self, FileFormat, RowsRequest};
use crate::scan::{
    ColumnAdapterFactory, FileConstants, ReadSource, ReaderFactory, ScannedFile, TableColumns,
    caught_future, caught_stream, wanted_field,
};

/// Rows of a batch while a file is read for its deletes or keys.
const BATCH_ROWS: usize = 8192;

/// Whether [`read_rows`] reads files of that format.
pub(crate) fn is_readable(format: DataFileFormat) -> bool {
    format == DataFileFormat::Parquet || FileFormat::of_data_file(format).is_some()
}

/// The rows of `file`, all of them in the file's order unless it has a `ParquetAccessPlan` among its extensions.
///
/// A batch has `columns` as its own: found in the file by field id, widened to their type, null where the file has none.
pub(crate) async fn read_rows(
    file: PartitionedFile,
    format: DataFileFormat,
    columns: &Arc<TableColumns>,
    source: &ReadSource,
    options: &TableParquetOptions,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    match (format, FileFormat::of_data_file(format)) {
        (DataFileFormat::Parquet, _) => parquet_rows(file, columns, source, options).await,
        (_, Some(format)) => other_rows(file, format, columns, source),
        (other, None) => Err(DataFusionError::NotImplemented(format!(
            "rows of files of format {other}"
        ))),
    }
}

fn other_rows(
    file: PartitionedFile,
    format: FileFormat,
    columns: &Arc<TableColumns>,
    source: &ReadSource,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let constants = file.extensions.get::<FileConstants>();
    let fields = (0..columns.arrow().fields().len())
        .map(|index| wanted_field(columns, index, constants))
        .collect::<Result<_>>()?;
    let source = Arc::new(source.with_columns(Arc::clone(columns)));
    let rows = formats::read_rows(RowsRequest {
        bytes: Arc::new(ScannedFile::new(source, file.object_meta.location.clone())),
        size: file.object_meta.size,
        format,
        fields,
        name_mapping: columns.name_mapping().cloned(),
        range: None,
        batch_rows: BATCH_ROWS,
    });
    Ok(rows
        .map(|rows| rows.map(|rows| rows.batch).map_err(DataFusionError::from))
        .boxed())
}

async fn parquet_rows(
    file: PartitionedFile,
    columns: &Arc<TableColumns>,
    source: &ReadSource,
    options: &TableParquetOptions,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let store = Arc::clone(source.store());
    let url = ObjectStoreUrl::parse(source.store_url())?;
    let factory = ReaderFactory {
        source: Arc::new(source.with_columns(Arc::clone(columns))),
        counts_files: false,
    };
    // Its metrics are its own: what counts for the query, the bytes, is counted by the read source.
    let parquet = ParquetSource::new(TableSchema::new(Arc::clone(columns.arrow()), vec![]))
        .with_table_parquet_options(options.clone())
        .with_parquet_file_reader_factory(Arc::new(factory));
    let parquet = parquet.with_batch_size(BATCH_ROWS);
    let constants = file.extensions.get::<FileConstants>().cloned();
    let config = FileScanConfigBuilder::new(url, Arc::clone(&parquet))
        .with_expr_adapter(Some(Arc::new(ColumnAdapterFactory {
            columns: Arc::clone(columns),
            constants,
        })))
        .build();
    let morselizer = parquet.create_morselizer(store, &config, 0)?;
    let streams = caught_future(async { open(morselizer.plan_file(file)?).await }).await?;
    Ok(caught_stream(
        futures::stream::iter(streams).flatten().boxed(),
    ))
}

/// Does the planning that DataFusion's file stream does, for one file.
async fn open(
    planner: Box<dyn MorselPlanner>,
) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
    let mut streams = Vec::new();
    let mut planners = VecDeque::from([planner]);
    while let Some(planner) = planners.pop_front() {
        let Some(mut plan) = planner.plan()? else {
            continue;
        };
        streams.extend(
            plan.take_morsels()
                .into_iter()
                .map(|morsel| morsel.into_stream()),
        );
        planners.extend(plan.take_ready_planners());
        if let Some(pending) = plan.take_pending_planner() {
            planners.push_back(pending.await?);
        }
    }
    Ok(streams)
}
