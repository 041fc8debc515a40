//! A query's filter, ready to be held against manifests and files.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::{split_conjunction, split_conjunction_owned};
use datafusion::physical_expr::{PhysicalExpr, conjunction, create_physical_expr};
use datafusion::physical_optimizer::pruning::PruningPredicate;
use datafusion::scalar::ScalarValue;
use tarn_catalog::DecodedManifest;

use super::buckets::with_buckets;
use super::column_bounds::{BoundsByName, column_bounds};
use super::exact::{PartitionFilter, is_evaluated_by_partition};
use super::numbers::with_numbers;
use super::partition_layout::{TableLayout, nested_name};
use super::prunable::prunable;

/// The filters of one scan.
pub(crate) struct PruneFilter {
    /// `None` if it can rule nothing out.
    predicate: Option<PruningPredicate>,
    /// Columns that the filters name.
    columns: BTreeSet<String>,
    /// Columns, and fields inside of them, that the predicate names.
    bounded: BTreeSet<String>,
    /// Conjuncts that can be evaluated on partition values, where a manifest's spec has those as they are.
    by_partition: Vec<PartitionFilter>,
}

impl PruneFilter {
    pub(crate) fn new(
        filters: &[Expr],
        layout: &TableLayout,
        props: &ExecutionProps,
    ) -> Result<Self> {
        let df_schema = DFSchema::try_from(Arc::clone(&layout.prune_schema))?;
        let mut physical: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
        let mut by_partition = Vec::new();
        let mut columns = BTreeSet::new();
        let mut bounded = BTreeSet::new();
        let mut plain = Vec::new();
        for filter in filters.iter().flat_map(split_conjunction) {
            let filter = unqualified(filter.clone())?;
            let names: BTreeSet<String> = filter
                .column_refs()
                .into_iter()
                .map(|c| c.name.clone())
                .collect();
            // One without columns may be what is left of a NULL in a list.
            if is_evaluated_by_partition(&filter) {
                let expr = create_physical_expr(&filter, &df_schema, props)?;
                by_partition.push(PartitionFilter::new(expr, &names, layout)?);
            }
            columns.extend(names);
            plain.push(nested_columns(filter, layout)?);
        }
        if let Some(all) = datafusion::logical_expr::utils::conjunction(plain) {
            let all = with_buckets(with_numbers(all, layout)?, layout)?;
            for filter in split_conjunction_owned(all) {
                bounded.extend(filter.column_refs().into_iter().map(|c| c.name.clone()));
                physical.push(create_physical_expr(&prunable(filter)?, &df_schema, props)?);
            }
        }
        let predicate = if physical.is_empty() {
            None
        } else {
            // A predicate that cannot be used for pruning is no error of the query.
            PruningPredicate::try_new(conjunction(physical), Arc::clone(&layout.prune_schema))
                .ok()
                .filter(|predicate| {
                    !predicate.always_true() || !predicate.literal_guarantees().is_empty()
                })
        };
        Ok(Self {
            predicate,
            columns,
            bounded,
            by_partition,
        })
    }

    /// Names of the columns that the filters mention.
    pub(crate) fn columns(&self) -> &BTreeSet<String> {
        &self.columns
    }

    /// Names of the columns, and of fields inside of them, whose bounds decide.
    pub(crate) fn bounded(&self) -> &BTreeSet<String> {
        &self.bounded
    }

    /// For each container: whether it may hold rows that the filter keeps.
    pub(crate) fn may_match(&self, bounds: &BoundsByName, rows: ArrayRef) -> Vec<bool> {
        let containers = rows.len();
        let Some(predicate) = &self.predicate else {
            return vec![true; containers];
        };
        // What cannot be evaluated may match.
        predicate
            .prune(&Known { bounds, rows })
            .unwrap_or_else(|_| vec![true; containers])
    }

    /// For each file of a manifest: whether it may hold rows that the filter keeps.
    pub(crate) fn prune_files(
        &self,
        manifest: &DecodedManifest,
        layout: &TableLayout,
    ) -> Result<Vec<bool>> {
        let rows = row_counts(manifest);
        let bounds: BoundsByName = match self.predicate {
            None => BoundsByName::new(),
            Some(_) => self
                .bounded
                .iter()
                .filter_map(|name| {
                    Some((name.clone(), column_bounds(manifest, layout.column(name)?)))
                })
                .collect(),
        };
        let mut keep = self.may_match(&bounds, rows as ArrayRef);
        for filter in &self.by_partition {
            filter.apply(manifest, layout, &mut keep)?;
        }
        Ok(keep)
    }

    /// For each delete file of a manifest: whether it may delete rows that the filter keeps.
    ///
    /// A row that equality deletes match has their key, so a key that the filter rules out matches no row of the
    /// answer. Of other columns a delete file says nothing, whatever its metrics are.
    pub(crate) fn prune_deletes(
        &self,
        manifest: &DecodedManifest,
        layout: &TableLayout,
    ) -> Result<Vec<bool>> {
        if self.predicate.is_none() {
            return Ok(vec![true; manifest.entries.len()]);
        }
        let mut bounds = BoundsByName::new();
        for name in &self.bounded {
            let Some(column) = layout.column(name) else {
                continue;
            };
            let key_of: Vec<bool> = manifest
                .entries
                .iter()
                .map(|entry| {
                    let ids = entry.data_file().equality_ids();
                    ids.is_some_and(|ids| ids.contains(&column.field_id))
                })
                .collect();
            if key_of.contains(&true) {
                let known = column_bounds(manifest, column).only_of(&key_of)?;
                bounds.insert(name.clone(), Arc::new(known));
            }
        }
        Ok(self.may_match(&bounds, row_counts(manifest)))
    }
}

fn row_counts(manifest: &DecodedManifest) -> Arc<UInt64Array> {
    manifest.memo("rows", |manifest| {
        manifest
            .entries
            .iter()
            .map(|e| Some(e.data_file().record_count()))
            .collect::<UInt64Array>()
    })
}

/// The expression with columns that name no relation: the table's schema has none.
pub(crate) fn unqualified(expr: Expr) -> Result<Expr> {
    use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
    expr.transform(|expr| match expr {
        Expr::Column(column) if column.relation.is_some() => Ok(Transformed::yes(Expr::Column(
            Column::new_unqualified(column.name),
        ))),
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// The expression with fields of structs as columns of the layout's `prune_schema`.
fn nested_columns(expr: Expr, layout: &TableLayout) -> Result<Expr> {
    use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
    expr.transform_down(|expr| {
        let name = match &expr {
            Expr::ScalarFunction(_) => field_name(&expr),
            _ => None,
        };
        Ok(match name.filter(|name| layout.column(name).is_some()) {
            Some(name) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
            None => Transformed::no(expr),
        })
    })
    .data()
}

/// The name that `prune_schema` has for a field of a struct, of any depth.
fn field_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Column(column) => Some(column.name.clone()),
        Expr::ScalarFunction(function) if function.name() == "get_field" => {
            let (outer, path) = function.args.split_first()?;
            path.iter()
                .try_fold(field_name(outer)?, |name, field| match field {
                    Expr::Literal(field, _) => Some(nested_name(&name, field.try_as_str()??)),
                    _ => None,
                })
        }
        _ => None,
    }
}

/// What is known of the containers, as DataFusion asks for it.
struct Known<'a> {
    bounds: &'a BoundsByName,
    rows: ArrayRef,
}

impl PruningStatistics for Known<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds
            .get(&column.name)
            .map(|bounds| Arc::clone(&bounds.lower))
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds
            .get(&column.name)
            .map(|bounds| Arc::clone(&bounds.upper))
    }

    fn num_containers(&self) -> usize {
        self.rows.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds
            .get(&column.name)
            .map(|bounds| Arc::clone(&bounds.null_counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::clone(&self.rows))
    }

    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        self.bounds.get(&column.name)?.contained(values)
    }
}
