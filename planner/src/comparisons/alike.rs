//! Two sides of a comparison, made alike where DataFusion would not or would wrongly.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Between, Expr, ExprSchemable, LogicalPlan, cast, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use tarn_catalog::is_uuid;
use uuid::Uuid;

use super::plan_expressions::change_expressions;

/// Plans `=`, `<>`, `<`, `<=`, `>`, `>=` and `<=>`.
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
        Ok(PlannerResult::Original(expr))
    }
}

/// Does the same for `BETWEEN` and `IN`.
#[derive(Debug)]
pub(crate) struct AlikeLists;

impl AnalyzerRule for AlikeLists {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_expressions(plan, |expr, schema| match expr {
            Expr::Between(between) => between_alike(between, schema),
            Expr::InList(list) => list_alike(list, schema),
            other => Ok(Transformed::no(other)),
        })
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
        _ => Ok(expr),
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
