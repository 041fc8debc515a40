//! What the server says it can do (`CommandGetSqlInfo`).

use std::collections::BTreeMap;

use arrow_flight::sql::SqlInfo as I;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use tonic::Status;

use crate::status::internal;

/// Words of the dialect that SQL:2003 does not have.
const KEYWORDS: &[&str] = &[
    "CATALOG",
    "CATALOGS",
    "DATABASE",
    "DATABASES",
    "ESTIMATE",
    "EXPLAIN",
    "KILL",
    "PROCESSLIST",
    "PROPERTIES",
    "PURGE",
    "SHOW",
    "USE",
    "VARIABLES",
    "WORKERS",
];
const NUMERIC_FUNCTIONS: &[&str] = &[
    "ABS", "ACOS", "ASIN", "ATAN", "ATAN2", "CEILING", "COS", "COT", "DEGREES", "EXP", "FLOOR",
    "LOG", "LOG10", "MOD", "PI", "POWER", "RADIANS", "ROUND", "SIGN", "SIN", "SQRT", "TAN",
    "TRUNCATE",
];
const STRING_FUNCTIONS: &[&str] = &[
    "ASCII",
    "CHAR_LENGTH",
    "CONCAT",
    "CONCAT_WS",
    "LEFT",
    "LENGTH",
    "LOCATE",
    "LOWER",
    "LPAD",
    "LTRIM",
    "REPEAT",
    "REPLACE",
    "REVERSE",
    "RIGHT",
    "RPAD",
    "RTRIM",
    "SUBSTRING",
    "TRIM",
    "UPPER",
];
const SYSTEM_FUNCTIONS: &[&str] = &["DATABASE", "USER", "VERSION", "CONNECTION_ID", "IFNULL"];
const DATETIME_FUNCTIONS: &[&str] = &[
    "CURDATE",
    "DATE_FORMAT",
    "DATE_TRUNC",
    "DAY",
    "EXTRACT",
    "HOUR",
    "MINUTE",
    "MONTH",
    "NOW",
    "QUARTER",
    "SECOND",
    "UNIX_TIMESTAMP",
    "WEEK",
    "YEAR",
];

/// No limit but memory.
const NO_LIMIT: i64 = 0;

/// Builds the answer once for the life of the server.
pub(crate) fn sql_info(
    max_connections: u32,
    max_message_bytes: usize,
) -> Result<SqlInfoData, Status> {
    let mut b = SqlInfoDataBuilder::new();

    b.append(I::FlightSqlServerName, "Tarn");
    b.append(I::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    b.append(I::FlightSqlServerArrowVersion, "1.3");
    b.append(I::FlightSqlServerReadOnly, false);
    b.append(I::FlightSqlServerSql, true);
    b.append(I::FlightSqlServerSubstrait, false);
    // 0: no transactions; every statement commits by itself.
    b.append(I::FlightSqlServerTransaction, 0i32);
    b.append(I::FlightSqlServerCancel, true);
    b.append(I::FlightSqlServerBulkIngestion, false);
    b.append(I::FlightSqlServerIngestTransactionsSupported, false);
    b.append(I::FlightSqlServerStatementTimeout, 0i32);
    b.append(I::FlightSqlServerTransactionTimeout, 0i32);

    b.append(I::SqlDdlCatalog, true);
    b.append(I::SqlDdlSchema, true);
    b.append(I::SqlDdlTable, true);
    // 0: unknown. Names keep their case, and a catalog service decides what is the same name.
    b.append(I::SqlIdentifierCase, 0i32);
    b.append(I::SqlIdentifierQuoteChar, "`");
    b.append(I::SqlQuotedIdentifierCase, 0i32);
    b.append(I::SqlAllTablesAreSelectable, true);
    // 1: NULL sorts below every value, as in MySQL.
    b.append(I::SqlNullOrdering, 1i32);
    b.append(I::SqlKeywords, KEYWORDS);
    b.append(I::SqlNumericFunctions, NUMERIC_FUNCTIONS);
    b.append(I::SqlStringFunctions, STRING_FUNCTIONS);
    b.append(I::SqlSystemFunctions, SYSTEM_FUNCTIONS);
    b.append(I::SqlDatetimeFunctions, DATETIME_FUNCTIONS);
    b.append(I::SqlSearchStringEscape, "\\");
    b.append(I::SqlExtraNameCharacters, "$");
    b.append(I::SqlSupportsColumnAliasing, true);
    b.append(I::SqlNullPlusNullIsNull, true);
    b.append(I::SqlSupportsConvert, BTreeMap::<i32, Vec<i32>>::new());
    b.append(I::SqlSupportsTableCorrelationNames, true);
    b.append(I::SqlSupportsDifferentTableCorrelationNames, false);
    b.append(I::SqlSupportsExpressionsInOrderBy, true);
    b.append(I::SqlSupportsOrderByUnrelated, true);
    // Bits 0 and 1: GROUP BY columns that are not selected, and expressions.
    b.append(I::SqlSupportedGroupBy, 0b11i32);
    b.append(I::SqlSupportsLikeEscapeClause, true);
    b.append(I::SqlSupportsNonNullableColumns, true);
    // Bits 0 and 1: minimum and core grammar of ODBC.
    b.append(I::SqlSupportedGrammar, 0b11i32);
    // Bit 0: entry level.
    b.append(I::SqlAnsi92SupportedLevel, 0b1i32);
    b.append(I::SqlSupportsIntegrityEnhancementFacility, false);
    // Bit 2: full outer joins, which includes the others.
    b.append(I::SqlOuterJoinsSupportLevel, 0b100i32);
    b.append(I::SqlSchemaTerm, "database");
    b.append(I::SqlProcedureTerm, "procedure");
    b.append(I::SqlCatalogTerm, "catalog");
    b.append(I::SqlCatalogAtStart, true);
    // Bit 2: table definitions, indexes and privileges aside.
    b.append(I::SqlSchemasSupportedActions, 0b100i32);
    b.append(I::SqlCatalogsSupportedActions, 0b100i32);
    b.append(I::SqlSupportedPositionedCommands, 0i32);
    b.append(I::SqlSelectForUpdateSupported, false);
    b.append(I::SqlStoredProceduresSupported, false);
    // In comparisons, EXISTS, IN and quantified comparisons.
    b.append(I::SqlSupportedSubqueries, 0b1111i32);
    b.append(I::SqlCorrelatedSubqueriesSupported, true);
    // UNION and UNION ALL.
    b.append(I::SqlSupportedUnions, 0b11i32);

    for unlimited in [
        I::SqlMaxBinaryLiteralLength,
        I::SqlMaxCharLiteralLength,
        I::SqlMaxColumnNameLength,
        I::SqlMaxColumnsInGroupBy,
        I::SqlMaxColumnsInIndex,
        I::SqlMaxColumnsInOrderBy,
        I::SqlMaxColumnsInSelect,
        I::SqlMaxColumnsInTable,
        I::SqlMaxCursorNameLength,
        I::SqlMaxIndexLength,
        I::SqlDbSchemaNameLength,
        I::SqlMaxProcedureNameLength,
        I::SqlMaxCatalogNameLength,
        I::SqlMaxRowSize,
        I::SqlMaxStatements,
        I::SqlMaxTableNameLength,
        I::SqlMaxTablesInSelect,
        I::SqlMaxUsernameLength,
    ] {
        b.append(unlimited, NO_LIMIT);
    }
    b.append(I::SqlMaxConnections, i64::from(max_connections));
    b.append(
        I::SqlMaxStatementLength,
        i64::try_from(max_message_bytes).unwrap_or(i64::MAX),
    );
    b.append(I::SqlMaxRowSizeIncludesBlobs, true);

    // 0: no isolation level, there being no transactions.
    b.append(I::SqlDefaultTransactionIsolation, 0i64);
    b.append(I::SqlTransactionsSupported, false);
    b.append(I::SqlSupportedTransactionsIsolationLevels, 0i32);
    b.append(I::SqlDataDefinitionCausesTransactionCommit, false);
    b.append(I::SqlDataDefinitionsInTransactionsIgnored, false);
    // Bit 1: forward only.
    b.append(I::SqlSupportedResultSetTypes, 0b10i32);
    b.append(I::SqlSupportedConcurrenciesForResultSetUnspecified, 0i32);
    // Bit 1: read only.
    b.append(I::SqlSupportedConcurrenciesForResultSetForwardOnly, 0b10i32);
    b.append(
        I::SqlSupportedConcurrenciesForResultSetScrollSensitive,
        0i32,
    );
    b.append(
        I::SqlSupportedConcurrenciesForResultSetScrollInsensitive,
        0i32,
    );
    b.append(I::SqlBatchUpdatesSupported, true);
    b.append(I::SqlSavepointsSupported, false);
    b.append(I::SqlNamedParametersSupported, false);
    b.append(I::SqlLocatorsUpdateCopy, false);
    b.append(I::SqlStoredFunctionsUsingCallSyntaxSupported, false);

    b.build().map_err(internal)
}
