//! What is one of several UUIDs is a UUID: the extension types of columns, kept where DataFusion loses them.
//!
//! Arrow has no type for UUIDs and JSON; fields are marked by their metadata. DataFusion hands the mark on with columns,
//! and forgets it where a value is made of others: `min(u)`, `coalesce(u, v)`, `CASE … THEN u`, `array_agg(u)`,
//! `lag(u) OVER …`. There it is put back by a function that marks values and changes none ([`with_extension`]):
//!
//! ```text
//!   Projection: coalesce(u, v)            Projection: as_uuid(coalesce(u, v)) AS coalesce(u, v)
//!   Aggregate: aggr=[min(u)]       ──►    Projection: k, as_uuid(min(u)) AS min(u)
//!                                           Aggregate: aggr=[min(u)]
//! ```
//!
//! A value is marked if all values that it may be one of are, but for NULL, which is of any type. The rule goes before
//! DataFusion's: whatever they do with the plan, the mark travels as part of an expression.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, Union};
use datafusion::optimizer::AnalyzerRule;
use tarn_catalog::Extension;

use crate::comparisons::change_expressions;
use crate::functions::{extension_of, uuid_text, with_extension};

/// Marks columns that are extension types by what they are made of.
#[derive(Debug)]
pub(crate) struct ExtensionTypes;

impl AnalyzerRule for ExtensionTypes {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !reads_extensions(&plan)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(mark_columns).data()
    }

    fn name(&self) -> &str {
        "extension_types"
    }
}

/// Writes UUIDs as text where they are cast to text, by the query or by DataFusion, which has no such cast. Goes over a
/// plan whose types were made alike.
#[derive(Debug)]
pub(crate) struct ExtensionTexts;

impl AnalyzerRule for ExtensionTexts {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !reads_extensions(&plan)? {
            return Ok(plan);
        }
        change_expressions(plan, |expr, schema| match expr {
            Expr::Cast(mut cast)
                if cast.field.data_type().is_string() && is_uuid_expr(&cast.expr, schema) =>
            {
                *cast.expr = uuid_text(*cast.expr);
                Ok(Transformed::yes(Expr::Cast(cast)))
            }
            other => Ok(Transformed::no(other)),
        })
    }

    fn name(&self) -> &str {
        "extension_texts"
    }
}

fn is_uuid_expr(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema)
        .is_ok_and(|of| Extension::Uuid.fits(&of))
        && of_expr(expr, schema) == Some(Extension::Uuid)
}

/// Whether there is anything to keep.
fn reads_extensions(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        found |= plan.inputs().is_empty()
            && plan
                .schema()
                .fields()
                .iter()
                .any(|f| extension_of(f).is_some());
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// One node whose inputs are done.
fn mark_columns(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(of) => {
            let names = NamePreserver::new_for_projection();
            let schema = of.input.schema();
            let exprs = of.expr.into_iter().map(|expr| match lost(&expr, schema) {
                Some(extension) => {
                    let name = names.save(&expr);
                    name.restore(with_extension(expr.unalias(), extension))
                }
                None => expr,
            });
            let exprs = exprs.collect();
            let plan = Projection::try_new(exprs, of.input)?;
            Ok(Transformed::yes(LogicalPlan::Projection(plan)))
        }
        LogicalPlan::Union(of) => union(of),
        other => {
            let plan = other.recompute_schema()?;
            let made: Vec<Option<Extension>> = match &plan {
                LogicalPlan::Aggregate(of) => {
                    // Of grouping sets, fields are named, and are marked as such.
                    let groups = of.schema.fields().len() - of.aggr_expr.len();
                    let group_exprs = of
                        .group_expr
                        .iter()
                        .map(Some)
                        .chain(std::iter::repeat(None));
                    let exprs = group_exprs
                        .take(groups)
                        .chain(of.aggr_expr.iter().map(Some));
                    made(exprs, of.input.schema())
                }
                LogicalPlan::Window(of) => {
                    let passed = std::iter::repeat_n(None, of.input.schema().fields().len());
                    let exprs = passed.chain(of.window_expr.iter().map(Some));
                    made(exprs, of.input.schema())
                }
                _ => vec![],
            };
            match made.iter().all(Option::is_none) {
                true => Ok(Transformed::yes(plan)),
                false => marked_above(plan, &made).map(Transformed::yes),
            }
        }
    }
}

/// The extensions that expressions lose.
fn made<'a>(
    exprs: impl Iterator<Item = Option<&'a Expr>>,
    schema: &DFSchema,
) -> Vec<Option<Extension>> {
    exprs
        .map(|expr| expr.and_then(|expr| lost(expr, schema)))
        .collect()
}

/// The plan below a projection that marks some of its columns.
fn marked_above(plan: LogicalPlan, made: &[Option<Extension>]) -> Result<LogicalPlan> {
    let columns = plan
        .schema()
        .iter()
        .enumerate()
        .map(|(index, (relation, field))| {
            let column = Expr::Column(Column::from((relation, field)));
            match made.get(index).copied().flatten() {
                Some(extension) => with_extension(column, extension)
                    .alias_qualified(relation.cloned(), field.name()),
                None => column,
            }
        })
        .collect();
    let plan = Projection::try_new(columns, Arc::new(plan))?;
    Ok(LogicalPlan::Projection(plan))
}

/// A union of columns that were marked below it. DataFusion joins what is known of a column from all of the inputs.
fn union(of: Union) -> Result<Transformed<LogicalPlan>> {
    let fields = of
        .schema
        .iter()
        .enumerate()
        .map(|(index, (relation, field))| {
            let inputs = of.inputs.iter();
            let of_inputs = inputs.filter_map(|input| input.schema().fields().get(index));
            let metadata: HashMap<String, String> = of_inputs
                .flat_map(|field| field.metadata().clone())
                .collect();
            let field = field.as_ref().clone().with_metadata(metadata);
            (relation.cloned(), Arc::new(field))
        });
    let metadata = of.schema.metadata().clone();
    let schema = DFSchema::new_with_metadata(fields.collect(), metadata)?;
    Ok(Transformed::yes(LogicalPlan::Union(Union {
        schema: Arc::new(schema),
        inputs: of.inputs,
    })))
}

/// The extension of an expression's values that its field does not tell.
fn lost(expr: &Expr, schema: &DFSchema) -> Option<Extension> {
    // What has no type yet, as a parameter, is of none.
    let (_, field) = expr.to_field(schema).ok()?;
    match extension_of(&field) {
        // A subquery that is run by itself gives values of a type, no more.
        Some(extension) => is_subquery(expr).then_some(extension),
        None => of_values(expr, schema).filter(|extension| may_be(*extension, &field)),
    }
}

fn is_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_subquery(&alias.expr),
        other => matches!(other, Expr::ScalarSubquery(_)),
    }
}

/// Whether values of a field, or the items of its lists, can be marked.
fn may_be(extension: Extension, field: &Field) -> bool {
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) => may_be(extension, item),
        of => extension.fits(of),
    }
}

/// The extension of an expression's values.
fn of_expr(expr: &Expr, schema: &DFSchema) -> Option<Extension> {
    let (_, field) = expr.to_field(schema).ok()?;
    extension_of(&field).or_else(|| of_values(expr, schema))
}

/// The extension that all values have which the expression's may be one of.
fn of_values(expr: &Expr, schema: &DFSchema) -> Option<Extension> {
    let values: Vec<&Expr> = match expr {
        Expr::Alias(alias) => vec![alias.expr.as_ref()],
        Expr::Case(case) => {
            let thens = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            thens.chain(case.else_expr.as_deref()).collect()
        }
        Expr::ScalarFunction(call) => chosen(call.func.name(), &call.args),
        Expr::AggregateFunction(call) => chosen(call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => chosen(call.fun.name(), &call.params.args),
        _ => vec![],
    };
    let mut found = None;
    for value in values {
        if is_null(value, schema) {
            continue;
        }
        let extension = of_expr(value, schema)?;
        if *found.get_or_insert(extension) != extension {
            return None;
        }
    }
    found
}

/// The arguments of a function whose value is one of theirs, or a list of them; none if it makes a value of its own.
fn chosen<'a>(function: &str, args: &'a [Expr]) -> Vec<&'a Expr> {
    let first = || args.iter().take(1).collect();
    match function {
        "coalesce" | "nvl" | "greatest" | "least" | "make_array" | "array_concat" => {
            args.iter().collect()
        }
        "nvl2" => args.iter().skip(1).collect(),
        // What is looked at, how far away, and what stands for what is not there.
        "lag" | "lead" => args.iter().take(1).chain(args.get(2)).collect(),
        "nullif" | "min" | "max" | "first_value" | "last_value" | "nth_value" | "any_value"
        | "single_value" | "array_agg" => first(),
        "array_element" | "array_slice" | "array_distinct" | "array_sort" | "array_reverse"
        | "array_min" | "array_max" => first(),
        _ => vec![],
    }
}

fn is_null(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        other => other.get_type(schema).is_ok_and(|of| of.is_null()),
    }
}
