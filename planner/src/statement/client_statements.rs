//! What MySQL clients really send (recorded; one line each in `fixtures/client_statements.tsv`, with the kind expected) parses,
//! and every query among it plans.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider,
};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;

use super::sql_session::{TestSession, context, plan};
use super::{Statement, parse_statements};

const STATEMENTS: &str = include_str!("fixtures/client_statements.tsv");

fn statements() -> impl Iterator<Item = (&'static str, &'static str)> {
    STATEMENTS.lines().filter_map(|line| line.split_once('\t'))
}

#[test]
fn every_statement_is_what_it_looks_like() {
    let mut wrong = Vec::new();
    for (expected, sql) in statements() {
        match parse_statements(sql).as_deref() {
            Ok([one]) if one.statement.kind() == expected => {}
            other => wrong.push(format!("{expected}: {sql}\n    {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The tables clients ask about, with the columns their queries name.
fn tables() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        (
            "information_schema",
            "schemata",
            "catalog_name schema_name default_character_set_name default_collation_name",
        ),
        (
            "information_schema",
            "tables",
            "table_catalog table_schema table_name table_type engine #version table_comment #table_rows",
        ),
        (
            "information_schema",
            "views",
            "table_catalog table_schema table_name view_definition",
        ),
        (
            "information_schema",
            "columns",
            "table_catalog table_schema table_name column_name #ordinal_position column_default is_nullable data_type \
             #character_maximum_length #character_octet_length #numeric_precision #numeric_scale #datetime_precision \
             character_set_name collation_name column_type column_key extra column_comment generation_expression",
        ),
        (
            "information_schema",
            "statistics",
            "table_schema table_name #non_unique index_schema index_name #seq_in_index column_name collation #cardinality",
        ),
        (
            "information_schema",
            "key_column_usage",
            "constraint_schema constraint_name table_schema table_name column_name #ordinal_position \
             referenced_table_schema referenced_table_name referenced_column_name",
        ),
        (
            "information_schema",
            "referential_constraints",
            "constraint_schema constraint_name unique_constraint_name update_rule delete_rule table_name referenced_table_name",
        ),
        (
            "information_schema",
            "table_constraints",
            "constraint_schema table_schema table_name constraint_name constraint_type",
        ),
        (
            "information_schema",
            "routines",
            "routine_schema routine_name routine_type routine_comment specific_name",
        ),
        (
            "information_schema",
            "triggers",
            "trigger_name event_object_schema event_object_table",
        ),
        (
            "information_schema",
            "files",
            "logfile_group_name file_name file_type #total_extents #initial_size engine extra tablespace_name #extent_size",
        ),
        (
            "information_schema",
            "partitions",
            "table_schema table_name tablespace_name",
        ),
        (
            "information_schema",
            "table_privileges",
            "grantee table_schema table_name privilege_type is_grantable",
        ),
        (
            "information_schema",
            "column_privileges",
            "grantee table_schema table_name column_name privilege_type is_grantable",
        ),
        (
            "information_schema",
            "materialized_views",
            "table_schema table_name",
        ),
        (
            "information_schema",
            "tables_config",
            "table_schema table_name",
        ),
        ("mysql", "user", "user host"),
        ("mysql", "help_topic", "name"),
        (
            "shop",
            "orders",
            "#id #customer_id #total @placed_at ^day note",
        ),
        ("shop", "by_customer", "#customer_id #s"),
    ]
}

fn fields(columns: &str) -> Vec<Field> {
    columns
        .split_whitespace()
        .map(|column| {
            let (data_type, name) = match (column.chars().next(), column.get(1..)) {
                (Some('#'), Some(name)) => (DataType::Int64, name),
                (Some('^'), Some(name)) => (DataType::Date32, name),
                (Some('@'), Some(name)) => (
                    DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None),
                    name,
                ),
                _ => (DataType::Utf8, column),
            };
            Field::new(name, data_type, true)
        })
        .collect()
}

fn shop() -> SessionContext {
    let context = context();
    let mut schemas: HashMap<&str, Arc<MemorySchemaProvider>> = HashMap::new();
    for (schema, table, columns) in tables() {
        let provider = schemas
            .entry(schema)
            .or_insert_with(|| Arc::new(MemorySchemaProvider::new()));
        let schema = Arc::new(Schema::new(fields(columns)));
        let table_provider = MemTable::try_new(schema, vec![vec![]]).unwrap();
        provider
            .register_table(table.to_owned(), Arc::new(table_provider))
            .unwrap();
    }
    for catalog in ["lake", "default_catalog"] {
        let provider = Arc::new(MemoryCatalogProvider::new());
        for (name, schema) in &schemas {
            provider.register_schema(name, schema.clone()).unwrap();
        }
        context.register_catalog(catalog, provider);
    }
    let state = context.state_ref();
    let mut state = state.write();
    let options = &mut state.config_mut().options_mut().catalog;
    options.default_catalog = "lake".to_owned();
    options.default_schema = "shop".to_owned();
    drop(state);
    context
}

#[tokio::test]
async fn every_query_plans() {
    let context = shop();
    let mut wrong = Vec::new();
    for (_, sql) in statements() {
        for parsed in parse_statements(sql).unwrap() {
            if let Statement::Query(query) = parsed.statement
                && let Err(error) = plan(&context, &query, &TestSession::default()).await
            {
                wrong.push(format!("{sql}\n    {error}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} do not plan:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
