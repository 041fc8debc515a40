//! Files become morsels: the Parquet reader's own, with the file named in errors and progress counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::error::{DataFusionError, Result};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::StreamExt;
use futures::stream::BoxStream;
use tarn_catalog::path_to_location;

use super::column_adapter::FileConstants;
use super::scan_table::ScanTable;
use crate::error::PlannerError;
use crate::progress::QueryProgress;

/// Makes a Parquet morselizer for files that have constants of their own.
type WithConstants = Box<dyn Fn(FileConstants) -> Result<Box<dyn Morselizer>> + Send + Sync>;

/// The morselizer of one partition of a scan.
pub(crate) struct IcebergMorselizer {
    pub(crate) inner: Box<dyn Morselizer>,
    pub(crate) with_constants: WithConstants,
    pub(crate) table: Arc<ScanTable>,
    pub(crate) progress: Option<Arc<QueryProgress>>,
}

impl fmt::Debug for IcebergMorselizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IcebergMorselizer")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl Morselizer for IcebergMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let split = Arc::new(Split {
            table: Arc::clone(&self.table),
            path: file.object_meta.location.clone(),
            progress: self.progress.clone(),
        });
        let planner = match file.extensions.get::<FileConstants>() {
            Some(constants) => (self.with_constants)(constants.clone())?.plan_file(file),
            None => self.inner.plan_file(file),
        };
        let inner = planner.map_err(|error| split.name_file(error))?;
        Ok(Box::new(SplitPlanner { inner, split }))
    }
}

/// One file, or a range of one, while it is read. It is done when the last that came of it is dropped.
struct Split {
    table: Arc<ScanTable>,
    path: object_store::path::Path,
    progress: Option<Arc<QueryProgress>>,
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

impl Split {
    /// The error, with the table and the file that it is about, if it is about the file.
    fn name_file(&self, error: DataFusionError) -> DataFusionError {
        match error.find_root() {
            DataFusionError::ParquetError(_)
            | DataFusionError::ObjectStore(_)
            | DataFusionError::ArrowError(..)
            | DataFusionError::Execution(_)
            | DataFusionError::Plan(_)
            | DataFusionError::External(_) => {}
            // Not the file's fault: out of memory, a bug.
            _ => return error,
        }
        if let DataFusionError::External(inner) = error.find_root()
            && inner.is::<PlannerError>()
        {
            return error;
        }
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
        let Some(mut plan) = inner.plan().map_err(|error| split.name_file(error))? else {
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
                match pending.await {
                    Ok(planner) => Ok(SplitPlanner::wrap(planner, &split)),
                    Err(error) => Err(split.name_file(error)),
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
        inner
            .into_stream()
            .map(move |batch| match batch {
                Ok(batch) => {
                    if let Some(progress) = &split.progress {
                        progress
                            .rows
                            .fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                    }
                    Ok(batch)
                }
                Err(error) => Err(split.name_file(error)),
            })
            .boxed()
    }
}
