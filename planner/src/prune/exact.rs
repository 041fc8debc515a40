//! Filters that partition values decide: a file's rows all match, or none does.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::scalar::ScalarValue;
use iceberg::spec::{Literal, Struct};
use tarn_catalog::DecodedManifest;

use super::column_bounds::array;
use super::partition_layout::{PartitionColumn, TableColumn, TableLayout};
use super::values::scalar;

/// Whether an expression gives the same for equal values of its columns, and never fails: comparisons, `IN`, `LIKE`
/// and nullness of columns and literals, and logic over them.
pub(crate) fn is_evaluated_by_partition(expr: &Expr) -> bool {
    let mut plain = true;
    // The closure never fails.
    let _ = expr.apply(|expr| {
        plain &= match expr {
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Not(_)
            | Expr::Between(_)
            | Expr::Like(_) => true,
            Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::IsTrue(_) | Expr::IsFalse(_) => true,
            Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_) => true,
            Expr::InList(list) => list
                .list
                .iter()
                .all(|item| matches!(item, Expr::Literal(..))),
            Expr::BinaryExpr(binary) => matches!(
                binary.op,
                Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
                    | Operator::And
                    | Operator::Or
                    | Operator::IsDistinctFrom
                    | Operator::IsNotDistinctFrom
            ),
            _ => false,
        };
        Ok(if plain {
            TreeNodeRecursion::Continue
        } else {
            TreeNodeRecursion::Stop
        })
    });
    plain
}

impl TableLayout {
    /// Whether the value of a column is in the partition values of files of that spec, exactly.
    pub(crate) fn has_value(&self, column: &str, spec_id: i32) -> bool {
        self.column(column)
            .is_some_and(|column| identity(column, spec_id).is_some())
    }
}

/// The partition field that has the column's value. Floats are left out: zeros of both signs and all the NaNs may be
/// one partition, while a filter can tell them apart.
fn identity(column: &TableColumn, spec_id: i32) -> Option<&PartitionColumn> {
    column
        .identity_of(spec_id)
        .filter(|_| !matches!(column.arrow, DataType::Float32 | DataType::Float64))
}

/// A conjunct of a filter, over the columns that it names.
pub(crate) struct PartitionFilter {
    expr: Arc<dyn PhysicalExpr>,
    columns: Vec<String>,
    schema: SchemaRef,
}

impl PartitionFilter {
    pub(crate) fn new(
        expr: Arc<dyn PhysicalExpr>,
        columns: &BTreeSet<String>,
        layout: &TableLayout,
    ) -> Result<Self> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|name| {
                layout
                    .schema
                    .field_with_name(name)
                    .map(|f| f.as_ref().clone().with_nullable(true))
            })
            .collect::<Result<_, _>>()?;
        let schema = Arc::new(Schema::new(fields));
        let expr = reassign_expr_columns(expr, &schema)?;
        Ok(Self {
            expr,
            columns: columns.iter().cloned().collect(),
            schema,
        })
    }

    /// Clears `keep` for files whose partition values the filter does not keep, if the manifest's spec has them all.
    pub(crate) fn apply(
        &self,
        manifest: &DecodedManifest,
        layout: &TableLayout,
        keep: &mut [bool],
    ) -> Result<()> {
        let mut values: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for name in &self.columns {
            let column = layout.column(name);
            let Some((column, field)) =
                column.and_then(|c| Some((c, identity(c, manifest.partition_spec_id)?)))
            else {
                return Ok(());
            };
            let key = format!("partition:{}:{}", column.field_id, column.arrow);
            // A value that is not of the column's type leaves nothing to evaluate on.
            match manifest
                .memo(&key, |manifest| partition_values(manifest, column, field))
                .as_ref()
            {
                Some(array) => values.push(Arc::clone(array)),
                None => return Ok(()),
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(manifest.entries.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), values, &options)?;
        let kept = self.expr.evaluate(&batch)?.into_array(batch.num_rows())?;
        // A comparison with NULL has no type of its own, and is never true.
        if *kept.data_type() == DataType::Null {
            keep.fill(false);
        }
        let Some(kept) = kept.as_boolean_opt() else {
            return Ok(());
        };
        for (keep, kept) in keep.iter_mut().zip(kept.iter()) {
            // Null is not true: such rows are filtered out.
            *keep &= kept == Some(true);
        }
        Ok(())
    }
}

fn partition_values(
    manifest: &DecodedManifest,
    column: &TableColumn,
    field: &PartitionColumn,
) -> Option<ArrayRef> {
    let values: Vec<_> = manifest
        .entries
        .iter()
        .map(
            |entry| match entry.data_file().partition().fields().get(field.position)? {
                None => Some(None),
                Some(Literal::Primitive(value)) => {
                    scalar(value, &field.source, &column.arrow).map(Some)
                }
                Some(_) => None,
            },
        )
        .collect::<Option<_>>()?;
    let array = array(values.iter().map(Option::as_ref), &column.arrow);
    // What could not be built is all null, which would be taken for nulls.
    let nulls = values.iter().filter(|value| value.is_none()).count();
    (array.null_count() == nulls).then_some(array)
}

/// Positions of the columns whose values are in the partition values of files of that spec.
pub(crate) fn identity_columns(
    layout: &TableLayout,
    spec_id: i32,
) -> Vec<(usize, PartitionColumn)> {
    let columns = layout.columns().iter().enumerate();
    columns
        .filter_map(|(index, column)| Some((index, column.identity_of(spec_id)?.clone())))
        .collect()
}

/// The value of a column for all rows of a file, by its partition values.
pub(crate) fn partition_constant(
    field: &PartitionColumn,
    partition: &Struct,
    arrow: &DataType,
) -> Option<ScalarValue> {
    match partition.fields().get(field.position)? {
        None => ScalarValue::try_from(arrow).ok(),
        Some(Literal::Primitive(value)) => scalar(value, &field.source, arrow),
        Some(_) => None,
    }
}
