//! The node that stands for files which were not opened.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, coop::cooperative,
};
use tarn_audit::ScanReport;

/// Gives rows that the metadata of a table's files had.
#[derive(Debug, Clone)]
pub(crate) struct MetadataAnswerExec {
    /// The table's name, for people.
    pub(super) table: String,
    /// Data files that it stands for.
    pub(super) files: u64,
    pub(super) rows: RecordBatch,
    /// What the scan would have been, if no file of it is left to read.
    report: Option<ScanReport>,
    properties: Arc<PlanProperties>,
}

impl MetadataAnswerExec {
    pub(super) fn new(
        table: String,
        files: u64,
        rows: RecordBatch,
        report: Option<ScanReport>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(rows.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Self {
            table,
            files,
            rows,
            report,
            properties: Arc::new(properties),
        }
    }

    /// The report of the scan, if this node is all that became of it.
    pub(crate) fn report(&self) -> Option<&ScanReport> {
        self.report.as_ref()
    }
}

impl DisplayAs for MetadataAnswerExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(
                f,
                "MetadataAnswerExec: table={}, files={}, rows={}",
                self.table,
                self.files,
                self.rows.num_rows()
            ),
            DisplayFormatType::TreeRender => {
                writeln!(f, "table={}", self.table)?;
                writeln!(f, "files={}", self.files)
            }
        }
    }
}

impl ExecutionPlan for MetadataAnswerExec {
    fn name(&self) -> &str {
        "MetadataAnswerExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return Err(DataFusionError::Internal(format!(
                "an answer from metadata has no partition {partition}"
            )));
        }
        let rows = vec![self.rows.clone()];
        let stream = MemoryStream::try_new(rows, self.rows.schema(), None)?;
        Ok(Box::pin(cooperative(stream)))
    }

    fn partition_statistics(&self, _: Option<usize>) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.rows.schema());
        statistics.num_rows = Precision::Exact(self.rows.num_rows());
        statistics.total_byte_size = Precision::Inexact(self.rows.get_array_memory_size());
        Ok(Arc::new(statistics))
    }
}
