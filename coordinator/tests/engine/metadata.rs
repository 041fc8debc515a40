//! What clients send when they connect and browse.

use crate::harness::{Harness, login, try_rows};

/// Sent on connect: a client that gets an error on one of these does not connect.
const ON_CONNECT: &[&str] = &[
    "select @@version_comment limit 1",
    "SELECT DATABASE()",
    "select DATABASE(), USER() limit 1",
    "select @@character_set_client, @@character_set_connection, @@character_set_server, @@character_set_database limit 1",
    "/*!40100 SET @@SQL_MODE='' */",
    "/*!40103 SET TIME_ZONE='+00:00' */",
    "/*M!100100 SET @@MAX_STATEMENT_TIME=0.000000 */",
    "/*M!100100 SET WAIT_TIMEOUT=DEFAULT */",
    "set optimizer_switch='semijoin=off'",
    "set optimizer_switch=default",
    "SET SQL_QUOTE_SHOW_CREATE=1",
    "SET SESSION character_set_results = 'binary'",
    "LOCK TABLES `orders` READ /*!32311 LOCAL */",
    "UNLOCK TABLES",
    "/* mysql-connector-j-26.10.0 (Revision: …) */SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, @@query_cache_size AS query_cache_size, @@query_cache_type AS query_cache_type, @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@tx_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout",
    "SET character_set_results = NULL",
    "SET autocommit=1",
    "set autocommit=1,sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'),NAMES utf8mb4",
    "set sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'),session_track_system_variables=CONCAT('autocommit,character_set_client,character_set_connection,character_set_results,time_zone,tx_isolation',IF(LOCATE('*',@@session_track_system_variables)>0 OR FIND_IN_SET('last_gtid',LOWER(REPLACE(@@session_track_system_variables,' ','')))>0,',last_gtid','')),session_track_schema=1,NAMES utf8mb4",
    "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'",
    "SET @@session.autocommit = OFF",
    "SELECT @@session.sql_mode",
    "SELECT @@session.transaction_isolation",
    "SELECT @@session.tx_isolation",
    "SELECT @@lower_case_table_names",
    "SELECT VERSION()",
    "SELECT CURRENT_VERSION()",
    "SHOW VARIABLES LIKE 'sql_mode'",
    "ADMIN SHOW FRONTEND CONFIG LIKE 'run_mode'",
    "SET time_zone = '+00:00'",
    "select connection_id() as connectionId",
    "SELECT 1+1 AS result",
    "SHOW schemas",
    "SHOW CHARACTER SET",
    "SHOW COLLATION",
    "START TRANSACTION",
    "ROLLBACK",
    "COMMIT",
];

/// Sent to browse the database `shop` with its table `orders`.
const ON_BROWSE: &[&str] = &[
    "SELECT LOGFILE_GROUP_NAME, FILE_NAME, TOTAL_EXTENTS, INITIAL_SIZE, ENGINE, EXTRA FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IN (SELECT DISTINCT LOGFILE_GROUP_NAME FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'DATAFILE' AND TABLESPACE_NAME IN (SELECT DISTINCT TABLESPACE_NAME FROM INFORMATION_SCHEMA.PARTITIONS WHERE TABLE_SCHEMA='shop' AND TABLE_NAME IN ('orders'))) GROUP BY LOGFILE_GROUP_NAME, FILE_NAME, ENGINE, TOTAL_EXTENTS, INITIAL_SIZE ORDER BY LOGFILE_GROUP_NAME",
    "SELECT DISTINCT TABLESPACE_NAME, FILE_NAME, LOGFILE_GROUP_NAME, EXTENT_SIZE, INITIAL_SIZE, ENGINE FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'DATAFILE' AND TABLESPACE_NAME IN (SELECT DISTINCT TABLESPACE_NAME FROM INFORMATION_SCHEMA.PARTITIONS WHERE TABLE_SCHEMA='shop' AND TABLE_NAME IN ('orders')) ORDER BY TABLESPACE_NAME, LOGFILE_GROUP_NAME",
    "SELECT table_name FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = DATABASE() AND table_name = 'orders'",
    "SELECT engine, table_type FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = DATABASE() AND table_name = 'orders'",
    "select column_name, extra, generation_expression, data_type from information_schema.columns where table_schema=database() and table_name='orders' order by ordinal_position",
    "SELECT /*!40001 SQL_NO_CACHE */ `id`, `total` FROM `orders`",
    "select @@collation_database",
    "SELECT TRIGGER_NAME FROM INFORMATION_SCHEMA.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = 'orders'",
    "SELECT SCHEMA_NAME AS TABLE_CAT FROM INFORMATION_SCHEMA.SCHEMATA ORDER BY TABLE_CAT",
    "SELECT SCHEMA_NAME AS TABLE_SCHEM, CATALOG_NAME AS TABLE_CATALOG FROM INFORMATION_SCHEMA.SCHEMATA WHERE FALSE ORDER BY TABLE_CATALOG, TABLE_SCHEM",
    "SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, CASE WHEN TABLE_TYPE = 'BASE TABLE' THEN CASE WHEN TABLE_SCHEMA = 'mysql' OR TABLE_SCHEMA = 'performance_schema' OR TABLE_SCHEMA = 'sys' THEN 'SYSTEM TABLE' ELSE 'TABLE' END WHEN TABLE_TYPE = 'TEMPORARY' THEN 'LOCAL_TEMPORARY' ELSE TABLE_TYPE END AS TABLE_TYPE, TABLE_COMMENT AS REMARKS, NULL AS TYPE_CAT, NULL AS TYPE_SCHEM, NULL AS TYPE_NAME, NULL AS SELF_REFERENCING_COL_NAME, NULL AS REF_GENERATION FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME LIKE '%' HAVING TABLE_TYPE IN ('TABLE','VIEW',null,null,null) ORDER BY TABLE_TYPE, TABLE_SCHEMA, TABLE_NAME",
    "SELECT ROUTINE_SCHEMA AS PROCEDURE_CAT, NULL AS PROCEDURE_SCHEM, ROUTINE_NAME AS PROCEDURE_NAME, NULL AS RESERVED_1, NULL AS RESERVED_2, NULL AS RESERVED_3, ROUTINE_COMMENT AS REMARKS, CASE WHEN ROUTINE_TYPE = 'PROCEDURE' THEN 1 WHEN ROUTINE_TYPE = 'FUNCTION' THEN 2 ELSE 0 END AS PROCEDURE_TYPE, ROUTINE_NAME AS SPECIFIC_NAME FROM INFORMATION_SCHEMA.ROUTINES WHERE ROUTINE_SCHEMA = 'shop' AND ROUTINE_NAME LIKE '%' ORDER BY ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE",
    "SELECT DEFAULT_COLLATION_NAME FROM INFORMATION_SCHEMA.SCHEMATA WHERE SCHEMA_NAME = 'information_schema'",
    "SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, COLUMN_NAME, SEQ_IN_INDEX AS KEY_SEQ, 'PRIMARY' AS PK_NAME FROM INFORMATION_SCHEMA.STATISTICS WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'orders' AND INDEX_NAME = 'PRIMARY' ORDER BY TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, SEQ_IN_INDEX",
    "SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, NON_UNIQUE, NULL AS INDEX_QUALIFIER, INDEX_NAME, 3 AS TYPE, SEQ_IN_INDEX AS ORDINAL_POSITION, COLUMN_NAME, COLLATION AS ASC_OR_DESC, CARDINALITY, 0 AS PAGES, NULL AS FILTER_CONDITION FROM INFORMATION_SCHEMA.STATISTICS WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'orders' ORDER BY NON_UNIQUE, INDEX_NAME, SEQ_IN_INDEX",
    "SELECT DISTINCT A.REFERENCED_TABLE_SCHEMA AS PKTABLE_CAT, NULL AS PKTABLE_SCHEM, A.REFERENCED_TABLE_NAME AS PKTABLE_NAME, A.REFERENCED_COLUMN_NAME AS PKCOLUMN_NAME, A.TABLE_SCHEMA AS FKTABLE_CAT, NULL AS FKTABLE_SCHEM, A.TABLE_NAME AS FKTABLE_NAME, A.COLUMN_NAME AS FKCOLUMN_NAME, A.ORDINAL_POSITION AS KEY_SEQ, CASE WHEN R.UPDATE_RULE = 'CASCADE' THEN 0 WHEN R.UPDATE_RULE = 'SET NULL' THEN 2 ELSE 1 END AS UPDATE_RULE, A.CONSTRAINT_NAME AS FK_NAME, TC.CONSTRAINT_NAME AS PK_NAME, 7 AS DEFERRABILITY FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE A JOIN INFORMATION_SCHEMA.TABLE_CONSTRAINTS B USING (TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME) JOIN INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS R ON (R.CONSTRAINT_NAME = B.CONSTRAINT_NAME AND R.TABLE_NAME = B.TABLE_NAME AND R.CONSTRAINT_SCHEMA = B.TABLE_SCHEMA) LEFT JOIN INFORMATION_SCHEMA.TABLE_CONSTRAINTS TC ON (A.REFERENCED_TABLE_SCHEMA = TC.TABLE_SCHEMA AND A.REFERENCED_TABLE_NAME = TC.TABLE_NAME AND TC.CONSTRAINT_TYPE IN ('UNIQUE', 'PRIMARY KEY')) WHERE B.CONSTRAINT_TYPE = 'FOREIGN KEY' AND A.REFERENCED_TABLE_SCHEMA = 'shop' AND A.TABLE_SCHEMA = 'shop' AND A.TABLE_NAME = 'orders' ORDER BY FKTABLE_CAT, FKTABLE_SCHEM, FKTABLE_NAME, KEY_SEQ",
    "SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, NULL AS GRANTOR, GRANTEE, PRIVILEGE_TYPE AS PRIVILEGE, IS_GRANTABLE FROM INFORMATION_SCHEMA.TABLE_PRIVILEGES WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'orders'",
    "SELECT TABLE_SCHEMA, NULL, TABLE_NAME, COLUMN_NAME, NULL AS GRANTOR, GRANTEE, PRIVILEGE_TYPE AS PRIVILEGE, IS_GRANTABLE FROM INFORMATION_SCHEMA.COLUMN_PRIVILEGES WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'orders' AND COLUMN_NAME LIKE '%' ORDER BY COLUMN_NAME, PRIVILEGE_TYPE",
    "SHOW FULL TABLES FROM `shop` LIKE '%'",
    "SHOW FULL COLUMNS FROM `orders` FROM `shop` LIKE '%'",
    "SHOW KEYS FROM `orders` FROM `shop`",
    "SHOW INDEX FROM `orders` FROM `shop`",
    "SHOW FUNCTION STATUS WHERE Db = 'shop' AND Name LIKE '%'",
    "SHOW PROCEDURE STATUS WHERE Db = 'shop' AND Name LIKE '%'",
    "SELECT '' TABLE_SCHEM, '' TABLE_CATALOG FROM DUAL WHERE 1=0",
    "SELECT 'LOCAL TEMPORARY' TABLE_TYPE UNION SELECT 'SYSTEM TABLE' TABLE_TYPE UNION SELECT 'TABLE' TABLE_TYPE",
    "SELECT TABLE_SCHEMA TABLE_CAT, NULL TABLE_SCHEM, TABLE_NAME, IF(TABLE_SCHEMA IN ('mysql', 'performance_schema', 'sys'), IF(TABLE_TYPE='BASE TABLE', 'SYSTEM TABLE', IF(TABLE_TYPE='VIEW', 'SYSTEM VIEW', TABLE_TYPE)), IF(TABLE_TYPE='BASE TABLE' or TABLE_TYPE='SYSTEM VERSIONED', 'TABLE', IF(TABLE_TYPE='TEMPORARY', 'LOCAL TEMPORARY', TABLE_TYPE))) as TABLE_TYPE, TABLE_COMMENT REMARKS, NULL TYPE_CAT, NULL TYPE_SCHEM, NULL TYPE_NAME, NULL SELF_REFERENCING_COL_NAME, NULL REF_GENERATION FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA='shop' AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED','VIEW') ORDER BY TABLE_TYPE,TABLE_CAT,TABLE_SCHEMA,TABLE_NAME",
    "SELECT * FROM information_schema.views WHERE table_schema = 'shop' AND table_name = 'big'",
    "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA = 'shop'",
    "SELECT `TABLE_SCHEMA`, `TABLE_NAME`, `TABLE_COMMENT` FROM `INFORMATION_SCHEMA`.`TABLES` WHERE `TABLE_SCHEMA` = 'shop' AND `TABLE_NAME` = 'orders'",
    "SELECT * FROM (SELECT * FROM `INFORMATION_SCHEMA`.`KEY_COLUMN_USAGE` `kcu` WHERE `kcu`.`TABLE_SCHEMA` = 'shop' AND `kcu`.`TABLE_NAME` = 'orders') `kcu` WHERE `CONSTRAINT_NAME` = 'PRIMARY'",
    "SELECT `SCHEMA_NAME`, `DEFAULT_CHARACTER_SET_NAME` as `CHARSET`, `DEFAULT_COLLATION_NAME` AS `COLLATION` FROM `INFORMATION_SCHEMA`.`SCHEMATA`",
    "SELECT `s`.* FROM (SELECT * FROM `INFORMATION_SCHEMA`.`STATISTICS` WHERE `TABLE_SCHEMA` = 'shop' AND `TABLE_NAME` = 'orders') `s` LEFT JOIN (SELECT * FROM `INFORMATION_SCHEMA`.`REFERENTIAL_CONSTRAINTS` WHERE `CONSTRAINT_SCHEMA` = 'shop' AND `TABLE_NAME` = 'orders') `rc` ON `s`.`INDEX_NAME` = `rc`.`CONSTRAINT_NAME` AND `s`.`TABLE_SCHEMA` = `rc`.`CONSTRAINT_SCHEMA` WHERE `s`.`INDEX_NAME` != 'PRIMARY' AND `rc`.`CONSTRAINT_NAME` IS NULL",
    "SELECT `kcu`.`TABLE_SCHEMA`, `kcu`.`TABLE_NAME`, `kcu`.`CONSTRAINT_NAME`, `kcu`.`COLUMN_NAME`, `kcu`.`REFERENCED_TABLE_SCHEMA`, `kcu`.`REFERENCED_TABLE_NAME`, `kcu`.`REFERENCED_COLUMN_NAME`, `rc`.`DELETE_RULE` `ON_DELETE`, `rc`.`UPDATE_RULE` `ON_UPDATE` FROM (SELECT * FROM `INFORMATION_SCHEMA`.`KEY_COLUMN_USAGE` `kcu` WHERE `kcu`.`TABLE_SCHEMA` = 'shop' AND `kcu`.`TABLE_NAME` = 'orders') `kcu` INNER JOIN (SELECT * FROM `INFORMATION_SCHEMA`.`REFERENTIAL_CONSTRAINTS` WHERE `CONSTRAINT_SCHEMA` = 'shop' AND `TABLE_NAME` = 'orders') `rc` ON `rc`.`CONSTRAINT_SCHEMA` = `kcu`.`CONSTRAINT_SCHEMA` AND `rc`.`TABLE_NAME` = `kcu`.`TABLE_NAME` AND `rc`.`CONSTRAINT_NAME` = `kcu`.`CONSTRAINT_NAME`",
    "SELECT columns.column_name as `column_name`, columns.table_name as `table_name`, columns.table_schema as `table_schema`, columns.data_type as `data_type` FROM information_schema.columns WHERE columns.table_schema NOT IN ('pg_catalog', 'information_schema', 'mysql', 'performance_schema', 'sys', 'INFORMATION_SCHEMA') AND columns.table_schema = 'shop'",
    "select TABLE_NAME, COLUMN_NAME from information_schema.columns where table_schema = 'shop' order by table_name,ordinal_position",
    "SELECT DISTINCT TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'shop' AND SEQ_IN_INDEX = 1 AND COLUMN_NAME IS NOT NULL ORDER BY TABLE_NAME, COLUMN_NAME",
    "SELECT CONCAT(\"'\", user, \"'@'\",host,\"'\") FROM mysql.user",
    "SELECT ROUTINE_NAME FROM INFORMATION_SCHEMA.ROUTINES WHERE ROUTINE_TYPE=\"FUNCTION\" AND ROUTINE_SCHEMA = 'shop'",
    "SELECT name from mysql.help_topic WHERE name like \"SHOW %\"",
    "select distinct schema_name from information_schema.schemata",
    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop' AND table_name = 'orders'",
    "WITH root as (SELECT 1 ) SELECT COUNT(*) FROM root",
];

async fn shop() -> Harness {
    let harness = Harness::start().await;
    harness.done("CREATE DATABASE shop").await;
    harness
        .done("CREATE TABLE shop.orders (id BIGINT NOT NULL, total DECIMAL(10,2), note TEXT)")
        .await;
    harness.done("USE shop").await;
    harness
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_send_on_connect_is_answered() {
    let harness = shop().await;
    let mut failed = Vec::new();
    for sql in ON_CONNECT {
        // Each in a session of its own: what one client sets does not hide what another asks.
        let session = login(&harness.engine, "root");
        if let Err(error) = try_rows(&session, sql).await {
            failed.push(format!("{sql}\n    {error}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_send_to_browse_is_answered() {
    let harness = shop().await;
    let mut failed = Vec::new();
    for sql in ON_BROWSE {
        if let Err(error) = try_rows(&harness.session, sql).await {
            failed.push(format!("{sql}\n    {error}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn information_schema_tells_the_truth_in_mysqls_spelling() {
    let harness = shop().await;
    let columns = harness
        .rows("SELECT * FROM `INFORMATION_SCHEMA`.`COLUMNS` WHERE `TABLE_SCHEMA` = 'shop' AND `TABLE_NAME` = 'orders'")
        .await;
    assert_eq!(
        columns.columns[..4],
        ["TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME"]
    );
    let found: Vec<[&str; 3]> = columns
        .rows
        .iter()
        .map(|row| [row[3].as_str(), row[6].as_str(), row[15].as_str()])
        .collect();
    assert_eq!(
        found,
        [
            ["id", "NO", "bigint"],
            ["total", "YES", "decimal(10,2)"],
            ["note", "YES", "varchar(65535)"]
        ]
    );
    let tables = harness
        .rows("SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS FROM information_schema.tables WHERE table_schema = 'shop'")
        .await;
    assert_eq!(tables.rows, [["orders", "BASE TABLE", "ICEBERG", "0"]]);
    assert!(
        harness
            .column("SELECT schema_name FROM lake.information_schema.schemata")
            .await
            .contains(&"shop".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tarns_own_tables_can_be_queried() {
    let harness = shop().await;
    assert_eq!(
        harness
            .column("SELECT state FROM tarn.system.workers")
            .await,
        ["active"]
    );
    let variable = harness
        .rows("SELECT value, unit FROM tarn.system.variables WHERE name = 'query_timeout'")
        .await;
    assert_eq!(variable.rows, [["3600", "seconds"]]);
    assert!(
        harness
            .column("SHOW CATALOGS")
            .await
            .contains(&"tarn".to_owned())
    );
    harness.done("USE tarn.system").await;
    assert!(
        harness
            .column("SHOW TABLES")
            .await
            .contains(&"queries".to_owned())
    );
    assert_eq!(
        harness.column("DESCRIBE catalogs").await,
        ["name", "property", "value"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_global_variable_is_seen_at_once_and_the_sessions_own_stays() {
    let harness = Harness::start().await;
    harness.done("SET GLOBAL query_timeout = 77").await;
    let both = harness
        .rows("SELECT @@global.query_timeout, @@session.query_timeout = 77")
        .await;
    assert_eq!(both.rows, [["77", "false"]]);
}
