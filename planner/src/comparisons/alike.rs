//! Two sides of a comparison, made alike where DataFusion would not or would wrongly.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::expr::{Case, InList, InSubquery};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    Between, Expr, ExprSchemable, LogicalPlan, Projection, Union, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use tarn_catalog::is_uuid;
use uuid::Uuid;

use super::plan_expressions::change_expressions;

/// Plans `=`, `<>`, `<`, `<=`, `>`, `>=` and `<=>`, and arithmetic of what MySQL takes for numbers.
#[derive(Debug)]
pub(crate) struct AlikeOperators;

impl ExprPlanner for AlikeOperators {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator as B;
        if matches!(
            expr.op,
            B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq | B::Spaceship
        ) {
            expr.right = alike(expr.right, &expr.left, schema)?;
            expr.left = alike(expr.left, &expr.right, schema)?;
        }
        if matches!(
            expr.op,
            B::Plus | B::Minus | B::Multiply | B::Divide | B::Modulo | B::MyIntegerDivide
        ) {
            (expr.left, expr.right) = numbers(expr.left, expr.right, schema);
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// Both sides of arithmetic: conditions are 0 or 1 and texts are DOUBLEs, where both sides are such or numbers.
fn numbers(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let number = |of: &DataType| of.is_numeric() || of.is_string() || *of == DataType::Boolean;
    let types = (left.get_type(schema), right.get_type(schema));
    let (Ok(of_left), Ok(of_right)) = types else {
        return (left, right);
    };
    if !number(&of_left) || !number(&of_right) {
        return (left, right);
    }
    let made = |side: Expr, of: &DataType| match of {
        DataType::Boolean => cast(side, DataType::Int64),
        of if of.is_string() => cast(side, DataType::Float64),
        _ => side,
    };
    (made(left, &of_left), made(right, &of_right))
}

/// Does the same for `BETWEEN` and `IN`, and gives one type to what becomes one value: the branches of CASE, the arguments of
/// COALESCE and its kin, the columns of a UNION.
#[derive(Debug)]
pub(crate) struct AlikeLists;

impl AnalyzerRule for AlikeLists {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_expressions(plan, |expr, schema| match expr {
            Expr::Between(between) => between_alike(between, schema),
            Expr::InList(list) => list_alike(list, schema),
            Expr::InSubquery(of) => subquery_alike(of, schema),
            Expr::Case(case) => case_alike(case, schema),
            Expr::ScalarFunction(mut call) if ONE_OF_ARGUMENTS.contains(&call.func.name()) => {
                let mut changed = match call.func.name() {
                    "coalesce" | "nvl" => made_texts(call.args.iter_mut().collect(), schema),
                    _ => false,
                };
                changed |= made_common(call.args.iter_mut().collect(), schema);
                if call.func.name() == "nvl" && keeps_type(&call.args, schema) {
                    call.func = coalesce();
                    changed = true;
                }
                Ok(Transformed::new_transformed(
                    Expr::ScalarFunction(call),
                    changed,
                ))
            }
            other => Ok(Transformed::no(other)),
        })?
        .transform_up_with_subqueries(union_alike)
        .data()
    }

    fn name(&self) -> &str {
        "alike_lists"
    }
}

fn between_alike(mut between: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    for bound in [&mut between.low, &mut between.high] {
        **bound = alike(std::mem::take(&mut **bound), &between.expr, schema)?;
        *between.expr = alike(std::mem::take(&mut *between.expr), bound, schema)?;
    }
    // The first bound was seen before the second changed the value.
    *between.low = alike(*between.low, &between.expr, schema)?;
    Ok(Transformed::yes(Expr::Between(between)))
}

fn list_alike(mut list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    for item in &mut list.list {
        *item = alike(std::mem::take(item), &list.expr, schema)?;
        *list.expr = alike(std::mem::take(&mut *list.expr), item, schema)?;
    }
    Ok(Transformed::yes(Expr::InList(list)))
}

/// Functions whose value is one of their arguments'.
const ONE_OF_ARGUMENTS: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "nvl"];

/// Whether COALESCE gives values of these a type that is theirs. NVL, which is MySQL's IFNULL, knows few types: it makes
/// decimals DOUBLEs and dates text, and UUIDs nothing.
fn keeps_type(args: &[Expr], schema: &DFSchema) -> bool {
    let is_moment = |of: &DataType| is_date(of) || matches!(of, DataType::Timestamp(..));
    let types: Result<Vec<DataType>> = args.iter().map(|arg| arg.get_type(schema)).collect();
    match types.as_deref() {
        Ok([left, right]) => {
            left == right
                || (left.is_numeric() && right.is_numeric())
                || (is_moment(left) && is_moment(right))
                || (left.is_null() && (is_moment(right) || right.is_numeric()))
                || (right.is_null() && (is_moment(left) || left.is_numeric()))
        }
        _ => false,
    }
}

/// The type that values of these become where DataFusion would choose one that does not hold them: nanoseconds for dates
/// beside times, which end in 2262, and a decimal of 30 digits for floats beside decimals.
fn common(types: &[Option<DataType>]) -> Option<DataType> {
    let has = |of: fn(&DataType) -> bool| types.iter().flatten().any(of);
    if has(DataType::is_floating) && has(DataType::is_decimal) {
        return Some(DataType::Float64);
    }
    let is_time = |of: &&DataType| matches!(of, DataType::Timestamp(TimeUnit::Microsecond, _));
    let time = types.iter().flatten().find(is_time);
    time.filter(|_| has(is_date)).cloned()
}

fn is_date(of: &DataType) -> bool {
    *of == DataType::Date32
}

/// Whether a value of a type has to be cast to become one of `common`.
fn becomes(of: Option<&DataType>, common: &DataType) -> bool {
    of.is_some_and(|of| match common {
        DataType::Float64 => of.is_decimal(),
        _ => is_date(of),
    })
}

/// Casts those that have to become another type; whether there were any.
fn made_common(exprs: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<Option<DataType>> = exprs
        .iter()
        .map(|expr| expr.get_type(schema).ok())
        .collect();
    let Some(common) = common(&types) else {
        return false;
    };
    for (expr, of) in exprs.into_iter().zip(&types) {
        if becomes(of.as_ref(), &common) {
            *expr = super::cast(std::mem::take(expr), &common);
        }
    }
    true
}

/// Casts numbers, dates and times to texts where a text is among the values that is none of theirs: `COALESCE(n, 'none')`. Of
/// literals such as `'0'` DataFusion makes numbers.
fn made_texts(exprs: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<Option<DataType>> = exprs
        .iter()
        .map(|expr| expr.get_type(schema).ok())
        .collect();
    let is_other = |of: &DataType| of.is_numeric() || of.is_temporal();
    let others = || types.iter().flatten().filter(|of| is_other(of));
    let becomes_other = |expr: &Expr| match expr {
        Expr::Literal(text, _) => others().all(|of| text.cast_to(of).is_ok()),
        _ => false,
    };
    let known = |of: &DataType| of.is_null() || of.is_string() || is_other(of);
    let mut texts = exprs
        .iter()
        .zip(&types)
        .filter(|(_, of)| of.as_ref().is_some_and(DataType::is_string));
    let stays_text = texts.any(|(text, _)| !becomes_other(text));
    if !stays_text || others().next().is_none() || !types.iter().flatten().all(known) {
        return false;
    }
    for (expr, of) in exprs.into_iter().zip(&types) {
        if of.as_ref().is_some_and(is_other) {
            *expr = super::cast(std::mem::take(expr), &DataType::Utf8);
        }
    }
    true
}

fn case_alike(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (whens, thens): (Vec<&mut Expr>, Vec<&mut Expr>) = case
        .when_then_expr
        .iter_mut()
        .map(|(when, then)| (when.as_mut(), then.as_mut()))
        .unzip();
    let mut changed = false;
    if let Some(value) = &mut case.expr {
        changed |= made_common(
            std::iter::once(value.as_mut()).chain(whens).collect(),
            schema,
        );
    }
    let mut results: Vec<&mut Expr> = thens
        .into_iter()
        .chain(case.else_expr.as_deref_mut())
        .collect();
    changed |= made_texts(results.iter_mut().map(|it| &mut **it).collect(), schema);
    changed |= made_common(results, schema);
    Ok(Transformed::new_transformed(Expr::Case(case), changed))
}

fn subquery_alike(mut of: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let plan = &of.subquery.subquery;
    let column = plan
        .schema()
        .fields()
        .first()
        .map(|field| field.data_type().clone());
    let value = of.expr.get_type(schema).ok();
    let Some(common) = common(&[value.clone(), column.clone()]) else {
        return Ok(Transformed::no(Expr::InSubquery(of)));
    };
    if becomes(value.as_ref(), &common) {
        *of.expr = super::cast(std::mem::take(&mut *of.expr), &common);
    }
    if becomes(column.as_ref(), &common) {
        let plan = cast_columns(plan, &[Some(common)])?;
        of.subquery = of.subquery.with_plan(Arc::new(plan));
    }
    Ok(Transformed::yes(Expr::InSubquery(of)))
}

fn union_alike(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = plan else {
        return Ok(Transformed::no(plan));
    };
    let width = union.schema.fields().len();
    let columns: Vec<Option<DataType>> = (0..width)
        .map(|column| {
            let types = union.inputs.iter().map(|input| {
                let field = input.schema().fields().get(column)?;
                Some(field.data_type().clone())
            });
            common(&types.collect::<Vec<_>>())
        })
        .collect();
    if columns.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union
        .inputs
        .iter()
        .map(|input| Ok(Arc::new(cast_columns(input, &columns)?)))
        .collect::<Result<Vec<_>>>()?;
    let union = Union::try_new_with_loose_types(inputs)?;
    Ok(Transformed::yes(LogicalPlan::Union(union)))
}

/// The plan with those of its columns cast that have to become another type.
fn cast_columns(plan: &Arc<LogicalPlan>, common: &[Option<DataType>]) -> Result<LogicalPlan> {
    let columns = plan
        .schema()
        .iter()
        .enumerate()
        .map(|(index, (qualifier, field))| {
            let column = Expr::Column(Column::from((qualifier, field)));
            match common.get(index) {
                Some(Some(common)) if becomes(Some(field.data_type()), common) => {
                    cast(column, common.clone()).alias_qualified(qualifier.cloned(), field.name())
                }
                _ => column,
            }
        })
        .collect();
    let projection = Projection::try_new(columns, Arc::clone(plan))?;
    Ok(LogicalPlan::Projection(projection))
}

/// `expr` as what can be compared with `other`.
fn alike(expr: Expr, other: &Expr, schema: &DFSchema) -> Result<Expr> {
    // What has no type yet (a parameter) is left to DataFusion.
    let (Ok((_, field)), Ok((_, other))) = (expr.to_field(schema), other.to_field(schema)) else {
        return Ok(expr);
    };
    match (field.data_type(), other.data_type()) {
        // Midnight of the day, in the unit that the other side has.
        (DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            Ok(cast(expr, other.data_type().clone()))
        }
        // A literal; MySQL's times have no more digits.
        (DataType::Time64(TimeUnit::Nanosecond), DataType::Time64(TimeUnit::Microsecond)) => {
            Ok(cast(expr, other.data_type().clone()))
        }
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, _) if is_uuid(&other) => {
            uuid_of_text(expr)
        }
        // The mark may be lost so early; no 16 bytes are a text as long as a UUID's.
        (
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View,
            DataType::FixedSizeBinary(16),
        ) if is_text_of_uuid(&expr) => uuid_of_text(expr),
        _ => Ok(expr),
    }
}

fn is_text_of_uuid(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => {
            matches!(value.try_as_str(), Some(Some(text)) if Uuid::try_parse(text).is_ok())
        }
        _ => false,
    }
}

/// The bytes of a UUID that is written as text. Text that is no literal is left as it is, which DataFusion refuses.
fn uuid_of_text(expr: Expr) -> Result<Expr> {
    let text = match &expr {
        Expr::Literal(value, _) => value.try_as_str(),
        _ => None,
    };
    match text {
        None => Ok(expr),
        Some(None) => Ok(lit(ScalarValue::FixedSizeBinary(16, None))),
        Some(Some(text)) => match Uuid::try_parse(text) {
            Ok(uuid) => Ok(lit(ScalarValue::FixedSizeBinary(
                16,
                Some(uuid.as_bytes().to_vec()),
            ))),
            Err(_) => plan_err!("'{text}' is no UUID, and is compared with one"),
        },
    }
}
