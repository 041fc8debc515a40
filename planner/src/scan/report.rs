//! The scans of a plan, and what they did when it ran.

use std::sync::Arc;

use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};
use datafusion_distributed::DistributedLeafExec;
use tarn_audit::{Counts, ScanReport};
use tarn_catalog::TableName;

use super::source::IcebergSource;
use crate::metadata_answers::MetadataAnswerExec;

/// One scan of an Iceberg table in a plan.
#[derive(Debug, Clone)]
pub struct ScanRef {
    pub table: TableName,
    /// As it stood when the scan was planned.
    pub report: ScanReport,
    /// The files to read, by partition.
    pub file_groups: Vec<FileGroup>,
}

/// The scans of a plan, in its order; a scan that is spread over tasks is one. A scan that metadata answers for is one
/// of no file.
pub fn iceberg_scans(plan: &Arc<dyn ExecutionPlan>) -> Vec<ScanRef> {
    let mut found = Vec::new();
    visit(plan, &mut |_, scan| {
        let report = scan.report().clone();
        found.push(ScanRef {
            table: TableName::new(&report.catalog, &report.database, &report.table),
            report,
            file_groups: match scan {
                Scan::Read(config, _) => config.file_groups.clone(),
                Scan::Answered(_) => vec![],
            },
        });
    });
    found
}

/// The reports of a plan's scans, after it ran.
///
/// For a distributed plan pass the one that `rewrite_distributed_plan_with_metrics` gives: its scans carry the metrics
/// of all tasks.
pub fn finish_scan_reports(plan: &Arc<dyn ExecutionPlan>) -> Vec<ScanReport> {
    let mut reports = Vec::new();
    visit(plan, &mut |node, scan| {
        let mut report = scan.report().clone();
        if let Some(metrics) = node.metrics() {
            add_metrics(&mut report, &metrics);
        }
        reports.push(report);
    });
    reports
}

/// What became of a scan.
enum Scan<'a> {
    Read(&'a FileScanConfig, &'a IcebergSource),
    Answered(&'a ScanReport),
}

impl Scan<'_> {
    fn report(&self) -> &ScanReport {
        match self {
            Self::Read(_, source) => &source.table().report,
            Self::Answered(report) => report,
        }
    }
}

/// Calls `f` with the node that has the metrics, and with the scan.
fn visit(plan: &Arc<dyn ExecutionPlan>, f: &mut impl FnMut(&Arc<dyn ExecutionPlan>, Scan<'_>)) {
    let leaf = match plan.downcast_ref::<DistributedLeafExec>() {
        Some(distributed) => distributed.original(),
        None => plan,
    };
    if let Some(config) = leaf
        .downcast_ref::<DataSourceExec>()
        .and_then(|exec| exec.data_source().downcast_ref::<FileScanConfig>())
        && let Some(source) = config.file_source.downcast_ref::<IcebergSource>()
    {
        f(plan, Scan::Read(config, source));
    } else if let Some(answer) = leaf.downcast_ref::<MetadataAnswerExec>()
        && let Some(report) = answer.report()
    {
        f(plan, Scan::Answered(report));
    }
    for child in plan.children() {
        visit(child, f);
    }
}

fn add_metrics(report: &mut ScanReport, metrics: &MetricsSet) {
    let metrics = metrics.aggregate_by_name();
    let mut after_statistics = (0u64, 0u64);
    let mut by_bloom_filter = 0u64;
    for metric in metrics.iter() {
        match metric.value() {
            MetricValue::OutputRows(rows) => report.rows_read += rows.value() as u64,
            MetricValue::Count { name, count } if name == "bytes_scanned" => {
                report.bytes_read += count.value() as u64;
            }
            MetricValue::Count { name, count } if name == "data_files_opened" => {
                report.files_opened += count.value() as u64;
            }
            MetricValue::Count { name, count } if name == "rows_deleted" => {
                report.rows_deleted += count.value() as u64;
            }
            MetricValue::PruningMetrics {
                name,
                pruning_metrics,
            } => {
                let (pruned, matched) = (
                    pruning_metrics.pruned() as u64,
                    pruning_metrics.matched() as u64,
                );
                match name.as_ref() {
                    "row_groups_pruned_statistics" => after_statistics = (pruned, matched),
                    "row_groups_pruned_bloom_filter" => by_bloom_filter = pruned,
                    "page_index_rows_pruned" => report.page_rows_skipped += pruned,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let (pruned, matched) = after_statistics;
    report.row_groups = Counts::kept_of(matched.saturating_sub(by_bloom_filter), pruned + matched);
}
