//! `information_schema`, with MySQL's tables and columns.
//!
//! What Tarn does not have (keys, views, routines, triggers, …) is there as a table without rows, since clients ask
//! for it when they connect and browse.

use super::catalog_rows::{ListedTable, columns, comment, databases, summary_number, tables};
use super::definition::Definition;
use super::engine_rows::{PROCESSLIST, processlist_rows};
use super::wanted::Wanted;
use crate::error::Result;
use crate::planning::StatementContext;
use crate::rows::{Cell, Column, int, text, time, uint};

const CHARSET: &str = "utf8mb4";
const COLLATION: &str = "utf8mb4_0900_ai_ci";

const CHARACTER_SETS: &[Column] = &[
    text("CHARACTER_SET_NAME"),
    text("DEFAULT_COLLATE_NAME"),
    text("DESCRIPTION"),
    uint("MAXLEN"),
];

pub(crate) const COLLATIONS: &[Column] = &[
    text("COLLATION_NAME"),
    text("CHARACTER_SET_NAME"),
    uint("ID"),
    text("IS_DEFAULT"),
    text("IS_COMPILED"),
    uint("SORTLEN"),
    text("PAD_ATTRIBUTE"),
];

pub(crate) const ENGINES: &[Column] = &[
    text("ENGINE"),
    text("SUPPORT"),
    text("COMMENT"),
    text("TRANSACTIONS"),
    text("XA"),
    text("SAVEPOINTS"),
];

pub(super) const INFORMATION_SCHEMA_TABLES: &[Definition] = &[
    Definition {
        name: "character_sets",
        columns: CHARACTER_SETS,
    },
    Definition {
        name: "check_constraints",
        columns: &[
            text("CONSTRAINT_CATALOG"),
            text("CONSTRAINT_SCHEMA"),
            text("CONSTRAINT_NAME"),
            text("CHECK_CLAUSE"),
        ],
    },
    Definition {
        name: "collations",
        columns: COLLATIONS,
    },
    Definition {
        name: "collation_character_set_applicability",
        columns: &[text("COLLATION_NAME"), text("CHARACTER_SET_NAME")],
    },
    Definition {
        name: "columns",
        columns: &[
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("COLUMN_NAME"),
            uint("ORDINAL_POSITION"),
            text("COLUMN_DEFAULT"),
            text("IS_NULLABLE"),
            text("DATA_TYPE"),
            uint("CHARACTER_MAXIMUM_LENGTH"),
            uint("CHARACTER_OCTET_LENGTH"),
            uint("NUMERIC_PRECISION"),
            uint("NUMERIC_SCALE"),
            uint("DATETIME_PRECISION"),
            text("CHARACTER_SET_NAME"),
            text("COLLATION_NAME"),
            text("COLUMN_TYPE"),
            text("COLUMN_KEY"),
            text("EXTRA"),
            text("PRIVILEGES"),
            text("COLUMN_COMMENT"),
            text("GENERATION_EXPRESSION"),
            uint("SRS_ID"),
        ],
    },
    Definition {
        name: "column_privileges",
        columns: &[
            text("GRANTEE"),
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("COLUMN_NAME"),
            text("PRIVILEGE_TYPE"),
            text("IS_GRANTABLE"),
        ],
    },
    Definition {
        name: "engines",
        columns: ENGINES,
    },
    Definition {
        name: "events",
        columns: &[
            text("EVENT_CATALOG"),
            text("EVENT_SCHEMA"),
            text("EVENT_NAME"),
            text("DEFINER"),
            text("TIME_ZONE"),
            text("EVENT_BODY"),
            text("EVENT_DEFINITION"),
            text("EVENT_TYPE"),
            time("EXECUTE_AT"),
            text("INTERVAL_VALUE"),
            text("INTERVAL_FIELD"),
            text("SQL_MODE"),
            time("STARTS"),
            time("ENDS"),
            text("STATUS"),
            text("ON_COMPLETION"),
            time("CREATED"),
            time("LAST_ALTERED"),
            time("LAST_EXECUTED"),
            text("EVENT_COMMENT"),
        ],
    },
    Definition {
        name: "files",
        columns: &[
            uint("FILE_ID"),
            text("FILE_NAME"),
            text("FILE_TYPE"),
            text("TABLESPACE_NAME"),
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("LOGFILE_GROUP_NAME"),
            uint("LOGFILE_GROUP_NUMBER"),
            text("ENGINE"),
            uint("FREE_EXTENTS"),
            uint("TOTAL_EXTENTS"),
            uint("EXTENT_SIZE"),
            uint("INITIAL_SIZE"),
            uint("MAXIMUM_SIZE"),
            uint("AUTOEXTEND_SIZE"),
            text("STATUS"),
            text("EXTRA"),
        ],
    },
    Definition {
        name: "key_column_usage",
        columns: &[
            text("CONSTRAINT_CATALOG"),
            text("CONSTRAINT_SCHEMA"),
            text("CONSTRAINT_NAME"),
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("COLUMN_NAME"),
            uint("ORDINAL_POSITION"),
            uint("POSITION_IN_UNIQUE_CONSTRAINT"),
            text("REFERENCED_TABLE_SCHEMA"),
            text("REFERENCED_TABLE_NAME"),
            text("REFERENCED_COLUMN_NAME"),
        ],
    },
    Definition {
        name: "keywords",
        columns: &[text("WORD"), int("RESERVED")],
    },
    Definition {
        name: "materialized_views",
        columns: &[
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("REFRESH_TYPE"),
            text("IS_ACTIVE"),
            text("MATERIALIZED_VIEW_DEFINITION"),
        ],
    },
    Definition {
        name: "parameters",
        columns: &[
            text("SPECIFIC_CATALOG"),
            text("SPECIFIC_SCHEMA"),
            text("SPECIFIC_NAME"),
            uint("ORDINAL_POSITION"),
            text("PARAMETER_MODE"),
            text("PARAMETER_NAME"),
            text("DATA_TYPE"),
            uint("CHARACTER_MAXIMUM_LENGTH"),
            uint("CHARACTER_OCTET_LENGTH"),
            uint("NUMERIC_PRECISION"),
            uint("NUMERIC_SCALE"),
            uint("DATETIME_PRECISION"),
            text("CHARACTER_SET_NAME"),
            text("COLLATION_NAME"),
            text("DTD_IDENTIFIER"),
            text("ROUTINE_TYPE"),
        ],
    },
    Definition {
        name: "partitions",
        columns: &[
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("PARTITION_NAME"),
            text("SUBPARTITION_NAME"),
            uint("PARTITION_ORDINAL_POSITION"),
            uint("SUBPARTITION_ORDINAL_POSITION"),
            text("PARTITION_METHOD"),
            text("SUBPARTITION_METHOD"),
            text("PARTITION_EXPRESSION"),
            text("SUBPARTITION_EXPRESSION"),
            text("PARTITION_DESCRIPTION"),
            uint("TABLE_ROWS"),
            uint("AVG_ROW_LENGTH"),
            uint("DATA_LENGTH"),
            time("CREATE_TIME"),
            time("UPDATE_TIME"),
            text("PARTITION_COMMENT"),
            text("NODEGROUP"),
            text("TABLESPACE_NAME"),
        ],
    },
    Definition {
        name: "plugins",
        columns: &[
            text("PLUGIN_NAME"),
            text("PLUGIN_VERSION"),
            text("PLUGIN_STATUS"),
            text("PLUGIN_TYPE"),
        ],
    },
    Definition {
        name: "processlist",
        columns: PROCESSLIST,
    },
    Definition {
        name: "referential_constraints",
        columns: &[
            text("CONSTRAINT_CATALOG"),
            text("CONSTRAINT_SCHEMA"),
            text("CONSTRAINT_NAME"),
            text("UNIQUE_CONSTRAINT_CATALOG"),
            text("UNIQUE_CONSTRAINT_SCHEMA"),
            text("UNIQUE_CONSTRAINT_NAME"),
            text("MATCH_OPTION"),
            text("UPDATE_RULE"),
            text("DELETE_RULE"),
            text("TABLE_NAME"),
            text("REFERENCED_TABLE_NAME"),
        ],
    },
    Definition {
        name: "routines",
        columns: &[
            text("SPECIFIC_NAME"),
            text("ROUTINE_CATALOG"),
            text("ROUTINE_SCHEMA"),
            text("ROUTINE_NAME"),
            text("ROUTINE_TYPE"),
            text("DATA_TYPE"),
            uint("CHARACTER_MAXIMUM_LENGTH"),
            uint("CHARACTER_OCTET_LENGTH"),
            uint("NUMERIC_PRECISION"),
            uint("NUMERIC_SCALE"),
            uint("DATETIME_PRECISION"),
            text("CHARACTER_SET_NAME"),
            text("COLLATION_NAME"),
            text("DTD_IDENTIFIER"),
            text("ROUTINE_BODY"),
            text("ROUTINE_DEFINITION"),
            text("EXTERNAL_NAME"),
            text("EXTERNAL_LANGUAGE"),
            text("PARAMETER_STYLE"),
            text("IS_DETERMINISTIC"),
            text("SQL_DATA_ACCESS"),
            text("SQL_PATH"),
            text("SECURITY_TYPE"),
            time("CREATED"),
            time("LAST_ALTERED"),
            text("SQL_MODE"),
            text("ROUTINE_COMMENT"),
            text("DEFINER"),
            text("CHARACTER_SET_CLIENT"),
            text("COLLATION_CONNECTION"),
            text("DATABASE_COLLATION"),
        ],
    },
    Definition {
        name: "schemata",
        columns: &[
            text("CATALOG_NAME"),
            text("SCHEMA_NAME"),
            text("DEFAULT_CHARACTER_SET_NAME"),
            text("DEFAULT_COLLATION_NAME"),
            text("SQL_PATH"),
            text("DEFAULT_ENCRYPTION"),
        ],
    },
    Definition {
        name: "schema_privileges",
        columns: &[
            text("GRANTEE"),
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("PRIVILEGE_TYPE"),
            text("IS_GRANTABLE"),
        ],
    },
    Definition {
        name: "statistics",
        columns: &[
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            int("NON_UNIQUE"),
            text("INDEX_SCHEMA"),
            text("INDEX_NAME"),
            uint("SEQ_IN_INDEX"),
            text("COLUMN_NAME"),
            text("COLLATION"),
            uint("CARDINALITY"),
            uint("SUB_PART"),
            text("PACKED"),
            text("NULLABLE"),
            text("INDEX_TYPE"),
            text("COMMENT"),
            text("INDEX_COMMENT"),
            text("IS_VISIBLE"),
            text("EXPRESSION"),
        ],
    },
    Definition {
        name: "tables",
        columns: &[
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("TABLE_TYPE"),
            text("ENGINE"),
            uint("VERSION"),
            text("ROW_FORMAT"),
            uint("TABLE_ROWS"),
            uint("AVG_ROW_LENGTH"),
            uint("DATA_LENGTH"),
            uint("MAX_DATA_LENGTH"),
            uint("INDEX_LENGTH"),
            uint("DATA_FREE"),
            uint("AUTO_INCREMENT"),
            time("CREATE_TIME"),
            time("UPDATE_TIME"),
            time("CHECK_TIME"),
            text("TABLE_COLLATION"),
            uint("CHECKSUM"),
            text("CREATE_OPTIONS"),
            text("TABLE_COMMENT"),
        ],
    },
    Definition {
        name: "table_constraints",
        columns: &[
            text("CONSTRAINT_CATALOG"),
            text("CONSTRAINT_SCHEMA"),
            text("CONSTRAINT_NAME"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("CONSTRAINT_TYPE"),
            text("ENFORCED"),
        ],
    },
    Definition {
        name: "table_privileges",
        columns: &[
            text("GRANTEE"),
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("PRIVILEGE_TYPE"),
            text("IS_GRANTABLE"),
        ],
    },
    Definition {
        name: "triggers",
        columns: &[
            text("TRIGGER_CATALOG"),
            text("TRIGGER_SCHEMA"),
            text("TRIGGER_NAME"),
            text("EVENT_MANIPULATION"),
            text("EVENT_OBJECT_CATALOG"),
            text("EVENT_OBJECT_SCHEMA"),
            text("EVENT_OBJECT_TABLE"),
            uint("ACTION_ORDER"),
            text("ACTION_CONDITION"),
            text("ACTION_STATEMENT"),
            text("ACTION_ORIENTATION"),
            text("ACTION_TIMING"),
            text("ACTION_REFERENCE_OLD_TABLE"),
            text("ACTION_REFERENCE_NEW_TABLE"),
            text("ACTION_REFERENCE_OLD_ROW"),
            text("ACTION_REFERENCE_NEW_ROW"),
            time("CREATED"),
            text("SQL_MODE"),
            text("DEFINER"),
            text("CHARACTER_SET_CLIENT"),
            text("COLLATION_CONNECTION"),
            text("DATABASE_COLLATION"),
        ],
    },
    Definition {
        name: "user_privileges",
        columns: &[
            text("GRANTEE"),
            text("TABLE_CATALOG"),
            text("PRIVILEGE_TYPE"),
            text("IS_GRANTABLE"),
        ],
    },
    Definition {
        name: "views",
        columns: &[
            text("TABLE_CATALOG"),
            text("TABLE_SCHEMA"),
            text("TABLE_NAME"),
            text("VIEW_DEFINITION"),
            text("CHECK_OPTION"),
            text("IS_UPDATABLE"),
            text("DEFINER"),
            text("SECURITY_TYPE"),
            text("CHARACTER_SET_CLIENT"),
            text("COLLATION_CONNECTION"),
        ],
    },
];

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

    #[test]
    fn every_table_that_clients_ask_for_is_there() {
        for name in [
            "schemata",
            "tables",
            "views",
            "columns",
            "statistics",
            "key_column_usage",
            "referential_constraints",
            "table_constraints",
            "routines",
            "triggers",
            "files",
            "partitions",
            "table_privileges",
            "column_privileges",
            "engines",
            "character_sets",
            "collations",
            "processlist",
            "events",
            "parameters",
        ] {
            assert!(
                INFORMATION_SCHEMA_TABLES
                    .iter()
                    .any(|table| table.name == name),
                "{name}"
            );
        }
    }

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
