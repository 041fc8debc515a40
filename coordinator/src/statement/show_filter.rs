//! `LIKE` and `WHERE` of SHOW statements, over the statement's own rows.

use std::sync::Arc;

use datafusion::arrow::array::Int64Array;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Statement as Ast};
use datafusion::sql::sqlparser::dialect::MySqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use tarn_planner::statement::{
    OutputNames, Query, ShowFilter, configure_sql, like_matches, rewrite_query,
};

use crate::error::{Error, ErrorKind, Result};
use crate::planning::StatementContext;
use crate::rows::{Cell, RowSet};

/// The column that tells which rows a WHERE keeps.
const ROW_NUMBER: &str = "tarn_row_number";

/// The rows that the filter leaves.
pub(super) async fn filtered(
    context: &StatementContext,
    mut rows: RowSet,
    filter: Option<ShowFilter>,
) -> Result<RowSet> {
    match filter {
        None => {}
        Some(ShowFilter::Like(pattern)) => rows.rows.retain(|row| match row.first() {
            Some(Cell::Text(text)) => like_matches(&pattern, text),
            _ => false,
        }),
        Some(ShowFilter::Where(condition)) => {
            let kept = matching(context, &rows, *condition).await?;
            let mut number = 0;
            rows.rows.retain(|_| {
                number += 1;
                kept.binary_search(&(number - 1)).is_ok()
            });
        }
    }
    Ok(rows)
}

/// The numbers of the rows that a condition holds for, in order.
async fn matching(context: &StatementContext, rows: &RowSet, condition: Expr) -> Result<Vec<i64>> {
    let mut config = SessionConfig::new().with_target_partitions(1);
    configure_sql(config.options_mut());
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    let session = SessionContext::new_with_state(state);
    session.register_table("show_rows", Arc::new(table(rows)?))?;
    let ast = rewrite_query(
        &Query {
            ast: Box::new(select(condition)?),
            names: OutputNames::default(),
            parameters: 0,
        },
        context,
    )?;
    let state = session.state();
    let plan = state
        .statement_to_plan(DfStatement::Statement(Box::new(ast)))
        .await?;
    let physical = state.create_physical_plan(&plan).await?;
    let mut kept = Vec::new();
    for batch in collect(physical, state.task_ctx()).await? {
        if let Some(numbers) = batch.column(0).as_any().downcast_ref::<Int64Array>() {
            kept.extend(numbers.iter().flatten());
        }
    }
    kept.sort_unstable();
    Ok(kept)
}

/// The rows under lower-case names, numbered.
fn table(rows: &RowSet) -> Result<MemTable> {
    let batch = rows.batch()?;
    let mut fields: Vec<Field> = rows
        .names
        .iter()
        .zip(&rows.columns)
        .map(|(name, column)| Field::new(name.to_lowercase(), column.kind.data_type(), true))
        .collect();
    fields.push(Field::new(ROW_NUMBER, DataType::Int64, false));
    let mut columns = batch.columns().to_vec();
    let numbers: Int64Array = (0_i64..).take(batch.num_rows()).collect();
    columns.push(Arc::new(numbers));
    let schema = Arc::new(Schema::new(fields));
    let numbered = datafusion::arrow::array::RecordBatch::try_new(Arc::clone(&schema), columns)?;
    Ok(MemTable::try_new(schema, vec![vec![numbered]])?)
}

fn select(condition: Expr) -> Result<Ast> {
    let text = format!("SELECT {ROW_NUMBER} FROM show_rows WHERE true");
    let mut parsed = Parser::parse_sql(&MySqlDialect {}, &text)
        .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
    let Some(mut ast) = parsed.pop() else {
        return Err(Error::new(
            ErrorKind::Internal,
            "a filter could not be built",
        ));
    };
    if let Ast::Query(query) = &mut ast
        && let SetExpr::Select(select) = query.body.as_mut()
    {
        select.selection = Some(condition);
    }
    Ok(ast)
}
