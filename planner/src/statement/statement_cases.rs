//! Statements one by one: what each holds after parsing, and where an error points.

use std::collections::HashMap;

use iceberg::spec::Transform;

use super::*;

fn parsed(sql: &str) -> Statement {
    parse_statement(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
        .statement
}

fn create(sql: &str) -> CreateTable {
    match parsed(sql) {
        Statement::CreateTable(create) => *create,
        other => panic!("{sql}: {other:?}"),
    }
}

fn path(text: &str) -> ObjectPath {
    let mut parts: Vec<String> = text.split('.').map(str::to_owned).collect();
    let table = parts.pop().unwrap();
    let database = parts.pop();
    ObjectPath {
        catalog: parts.pop(),
        database,
        table,
    }
}

#[test]
fn columns_get_iceberg_types_and_fresh_ids() {
    let create = create(
        "CREATE TABLE IF NOT EXISTS lake.shop.`All` (
            a BOOLEAN NOT NULL COMMENT 'yes or no', b TINYINT(1), c INT UNSIGNED, d BIGINT, e FLOAT, f DOUBLE PRECISION,
            g DECIMAL(20, 4), h DATE, i TIME, j DATETIME(6), k TIMESTAMP WITH TIME ZONE, l VARCHAR(20) CHARACTER SET utf8mb4,
            m UUID, n VARBINARY(10), o BINARY(16), p ARRAY<INT>, q MAP<STRING, ARRAY<DECIMAL(9,2)>>,
            r STRUCT<x: INT, y STRUCT<z: STRING NOT NULL>>
        ) COMMENT='everything'",
    );
    assert_eq!(create.name, path("lake.shop.All"));
    assert!(create.if_not_exists);
    assert_eq!(
        create.properties,
        HashMap::from([("comment".to_owned(), "everything".to_owned())])
    );
    let schema = create.columns.unwrap();
    let shown: Vec<String> = schema
        .as_struct()
        .fields()
        .iter()
        .map(|field| {
            format!(
                "{} {} {} {}",
                field.id,
                field.name,
                field.field_type,
                if field.required { "required" } else { "" }
            )
        })
        .map(|text| text.trim_end().to_owned())
        .collect();
    assert_eq!(
        shown[..15],
        [
            "1 a boolean required",
            "2 b boolean",
            "3 c long",
            "4 d long",
            "5 e float",
            "6 f double",
            "7 g decimal(20, 4)",
            "8 h date",
            "9 i time",
            "10 j timestamp",
            "11 k timestamptz",
            "12 l string",
            "13 m uuid",
            "14 n binary",
            "15 o fixed(16)",
        ]
    );
    assert_eq!(
        schema.field_by_id(1).unwrap().doc.as_deref(),
        Some("yes or no")
    );
    // The table's columns are numbered before what is inside them.
    for (name, id) in [
        ("p", 16),
        ("q", 17),
        ("r", 18),
        ("p.element", 19),
        ("q.key", 20),
        ("q.value", 21),
        ("q.value.element", 22),
    ] {
        assert_eq!(schema.field_id_by_name(name), Some(id), "{name}");
    }
    for (name, id) in [("r.x", 23), ("r.y", 24), ("r.y.z", 25)] {
        assert_eq!(schema.field_id_by_name(name), Some(id), "{name}");
    }
    assert!(schema.field_by_id(25).unwrap().required);
}

#[test]
fn partitions_are_read_in_every_spelling() {
    let partition = |sql: &str| -> Vec<(String, Transform)> {
        create(sql)
            .partition
            .into_iter()
            .map(|field| (field.column, field.transform))
            .collect()
    };
    let columns = "CREATE TABLE t (ts DATETIME, id BIGINT, s STRING, d DATE)";
    for (clause, expected) in [
        (
            "PARTITION BY (day(ts), bucket(16, id), truncate(4, s), d)",
            vec![
                ("ts", Transform::Day),
                ("id", Transform::Bucket(16)),
                ("s", Transform::Truncate(4)),
                ("d", Transform::Identity),
            ],
        ),
        ("PARTITIONED BY (days(TS))", vec![("ts", Transform::Day)]),
        (
            "PARTITION BY hours(ts), bucket(id, 8)",
            vec![("ts", Transform::Hour), ("id", Transform::Bucket(8))],
        ),
        (
            "PARTITION BY (date_trunc('month', ts))",
            vec![("ts", Transform::Month)],
        ),
        (
            "PARTITION BY (years(d), void(s))",
            vec![("d", Transform::Year), ("s", Transform::Void)],
        ),
    ] {
        let expected: Vec<(String, Transform)> = expected
            .into_iter()
            .map(|(column, transform)| (column.to_owned(), transform))
            .collect();
        assert_eq!(
            partition(&format!("{columns} {clause}")),
            expected,
            "{clause}"
        );
    }
    for (clause, message) in [
        ("PARTITION BY (nothing)", "Unknown column 'nothing'"),
        ("PARTITION BY (day(id))", "cannot be partitioned by day"),
        (
            "PARTITION BY (weeks(ts))",
            "`weeks` is not a partition transform",
        ),
        ("PARTITION BY (bucket(0, id))", "at least 1"),
    ] {
        let error = parse_statement(&format!("{columns} {clause}"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{clause}: {error}");
    }
}

#[test]
fn sort_orders_are_read() {
    use iceberg::spec::{NullOrder, SortDirection};
    let columns = "CREATE TABLE t (ts DATETIME, id BIGINT, s STRUCT<Name: STRING>)";
    let order = |clause: &str| -> Vec<_> {
        create(&format!("{columns} {clause}"))
            .order
            .into_iter()
            .map(|it| (it.column, it.transform, it.direction, it.nulls))
            .collect()
    };
    let (up, down) = (SortDirection::Ascending, SortDirection::Descending);
    let field = |column: &str, transform, direction, nulls| {
        (column.to_owned(), transform, direction, nulls)
    };
    assert_eq!(
        order("ORDER BY (ID, day(ts) DESC, s.name NULLS LAST) PARTITION BY (id)"),
        [
            field("id", Transform::Identity, up, NullOrder::First),
            field("ts", Transform::Day, down, NullOrder::Last),
            field("s.Name", Transform::Identity, up, NullOrder::Last),
        ]
    );
    assert_eq!(
        order("ORDER BY bucket(4, id) ASC, ts DESC NULLS FIRST"),
        [
            field("id", Transform::Bucket(4), up, NullOrder::First),
            field("ts", Transform::Identity, down, NullOrder::First),
        ]
    );
    for (clause, message) in [
        ("ORDER BY (nothing)", "Unknown column 'nothing' in ORDER BY"),
        ("ORDER BY (s)", "cannot be sorted by identity"),
        ("ORDER BY (hour(id))", "cannot be sorted by hour"),
        ("ORDER BY id ORDER BY ts", "ORDER BY is written twice"),
    ] {
        let error = parse_statement(&format!("{columns} {clause}"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{clause}: {error}");
    }
}

#[test]
fn table_options_and_as() {
    let table = create(
        "CREATE TABLE a.b (x INT) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 TBLPROPERTIES ('write.format.default' = 'parquet', \
         \"format-version\" = \"1\") LOCATION 's3://bucket/t'",
    );
    assert_eq!(table.format_version, 1);
    assert_eq!(table.location.as_deref(), Some("s3://bucket/t"));
    assert_eq!(
        table
            .properties
            .get("write.format.default")
            .map(String::as_str),
        Some("parquet")
    );
    let table = create("create table t partition by (day(ts)) as select now() as ts, 1+1");
    assert!(table.columns.is_none());
    assert_eq!(
        table.query.unwrap().names,
        OutputNames::new(vec![Some("ts".to_owned()), Some("1+1".to_owned())])
    );
    for (sql, detail) in [
        ("CREATE TABLE t (a INT PRIMARY KEY)", "PRIMARY KEY"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "PRIMARY KEY"),
        ("CREATE TABLE t (a INT DEFAULT 5)", "DEFAULT"),
        ("CREATE TABLE t (a INT, KEY k (a))", "indexes"),
        ("CREATE TABLE t (a ENUM('x'))", "ENUM"),
        ("CREATE TABLE t (a INT) ENGINE=MyISAM", "MyISAM"),
        ("CREATE TABLE t LIKE u", "LIKE"),
        (
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))",
            "RANGE",
        ),
        (
            "CREATE TABLE t (a INT) PROPERTIES ('format-version' = '4')",
            "format version 4",
        ),
    ] {
        match parsed(sql) {
            Statement::Unsupported {
                kind: "CREATE TABLE",
                detail: found,
            } => assert!(found.contains(detail), "{sql}: {found}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    for (sql, message) in [
        ("CREATE TABLE t (a INT, A INT)", "Duplicate column name 'A'"),
        ("CREATE TABLE t (a DECIMAL(39, 2))", "precision"),
        ("CREATE TABLE t (a DATETIME(9))", "6 fractional digits"),
        ("CREATE TABLE t (a ARRAY<INT>>)", "one `>` too many"),
        ("CREATE TABLE t (a MAP<INT, ARRAY<INT>)", "expected"),
        ("CREATE TABLE t", "at least 1 column"),
    ] {
        let error = parse_statement(sql).unwrap_err().to_string();
        assert!(error.contains(message), "{sql}: {error}");
    }
}

#[test]
fn catalogs_and_databases() {
    match parsed(
        "CREATE EXTERNAL CATALOG IF NOT EXISTS c PROPERTIES (\"type\" = \"iceberg\", 's3.region' = 'eu', warehouse = 'w')",
    ) {
        Statement::CreateCatalog {
            name,
            properties,
            if_not_exists: true,
        } => {
            assert_eq!(name, "c");
            assert_eq!(properties.get("s3.region").map(String::as_str), Some("eu"));
            assert_eq!(properties.len(), 3);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        parsed("CREATE CATALOG c WITH ('a.b' = '1')"),
        Statement::CreateCatalog { .. }
    ));
    assert!(matches!(
        parsed("DROP CATALOG IF EXISTS c"),
        Statement::DropCatalog {
            if_exists: true,
            ..
        }
    ));
    match parsed(
        "CREATE SCHEMA IF NOT EXISTS c.d DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    ) {
        Statement::CreateDatabase {
            name,
            if_not_exists: true,
            ..
        } => assert_eq!(name.to_string(), "c.d"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        parsed("DROP DATABASE d CASCADE"),
        Statement::DropDatabase {
            cascade: true,
            if_exists: false,
            ..
        }
    ));
    assert!(
        matches!(parsed("USE c.d"), Statement::Use { catalog: Some(c), database: Some(d) } if c == "c" && d == "d"),
    );
    assert!(
        matches!(parsed("SET CATALOG c"), Statement::Use { catalog: Some(c), database: None } if c == "c")
    );
    assert!(matches!(parsed("DROP TABLE IF EXISTS a, b.c PURGE"),
        Statement::DropTable { names, if_exists: true, purge: true } if names == [path("a"), path("b.c")]));
}

#[test]
fn shows() {
    let shown = |sql: &str| match parsed(sql) {
        Statement::Show(show) => show,
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(
        shown("SHOW FULL COLUMNS FROM `orders` FROM `shop` LIKE 'a%'"),
        Show::Columns {
            table: path("shop.orders"),
            full: true,
            filter: Some(ShowFilter::Like("a%".to_owned())),
        }
    );
    assert_eq!(
        shown("DESC shop.orders my_col"),
        Show::Columns {
            table: path("shop.orders"),
            full: false,
            filter: Some(ShowFilter::Like("my\\_col".to_owned())),
        }
    );
    assert_eq!(shown("SHOW WORKERS"), Show::Workers);
    assert_eq!(
        shown("SHOW FUNCTIONS LIKE 'date%'"),
        Show::Functions {
            filter: Some(ShowFilter::Like("date%".to_owned()))
        }
    );
    assert_eq!(shown("show catalogs"), Show::Catalogs { filter: None });
    assert_eq!(
        shown("SHOW FULL PROCESSLIST"),
        Show::Processlist { full: true }
    );
    assert_eq!(
        shown("SHOW PROFILE FOR QUERY 'abc'"),
        Show::Profile {
            query_id: Some("abc".to_owned())
        }
    );
    assert_eq!(
        shown("SHOW DATABASES FROM c"),
        Show::Databases {
            catalog: Some("c".to_owned()),
            filter: None
        }
    );
    assert_eq!(
        shown("SHOW COUNT(*) WARNINGS"),
        Show::Warnings { count: true }
    );
    assert_eq!(
        shown("SHOW WARNINGS LIMIT 10"),
        Show::Warnings { count: false }
    );
    assert_eq!(
        shown("SHOW GRANTS FOR 'root'@'localhost'"),
        Show::Grants {
            user: Some("root@localhost".to_owned())
        }
    );
    assert!(matches!(
        shown("SHOW GLOBAL VARIABLES WHERE Variable_name = 'x'"),
        Show::Variables {
            global: true,
            filter: Some(ShowFilter::Where(_))
        }
    ));
    assert!(matches!(
        shown("SHOW TABLE STATUS FROM shop LIKE 't'"),
        Show::TableStatus { .. }
    ));
}

#[test]
fn sets() {
    let set = |sql: &str| match parsed(sql) {
        Statement::Set(assignments) => assignments,
        other => panic!("{sql}: {other:?}"),
    };
    let text = |text: &str| SetValue::Value(SessionValue::Text(text.to_owned()));
    let variable = |scope, name: &str, value| Assignment::Variable {
        scope,
        name: name.to_owned(),
        value,
    };
    assert_eq!(
        set("SET autocommit=1, sql_mode='', NAMES utf8mb4"),
        [
            variable(
                VariableScope::Default,
                "autocommit",
                SetValue::Value(SessionValue::Integer(1))
            ),
            variable(VariableScope::Default, "sql_mode", text("")),
            Assignment::Names {
                charset: Some("utf8mb4".to_owned()),
                collation: None
            },
        ]
    );
    assert_eq!(
        set("SET @@session.autocommit = OFF"),
        [variable(VariableScope::Session, "autocommit", text("OFF"))]
    );
    assert_eq!(
        set("SET @@GLOBAL.Time_Zone := DEFAULT"),
        [variable(
            VariableScope::Global,
            "time_zone",
            SetValue::Default
        )]
    );
    assert_eq!(
        set("SET SESSION query_timeout = -1.5"),
        [variable(
            VariableScope::Session,
            "query_timeout",
            SetValue::Value(SessionValue::Float(-1.5)),
        )]
    );
    assert_eq!(
        set("SET character_set_results = NULL"),
        [variable(
            VariableScope::Default,
            "character_set_results",
            SetValue::Value(SessionValue::Null),
        )]
    );
    assert_eq!(
        set("SET @MyVar = 'x'"),
        [Assignment::UserVariable {
            name: "myvar".to_owned(),
            value: text("x")
        }]
    );
    assert_eq!(
        set("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'"),
        [Assignment::Names {
            charset: Some("utf8mb4".to_owned()),
            collation: Some("utf8mb4_general_ci".to_owned()),
        }]
    );
    assert_eq!(
        set("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"),
        [Assignment::Transaction {
            scope: VariableScope::Session,
            isolation: Some("READ-COMMITTED".to_owned()),
            read_only: Some(true),
        }]
    );
    assert_eq!(
        set("SET datafusion.execution.batch_size = 10"),
        [variable(
            VariableScope::Default,
            "datafusion.execution.batch_size",
            SetValue::Value(SessionValue::Integer(10)),
        )]
    );
    assert!(matches!(
        &set("SET sql_mode = CONCAT(@@sql_mode, ',X')")[..],
        [Assignment::Variable {
            value: SetValue::Expression(_),
            ..
        }]
    ));
    assert!(matches!(
        parsed("SET PASSWORD = 'x'"),
        Statement::Unsupported {
            kind: "SET PASSWORD",
            ..
        }
    ));
}

#[test]
fn explains_inserts_and_kills() {
    for (sql, expected) in [
        ("EXPLAIN SELECT 1", ExplainMode::Plan),
        ("EXPLAIN VERBOSE SELECT 1", ExplainMode::Verbose),
        (
            "EXPLAIN ANALYZE VERBOSE SELECT 1",
            ExplainMode::Analyze { verbose: true },
        ),
        (
            "explain estimate with a as (select 1) select * from a",
            ExplainMode::Estimate,
        ),
        ("EXPLAIN FORMAT=TREE SELECT 1", ExplainMode::Plan),
        ("DESC INSERT INTO t SELECT 1", ExplainMode::Plan),
    ] {
        assert!(
            matches!(parsed(sql), Statement::Explain { mode, .. } if mode == expected),
            "{sql}"
        );
    }
    match parsed("INSERT INTO c.d.t (a, `B`) VALUES (1, ?), (2, 3)") {
        Statement::Insert {
            table,
            columns,
            source,
        } => {
            assert_eq!(table, path("c.d.t"));
            assert_eq!(columns, ["a", "B"]);
            assert_eq!(source.parameters, 1);
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(parsed("INSERT INTO t (SELECT 1)"), Statement::Insert { columns, .. } if columns.is_empty())
    );
    assert!(matches!(
        parsed("INSERT INTO t TABLE u"),
        Statement::Insert { .. }
    ));
    assert!(matches!(
        parsed("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1"),
        Statement::Unsupported { .. }
    ));
    assert!(matches!(
        parsed("KILL 7"),
        Statement::Kill {
            target: KillTarget::Connection(7),
            query_only: false
        }
    ));
    assert!(matches!(
        parsed("KILL QUERY 7"),
        Statement::Kill {
            target: KillTarget::Connection(7),
            query_only: true
        }
    ));
    assert!(matches!(parsed("KILL QUERY '0190-ab'"),
        Statement::Kill { target: KillTarget::Query(id), query_only: true } if id == "0190-ab"));
    for (sql, kind) in [
        ("UPDATE t SET a = 1", "UPDATE"),
        ("TRUNCATE TABLE t", "TRUNCATE TABLE"),
        ("ALTER TABLE t ADD COLUMN a INT", "ALTER TABLE"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE VIEW"),
    ] {
        assert!(
            matches!(parsed(sql), Statement::Unsupported { kind: found, .. } if found == kind),
            "{sql}"
        );
    }
}

#[test]
fn several_statements_keep_their_own_text() {
    let statements = parse_statements("/* hello */ USE a;\nSELECT ';' ;; SELECT 2 -- end").unwrap();
    let texts: Vec<&str> = statements
        .iter()
        .map(|statement| statement.text.as_str())
        .collect();
    assert_eq!(
        texts,
        ["/* hello */ USE a", "SELECT ';'", "SELECT 2 -- end"]
    );
    assert_eq!(parse_statements(" ; ").unwrap().len(), 0);
    assert_eq!(parse_statement("").unwrap_err(), ParseError::Empty);
    assert_eq!(
        parse_statement("SELECT 1; SELECT 2").unwrap_err(),
        ParseError::Several(2)
    );
    assert_eq!(
        parse_statement("/* only */").unwrap().statement.kind(),
        "COMMENT"
    );
}

#[test]
fn errors_point_at_the_place() {
    for (sql, position, near) in [
        ("SELECT a,\n  FROM t", (2, 3), "FROM t"),
        ("SELEC 1", (1, 1), "SELEC 1"),
        ("SELECT (1", (1, 10), ""),
        ("SELECT 1;\nSELECT 2 3 4", (2, 10), "3 4"),
        ("SHOW NOTHING", (1, 6), "NOTHING"),
        ("CREATE TABLE t (a INT,\n b WHAT)", (2, 4), "WHAT)"),
        ("select 'ä' frm t x y", (1, 16), "t x y"),
    ] {
        match parse_statements(sql).unwrap_err() {
            ParseError::Syntax {
                position: found,
                near: shown,
                reason,
            } => {
                assert_eq!((found.line, found.column), position, "{sql}: {reason}");
                assert_eq!(shown, near, "{sql}");
            }
            other => panic!("{sql}: {other}"),
        }
    }
    let error = parse_statements("SELECT a FROM t\nWHERE AND b")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(
            "You have an error in your SQL syntax near 'AND b' at line 2, column 7: expected"
        ),
        "{error}"
    );
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    let sql = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(parse_statements(&sql).is_err());
}
