//! A session to plan and run SQL in, as the tests of this folder need it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as PlannerStatement;

use super::{
    Query, SessionValue, SessionValues, Statement, VariableScope, configure_sql, parse_statement,
    rewrite_query,
};
use crate::functions::register_functions;

#[derive(Default)]
pub(crate) struct TestSession {
    pub(crate) spelling: Vec<&'static str>,
}

impl SessionValues for TestSession {
    fn variable(&self, scope: VariableScope, name: &str) -> Option<SessionValue> {
        Some(match name {
            "version_comment" => SessionValue::Text("Tarn".to_owned()),
            "max_allowed_packet" => SessionValue::Integer(67_108_864),
            "init_connect" => SessionValue::Null,
            "no_such_variable" => return None,
            _ => SessionValue::Text(format!("{scope:?}:{name}")),
        })
    }

    fn user_variable(&self, name: &str) -> Option<SessionValue> {
        (name == "answer").then_some(SessionValue::Integer(42))
    }

    fn database(&self) -> Option<String> {
        Some("shop".to_owned())
    }

    fn catalog(&self) -> String {
        "lake".to_owned()
    }

    fn user(&self) -> String {
        "root@localhost".to_owned()
    }

    fn connection_id(&self) -> u32 {
        7
    }

    fn version(&self) -> String {
        "8.0.33".to_owned()
    }

    fn engine_version(&self) -> String {
        "0.1.0".to_owned()
    }

    fn column_spelling(&self, name: &str) -> Option<String> {
        self.spelling
            .iter()
            .find(|spelling| spelling.to_lowercase() == name.to_lowercase())
            .map(|name| (*name).to_owned())
    }
}

pub(super) fn context() -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1);
    configure_sql(config.options_mut());
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    register_functions(&mut state).unwrap();
    SessionContext::new_with_state(state)
}

pub(super) async fn plan(
    context: &SessionContext,
    query: &Query,
    session: &dyn SessionValues,
) -> Result<LogicalPlan, DataFusionError> {
    let ast = rewrite_query(query, session)
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    let state = context.state();
    let plan = state
        .statement_to_plan(PlannerStatement::Statement(Box::new(ast)))
        .await?;
    state.optimize(&plan)
}

pub(crate) fn query(sql: &str) -> Query {
    match parse_statement(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
        .statement
    {
        Statement::Query(query) => query,
        other => panic!("{sql}: {other:?}"),
    }
}

/// The result's column names and its rows as text.
pub(super) async fn run(
    context: &SessionContext,
    sql: &str,
) -> Result<(Vec<String>, Vec<Vec<String>>), DataFusionError> {
    let query = query(sql);
    let plan = plan(context, &query, &TestSession::default()).await?;
    let schema = query.names.apply(plan.schema().as_arrow());
    let batches = context.execute_logical_plan(plan).await?.collect().await?;
    let names = schema
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    Ok((names, batches.iter().flat_map(texts).collect()))
}

fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let formatters: Vec<ArrayFormatter<'_>> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(Arc::as_ref(column), &options).unwrap())
        .collect();
    (0..batch.num_rows())
        .map(|row| {
            formatters
                .iter()
                .map(|formatter| formatter.value(row).to_string())
                .collect()
        })
        .collect()
}
