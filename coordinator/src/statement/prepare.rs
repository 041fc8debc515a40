//! Prepared statements: checked and described once, run with values for their placeholders.

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr as LogicalExpr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Statement as Ast, Value};
use futures::FutureExt;
use tarn_planner::statement::{ObjectPath, ParsedStatement, Query, Statement};

use super::execute::Answer;
use super::parameters::{bind_nulls, placeholder_index};
use super::query::result_schema;
use super::{analyze, call, explain, show};
use crate::delivery::stoppable;
use crate::error::Result;
use crate::planning::{Planned, StatementContext};

/// A statement with placeholders, parsed and checked.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// One per placeholder, in order; `None` where the type could not be inferred.
    pub parameter_types: Vec<Option<DataType>>,
    /// The result's columns; `None` for a statement without a result set.
    pub schema: Option<SchemaRef>,
    parsed: ParsedStatement,
}

impl Prepared {
    /// The statement's text.
    pub fn sql(&self) -> &str {
        &self.parsed.text
    }

    /// The statement's family, e.g. `SELECT`.
    pub fn kind(&self) -> &'static str {
        self.parsed.statement.kind()
    }

    /// The statement itself.
    pub fn statement(&self) -> &Statement {
        &self.parsed.statement
    }
}

/// Checks a statement and learns its parameters and columns.
pub(crate) async fn prepare(
    context: &StatementContext,
    parsed: ParsedStatement,
) -> Result<Prepared> {
    let count = parsed.statement.parameter_count();
    let mut parameter_types = vec![None; count];
    let schema = stoppable(
        &context.running,
        describe(context, &parsed.statement, &mut parameter_types).boxed(),
    )
    .await?;
    Ok(Prepared {
        parameter_types,
        schema,
        parsed,
    })
}

async fn describe(
    context: &StatementContext,
    statement: &Statement,
    types: &mut [Option<DataType>],
) -> Result<Option<SchemaRef>> {
    match statement {
        Statement::Query(query) => {
            let planned = plan(context, statement, query, types).await?;
            Ok(Some(result_schema(
                &planned.names,
                planned.logical.schema().as_arrow(),
            )))
        }
        Statement::Insert { table, source, .. } => {
            // The table's columns tell the types of bare values; the rest the plan does.
            let columns = insert_types(context, statement, table).await?;
            plan(context, statement, source, types).await?;
            for (slot, column) in types.iter_mut().zip(columns) {
                if column.is_some() {
                    *slot = column;
                }
            }
            Ok(None)
        }
        Statement::CreateTable(create) => {
            if let Some(query) = &create.query {
                plan(context, statement, query, types).await?;
            }
            Ok(None)
        }
        Statement::Explain { mode, .. } => Ok(Some(explain::schema(*mode))),
        Statement::Call { .. } => Ok(Some(call::schema())),
        Statement::Analyze(_) => Ok(Some(analyze::schema())),
        Statement::Show(show) => match show::show(context, show.clone()).await? {
            Answer::Rows(rows) => Ok(Some(rows.schema())),
            Answer::Done(_) => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Plans with placeholders, which gives their types; or, where a type cannot be found and so
/// nothing can be planned, with NULLs, which still checks names and gives the columns.
async fn plan(
    context: &StatementContext,
    statement: &Statement,
    query: &Query,
    types: &mut [Option<DataType>],
) -> Result<Planned> {
    let error = match context.plan_described(query).await {
        Ok(planned) => {
            for (name, data_type) in planned.logical.get_parameter_types()? {
                if let Some(slot) = placeholder_index(&name).and_then(|index| types.get_mut(index))
                {
                    *slot = data_type;
                }
            }
            for name in row_counts(&planned.logical)? {
                if let Some(slot) = placeholder_index(&name).and_then(|index| types.get_mut(index))
                {
                    slot.get_or_insert(DataType::Int64);
                }
            }
            return Ok(planned);
        }
        Err(error) if types.is_empty() => return Err(error),
        Err(error) => error,
    };
    let with_nulls = match bind_nulls(statement.clone(), types.len())? {
        Statement::Query(query) | Statement::Insert { source: query, .. } => Some(query),
        Statement::CreateTable(create) => create.query,
        _ => None,
    };
    match with_nulls {
        Some(query) => context.plan_described(&query).await,
        None => Err(error),
    }
}

/// The placeholders that count rows, as in `LIMIT ?`: DataFusion gives them no type, and drivers that
/// bind by type (JDBC over Flight SQL) then cannot send a number.
fn row_counts(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut found = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for count in [&limit.skip, &limit.fetch].into_iter().flatten() {
                count.apply(|expr| {
                    if let LogicalExpr::Placeholder(placeholder) = expr {
                        found.push(placeholder.id.clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The types of placeholders that stand alone in a VALUES list, from the columns they go to.
async fn insert_types(
    context: &StatementContext,
    statement: &Statement,
    table: &ObjectPath,
) -> Result<Vec<Option<DataType>>> {
    let name = context.resolve(table);
    let catalog = context.engine.catalogs().get(&name.catalog)?;
    let schema = catalog
        .table(&name.database, &name.table)
        .await?
        .arrow_schema();
    let mut types = vec![None; statement.parameter_count()];
    let Statement::Insert {
        columns, source, ..
    } = statement
    else {
        return Ok(types);
    };
    let Ast::Query(query) = source.ast.as_ref() else {
        return Ok(types);
    };
    let SetExpr::Values(values) = query.body.as_ref() else {
        return Ok(types);
    };
    for row in &values.rows {
        for (position, value) in row.iter().enumerate() {
            let Expr::Value(value) = value else { continue };
            let Value::Placeholder(placeholder) = &value.value else {
                continue;
            };
            let field = match columns.get(position) {
                Some(column) => schema
                    .fields()
                    .iter()
                    .find(|field| field.name().eq_ignore_ascii_case(column)),
                None if columns.is_empty() => schema.fields().get(position),
                None => None,
            };
            let slot = placeholder_index(placeholder).and_then(|index| types.get_mut(index));
            if let (Some(field), Some(slot)) = (field, slot) {
                *slot = Some(field.data_type().clone());
            }
        }
    }
    Ok(types)
}
