//! How many rows a plan gives, and what its columns hold.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Statistics};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Aggregate, Expr, FetchType, LogicalPlan, SkipType};

use super::columns::{ColumnEstimate, width_of};
use super::selectivity::{bare, kept};

/// Rows of a plan of which nothing is known.
const UNKNOWN_ROWS: f64 = 1000.0;

/// Rows and columns of a plan's result.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PlanEstimate {
    pub rows: f64,
    /// In order, so that sums over them are the same in every run.
    columns: BTreeMap<Column, ColumnEstimate>,
}

impl PlanEstimate {
    pub(crate) fn new(
        rows: f64,
        columns: impl IntoIterator<Item = (Column, ColumnEstimate)>,
    ) -> Self {
        Self {
            rows,
            columns: columns.into_iter().collect(),
        }
    }

    /// Of a schema, and of nothing else.
    fn unknown(rows: f64, schema: &DFSchema) -> Self {
        let columns = schema.iter().map(|(qualifier, field)| {
            (
                Column::from((qualifier, field)),
                ColumnEstimate::unknown(field.data_type(), rows),
            )
        });
        Self::new(rows, columns)
    }

    /// Of a table's scan; `columns` names those of the schema by their place in the statistics.
    pub(crate) fn of_statistics(
        statistics: &Statistics,
        schema: &DFSchema,
        columns: &[usize],
    ) -> Self {
        let Some(rows) = statistics.num_rows.get_value() else {
            return Self::unknown(UNKNOWN_ROWS, schema);
        };
        let rows = *rows as f64;
        let estimates = schema.iter().enumerate().map(|(i, (qualifier, field))| {
            let known = columns
                .get(i)
                .and_then(|place| statistics.column_statistics.get(*place));
            let estimate = match known {
                Some(known) => ColumnEstimate::of_statistics(known, field.data_type(), rows),
                None => ColumnEstimate::unknown(field.data_type(), rows),
            };
            (Column::from((qualifier, field)), estimate)
        });
        Self::new(rows, estimates)
    }

    pub(crate) fn column(&self, column: &Column) -> Option<&ColumnEstimate> {
        self.columns.get(column)
    }

    /// A guess at the rows that there were before filters: no fewer than a column has values.
    pub(crate) fn rows_unfiltered(&self) -> f64 {
        self.columns
            .values()
            .fold(self.rows, |rows, column| rows.max(column.distinct))
    }

    /// Without columns that are not in the schema.
    pub(crate) fn only(&self, schema: &DFSchema, rows: f64) -> Self {
        let columns = schema.columns().into_iter();
        Self::new(
            rows,
            columns.filter_map(|column| Some((column.clone(), *self.columns.get(&column)?))),
        )
    }

    /// Bytes of a row.
    pub(crate) fn width(&self) -> f64 {
        self.columns.values().map(|column| column.width).sum()
    }

    /// Distinct values of an expression; `None` if nothing is known.
    pub(crate) fn distinct_of(&self, expr: &Expr) -> Option<f64> {
        let of_arguments = |arguments: &mut dyn Iterator<Item = &Expr>| {
            let mut product = 1.0;
            for argument in arguments {
                product *= self.distinct_of(argument)?;
            }
            Some(product)
        };
        match bare(expr) {
            Expr::Column(column) => Some(self.columns.get(column)?.distinct),
            Expr::Literal(..) => Some(1.0),
            Expr::ScalarFunction(ScalarFunction { func, args }) => {
                let all = of_arguments(&mut args.iter())?;
                Some(match func.name() {
                    // A year of days, and months in it.
                    "year" => (all / 365.0).max(1.0),
                    "date_part" | "extract" | "month" | "quarter" | "day" => all.min(31.0),
                    _ => all,
                })
            }
            Expr::BinaryExpr(binary) => {
                of_arguments(&mut [binary.left.as_ref(), binary.right.as_ref()].into_iter())
            }
            _ => None,
        }
    }

    /// What is left after predicates.
    pub(crate) fn filtered(mut self, predicates: &[&Expr]) -> Self {
        let kept = kept(predicates, &self);
        for (column, part) in &kept.columns {
            if let Some(estimate) = self.columns.get_mut(column) {
                *estimate = estimate.with_part(*part);
            }
        }
        self.rows *= kept.rows;
        self
    }

    /// The columns of two sides of a join, with other rows.
    pub(crate) fn beside(mut self, other: &Self, rows: f64) -> Self {
        self.columns
            .extend(other.columns.iter().map(|(name, of)| (name.clone(), *of)));
        self.rows = rows;
        self
    }

    pub(crate) fn with_rows(mut self, rows: f64) -> Self {
        self.rows = rows;
        self
    }

    /// The same columns under the names of another schema.
    fn renamed(&self, from: &DFSchema, to: &DFSchema) -> Self {
        let columns = from.columns().into_iter().zip(to.columns());
        Self::new(
            self.rows,
            columns.filter_map(|(from, to)| Some((to, *self.columns.get(&from)?))),
        )
    }

    /// Rows that differ in the values of expressions.
    fn groups(&self, keys: &[Expr]) -> f64 {
        let mut groups = 1.0;
        for key in keys {
            groups *= self.distinct_of(key).unwrap_or(self.rows);
        }
        // Keys depend on each other more often than not.
        groups.min(self.rows).max(1.0)
    }
}

/// What a plan gives that is no join and no scan, by what its inputs give.
pub(crate) fn estimate(plan: &LogicalPlan, inputs: &[PlanEstimate]) -> PlanEstimate {
    let Some(input) = inputs.first() else {
        return leaf(plan);
    };
    let schema = plan.schema();
    match plan {
        LogicalPlan::Projection(projection) => {
            let columns =
                projection
                    .expr
                    .iter()
                    .zip(schema.iter())
                    .map(|(expr, (qualifier, field))| {
                        let name = Column::from((qualifier, field));
                        (name, of_expression(expr, field.data_type(), input))
                    });
            PlanEstimate::new(input.rows, columns)
        }
        LogicalPlan::Filter(filter) => input.clone().filtered(&[&filter.predicate]),
        LogicalPlan::Aggregate(aggregate) => aggregated(aggregate, input),
        LogicalPlan::Distinct(_) => {
            let keys: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
            let of_input = input.renamed(&first_schema(plan), schema);
            let rows = of_input.groups(&keys);
            of_input.with_rows(rows)
        }
        LogicalPlan::Limit(limit) => {
            let mut rows = input.rows;
            if let Ok(SkipType::Literal(skip)) = limit.get_skip_type() {
                rows = (rows - skip as f64).max(0.0);
            }
            if let Ok(FetchType::Literal(Some(fetch))) = limit.get_fetch_type() {
                rows = rows.min(fetch as f64);
            }
            input.clone().with_rows(rows)
        }
        LogicalPlan::Sort(sort) => {
            let rows = sort
                .fetch
                .map_or(input.rows, |fetch| input.rows.min(fetch as f64));
            input.clone().with_rows(rows)
        }
        LogicalPlan::Union(_) => {
            let rows = inputs.iter().map(|input| input.rows).sum();
            input.renamed(&first_schema(plan), schema).with_rows(rows)
        }
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::Subquery(_) => {
            input.renamed(&first_schema(plan), schema)
        }
        LogicalPlan::Repartition(_) => input.clone(),
        // A hint.
        LogicalPlan::Extension(_) if first_schema(plan) == *schema => input.clone(),
        LogicalPlan::Window(_) => {
            let mut all = PlanEstimate::unknown(input.rows, schema);
            all.columns
                .extend(input.columns.iter().map(|(name, of)| (name.clone(), *of)));
            all
        }
        _ => PlanEstimate::unknown(input.rows.max(1.0), schema),
    }
}

fn first_schema(plan: &LogicalPlan) -> datafusion::common::DFSchemaRef {
    let inputs = plan.inputs();
    let first = inputs.first().copied().unwrap_or(plan);
    std::sync::Arc::clone(first.schema())
}

fn leaf(plan: &LogicalPlan) -> PlanEstimate {
    let rows = match plan {
        LogicalPlan::Values(values) => values.values.len() as f64,
        LogicalPlan::EmptyRelation(empty) => f64::from(u8::from(empty.produce_one_row)),
        _ => UNKNOWN_ROWS,
    };
    PlanEstimate::unknown(rows, plan.schema())
}

fn of_expression(expr: &Expr, data_type: &DataType, input: &PlanEstimate) -> ColumnEstimate {
    if let Expr::Column(column) = bare(expr)
        && let Some(known) = input.column(column)
    {
        return *known;
    }
    ColumnEstimate {
        distinct: input
            .distinct_of(expr)
            .unwrap_or(input.rows)
            .min(input.rows)
            .max(1.0),
        nulls: 0.0,
        range: None,
        width: width_of(data_type),
    }
}

fn aggregated(aggregate: &Aggregate, input: &PlanEstimate) -> PlanEstimate {
    let (keys, sets) = match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(sets)] => {
            let keys = sets.distinct_expr().into_iter().cloned().collect();
            (keys, 2.0)
        }
        keys => (keys.to_vec(), 1.0),
    };
    let rows = match keys.is_empty() {
        true => 1.0,
        false => input.groups(&keys) * sets,
    };
    let columns = aggregate
        .schema
        .iter()
        .enumerate()
        .map(|(i, (qualifier, field))| {
            let estimate = match keys.get(i) {
                Some(key) => {
                    let of_key = of_expression(key, field.data_type(), input);
                    ColumnEstimate {
                        distinct: of_key.distinct.min(rows).max(1.0),
                        ..of_key
                    }
                }
                None => ColumnEstimate::unknown(field.data_type(), rows),
            };
            (Column::from((qualifier, field)), estimate)
        });
    PlanEstimate::new(rows, columns)
}
