//! Files that are not Parquet, as morsels.
//!
//! The Parquet source was given projection and predicate; here they are applied to the batches that
//! [`read_rows`] makes in the table's types, after the rows that are deleted are taken out by their positions.

use std::fmt;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::{ProjectionExprs, Projector};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use roaring::RoaringTreemap;

use super::column_adapter::FileConstants;
use super::file_columns::TableColumns;
use super::morselizer::WithDeletes;
use super::reader::{ReadSource, ScannedFile};
use super::row_lineage::InheritedColumns;
use super::scan_table::ScanTable;
use crate::deletes::{DeleteLoader, FileDeletes};
use crate::formats::{FileFormat, FileRows, RowsRequest, WantedField, read_rows};

/// How one partition of a scan reads such files.
pub(crate) struct OtherFormats {
    pub(crate) source: Arc<ReadSource>,
    pub(crate) table: Arc<ScanTable>,
    pub(crate) with_deletes: Arc<WithDeletes>,
    /// Over the table's columns, as the predicate is.
    pub(crate) projection: ProjectionExprs,
    /// If it is one that the scan has promised to apply.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) batch_rows: usize,
}

impl OtherFormats {
    pub(crate) fn plan_file(
        &self,
        file: PartitionedFile,
        format: FileFormat,
    ) -> Result<Box<dyn MorselPlanner>> {
        let columns = self.columns();
        let schema = self.table.columns.arrow().project(&columns)?;
        let constants = file.extensions.get::<FileConstants>();
        let mut fields = columns
            .iter()
            .map(|index| wanted_field(&self.table.columns, *index, constants))
            .collect::<Result<Vec<_>>>()?;
        let rows = FileRead {
            inherited: InheritedColumns::taken_from(&mut fields),
            request: RowsRequest {
                bytes: Arc::new(ScannedFile::new(
                    Arc::clone(&self.source),
                    file.object_meta.location.clone(),
                )),
                size: file.object_meta.size,
                format,
                fields,
                name_mapping: self.table.columns.name_mapping().cloned(),
                range: file.range.as_ref().map(|range| {
                    let at = |position: i64| u64::try_from(position).unwrap_or(0);
                    at(range.start)..at(range.end)
                }),
                batch_rows: self.batch_rows,
            },
            steps: Steps::new(&self.projection, self.predicate.as_ref(), Arc::new(schema))?,
            with_deletes: Arc::clone(&self.with_deletes),
            source: Arc::clone(&self.source),
            file,
        };
        Ok(Box::new(rows))
    }

    /// The positions of the columns that projection and predicate name.
    fn columns(&self) -> Vec<usize> {
        let mut columns = self.projection.column_indices();
        if let Some(predicate) = &self.predicate {
            columns.extend(collect_columns(predicate).iter().map(|c| c.index()));
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

/// What a file is to be read for to have a table's column of that position.
pub(crate) fn wanted_field(
    columns: &TableColumns,
    index: usize,
    constants: Option<&FileConstants>,
) -> Result<WantedField> {
    let fields = columns.schema().as_struct().fields();
    let (Some(field), Some(arrow)) = (fields.get(index), columns.arrow().fields().get(index))
    else {
        return Err(DataFusionError::Internal(format!(
            "the scan's table has no column {index}"
        )));
    };
    let constant = constants.and_then(|FileConstants(values)| values.get(arrow.name()));
    Ok(WantedField {
        field: Arc::clone(field),
        arrow: Arc::clone(arrow),
        constant: constant.cloned(),
    })
}

/// What becomes of a batch of the file's rows.
struct Steps {
    predicate: Option<Arc<dyn PhysicalExpr>>,
    projector: Projector,
}

impl Steps {
    fn new(
        projection: &ProjectionExprs,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    ) -> Result<Self> {
        let reassign =
            |expr: Arc<dyn PhysicalExpr>, schema: &Schema| reassign_expr_columns(expr, schema);
        Ok(Self {
            predicate: predicate
                .map(|predicate| reassign(Arc::clone(predicate), &schema))
                .transpose()?,
            projector: projection
                .clone()
                .try_map_exprs(|expr| reassign(expr, &schema))?
                .make_projector(&schema)?,
        })
    }

    /// The rows that are left, projected; none if none are.
    fn apply(&self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let batch = match &self.predicate {
            Some(predicate) => {
                let keep = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
                let keep = keep.as_boolean_opt().ok_or_else(|| {
                    DataFusionError::Internal(format!("the predicate {predicate} is not boolean"))
                })?;
                filter_record_batch(&batch, keep)?
            }
            None => batch,
        };
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        self.projector.project_batch(&batch).map(Some)
    }
}

/// One file: a planner that has a single morsel to give, and that morsel.
struct FileRead {
    request: RowsRequest,
    inherited: InheritedColumns,
    steps: Steps,
    with_deletes: Arc<WithDeletes>,
    source: Arc<ReadSource>,
    file: PartitionedFile,
}

impl FileRead {
    /// The positions in the file that are deleted.
    async fn deleted(&self) -> Result<Arc<RoaringTreemap>> {
        match self.file.extensions.get::<FileDeletes>() {
            Some(deletes) => {
                let loader = &self.with_deletes.loader;
                let format = self.request.format;
                loader.deleted_rows(&self.file, format, deletes).await
            }
            None => Ok(Arc::default()),
        }
    }
}

impl fmt::Debug for FileRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileRead")
            .field("format", &self.request.format)
            .finish_non_exhaustive()
    }
}

impl MorselPlanner for FileRead {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        // A dynamic filter may know by now that none of the file's rows can match.
        if self.with_deletes.pruning.rules_out(&self.file)? {
            return Ok(None);
        }
        Ok(Some(MorselPlan::new().with_morsels(vec![self])))
    }
}

impl Morsel for FileRead {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let opened = async move {
            self.source.count_file();
            let deleted = self.deleted().await?;
            let Self {
                request,
                inherited,
                steps,
                with_deletes,
                ..
            } = *self;
            let batches = read_rows(request).filter_map(move |rows| {
                let batch = rows.map_err(DataFusionError::from).and_then(|rows| {
                    let rows = inherited.given_to(rows)?;
                    let batch = without(rows, &deleted, &with_deletes.loader)?;
                    steps.apply(batch)
                });
                std::future::ready(batch.transpose())
            });
            Ok::<_, DataFusionError>(batches)
        };
        futures::stream::once(opened).try_flatten().boxed()
    }
}

/// The rows whose positions are not deleted.
fn without(rows: FileRows, deleted: &RoaringTreemap, loader: &DeleteLoader) -> Result<RecordBatch> {
    let FileRows { first_row, batch } = rows;
    let end = first_row + batch.num_rows() as u64;
    let count = deleted.range_cardinality(first_row..end);
    if count == 0 {
        return Ok(batch);
    }
    loader.count_deleted(count);
    let keep: Vec<bool> = (first_row..end).map(|row| !deleted.contains(row)).collect();
    Ok(filter_record_batch(&batch, &BooleanArray::from(keep))?)
}
