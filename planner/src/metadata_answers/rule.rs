//! The rule that lets files answer for themselves.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::union::UnionExec;
use datafusion::scalar::ScalarValue;
use datafusion_datasource::file::FileSource;
use tarn_audit::ScanReport;

use super::aggregate_input::{AggregateInput, over_scan};
use super::file_values::FileValues;
use super::group_answers::{Answer, GroupAnswers};
use super::node::MetadataAnswerExec;
use super::questions::{Question, QuestionKind};
use super::scan_facts::{FilePlace, ScanFacts};
use crate::buckets::{column_of, in_buckets};
use crate::scan::{IcebergSource, group_by_size};
use crate::statistics::scan_statistics;

/// Answers aggregates from metadata, file by file. It goes first: it knows plans as they were made.
#[derive(Debug)]
pub(crate) struct MetadataAnswers {
    /// Tables in buckets of what they are grouped by need no shuffle, as long as they are read in one piece.
    pub(crate) bucket_joins: bool,
}

impl PhysicalOptimizerRule for MetadataAnswers {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan
            .transform_down(|node| {
                Ok(match answered(&node, self.bucket_joins, config)? {
                    Some(answered) => Transformed::new(answered, true, TreeNodeRecursion::Jump),
                    None => Transformed::no(node),
                })
            })
            .data()?;
        // What is left of the facts helps nobody from here on.
        plan.apply(|node| {
            if let Some((_, source)) = iceberg_scan(node) {
                source.take_facts();
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "metadata_answers"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn iceberg_scan(node: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &IcebergSource)> {
    let scan: &FileScanConfig = node
        .downcast_ref::<DataSourceExec>()?
        .data_source()
        .downcast_ref()?;
    Some((scan, scan.file_source.downcast_ref()?))
}

/// What an aggregate is replaced by, if metadata answers for some of its files.
fn answered(
    node: &Arc<dyn ExecutionPlan>,
    bucket_joins: bool,
    config: &ConfigOptions,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(outer) = node.downcast_ref::<AggregateExec>() else {
        return Ok(None);
    };
    let inner = match outer.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => outer,
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            match outer.input().downcast_ref::<AggregateExec>() {
                Some(inner) if *inner.mode() == AggregateMode::Partial => inner,
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    let Some(asked) = Asked::of(inner) else {
        return Ok(None);
    };
    let Some(mut facts) = asked.input.source.take_facts() else {
        return Ok(None);
    };
    let (groups, answering) = asked.ask(&facts);
    let files: Vec<&PartitionedFile> = asked
        .input
        .scan
        .file_groups
        .iter()
        .flat_map(FileGroup::iter)
        .collect();
    let (answered, left): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| {
        let place = file.extensions.get::<FilePlace>();
        place.is_some_and(|place| answering.contains(place))
    });
    if answered.is_empty() && !left.is_empty() {
        return Ok(None);
    }
    // What is known of some files has to be shuffled to meet what the others give. By buckets nothing is, so that pays only
    // where it saves more than it leaves to read: as a rule, the files of nulls alone are of one group.
    let bytes = |files: &[&PartitionedFile]| -> u64 {
        files.iter().map(|file| file.object_meta.size).sum()
    };
    if bucket_joins
        && !left.is_empty()
        && bytes(&answered) <= bytes(&left)
        && asked.groups_by_buckets([&answered, &left])
    {
        return Ok(None);
    }
    facts.retain(|place| !answering.contains(&place));
    let report = report_of_left(asked.input.source, &facts, &answered);
    let table = asked.input.source.table().name.to_string();
    let count = answered.len() as u64;
    if left.is_empty() {
        let rows = groups.rows(&node.schema())?;
        let answer = MetadataAnswerExec::new(table, count, rows, Some(report));
        return Ok(Some(Arc::new(answer)));
    }

    let left: Vec<PartitionedFile> = left.into_iter().cloned().collect();
    let partitions = config.execution.target_partitions;
    let scan = FileScanConfigBuilder::from(asked.input.scan.clone())
        .with_source(Arc::new(asked.input.source.with_report(report)))
        .with_statistics(scan_statistics(
            &facts.kept,
            &facts.columns,
            &facts.layout,
            &facts.distinct,
        ))
        .with_file_groups(group_by_size(left, partitions))
        .build();
    let input = over_scan(inner.input(), DataSourceExec::from_data_source(scan))?;
    let partial = AggregateExec::try_new(
        AggregateMode::Partial,
        inner.group_expr().clone(),
        inner.aggr_expr().to_vec(),
        inner.filter_expr().to_vec(),
        input,
        inner.input_schema(),
    )?;
    let rows = groups.rows(&partial.schema())?;
    let answer = MetadataAnswerExec::new(table, count, rows, None);
    let union = UnionExec::try_new(vec![Arc::new(answer), Arc::new(partial)])?;
    if std::ptr::eq(inner, outer) {
        return Ok(Some(Arc::new(AggregateExec::try_new(
            AggregateMode::Final,
            inner.group_expr().as_final(),
            inner.aggr_expr().to_vec(),
            inner.filter_expr().to_vec(),
            union,
            inner.input_schema(),
        )?)));
    }
    Arc::clone(node).with_new_children(vec![union]).map(Some)
}

/// An aggregate that metadata may answer.
struct Asked<'a> {
    input: AggregateInput<'a>,
    /// What rows are grouped by, over the table's columns.
    group_by: Vec<Arc<dyn PhysicalExpr>>,
    questions: Vec<Question>,
}

impl<'a> Asked<'a> {
    fn of(aggregate: &'a AggregateExec) -> Option<Self> {
        let group = aggregate.group_expr();
        if group.has_grouping_set()
            || aggregate.limit_options().is_some()
            || aggregate.filter_expr().iter().any(Option::is_some)
        {
            return None;
        }
        let input = AggregateInput::of(aggregate.input())?;
        Some(Self {
            group_by: group
                .expr()
                .iter()
                .map(|(expr, _)| input.resolve(expr))
                .collect::<Option<_>>()?,
            questions: aggregate
                .aggr_expr()
                .iter()
                .map(|function| Question::of(function, &input))
                .collect::<Option<_>>()?,
            input,
        })
    }

    /// Whether rows of one group are in one bucket, by each of the files.
    fn groups_by_buckets(&self, files: [&[&PartitionedFile]; 2]) -> bool {
        let schema = self.input.source.table_schema().table_schema();
        self.group_by.iter().any(|expr| {
            let files = files.iter().flat_map(|files| files.iter().copied());
            column_of(expr, schema).is_some_and(|column| in_buckets(files, column))
        })
    }

    /// The answers of all files that answer, and which these are.
    fn ask(&self, facts: &ScanFacts) -> (GroupAnswers, HashSet<FilePlace>) {
        let mut groups = GroupAnswers::default();
        let mut answering = HashSet::new();
        for (manifest, files) in facts.kept.iter().enumerate() {
            let values = FileValues::new(&files.manifest, &facts.layout);
            let Some(known) = self.of_files(&values) else {
                continue;
            };
            for entry in files.indices() {
                if files.deletes.contains_key(&entry) {
                    continue;
                }
                // A file without rows is in no group.
                if values.rows(entry) > 0 {
                    let Some((key, answers)) = known.of_file(entry) else {
                        continue;
                    };
                    groups.add(key, answers, &self.questions);
                }
                answering.insert(FilePlace { manifest, entry });
            }
        }
        if self.group_by.is_empty() && groups.is_empty() {
            groups.add(
                vec![],
                GroupAnswers::of_no_rows(&self.questions),
                &self.questions,
            );
        }
        (groups, answering)
    }

    fn of_files(&self, values: &FileValues<'_>) -> Option<FileAnswers> {
        Some(FileAnswers {
            kept: self
                .input
                .filters
                .iter()
                .map(|filter| values.always(filter))
                .collect(),
            keys: self
                .group_by
                .iter()
                .map(|expr| values.constant(expr).map(Column::Values))
                .collect::<Option<_>>()?,
            answers: self
                .questions
                .iter()
                .map(|question| {
                    Some(match question.kind {
                        QuestionKind::Count => Column::Counts(values.count(&question.of)),
                        QuestionKind::Min => Column::Values(values.extreme(&question.of, false)?),
                        QuestionKind::Max => Column::Values(values.extreme(&question.of, true)?),
                    })
                })
                .collect::<Option<_>>()?,
        })
    }
}

/// What the files of one manifest answer.
struct FileAnswers {
    /// For each filter and file, whether all its rows pass.
    kept: Vec<Vec<bool>>,
    keys: Vec<Column>,
    answers: Vec<Column>,
}

enum Column {
    Values(super::file_values::Known),
    Counts(Vec<Option<u64>>),
}

impl FileAnswers {
    fn of_file(&self, file: usize) -> Option<(Vec<ScalarValue>, Vec<Answer>)> {
        if !self.kept.iter().all(|kept| kept[file]) {
            return None;
        }
        let key = self
            .keys
            .iter()
            .map(|column| column.value_of(file))
            .collect::<Option<_>>()?;
        let answers = self
            .answers
            .iter()
            .map(|column| column.of_file(file))
            .collect::<Option<_>>()?;
        Some((key, answers))
    }
}

impl Column {
    fn of_file(&self, file: usize) -> Option<Answer> {
        match self {
            Column::Counts(counts) => counts[file].map(Answer::Count),
            Column::Values(_) => {
                let value = self.value_of(file)?;
                Some(Answer::Extreme(
                    Some(value).filter(|value| !value.is_null()),
                ))
            }
        }
    }

    /// The value that is known of a file; it may be null.
    fn value_of(&self, file: usize) -> Option<ScalarValue> {
        match self {
            Column::Values(values) if values.known[file] => {
                ScalarValue::try_from_array(&values.values, file).ok()
            }
            _ => None,
        }
    }
}

/// The scan's report, less the files that are not read for it.
fn report_of_left(
    source: &IcebergSource,
    facts: &ScanFacts,
    answered: &[&PartitionedFile],
) -> ScanReport {
    let report = &source.table().report;
    let bytes: u64 = answered.iter().map(|file| file.object_meta.size).sum();
    let rows: u64 = facts
        .kept
        .iter()
        .flat_map(|files| {
            files
                .indices()
                .map(|entry| files.manifest.entries[entry].data_file().record_count())
        })
        .sum();
    ScanReport {
        files_answered: answered.len() as u64,
        data_in_bytes: report.data_in_bytes.saturating_sub(bytes),
        rows_in_files: rows,
        ..report.clone()
    }
}
