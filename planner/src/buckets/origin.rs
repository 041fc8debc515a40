//! From a key of a join down to the column of a table that it comes from, and why its buckets do not serve.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion_datasource::file::FileSource;

use super::distribution::{Keys, tables};
use super::file_buckets::FileBuckets;
use super::kind::{BucketKind, column_of};
use super::scan::iceberg_scan;

/// What is known of the buckets of a key.
struct Origin {
    table: String,
    column: String,
    data_type: DataType,
    /// How many buckets the files are counted by; each number once.
    counts: Vec<u32>,
    files: usize,
    files_without: usize,
}

impl Origin {
    fn name(&self) -> String {
        format!("{}.{}", self.table, self.column)
    }

    /// Why its buckets are of no use for any join; `None` if they are.
    fn trouble(&self) -> Option<String> {
        if self.counts.is_empty() {
            return None;
        }
        if self.files_without > 0 {
            return Some(format!(
                "{} of {} files of {} were written under another partition spec, without buckets of {}",
                self.files_without, self.files, self.table, self.column
            ));
        }
        let counts: Vec<String> = self.counts.iter().map(u32::to_string).collect();
        let (least, rest) = self.counts.split_first()?;
        rest.iter().any(|count| count % least != 0).then(|| {
            format!(
                "files of {} are in {} buckets of {}",
                self.table,
                counts.join(" and "),
                self.column
            )
        })
    }
}

/// Why a join with these keys is not made by buckets.
pub(super) fn why_not_by_buckets(
    on: &Keys,
    left: &Arc<dyn ExecutionPlan>,
    right: &Arc<dyn ExecutionPlan>,
) -> String {
    let mut computed = None;
    let mut without = None;
    for (l, r) in on {
        let (l, r) = match (origin(l, left), origin(r, right)) {
            (Some(l), Some(r)) => (l, r),
            (None, _) => {
                computed.get_or_insert_with(|| format!("its key {l} is no column of a table"));
                continue;
            }
            (_, None) => {
                computed.get_or_insert_with(|| format!("its key {r} is no column of a table"));
                continue;
            }
        };
        if let Some(trouble) = l.trouble().or_else(|| r.trouble()) {
            return trouble;
        }
        match (l.counts.first(), r.counts.first()) {
            (Some(_), Some(_)) if BucketKind::of(&l.data_type) != BucketKind::of(&r.data_type) => {
                return format!(
                    "{} and {} are of types whose buckets differ",
                    l.name(),
                    r.name()
                );
            }
            (Some(a), Some(b)) if a % b != 0 && b % a != 0 => {
                return format!(
                    "{} has {a} buckets and {} has {b}, and neither number divides the other",
                    l.name(),
                    r.name()
                );
            }
            (Some(_), Some(_)) => {
                return format!(
                    "rows of {} and {} are not where their buckets are any more",
                    tables(left),
                    tables(right)
                );
            }
            (None, None) => {
                without.get_or_insert_with(|| {
                    format!("neither {} nor {} has buckets", l.name(), r.name())
                });
            }
            (Some(_), None) => without = Some(format!("{} has no buckets", r.name())),
            (None, Some(_)) => without = Some(format!("{} has no buckets", l.name())),
        }
    }
    without
        .or(computed)
        .unwrap_or_else(|| "it has no keys that are equal".to_string())
}

/// Where the values of an expression over a plan's output come from.
fn origin(expr: &Arc<dyn PhysicalExpr>, plan: &Arc<dyn ExecutionPlan>) -> Option<Origin> {
    column_origin(column_of(expr, &plan.schema())?, plan)
}

fn column_origin(column: usize, plan: &Arc<dyn ExecutionPlan>) -> Option<Origin> {
    if let Some((config, source)) = iceberg_scan(plan) {
        let projection = source.projection()?;
        let schema = source.table_schema().table_schema();
        let column = column_of(&projection.iter().nth(column)?.expr, schema)?;
        let field = schema.fields().get(column)?;
        let mut origin = Origin {
            table: source.table().name.table.clone(),
            column: field.name().clone(),
            data_type: field.data_type().clone(),
            counts: Vec::new(),
            files: 0,
            files_without: 0,
        };
        for file in config.file_groups.iter().flat_map(|group| group.iter()) {
            origin.files += 1;
            let buckets = file.extensions.get::<FileBuckets>();
            match buckets.and_then(|buckets| buckets.of_column(column)) {
                Some(bucket) => origin.counts.push(bucket.count),
                None => origin.files_without += 1,
            }
        }
        origin.counts.sort_unstable();
        origin.counts.dedup();
        return Some(origin);
    }
    let children = plan.children();
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return origin(&projection.expr().get(column)?.expr, children.first()?);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let column = match filter.projection() {
            Some(projection) => *projection.get(column)?,
            None => column,
        };
        return column_origin(column, children.first()?);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let (expr, _) = aggregate.group_expr().expr().get(column)?;
        return origin(expr, children.first()?);
    }
    match children.as_slice() {
        [child] if child.schema().fields().len() == plan.schema().fields().len() => {
            column_origin(column, child)
        }
        // A join has its columns from either side: by name, which is enough to say why.
        [left, right] => {
            let name = plan.schema().fields().get(column)?.name().clone();
            let found = |side: &Arc<dyn ExecutionPlan>| {
                let column = side.schema().index_of(&name).ok()?;
                column_origin(column, side)
            };
            found(left).or_else(|| found(right))
        }
        _ => None,
    }
}
