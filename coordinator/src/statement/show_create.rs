//! `SHOW CREATE …`: MySQL's layout, which SQLAlchemy and others read line by line.
//!
//! ```text
//! CREATE TABLE `orders` (
//!   `id` bigint NOT NULL,
//!   `note` varchar(65535) DEFAULT NULL COMMENT 'as it was typed'
//! ) ENGINE=ICEBERG DEFAULT CHARSET=utf8mb4 COMMENT='…'
//! PARTITION BY (day(`placed_at`))
//! ```

use iceberg::spec::{NullOrder, SortDirection, Transform};
use tarn_catalog::PinnedTable;
use tarn_planner::statement::{DatabaseName, ObjectPath};

use super::set::no_such_database;
use crate::error::{Error, ErrorKind, Result};
use crate::planning::StatementContext;
use crate::rows::{RowSet, text};
use crate::system::{
    ListedColumn, comment, iceberg_columns, is_system_database, system_columns, system_table,
};

/// What every new table says, so that saying it tells nothing.
const USUAL_CODEC: (&str, &str) = ("write.parquet.compression-codec", "zstd");

pub(super) async fn create_table(context: &StatementContext, path: &ObjectPath) -> Result<RowSet> {
    let name = context.resolve(path);
    let statement = match system_table(&name.catalog, &name.database, &name.table) {
        Some((_, definition)) => statement(
            definition.name,
            &system_columns(definition.columns),
            ") ENGINE=MEMORY DEFAULT CHARSET=utf8mb4",
        ),
        None => {
            let catalog = context.engine.catalogs().get(&name.catalog)?;
            let table = catalog.table(&name.database, &name.table).await?;
            statement(&name.table, &iceberg_columns(&table), &options(&table))
        }
    };
    Ok(RowSet::new(
        &[text("Table"), text("Create Table")],
        vec![vec![name.table.into(), statement.into()]],
    ))
}

pub(super) async fn create_view(context: &StatementContext, path: &ObjectPath) -> Result<RowSet> {
    // There are no views; a table of that name is a different error than no table at all.
    create_table(context, path).await?;
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!("'{}' is not VIEW", context.resolve(path)),
    ))
}

pub(super) async fn create_database(
    context: &StatementContext,
    name: &DatabaseName,
) -> Result<RowSet> {
    let (catalog, database) = context.resolve_database(name);
    if !is_system_database(&catalog, &database) {
        let catalog = context.engine.catalogs().get(&catalog)?;
        if !catalog.database_exists(&database).await? {
            return Err(no_such_database(&catalog, &database).await);
        }
    }
    let statement = format!(
        "CREATE DATABASE {} /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */",
        quoted(&database)
    );
    Ok(RowSet::new(
        &[text("Database"), text("Create Database")],
        vec![vec![database.into(), statement.into()]],
    ))
}

pub(super) fn create_catalog(context: &StatementContext, name: &str) -> Result<RowSet> {
    let catalog = context.engine.catalogs().get(name)?;
    let properties: Vec<String> = catalog
        .shown_properties()
        .iter()
        .map(|(key, value)| format!("  {} = {}", string(key), string(value)))
        .collect();
    let mut statement = format!("CREATE CATALOG {}", quoted(name));
    if !properties.is_empty() {
        statement.push_str(&format!(" PROPERTIES (\n{}\n)", properties.join(",\n")));
    }
    Ok(RowSet::new(
        &[text("Catalog"), text("Create Catalog")],
        vec![vec![name.into(), statement.into()]],
    ))
}

fn statement(table: &str, columns: &[ListedColumn], options: &str) -> String {
    let lines: Vec<String> = columns.iter().map(column_line).collect();
    format!(
        "CREATE TABLE {} (\n{}\n{options}",
        quoted(table),
        lines.join(",\n")
    )
}

fn column_line(column: &ListedColumn) -> String {
    let mut line = format!(
        "  {} {}",
        quoted(&column.name),
        column.mysql_type.column_type
    );
    // As in MySQL, a timestamp says NULL, and types without a literal default say nothing.
    line.push_str(match (column.nullable, column.mysql_type.data_type) {
        (false, _) => " NOT NULL",
        (true, "longblob" | "json") => "",
        (true, "timestamp") => " NULL DEFAULT NULL",
        (true, _) => " DEFAULT NULL",
    });
    if !column.comment.is_empty() {
        line.push_str(&format!(" COMMENT {}", string(&column.comment)));
    }
    line
}

fn options(table: &PinnedTable) -> String {
    let mut options = ") ENGINE=ICEBERG DEFAULT CHARSET=utf8mb4".to_owned();
    let comment = comment(table);
    if !comment.is_empty() {
        options.push_str(&format!(" COMMENT={}", string(&comment)));
    }
    let mut properties: Vec<String> = table
        .metadata()
        .properties()
        .iter()
        .filter(|(key, value)| *key != "comment" && (key.as_str(), value.as_str()) != USUAL_CODEC)
        .map(|(key, value)| format!("{} = {}", string(key), string(value)))
        .collect();
    if !properties.is_empty() {
        properties.sort();
        options.push_str(&format!(
            " /* PROPERTIES ({}) */",
            properties.join(", ").replace("*/", "* /")
        ));
    }
    let partition = partition_terms(table);
    if !partition.is_empty() {
        options.push_str(&format!("\nPARTITION BY ({})", partition.join(", ")));
    }
    let order = order_terms(table);
    if !order.is_empty() {
        options.push_str(&format!("\nORDER BY ({})", order.join(", ")));
    }
    options
}

fn partition_terms(table: &PinnedTable) -> Vec<String> {
    let fields = table.metadata().default_partition_spec().fields().iter();
    fields
        .filter_map(|field| term(table, field.source_id, field.transform))
        .collect()
}

fn order_terms(table: &PinnedTable) -> Vec<String> {
    let fields = table.metadata().default_sort_order().fields.iter();
    fields
        .filter_map(|field| {
            let term = term(table, field.source_id, field.transform)?;
            // What goes without saying is not said.
            let how = match (field.direction, field.null_order) {
                (SortDirection::Ascending, NullOrder::First) => "",
                (SortDirection::Ascending, NullOrder::Last) => " NULLS LAST",
                (SortDirection::Descending, NullOrder::First) => " DESC NULLS FIRST",
                (SortDirection::Descending, NullOrder::Last) => " DESC",
            };
            Some(format!("{term}{how}"))
        })
        .collect()
}

/// `day(`ts`)`, `bucket(16, `id`)`, …
fn term(table: &PinnedTable, source_id: i32, transform: Transform) -> Option<String> {
    let schema = table.schema();
    let column = quoted(schema.name_by_field_id(source_id)?);
    Some(match transform {
        Transform::Identity => column,
        Transform::Bucket(count) => format!("bucket({count}, {column})"),
        Transform::Truncate(width) => format!("truncate({width}, {column})"),
        transform => format!("{transform}({column})"),
    })
}

/// A name between backticks.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{PrimitiveType, Type};

    use super::*;
    use crate::type_names::MysqlType;

    fn column(name: &str, kind: PrimitiveType, nullable: bool, comment: &str) -> ListedColumn {
        ListedColumn {
            name: name.into(),
            mysql_type: MysqlType::from_iceberg(&Type::Primitive(kind)),
            nullable,
            comment: comment.into(),
        }
    }

    #[test]
    fn the_layout_is_mysqls() {
        let columns = [
            column("id", PrimitiveType::Long, false, ""),
            column("no`te", PrimitiveType::String, true, "it's"),
            column("at", PrimitiveType::Timestamptz, true, ""),
        ];
        assert_eq!(
            statement("orders", &columns, ") ENGINE=ICEBERG"),
            "CREATE TABLE `orders` (\n  `id` bigint NOT NULL,\n  `no``te` varchar(65535) DEFAULT NULL COMMENT 'it''s',\n  `at` timestamp(6) NULL DEFAULT NULL\n) ENGINE=ICEBERG"
        );
    }
}
