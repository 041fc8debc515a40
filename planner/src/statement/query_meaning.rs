//! Queries give MySQL's answers: each expected value is worked out from the manuals of MySQL and MariaDB.

use std::sync::Arc;

use arrow::array::{Date32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;

use super::sql_session::{TestSession, context, plan, query, run};

/// `events(id, ts, day, note)`: three days, the last value of each column missing in the last row.
fn events() -> SessionContext {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("day", DataType::Date32, true),
        Field::new("note", DataType::Utf8, true),
        Field::new("UserId", DataType::Int64, true),
    ]));
    // 2024-01-02 10:00:00, 2024-01-02 23:59:59.999999, 2024-01-03 00:00:00
    let micros = vec![
        Some(1_704_189_600_000_000),
        Some(1_704_239_999_999_999),
        Some(1_704_240_000_000_000),
        None,
    ];
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(Int64Array::from(vec![1, 2, 3, 4])),
            Arc::new(TimestampMicrosecondArray::from(micros)),
            Arc::new(Date32Array::from(vec![
                Some(19_724),
                Some(19_724),
                Some(19_725),
                None,
            ])),
            Arc::new(StringArray::from(vec![
                Some("b"),
                Some("a"),
                Some("a"),
                None,
            ])),
            Arc::new(Int64Array::from(vec![10, 20, 30, 40])),
        ],
    )
    .unwrap();
    let context = context();
    context
        .register_table(
            "events",
            Arc::new(MemTable::try_new(schema, vec![vec![batch]]).unwrap()),
        )
        .unwrap();
    context
}

async fn assert_values(cases: &[(&str, &str)]) {
    let context = events();
    let mut wrong = Vec::new();
    for (expression, expected) in cases {
        match run(&context, &format!("SELECT {expression}")).await {
            Ok((_, rows)) if rows.len() == 1 && rows[0] == [*expected] => {}
            other => wrong.push(format!("{expression}: expected {expected}, got {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn expressions_have_mysqls_values() {
    assert_values(&[
        ("5 / 2", "2.5"),
        ("5 DIV 2", "2"),
        ("-7 DIV 2", "-3"),
        ("10 DIV 3 + 1", "4"),
        ("5 / 0", "NULL"),
        ("5 % 0", "NULL"),
        ("MOD(234, 10)", "4"),
        ("29 % 9", "2"),
        ("0.1 + 0.2", "0.3"),
        ("1 <=> NULL", "false"),
        ("NULL <=> NULL", "true"),
        ("1 != 2", "true"),
        ("TRUE XOR TRUE", "false"),
        ("'Michael!' REGEXP '.*'", "true"),
        ("'new*\\n*line' RLIKE '^new'", "true"),
        ("'a' NOT REGEXP '^[a-d]'", "false"),
        ("IF(1 > 2, 2, 3)", "3"),
        ("IF(1, 'yes', 'no')", "yes"),
        ("IFNULL(NULL, 10)", "10"),
        ("ISNULL(1 / 0)", "true"),
        ("NULLIF(1, 1)", "NULL"),
        ("CONCAT('My', 'S', 'QL')", "MySQL"),
        ("CONCAT('My', NULL, 'QL')", "NULL"),
        ("CONCAT(14.3)", "14.3"),
        (
            "CONCAT_WS(',', 'First name', NULL, 'Last name')",
            "First name,Last name",
        ),
        ("GREATEST(2, 0)", "2"),
        ("LEAST(2, NULL)", "NULL"),
        ("FIELD('Bb', 'Aa', 'Bb', 'Cc')", "2"),
        ("FIELD('Gg', 'Aa', 'Bb')", "0"),
        ("ELT(2, 'Aa', 'Bb', 'Cc')", "Bb"),
        ("ELT(4, 'Aa', 'Bb', 'Cc')", "NULL"),
        ("FIND_IN_SET('b', 'a,b,c,d')", "2"),
        ("STRCMP('text', 'text2')", "-1"),
        ("LOCATE('bar', 'foobarbar', 5)", "7"),
        ("INSTR('foobarbar', 'bar')", "4"),
        ("POSITION('bar' IN 'foobarbar')", "4"),
        ("SUBSTRING('Quadratically', 5, 6)", "ratica"),
        ("SUBSTRING('foobarbar' FROM 4)", "barbar"),
        ("SUBSTRING('Sakila', -3)", "ila"),
        ("SUBSTRING('Sakila', -5, 3)", "aki"),
        ("MID('Sakila', -4, 2)", "ki"),
        ("SUBSTRING_INDEX('www.mysql.com', '.', 2)", "www.mysql"),
        ("SUBSTRING_INDEX('www.mysql.com', '.', -2)", "mysql.com"),
        ("LCASE('QUADRATICALLY')", "quadratically"),
        ("UCASE('Hej')", "HEJ"),
        ("LENGTH('ü')", "2"),
        ("CHAR_LENGTH('ü')", "1"),
        ("LEFT('foobarbar', 5)", "fooba"),
        ("RIGHT('foobarbar', 4)", "rbar"),
        ("CONCAT('|', LEFT('abc', -1), '|')", "||"),
        ("CONCAT('|', RIGHT('abc', 1 - 3), '|')", "||"),
        ("ATAN2(1, 1)", "0.7853981633974483"),
        ("ATAN(-2, 2)", "-0.7853981633974483"),
        ("SQRT(-1)", "NULL"),
        ("SQRT(16)", "4.0"),
        ("LN(0)", "NULL"),
        ("LOG(-1)", "NULL"),
        ("LOG10(100)", "2.0"),
        ("REVERSE('abc')", "cba"),
        ("REPEAT('MySQL', 3)", "MySQLMySQLMySQL"),
        ("CONCAT('|', SPACE(3), '|')", "|   |"),
        ("LPAD('hi', 4, '?')", "??hi"),
        ("FORMAT(12332.123456, 4)", "12,332.1235"),
        ("HEX(255)", "FF"),
        ("HEX('abc')", "616263"),
        ("CONV('a', 16, 2)", "1010"),
        ("CRC32('MySQL')", "3259397556"),
        ("MD5('testing')", "ae2b1fca515949e5d54fb22b8ed95575"),
        ("TRUNCATE(1.999, 1)", "1.9"),
        ("ROUND(1.298, 1)", "1.3"),
        ("POW(2, 3)", "8.0"),
        ("SIGN(-32)", "-1"),
        ("ROUND(LOG(100) / LN(10))", "2.0"),
        ("CAST('12' AS SIGNED)", "12"),
        ("CAST(3 AS CHAR)", "3"),
        ("CONVERT('7', UNSIGNED)", "7"),
        ("CONVERT('abc' USING utf8mb4)", "abc"),
        ("_utf8mb4'abc' COLLATE utf8mb4_bin", "abc"),
        ("\"double\"", "double"),
        ("'it''s'", "it's"),
        ("'a' 'b'", "ab"),
        ("7 MOD 2", "1"),
        ("1 + 7 mod 4 * 2", "7"),
        ("CAST('abcdef' AS CHAR(2))", "ab"),
        ("CONVERT('größe', CHAR(3))", "grö"),
        ("CAST(NULL AS CHAR(2))", "NULL"),
        ("1e300 * 10", "1e301"),
        ("-2.5E-3", "-0.0025"),
        ("SHA1('abc')", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("SHA(NULL)", "NULL"),
        ("BIN(12)", "1100"),
        ("OCT(12)", "14"),
        ("1 AND 0", "false"),
        ("1 AND 2", "true"),
        ("NULL OR 1", "true"),
        ("NOT 1", "false"),
        ("NOT (0)", "true"),
        ("! 0", "true"),
        ("0 XOR 5", "true"),
    ])
    .await;
}

#[tokio::test]
async fn dates_have_mysqls_values() {
    assert_values(&[
        ("DATE_FORMAT('2009-10-04 22:23:00', '%W %M %Y')", "Sunday October 2009"),
        ("DATE('2003-12-31 01:02:03')", "2003-12-31"),
        ("TIME('2003-12-31 01:02:03.000123')", "01:02:03.000123"),
        ("DATE('nonsense')", "NULL"),
        ("YEAR('1987-01-01')", "1987"),
        ("QUARTER('2008-04-01')", "2"),
        ("MONTH('2008-02-03')", "2"),
        ("DAYOFMONTH('2007-02-03')", "3"),
        ("DAYOFWEEK('2007-02-03')", "7"),
        ("DAYOFYEAR('2007-02-03')", "34"),
        ("WEEKDAY('2008-02-03 22:23:00')", "6"),
        ("WEEK('2008-02-20')", "7"),
        ("WEEK('2008-02-20', 1)", "8"),
        ("WEEKOFYEAR('2008-02-20')", "8"),
        ("YEARWEEK('1987-01-01')", "198652"),
        ("HOUR('10:05:03')", "10"),
        ("HOUR('2024-01-01 10:05:03')", "10"),
        ("MICROSECOND('2019-12-31 23:59:59.000010')", "10"),
        ("DAYNAME('2007-02-03')", "Saturday"),
        ("MONTHNAME('2008-02-03')", "February"),
        ("EXTRACT(YEAR FROM '2019-07-02')", "2019"),
        ("EXTRACT(YEAR_MONTH FROM '2019-07-02 01:02:03')", "201907"),
        ("EXTRACT(WEEK FROM '2008-02-20')", "7"),
        ("LAST_DAY('2003-02-05')", "2003-02-28"),
        ("LAST_DAY('2004-02-05')", "2004-02-29"),
        ("MAKEDATE(2011, 32)", "2011-02-01"),
        ("TO_DAYS('2007-10-07')", "733321"),
        ("FROM_DAYS(730669)", "2000-07-03"),
        ("DATEDIFF('2007-12-31 23:59:59', '2007-12-30')", "1"),
        ("DATEDIFF('2010-11-30 23:59:59', '2010-12-31')", "-31"),
        ("TIMESTAMPDIFF(MONTH, '2003-02-01', '2003-05-01')", "3"),
        ("TIMESTAMPDIFF(YEAR, '2002-05-01', '2001-01-01')", "-1"),
        ("TIMESTAMPADD(MINUTE, 1, '2003-01-02')", "2003-01-02T00:01:00"),
        ("DATE_ADD('2018-05-01', INTERVAL 1 DAY)", "2018-05-02"),
        ("DATE_SUB('2018-05-01', INTERVAL 1 YEAR)", "2017-05-01"),
        ("DATE_ADD('2100-12-31 23:59:59', INTERVAL '1:1' MINUTE_SECOND)", "2101-01-01T00:01:00"),
        ("ADDDATE('2008-01-02', 31)", "2008-02-02"),
        ("DATE '2024-01-31' + INTERVAL 1 MONTH", "2024-02-29"),
        ("DATE '2024-01-31' + INTERVAL 1 HOUR", "2024-01-31T01:00:00"),
        ("INTERVAL 1 DAY + DATE '2024-01-31'", "2024-02-01"),
        ("DATE '2024-03-31' - INTERVAL '1' DAY", "2024-03-30"),
        ("DATE '2024-01-31' + INTERVAL 1 QUARTER", "2024-04-30"),
        ("STR_TO_DATE('May 1, 2013', '%M %d,%Y')", "2013-05-01"),
        ("STR_TO_DATE('2025-11-30 00:00:00.000000', '%Y-%m-%d %T.%f')", "2025-11-30T00:00:00"),
        ("STR_TO_DATE('00/00/0000', '%m/%d/%Y')", "NULL"),
        ("UNIX_TIMESTAMP('2015-11-13 10:20:19')", "1447410019"),
        ("FROM_UNIXTIME(1447430881)", "2015-11-13T16:08:01"),
        ("FROM_UNIXTIME(1447430881, '%Y %D %M')", "2015 13th November"),
        ("CONVERT_TZ('2004-01-01 12:00:00', '+00:00', '+10:00')", "2004-01-01T22:00:00"),
        ("SEC_TO_TIME(2378)", "00:39:38"),
        ("TIMEDIFF('10:30:00', '09:00:00')", "01:30:00"),
        ("TIMEDIFF('09:00:00', '10:30:00.5')", "-01:30:00.500000"),
        ("TIMEDIFF('2000-01-01 00:00:00', '2000-01-01 00:00:00.000001')", "-00:00:00.000001"),
        ("TIMEDIFF('2000-01-01 00:00:00', '10:00:00')", "NULL"),
        ("PERIOD_DIFF(200802, 200703)", "11"),
        ("PERIOD_ADD(200801, 2)", "200803"),
        ("CAST('2024-01-02 03:04:05.678' AS DATETIME)", "2024-01-02T03:04:05.678"),
        ("NOW() <= UTC_TIMESTAMP()", "true"),
        ("CURDATE() = DATE(NOW())", "true"),
        ("UNIX_TIMESTAMP() > 1700000000", "true"),
        ("DATE(DATE_SUB(TIMESTAMP '2024-03-15 10:00:00', INTERVAL (DAYOFMONTH(TIMESTAMP '2024-03-15 10:00:00') - 1) DAY))", "2024-03-01"),
    ])
    .await;
}

#[tokio::test]
async fn the_session_answers_about_itself() {
    assert_values(&[
        ("@@version_comment", "Tarn"),
        ("@@session.sql_mode", "Session:sql_mode"),
        ("@@GLOBAL.Time_Zone", "Global:time_zone"),
        ("@@max_allowed_packet", "67108864"),
        ("@@init_connect", "NULL"),
        ("@answer", "42"),
        ("@never_set", "NULL"),
        ("DATABASE()", "shop"),
        ("SCHEMA()", "shop"),
        ("USER()", "root@localhost"),
        ("CURRENT_USER", "root@localhost"),
        ("CURRENT_USER()", "root@localhost"),
        ("CONNECTION_ID()", "7"),
        ("VERSION()", "8.0.33"),
        ("CURRENT_VERSION()", "0.1.0"),
        ("LAST_INSERT_ID()", "0"),
        ("@answer + 1 FROM DUAL", "43"),
    ])
    .await;
    let error = run(&events(), "SELECT @@no_such_variable")
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("Unknown system variable 'no_such_variable'"),
        "{error}"
    );
}

#[tokio::test]
async fn columns_are_named_by_their_text() {
    let context = events();
    for (sql, expected) in [
        ("SELECT 1+1", vec!["1+1"]),
        (
            "select count(*), Count( id ) from events",
            vec!["count(*)", "Count( id )"],
        ),
        (
            "SELECT ID, note AS Note, 'x', @@version_comment FROM events",
            vec!["ID", "Note", "x", "@@version_comment"],
        ),
        (
            "SELECT 1, 1, id, id FROM events",
            vec!["1", "1", "id", "id"],
        ),
        (
            "SELECT e.id, e.*, e.NOTE FROM events e",
            vec!["id", "id", "ts", "day", "note", "UserId", "NOTE"],
        ),
        (
            "WITH a AS (SELECT 1 AS x, 2) SELECT X + 1 FROM a",
            vec!["X + 1"],
        ),
        (
            "SELECT CASE WHEN id IS DISTINCT FROM 1 THEN 1 ELSE 2 END FROM events",
            vec!["CASE WHEN id IS DISTINCT FROM 1 THEN 1 ELSE 2 END"],
        ),
        ("(SELECT 1 one UNION SELECT 2) ORDER BY one", vec!["one"]),
        ("SELECT /* c */ DISTINCT Day FROM events", vec!["Day"]),
        ("SELECT @@session.autocommit", vec!["@@session.autocommit"]),
        ("VALUES (1, 2)", vec!["column_0", "column_1"]),
        (
            "SELECT id, CAST(id AS DOUBLE), CAST(id AS CHAR), +id, (id), e.id FROM events e",
            vec![
                "id",
                "CAST(id AS DOUBLE)",
                "CAST(id AS CHAR)",
                "+id",
                "(id)",
                "id",
            ],
        ),
        (
            "SELECT CAST(id AS DOUBLE), id, upper(note), UCASE(note), upper(e.note), *, CONVERT(note, CHAR) FROM events e",
            vec![
                "CAST(id AS DOUBLE)",
                "id",
                "upper(note)",
                "UCASE(note)",
                "upper(e.note)",
                "id",
                "ts",
                "day",
                "note",
                "UserId",
                "CONVERT(note, CHAR)",
            ],
        ),
        (
            "SELECT (SELECT 1), (SELECT max(id) FROM events), (SELECT max(id) FROM events WHERE id < 3) FROM events",
            vec![
                "(SELECT 1)",
                "(SELECT max(id) FROM events)",
                "(SELECT max(id) FROM events WHERE id < 3)",
            ],
        ),
        (
            "SELECT variance(id), var_pop(id), std(id), stddev(id), count(*), count(1), abs(CAST(id AS DOUBLE)), abs(id) FROM events GROUP BY id",
            vec![
                "variance(id)",
                "var_pop(id)",
                "std(id)",
                "stddev(id)",
                "count(*)",
                "count(1)",
                "abs(CAST(id AS DOUBLE))",
                "abs(id)",
            ],
        ),
        (
            "SELECT DATE '2024-01-01', '2024-01-01', mid(note, 1), substring(note FROM 1), IF(id > 1, 1, 2), id IS NULL, isnull(id) FROM events ORDER BY id",
            vec![
                "DATE '2024-01-01'",
                "2024-01-01",
                "mid(note, 1)",
                "substring(note FROM 1)",
                "IF(id > 1, 1, 2)",
                "id IS NULL",
                "isnull(id)",
            ],
        ),
    ] {
        let (names, _) = run(&context, sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(names, expected, "{sql}");
    }
}

#[tokio::test]
async fn clauses_mean_what_they_mean_in_mysql() {
    let context = events();
    for (sql, expected) in [
        (
            "SELECT id FROM events ORDER BY note, id",
            vec!["4", "2", "3", "1"],
        ),
        (
            "SELECT id FROM events ORDER BY note DESC, id LIMIT 1, 2",
            vec!["2", "3"],
        ),
        ("SELECT id AS n FROM events HAVING n > 2", vec!["3", "4"]),
        (
            "SELECT id + 1 AS n FROM events WHERE id < 4 HAVING N > 2 AND n < 4",
            vec!["3"],
        ),
        ("SELECT count(*) FROM events HAVING count(*) > 10", vec![]),
        (
            "SELECT count(*) FROM events GROUP BY note WITH ROLLUP ORDER BY 1",
            vec!["1", "1", "2", "4"],
        ),
        (
            "SELECT GROUP_CONCAT(note ORDER BY id SEPARATOR '-') FROM events",
            vec!["b-a-a"],
        ),
        (
            "SELECT GROUP_CONCAT(DISTINCT note ORDER BY note) FROM events",
            vec!["a,b"],
        ),
        (
            "SELECT id FROM events ORDER BY id FETCH FIRST 1 ROWS ONLY",
            vec!["1"],
        ),
        (
            "SELECT id FROM events ORDER BY id LIMIT 3, 18446744073709551615",
            vec!["4"],
        ),
        (
            "SELECT sum(id) FILTER (WHERE note = 'a') FROM events",
            vec!["5"],
        ),
        ("SELECT sum(id) / count(*) FROM events", vec!["2.5"]),
        ("SELECT ID FROM events E WHERE E.Note = 'b'", vec!["1"]),
        ("SELECT count(*) FROM events WHERE 1", vec!["4"]),
        (
            "SELECT STDDEV(id) = STDDEV_POP(id) FROM events",
            vec!["true"],
        ),
        ("SELECT NDV(note) FROM events", vec!["2"]),
        ("SELECT id FROM events WHERE day = '2024-01-03'", vec!["3"]),
        ("SELECT id FROM events WHERE ts >= '2024-01-03'", vec!["3"]),
        (
            "SELECT id FROM events WHERE ts BETWEEN '2024-01-02 00:00:00' AND '2024-01-02 12:00:00'",
            vec!["1"],
        ),
        (
            "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT x FROM n",
            vec!["1", "2", "3"],
        ),
        (
            "WITH RECURSIVE n(x, `Twice y`) AS (SELECT 1, 2 UNION ALL SELECT x + 1, `Twice y` * 2 FROM n WHERE x < 3) SELECT * FROM n",
            vec!["1|2", "2|4", "3|8"],
        ),
        (
            "WITH RECURSIVE n (x) AS (SELECT id FROM events WHERE id = 2 UNION ALL SELECT n.x - 1 FROM n WHERE n.x > 1) SELECT sum(x) FROM n",
            vec!["3"],
        ),
        ("SELECT max(id) OVER () FROM events LIMIT 1", vec!["4"]),
        (
            "SELECT count(*) FROM events GROUP BY GROUPING SETS ((note), ()) ORDER BY 1",
            vec!["1", "1", "2", "4"],
        ),
        (
            "SELECT id FROM events QUALIFY row_number() OVER (ORDER BY id DESC) = 1",
            vec!["4"],
        ),
        ("SELECT id::varchar FROM events WHERE id = 1", vec!["1"]),
        ("SELECT array_length([1, 2, 3])", vec!["3"]),
        (
            "SELECT sum(note = 'a'), avg(id > 3), sum(id > 1 AND note IS NULL), sum(DISTINCT note IN ('a', 'b')) FROM events",
            vec!["2|0.25|1|1"],
        ),
        (
            "SELECT id, sum(note = 'a') OVER (ORDER BY id) FROM events",
            vec!["1|0", "2|1", "3|2", "4|2"],
        ),
        (
            "SELECT id FROM events WHERE id - 2 AND 1 ORDER BY id",
            vec!["1", "3", "4"],
        ),
        (
            "SELECT id FROM events WHERE id = 1 OR id - 4 AND note = 'a' ORDER BY id",
            vec!["1", "2", "3"],
        ),
        // (1, 'b'), (1, 'a') twice, and a row with a NULL, which does not count.
        (
            "SELECT count(DISTINCT id > 0, note), count(DISTINCT note, day), count(DISTINCT id, note) FROM events",
            vec!["2|3|3"],
        ),
        (
            "SELECT note, count(DISTINCT day, id > 0) FROM events GROUP BY note ORDER BY note",
            vec!["NULL|0", "a|2", "b|1"],
        ),
        // Up to a day before: the second row sees the first, the third both; the last is without a time.
        (
            "SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) FROM events WHERE id < 4 ORDER BY id",
            vec!["1|1", "2|2", "3|3"],
        ),
        (
            "SELECT id, sum(id) OVER w FROM events WHERE id < 4 WINDOW w AS (ORDER BY day RANGE BETWEEN CURRENT ROW AND INTERVAL 1 WEEK FOLLOWING) ORDER BY id",
            vec!["1|6", "2|6", "3|3"],
        ),
        (
            "SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 14 HOUR PRECEDING AND INTERVAL 1 SECOND PRECEDING) FROM events WHERE id < 4 ORDER BY id",
            vec!["1|0", "2|1", "3|1"],
        ),
        (
            "SELECT max_by(id, note), min_by(id, ts), max_by(id, ts) FROM events",
            vec!["1|1|3"],
        ),
    ] {
        let (_, rows) = run(&context, sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let values: Vec<String> = rows.into_iter().map(|row| row.join("|")).collect();
        assert_eq!(values, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_date_of_a_timestamp_is_a_range_of_it() {
    let context = events();
    for (condition, ids, range) in [
        (
            "DATE(ts) = '2024-01-02'",
            "1,2",
            "ts >= TimestampMicrosecond(1704153600000000",
        ),
        (
            "DATE(ts) >= '2024-01-03'",
            "3",
            "ts >= TimestampMicrosecond(1704240000000000",
        ),
        (
            "DATE(ts) < DATE '2024-01-03'",
            "1,2",
            "ts < TimestampMicrosecond(1704240000000000",
        ),
        (
            "YEAR(ts) = 2024",
            "1,2,3",
            "ts >= TimestampMicrosecond(1704067200000000",
        ),
        ("EXTRACT(YEAR FROM day) < 2025", "1,2,3", "day < Date32"),
        (
            "ts < DATE_ADD('2024-01-01', INTERVAL 2 DAY)",
            "1,2",
            "ts < TimestampMicrosecond(1704240000000000",
        ),
        (
            "ts >= STR_TO_DATE('2024-01-03 00:00:00.000000', '%Y-%m-%d %T.%f')",
            "3",
            "ts >= TimestampMicrosecond(1704240000000000",
        ),
    ] {
        let sql = format!("SELECT id FROM events WHERE {condition} ORDER BY id");
        let plan = plan(&context, &query(&sql), &TestSession::default())
            .await
            .unwrap();
        let shown = plan.display_indent().to_string();
        assert!(shown.contains(range), "{condition}:\n{shown}");
        let (_, rows) = run(&context, &sql).await.unwrap();
        assert_eq!(rows.concat().join(","), ids, "{condition}");
    }
}

#[tokio::test]
async fn a_column_is_found_as_its_table_spells_it() {
    let context = events();
    let session = TestSession {
        spelling: vec!["UserId"],
    };
    for sql in [
        "SELECT userid FROM events",
        "SELECT USERID FROM events ORDER BY UserID",
        "SELECT `userId` FROM events",
    ] {
        plan(&context, &query(sql), &session)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[tokio::test]
async fn parameters_are_numbered() {
    let context = events();
    let query = query("SELECT ? + id FROM events WHERE note = ? LIMIT ?");
    assert_eq!(query.parameters, 3);
    let plan = plan(&context, &query, &TestSession::default())
        .await
        .unwrap();
    assert_eq!(plan.get_parameter_types().unwrap().len(), 3);
}

#[tokio::test]
async fn tpch_plans() {
    let context = context();
    let tables = [
        ("region", "r_regionkey:i r_name:s r_comment:s"),
        ("nation", "n_nationkey:i n_name:s n_regionkey:i n_comment:s"),
        (
            "supplier",
            "s_suppkey:i s_name:s s_address:s s_nationkey:i s_phone:s s_acctbal:m s_comment:s",
        ),
        (
            "customer",
            "c_custkey:i c_name:s c_address:s c_nationkey:i c_phone:s c_acctbal:m c_mktsegment:s c_comment:s",
        ),
        (
            "part",
            "p_partkey:i p_name:s p_mfgr:s p_brand:s p_type:s p_size:i p_container:s p_retailprice:m p_comment:s",
        ),
        (
            "partsupp",
            "ps_partkey:i ps_suppkey:i ps_availqty:i ps_supplycost:m ps_comment:s",
        ),
        (
            "orders",
            "o_orderkey:i o_custkey:i o_orderstatus:s o_totalprice:m o_orderdate:d o_orderpriority:s o_clerk:s \
             o_shippriority:i o_comment:s",
        ),
        (
            "lineitem",
            "l_orderkey:i l_partkey:i l_suppkey:i l_linenumber:i l_quantity:m l_extendedprice:m l_discount:m l_tax:m \
             l_returnflag:s l_linestatus:s l_shipdate:d l_commitdate:d l_receiptdate:d l_shipinstruct:s l_shipmode:s \
             l_comment:s",
        ),
    ];
    for (table, columns) in tables {
        let fields: Vec<Field> = columns
            .split_whitespace()
            .filter_map(|column| column.split_once(':'))
            .map(|(name, kind)| {
                let data_type = match kind {
                    "i" => DataType::Int64,
                    "m" => DataType::Decimal128(15, 2),
                    "d" => DataType::Date32,
                    _ => DataType::Utf8,
                };
                Field::new(name, data_type, false)
            })
            .collect();
        let empty = MemTable::try_new(Arc::new(Schema::new(fields)), vec![vec![]]).unwrap();
        context.register_table(table, Arc::new(empty)).unwrap();
    }
    // A test runs in the folder of its package.
    let folder = "../tests/tpch";
    for number in 1..=22 {
        let text = std::fs::read_to_string(format!("{folder}/q{number:02}.sql")).unwrap();
        let (_, rows) = run(&context, &text)
            .await
            .unwrap_or_else(|error| panic!("Q{number}: {error}"));
        assert!(rows.len() <= 1, "Q{number} of no rows");
    }
    // The standard's own spellings.
    for sql in [
        "select l_returnflag, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) from lineitem \
         where l_shipdate <= date '1998-12-01' - interval '90' day group by l_returnflag order by l_returnflag",
        "select sum(l_extendedprice * l_discount) as revenue from lineitem where l_shipdate >= date '1994-01-01' and l_shipdate < \
         date '1994-01-01' + interval '1' year and l_discount between .06 - 0.01 and .06 + 0.01 and l_quantity < 24",
        "select cntrycode, count(*) as numcust from (select substring(c_phone from 1 for 2) as cntrycode from customer where \
         substring(c_phone from 1 for 2) in ('13', '31')) as custsale group by cntrycode order by cntrycode",
        "select extract(year from l_shipdate) as l_year, sum(l_extendedprice) from lineitem group by l_year",
        "with revenue (supplier_no, total_revenue) as (select l_suppkey, sum(l_extendedprice * (1 - l_discount)) from lineitem \
         where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3' month group by l_suppkey) select \
         s_suppkey, total_revenue from supplier, revenue where s_suppkey = supplier_no and total_revenue = (select \
         max(total_revenue) from revenue) order by s_suppkey",
    ] {
        run(&context, sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}
