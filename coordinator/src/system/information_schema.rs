//! The rows of `information_schema`.

use super::catalog_rows::{ListedTable, columns, comment, databases, summary_number, tables};
use super::engine_rows::processlist_rows;
use super::wanted::Wanted;
use crate::error::Result;
use crate::planning::StatementContext;
use crate::rows::Cell;

const CHARSET: &str = "utf8mb4";
const COLLATION: &str = "utf8mb4_0900_ai_ci";

pub(super) async fn rows(
    context: &StatementContext,
    catalog: &str,
    table: &str,
    wanted: &Wanted,
) -> Result<Vec<Vec<Cell>>> {
    match table {
        "schemata" => schemata(context, catalog, wanted).await,
        "tables" => table_rows(context, catalog, wanted).await,
        "columns" => column_rows(context, catalog, wanted).await,
        "partitions" => partition_rows(context, catalog, wanted).await,
        "processlist" => Ok(processlist_rows(context, true)),
        "engines" => Ok(engine_rows()),
        "character_sets" => Ok(character_set_rows()),
        "collations" => Ok(collation_rows()),
        "collation_character_set_applicability" => Ok(collation_rows()
            .into_iter()
            .map(|row| row.into_iter().take(2).collect())
            .collect()),
        "user_privileges" => Ok(context
            .engine
            .users()
            .iter()
            .map(|user| {
                vec![
                    format!("'{}'@'%'", user.name).into(),
                    "def".into(),
                    "SELECT".into(),
                    "NO".into(),
                ]
            })
            .collect()),
        _ => Ok(Vec::new()),
    }
}

async fn schemata(
    context: &StatementContext,
    catalog: &str,
    wanted: &Wanted,
) -> Result<Vec<Vec<Cell>>> {
    let names = databases(context, catalog, wanted).await?;
    Ok(names
        .into_iter()
        .map(|name| {
            vec![
                catalog.into(),
                name.into(),
                CHARSET.into(),
                COLLATION.into(),
                Cell::Null,
                "NO".into(),
            ]
        })
        .collect())
}

async fn table_rows(
    context: &StatementContext,
    catalog: &str,
    wanted: &Wanted,
) -> Result<Vec<Vec<Cell>>> {
    // Names and types need no metadata: a list of a thousand tables costs one call.
    let load = wanted.reads_any(&[
        "version",
        "table_rows",
        "avg_row_length",
        "data_length",
        "update_time",
        "table_comment",
    ]);
    let mut rows = Vec::new();
    for listed in tables(context, catalog, wanted, load).await? {
        for table in &listed.tables {
            rows.push(table_row(catalog, &listed.database, table));
        }
    }
    Ok(rows)
}

/// Every row of `TABLES` with all columns, for `SHOW TABLE STATUS`.
pub(crate) async fn table_status(
    context: &StatementContext,
    catalog: &str,
    wanted: &Wanted,
) -> Result<Vec<Vec<Cell>>> {
    table_rows(context, catalog, wanted).await
}

/// One row of `TABLES`, which is also one of `SHOW TABLE STATUS`.
fn table_row(catalog: &str, database: &str, table: &ListedTable) -> Vec<Cell> {
    let (kind, engine, iceberg) = match table {
        ListedTable::System(_) => ("SYSTEM VIEW", "MEMORY", None),
        ListedTable::Iceberg { table, .. } => ("BASE TABLE", "ICEBERG", table.as_ref()),
    };
    let records = iceberg.and_then(|table| summary_number(table, "total-records"));
    let bytes = iceberg.and_then(|table| summary_number(table, "total-files-size"));
    let average = match (records, bytes) {
        (Some(records @ 1..), Some(bytes)) => Some(bytes / records),
        (Some(0), Some(_)) => Some(0),
        _ => None,
    };
    vec![
        catalog.into(),
        database.into(),
        table.name().into(),
        kind.into(),
        engine.into(),
        iceberg
            .map(|table| table.metadata().format_version() as u64)
            .into(),
        "PARQUET".into(),
        records.into(),
        average.into(),
        bytes.into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        iceberg.map_or(Cell::Null, |table| {
            Cell::Time(table.metadata().last_updated_ms().saturating_mul(1000))
        }),
        Cell::Null,
        COLLATION.into(),
        Cell::Null,
        "".into(),
        iceberg.map(comment).unwrap_or_default().into(),
    ]
}

async fn column_rows(
    context: &StatementContext,
    catalog: &str,
    wanted: &Wanted,
) -> Result<Vec<Vec<Cell>>> {
    let mut rows = Vec::new();
    for listed in tables(context, catalog, wanted, true).await? {
        for table in &listed.tables {
            for (index, column) in columns(table).into_iter().enumerate() {
                let kind = column.mysql_type;
                let charset = kind.is_text().then_some(CHARSET);
                let collation = kind.is_text().then_some(COLLATION);
                rows.push(vec![
                    catalog.into(),
                    listed.database.as_str().into(),
                    table.name().into(),
                    column.name.into(),
                    (index as u64 + 1).into(),
                    Cell::Null,
                    if column.nullable { "YES" } else { "NO" }.into(),
                    kind.data_type.into(),
                    kind.character_maximum_length.into(),
                    kind.character_octet_length.into(),
                    kind.numeric_precision.into(),
                    kind.numeric_scale.into(),
                    kind.datetime_precision.into(),
                    charset.into(),
                    collation.into(),
                    kind.column_type.into(),
                    "".into(),
                    "".into(),
                    "select,insert".into(),
                    column.comment.into(),
                    "".into(),
                    Cell::Null,
                ]);
            }
        }
    }
    Ok(rows)
}

/// A row per table, as MySQL has one for a table without MySQL partitions: Iceberg's partitions
/// are data, not schema.
async fn partition_rows(
    context: &StatementContext,
    catalog: &str,
    wanted: &Wanted,
) -> Result<Vec<Vec<Cell>>> {
    let load = wanted.reads_any(&["table_rows", "avg_row_length", "data_length", "update_time"]);
    let mut rows = Vec::new();
    for listed in tables(context, catalog, wanted, load).await? {
        for table in &listed.tables {
            let of_table = table_row(catalog, &listed.database, table);
            let take = |index: usize| of_table.get(index).cloned().unwrap_or(Cell::Null);
            let mut row = vec![take(0), take(1), take(2)];
            row.resize(12, Cell::Null);
            row.extend([take(7), take(8), take(9), Cell::Null, take(15)]);
            row.extend(["".into(), Cell::Null, Cell::Null]);
            rows.push(row);
        }
    }
    Ok(rows)
}

pub(crate) fn engine_rows() -> Vec<Vec<Cell>> {
    vec![vec![
        "ICEBERG".into(),
        "DEFAULT".into(),
        "Apache Iceberg tables with Parquet data files".into(),
        "NO".into(),
        "NO".into(),
        "NO".into(),
    ]]
}

pub(crate) fn character_set_rows() -> Vec<Vec<Cell>> {
    [
        ("binary", "binary", "Binary pseudo charset", 1),
        ("utf8mb3", "utf8mb3_general_ci", "UTF-8 Unicode", 3),
        ("utf8mb4", COLLATION, "UTF-8 Unicode", 4),
    ]
    .into_iter()
    .map(|(name, collation, description, length)| {
        vec![
            name.into(),
            collation.into(),
            description.into(),
            Cell::UInt(length),
        ]
    })
    .collect()
}

pub(crate) fn collation_rows() -> Vec<Vec<Cell>> {
    [
        ("binary", "binary", 63, "Yes"),
        ("utf8mb3_general_ci", "utf8mb3", 33, "Yes"),
        ("utf8mb4_0900_ai_ci", "utf8mb4", 255, "Yes"),
        ("utf8mb4_0900_bin", "utf8mb4", 309, ""),
        ("utf8mb4_bin", "utf8mb4", 46, ""),
        ("utf8mb4_general_ci", "utf8mb4", 45, ""),
        ("utf8mb4_unicode_ci", "utf8mb4", 224, ""),
    ]
    .into_iter()
    .map(|(name, charset, id, default)| {
        vec![
            name.into(),
            charset.into(),
            Cell::UInt(id),
            default.into(),
            "Yes".into(),
            Cell::UInt(1),
            if name.contains("0900") {
                "NO PAD"
            } else {
                "PAD SPACE"
            }
            .into(),
        ]
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::information_schema_tables::INFORMATION_SCHEMA_TABLES;

    #[test]
    fn rows_are_as_wide_as_their_tables() {
        let width = |name: &str| {
            INFORMATION_SCHEMA_TABLES
                .iter()
                .find(|table| table.name == name)
                .map_or(0, |table| table.columns.len())
        };
        let system = ListedTable::System(&INFORMATION_SCHEMA_TABLES[0]);
        assert_eq!(table_row("lake", "d", &system).len(), width("tables"));
        assert!(
            engine_rows()
                .iter()
                .all(|row| row.len() == width("engines"))
        );
        assert!(
            collation_rows()
                .iter()
                .all(|row| row.len() == width("collations"))
        );
        assert!(
            character_set_rows()
                .iter()
                .all(|row| row.len() == width("character_sets"))
        );
    }
}
