//! Files become morsels: the Parquet reader's own, with the file named in errors and progress counted.
//!
//! A file that delete files apply to is opened when these are loaded, with the rows that are left as its access plan.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::error::{DataFusionError, Result};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::StreamExt;
use futures::stream::BoxStream;
use parquet::file::metadata::ParquetMetaData;
use tarn_catalog::path_to_location;

use super::bucket_check::{BucketCheck, FileCheck};
use super::column_adapter::{ColumnAdapterFactory, FileConstants};
use super::file_columns::TableColumns;
use super::file_pruning::FilePruning;
use super::other_formats::OtherFormats;
use super::panics::{caught, caught_future, caught_stream};
use super::scan_table::ScanTable;
use crate::deletes::{DeleteLoader, FileDeletes};
use crate::error::PlannerError;
use crate::formats::FileFormat;
use crate::progress::QueryProgress;

/// Makes a Parquet morselizer for files that have constants of their own, and for those with deletes.
type MakeMorselizer =
    Box<dyn Fn(Option<FileConstants>, bool) -> Result<Box<dyn Morselizer>> + Send + Sync>;

/// The morselizer of one partition of a scan.
pub(crate) struct IcebergMorselizer {
    /// For files that have neither constants nor deletes.
    pub(crate) plain: Box<dyn Morselizer>,
    pub(crate) with_deletes: Arc<WithDeletes>,
    pub(crate) other_formats: OtherFormats,
    pub(crate) table: Arc<ScanTable>,
    pub(crate) progress: Option<Arc<QueryProgress>>,
    pub(super) bucket_check: Option<BucketCheck>,
}

impl fmt::Debug for IcebergMorselizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IcebergMorselizer")
            .field("plain", &self.plain)
            .finish_non_exhaustive()
    }
}

impl Morselizer for IcebergMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let split = Arc::new(Split {
            table: Arc::clone(&self.table),
            path: file.object_meta.location.clone(),
            progress: self.progress.clone(),
            bucket: self
                .bucket_check
                .map(|check| check.of_file(&file))
                .transpose()?,
        });
        let planner: Result<Box<dyn MorselPlanner>> =
            if let Some(format) = file.extensions.get::<FileFormat>().copied() {
                self.other_formats.plan_file(file, format)
            } else if file.extensions.get::<FileDeletes>().is_some() {
                Ok(Box::new(DeletesPlanner {
                    file,
                    with_deletes: Arc::clone(&self.with_deletes),
                }))
            } else if self.with_deletes.pruning.learns() {
                Ok(Box::new(LearningPlanner {
                    file: file.clone(),
                    inner: self.plan_parquet(file)?,
                    with_deletes: Arc::clone(&self.with_deletes),
                }))
            } else {
                self.plan_parquet(file)
            };
        let inner = planner.map_err(|error| split.name_unopened(error))?;
        Ok(Box::new(SplitPlanner { inner, split }))
    }
}

impl IcebergMorselizer {
    fn plan_parquet(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        match file.extensions.get::<FileConstants>() {
            Some(constants) => {
                (self.with_deletes.make)(Some(constants.clone()), false)?.plan_file(file)
            }
            None => self.plain.plan_file(file),
        }
    }
}

/// What it takes to open files with deletes.
pub(crate) struct WithDeletes {
    /// For files that have no constants.
    pub(crate) plain: Box<dyn Morselizer>,
    pub(crate) make: MakeMorselizer,
    pub(crate) columns: Arc<TableColumns>,
    pub(crate) loader: DeleteLoader,
    pub(crate) pruning: FilePruning,
}

impl WithDeletes {
    /// The planner of the file's rows that are left; `None` if none are.
    async fn open(&self, file: PartitionedFile) -> Result<Option<Box<dyn MorselPlanner>>> {
        let Some(deletes) = file.extensions.get::<FileDeletes>() else {
            return Err(DataFusionError::Internal(
                "a file without deletes was to be opened with them".to_string(),
            ));
        };
        let constants = file.extensions.get::<FileConstants>().cloned();
        let adapter = ColumnAdapterFactory {
            columns: Arc::clone(&self.columns),
            constants: constants.clone(),
        };
        let prune = |footer: &ParquetMetaData, wanted: &mut [bool]| {
            self.pruning.prune_row_groups(footer, &adapter, wanted);
        };
        let Some(plan) = self.loader.parquet_access(&file, deletes, &prune).await? else {
            return Ok(None);
        };
        let file = file.with_extension(plan);
        match constants {
            Some(constants) => (self.make)(Some(constants), true)?.plan_file(file),
            None => self.plain.plan_file(file),
        }
        .map(Some)
    }
}

/// Loads a file's deletes, unless the query's filters rule the file out by now.
struct DeletesPlanner {
    file: PartitionedFile,
    with_deletes: Arc<WithDeletes>,
}

impl fmt::Debug for DeletesPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeletesPlanner")
            .field("file", &self.file.object_meta.location)
            .finish_non_exhaustive()
    }
}

impl MorselPlanner for DeletesPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { file, with_deletes } = *self;
        if with_deletes.pruning.rules_out(&file)? {
            return Ok(None);
        }
        let open = async move {
            let planner = with_deletes.open(file).await?;
            Ok(planner.unwrap_or_else(|| Box::new(NothingLeft) as Box<dyn MorselPlanner>))
        };
        Ok(Some(MorselPlan::new().with_pending_planner(open)))
    }
}

/// Opens a file, unless what the query has learnt by now rules it out. The Parquet source looks too, at exact statistics.
struct LearningPlanner {
    file: PartitionedFile,
    inner: Box<dyn MorselPlanner>,
    with_deletes: Arc<WithDeletes>,
}

impl fmt::Debug for LearningPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LearningPlanner")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl MorselPlanner for LearningPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        match self.with_deletes.pruning.rules_out(&self.file)? {
            true => Ok(None),
            false => self.inner.plan(),
        }
    }
}

/// Stands for a file of which no row is left.
#[derive(Debug)]
struct NothingLeft;

impl MorselPlanner for NothingLeft {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(None)
    }
}

/// One file, or a range of one, while it is read. It is done when the last that came of it is dropped.
struct Split {
    table: Arc<ScanTable>,
    path: object_store::path::Path,
    progress: Option<Arc<QueryProgress>>,
    bucket: Option<FileCheck>,
}

impl Drop for Split {
    fn drop(&mut self) {
        if let Some(progress) = &self.progress {
            progress.splits_done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// The error of a filter that the Parquet reader evaluates, and passes on as text.
fn of_filter(error: &DataFusionError) -> Option<DataFusionError> {
    let text = error.find_root().to_string();
    let (_, inner) = text.split_once("Error evaluating filter predicate: ")?;
    // The error as it is debugged: its message is the first text in quotes.
    let message = inner.split('"').nth(1).unwrap_or(inner);
    Some(DataFusionError::Execution(message.to_owned()))
}

impl Split {
    /// As [`Self::name_file`], before there is a row that an expression of the query could fail on.
    fn name_unopened(&self, error: DataFusionError) -> DataFusionError {
        match error.find_root() {
            DataFusionError::Execution(_) => self.named(&error),
            _ => self.name_file(error),
        }
    }

    /// The error, with the table and the file that it is about, if it is about the file.
    fn name_file(&self, error: DataFusionError) -> DataFusionError {
        if let Some(error) = of_filter(&error) {
            return error;
        }
        match error.find_root() {
            DataFusionError::ParquetError(_)
            | DataFusionError::ObjectStore(_)
            | DataFusionError::Plan(_)
            | DataFusionError::External(_) => {}
            DataFusionError::ArrowError(inner, _)
                if matches!(
                    inner.as_ref(),
                    ArrowError::ParquetError(_) | ArrowError::ExternalError(_)
                ) => {}
            // Not the file's fault: out of memory, a bug, an expression of the query that is evaluated where the file
            // is read.
            _ => return error,
        }
        if let DataFusionError::External(inner) = error.find_root()
            && inner.is::<PlannerError>()
        {
            return error;
        }
        self.named(&error)
    }

    fn named(&self, error: &DataFusionError) -> DataFusionError {
        PlannerError::DataFile {
            table: self.table.name.to_string(),
            file: path_to_location(&self.path).unwrap_or_else(|_| self.path.to_string()),
            reason: error.strip_backtrace(),
        }
        .into()
    }
}

/// A planner, and all that it leads to, of one split.
#[derive(Debug)]
struct SplitPlanner {
    inner: Box<dyn MorselPlanner>,
    split: Arc<Split>,
}

impl SplitPlanner {
    fn wrap(inner: Box<dyn MorselPlanner>, split: &Arc<Split>) -> Box<dyn MorselPlanner> {
        Box::new(SplitPlanner {
            inner,
            split: Arc::clone(split),
        })
    }
}

impl MorselPlanner for SplitPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { inner, split } = *self;
        let planned = caught(|| inner.plan());
        let Some(mut plan) = planned.map_err(|error| split.name_unopened(error))? else {
            return Ok(None);
        };
        let morsels = plan
            .take_morsels()
            .into_iter()
            .map(|inner| {
                Box::new(SplitMorsel {
                    inner,
                    split: Arc::clone(&split),
                }) as Box<dyn Morsel>
            })
            .collect();
        let planners = plan
            .take_ready_planners()
            .into_iter()
            .map(|p| SplitPlanner::wrap(p, &split))
            .collect();
        let mut wrapped = MorselPlan::new()
            .with_morsels(morsels)
            .with_planners(planners);
        if let Some(pending) = plan.take_pending_planner() {
            wrapped.set_pending_planner(async move {
                match caught_future(pending).await {
                    Ok(planner) => Ok(SplitPlanner::wrap(planner, &split)),
                    Err(error) => Err(split.name_unopened(error)),
                }
            });
        }
        Ok(Some(wrapped))
    }
}

#[derive(Debug)]
struct SplitMorsel {
    inner: Box<dyn Morsel>,
    split: Arc<Split>,
}

impl Morsel for SplitMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { inner, split } = *self;
        caught_stream(inner.into_stream())
            .map(move |batch| match batch {
                Ok(batch) => {
                    if let Some(progress) = &split.progress {
                        progress
                            .rows
                            .fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                    }
                    if let Some(bucket) = &split.bucket {
                        bucket.check(&batch).map_err(|error| split.named(&error))?;
                    }
                    Ok(batch)
                }
                Err(error) => Err(split.name_file(error)),
            })
            .boxed()
    }
}
