//! Values that MySQL, DuckDB and Spark agree on, and that come out otherwise if nobody looks.

use tarn_coordinator::ErrorKind;

use crate::harness::Harness;

/// The rows as text, values by comma.
async fn rows(harness: &Harness, sql: &str) -> Vec<String> {
    let rows = harness.rows(sql).await.rows;
    rows.into_iter().map(|row| row.join(",")).collect()
}

async fn one(harness: &Harness, sql: &str) -> String {
    rows(harness, sql).await.join(";")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_leave_rows_out_is_refused() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE t (id BIGINT, day DATE) PARTITION BY (day)")
        .await;
    for sql in [
        "SELECT * FROM t PARTITION (p0)",
        "SELECT count(*) FROM (SELECT id FROM t PARTITION (p0, p1)) x",
        "SELECT * FROM t TABLESAMPLE (10 PERCENT)",
        "INSERT INTO t SELECT * FROM t PARTITION (p0)",
    ] {
        let error = harness.error(sql).await;
        assert!(
            matches!(error.kind, ErrorKind::Unsupported | ErrorKind::Syntax),
            "{sql}: {error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn extremes_of_groups_know_infinities_and_nan() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE f (k BIGINT, d DOUBLE, f FLOAT)")
        .await;
    harness
        .done(
            "INSERT INTO f VALUES (1, CAST('inf' AS DOUBLE), CAST('inf' AS DOUBLE)), (1, NULL, NULL), \
             (2, CAST('-inf' AS DOUBLE), CAST('-inf' AS DOUBLE)), (2, CAST('nan' AS DOUBLE), CAST('nan' AS DOUBLE)), \
             (3, CAST('nan' AS DOUBLE), CAST('nan' AS DOUBLE)), (3, 1.5e0, 1.5e0), (4, NULL, NULL)",
        )
        .await;
    let sql = "SELECT k, min(d), max(d), min(f), max(f) FROM f GROUP BY k ORDER BY k";
    assert_eq!(
        rows(&harness, sql).await,
        [
            "1,inf,inf,inf,inf",
            "2,-inf,NaN,-inf,NaN",
            "3,1.5,NaN,1.5,NaN",
            "4,NULL,NULL,NULL,NULL"
        ]
    );
    let sql = "SELECT min(d), max(d), min(f), max(f) FROM f";
    assert_eq!(one(&harness, sql).await, "-inf,NaN,-inf,NaN");
}

#[tokio::test(flavor = "multi_thread")]
async fn zeros_of_both_signs_are_one_value() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE z (id BIGINT, d DOUBLE, e DOUBLE, f FLOAT)")
        .await;
    harness
        .done(
            "INSERT INTO z VALUES (1, CAST('-0.0' AS DOUBLE), 0e0, CAST('-0.0' AS DOUBLE)), \
             (2, 0e0, CAST('-0.0' AS DOUBLE), 0e0), (3, 1e0, 1e0, 1e0), (4, NULL, NULL, NULL)",
        )
        .await;
    for (sql, answer) in [
        (
            "SELECT d, count(*) FROM z GROUP BY d ORDER BY d NULLS LAST",
            "0.0,2;1.0,1;NULL,1",
        ),
        (
            "SELECT f, e, count(*) FROM z GROUP BY f, e ORDER BY 1 NULLS LAST",
            "0.0,0.0,2;1.0,1.0,1;NULL,NULL,1",
        ),
        (
            "SELECT DISTINCT d FROM z ORDER BY d NULLS LAST",
            "0.0;1.0;NULL",
        ),
        (
            "SELECT d FROM z UNION SELECT e FROM z ORDER BY 1 NULLS LAST",
            "0.0;1.0;NULL",
        ),
        (
            "SELECT count(DISTINCT d), count(DISTINCT e, f) FROM z",
            "2,2",
        ),
        (
            "SELECT d, count(*) FROM z WHERE d IS NOT NULL GROUP BY d WITH ROLLUP ORDER BY 1 NULLS LAST",
            "0.0,2;1.0,1;NULL,3",
        ),
        (
            "SELECT round(d), count(*) FROM z WHERE id < 4 GROUP BY round(d) WITH ROLLUP ORDER BY 1 NULLS LAST",
            "0.0,2;1.0,1;NULL,3",
        ),
        (
            "SELECT a.id, b.id FROM z a JOIN z b ON a.d = b.d ORDER BY 1, 2",
            "1,1;1,2;2,1;2,2;3,3",
        ),
        (
            "SELECT a.id, b.id FROM z a JOIN z b USING (f) ORDER BY 1, 2",
            "1,1;1,2;2,1;2,2;3,3",
        ),
        (
            "SELECT a.id, b.id FROM z a LEFT JOIN z b ON a.d = b.e AND a.id < b.id ORDER BY 1, 2",
            "1,2;2,NULL;3,NULL;4,NULL",
        ),
        ("SELECT id FROM z WHERE d = e ORDER BY id", "1;2;3"),
        ("SELECT id FROM z WHERE d <=> f ORDER BY id", "1;2;3;4"),
        ("SELECT id FROM z WHERE d < e OR d > e", ""),
        ("SELECT id FROM z WHERE d <> e", ""),
        (
            "SELECT id FROM z WHERE e BETWEEN d AND d ORDER BY id",
            "1;2;3",
        ),
        ("SELECT id FROM z WHERE d IN (e, 7e0) ORDER BY id", "1;2;3"),
        (
            "SELECT id FROM z WHERE d IN (SELECT e FROM z WHERE id = 2) ORDER BY id",
            "1;2",
        ),
        (
            "SELECT id FROM z WHERE d NOT IN (SELECT e FROM z WHERE id = 2)",
            "3",
        ),
        (
            "SELECT id FROM z a WHERE EXISTS (SELECT 1 FROM z b WHERE b.d = a.e AND b.id <> a.id) ORDER BY id",
            "1;2",
        ),
        (
            "SELECT id, CASE d WHEN e THEN 'same' ELSE 'other' END FROM z ORDER BY id",
            "1,same;2,same;3,same;4,other",
        ),
        (
            "SELECT id, CASE d WHEN 0e0 THEN 'zero' ELSE 'other' END FROM z ORDER BY id",
            "1,zero;2,zero;3,other;4,other",
        ),
        (
            "SELECT id, 1 / d FROM z ORDER BY id",
            "1,NULL;2,NULL;3,1.0;4,NULL",
        ),
        (
            "SELECT id, rank() OVER (ORDER BY d), count(*) OVER (PARTITION BY d) FROM z WHERE d IS NOT NULL ORDER BY id",
            "1,1,2;2,1,2;3,3,1",
        ),
        ("SELECT id FROM z WHERE d = 1e0 - 1e0 ORDER BY id", "1;2"),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
    // What is only read stays as it is.
    assert_eq!(
        one(&harness, "SELECT d, e FROM z WHERE id < 3 ORDER BY id").await,
        "-0.0,0.0;0.0,-0.0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn decimals_round_half_away_from_zero() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE m (k BIGINT, d DECIMAL(10,2), w DECIMAL(38,4))")
        .await;
    harness
        .done(
            "INSERT INTO m VALUES (1, 1.25, 1.0000), (1, 2.50, 2.0000), (1, 2.50, 2.0000), (2, -1.25, -1.0000), \
             (2, NULL, NULL), (3, NULL, NULL)",
        )
        .await;
    for (sql, answer) in [
        // 6.25 / 3 = 2.08333…; 5 / 3 = 1.66666…
        (
            "SELECT k, avg(d), avg(w) FROM m GROUP BY k ORDER BY k",
            "1,2.083333,1.66666667;2,-1.250000,-1.00000000;3,NULL,NULL",
        ),
        // 5.00 / 4 and 4 / 4.
        (
            "SELECT avg(d), sum(d), count(d), avg(w) FROM m",
            "1.250000,5.00,4,1.00000000",
        ),
        (
            "SELECT avg(DISTINCT d), avg(d) FROM m WHERE k = 1",
            "1.875000,2.083333",
        ),
        ("SELECT avg(d) AS a FROM m HAVING avg(d) > 1", "1.250000"),
        (
            "SELECT k, avg(d) FROM m GROUP BY k WITH ROLLUP ORDER BY 1 NULLS LAST",
            "1,2.083333;2,-1.250000;3,NULL;NULL,1.250000",
        ),
        (
            "SELECT DISTINCT k, avg(d) OVER (PARTITION BY k) FROM m ORDER BY k",
            "1,2.083333;2,-1.250000;3,NULL",
        ),
        (
            "SELECT k FROM m a WHERE d > (SELECT avg(d) FROM m b WHERE b.k = a.k)",
            "1;1",
        ),
        (
            "SELECT CAST(2 AS DECIMAL(10,2)) / 3, CAST(-2 AS DECIMAL(10,2)) / 3",
            "0.666667,-0.666667",
        ),
        (
            "SELECT k, d / w, d / 0 FROM m WHERE k = 2 AND d IS NOT NULL",
            "2,1.250000,NULL",
        ),
        (
            "SELECT CAST(1.255 AS DECIMAL(5,2)), CAST(-1.255 AS DECIMAL(5,2)), CAST(1.254 AS DECIMAL(5,2))",
            "1.26,-1.26,1.25",
        ),
        (
            "SELECT CAST(2.5 AS SIGNED), CAST(-2.5 AS SIGNED), CAST(2.4 AS SIGNED), CAST(9.99 AS SIGNED)",
            "3,-3,2,10",
        ),
        (
            "SELECT k, CAST(d AS SIGNED), CAST(d AS DECIMAL(10,1)) FROM m WHERE d IS NOT NULL ORDER BY 1, 2",
            "1,1,1.3;1,3,2.5;1,3,2.5;2,-1,-1.3",
        ),
        // A comparison sees the rounded value, not the column's.
        ("SELECT count(*) FROM m WHERE CAST(d AS SIGNED) = 3", "2"),
        (
            "SELECT count(*) FROM m WHERE CAST(d AS DECIMAL(10,1)) = 1.3",
            "1",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
    // The wide quotient needs more than 128 bits on the way.
    let large = "CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0))";
    assert_eq!(
        one(&harness, &format!("SELECT {large} / {large}")).await,
        "1.0000"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_numbers_that_do_not_fit_are_an_error() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE n (k BIGINT, b BIGINT, i INT)")
        .await;
    harness
        .done("INSERT INTO n VALUES (1, 9223372036854775807, 2147483647), (1, 1, 2147483647), (2, -9223372036854775808, -2147483648), (2, -5, 1)")
        .await;
    for sql in [
        "SELECT b + 1 FROM n",
        "SELECT b - 1 FROM n",
        "SELECT b * 2 FROM n",
        "SELECT b * i FROM n",
        "SELECT k FROM n WHERE b + k > 0",
        "SELECT sum(b) FROM n WHERE k = 1",
        "SELECT k, sum(b) FROM n GROUP BY k",
        "SELECT sum(b) OVER (PARTITION BY k) FROM n",
        "SELECT sum(DISTINCT b), count(DISTINCT i) FROM n WHERE k = 1",
        "SELECT 9223372036854775807 + 1",
    ] {
        let error = harness.error(sql).await;
        assert_eq!(error.mysql_code(), 1690, "{sql}: {error}");
        assert!(
            error
                .message
                .starts_with("BIGINT value is out of range in '"),
            "{sql}: {error}"
        );
    }
    for (sql, answer) in [
        (
            "SELECT i + i, i - 1, i * i FROM n WHERE b = 1",
            "4294967294,2147483646,4611686014132420609",
        ),
        ("SELECT b + 1 FROM n WHERE k = 1 AND b < 10", "2"),
        (
            "SELECT k, sum(i) FROM n GROUP BY k ORDER BY k",
            "1,4294967294;2,-2147483647",
        ),
        ("SELECT sum(b) FROM n", "-5"),
        ("SELECT sum(b) FROM n WHERE k = 3", "NULL"),
        ("SELECT b - 5, b + 5 FROM n WHERE b = -5", "-10,0"),
        (
            "SELECT sum(b) OVER (ORDER BY k, b ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM n WHERE b > 0 ORDER BY 1",
            "1;9223372036854775807",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_structs_are_found_at_any_depth() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE s (id BIGINT, p STRUCT<a: INT, m: MAP<STRING, INT>, q: STRUCT<b: STRING, c: INT>>)")
        .await;
    harness
        .done(
            "INSERT INTO s SELECT 1, named_struct('a', 1, 'm', map(make_array('x'), make_array(5)), \
             'q', named_struct('b', 'z', 'c', 2))",
        )
        .await;
    for (sql, answer) in [
        ("SELECT p['a'], p['m']['x'], p['q']['b'] FROM s", "1,5,z"),
        ("SELECT p['m']['y'] FROM s WHERE p['m']['x'] = 5", "NULL"),
        (
            "SELECT a.p['q']['b'], b.p['a'], b.id FROM s a JOIN s b ON a.id = b.id WHERE a.p['a'] > 0",
            "z,1,1",
        ),
        (
            "SELECT a.p['q']['b'], count(*), max(b.p['q']['c']) FROM s a LEFT JOIN s b ON a.p['a'] = b.p['a'] AND b.p['m']['x'] > 9 GROUP BY a.p['q']['b']",
            "z,1,NULL",
        ),
        (
            "SELECT x.c FROM (SELECT p['q']['c'] AS c, id FROM s ORDER BY p['a'] LIMIT 1) x JOIN s ON x.id = s.id",
            "2",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ifnull_gives_decimals_for_decimals() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE n (id BIGINT, d DECIMAL(38,10), s STRING)")
        .await;
    harness
        .done("INSERT INTO n VALUES (1, 1234567890123456789012345678.0123456789, 'x'), (2, NULL, NULL)")
        .await;
    for (sql, answer) in [
        (
            "SELECT IFNULL(d, 0) FROM n ORDER BY id",
            "1234567890123456789012345678.0123456789;0.0000000000",
        ),
        (
            "SELECT IFNULL(SUM(d), 0) FROM n",
            "1234567890123456789012345678.0123456789",
        ),
        ("SELECT IFNULL(s, id) FROM n ORDER BY id", "x;2"),
        ("SELECT IFNULL(id, s) FROM n ORDER BY id", "1;2"),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_beside_numbers_and_dates_make_texts() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE v (n BIGINT, d DECIMAL(9,2), dt DATE, at DATETIME, s STRING)")
        .await;
    harness
        .done("INSERT INTO v VALUES (1, 1.5, '2024-01-01', '2024-01-01 10:00:00', 'x'), (NULL, NULL, NULL, NULL, NULL)")
        .await;
    for (expr, answer) in [
        ("COALESCE(n, 'none')", "1;none"),
        ("COALESCE(NULL, n, 'none')", "1;none"),
        ("COALESCE(SUM(n), '-')", "1"),
        ("IFNULL(d, 'none')", "1.50;none"),
        ("IF(n = 1, dt, 'none')", "2024-01-01;none"),
        (
            "CASE WHEN at IS NULL THEN 'never' ELSE at END",
            "2024-01-01 10:00:00;never",
        ),
        ("IFNULL(dt, 'none')", "2024-01-01;none"),
        ("CASE s WHEN 'x' THEN s ELSE n END", "x;NULL"),
        // What reads as a number stays one.
        ("COALESCE(n, '0') + 1", "2;1"),
    ] {
        let sql = format!("SELECT {expr} FROM v");
        let sql = match expr.contains("SUM") {
            true => sql,
            false => format!("{sql} ORDER BY n IS NULL"),
        };
        assert_eq!(one(&harness, &sql).await, answer, "{sql}");
    }
    // Beside each other, both are divisions.
    let halves = harness.rows("SELECT 7/2, 7 DIV 2").await;
    assert_eq!(halves.rows, [["3.5", "3"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn uuids_bytes_and_early_times_may_be_partitions() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE u (id BIGINT, u UUID, b VARBINARY(10), z TIMESTAMP WITH TIME ZONE) PARTITION BY (u, truncate(2, b), z)")
        .await;
    harness
        .done(
            "INSERT INTO u VALUES (1, X'00112233445566778899aabbccddeeff', X'010203', '1969-12-31 23:59:59.5'), \
             (2, NULL, NULL, NULL), (3, X'ffeeddccbbaa99887766554433221100', X'0102', '1969-12-31 23:59:59.5'), \
             (4, X'00112233445566778899aabbccddeeff', X'0102ff', '1969-12-31 23:59:59.5')",
        )
        .await;
    harness
        .done("INSERT INTO u VALUES (5, NULL, X'09', NULL)")
        .await;
    for (sql, answer) in [
        ("SELECT id FROM u ORDER BY id", "1;2;3;4;5"),
        (
            "SELECT id FROM u WHERE u = '00112233-4455-6677-8899-aabbccddeeff' ORDER BY id",
            "1;4",
        ),
        (
            "SELECT id FROM u WHERE u > '00112233-4455-6677-8899-aabbccddeeff'",
            "3",
        ),
        ("SELECT id FROM u WHERE b = X'0102' ORDER BY id", "3"),
        (
            "SELECT id FROM u WHERE z < CAST('1970-01-01' AS DATETIME) ORDER BY id",
            "1;3;4",
        ),
        // One file for each partition: rows 1 and 4 share one.
        ("SELECT count(*), sum(record_count) FROM u$files", "4,5"),
        (
            "SELECT count(*) FROM u$files WHERE `partition`['u'] IS NULL",
            "2",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_and_times_compare_from_year_1_to_9999() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE d (id BIGINT, day DATE, ts TIMESTAMP)")
        .await;
    harness
        .done("INSERT INTO d VALUES (1, '0001-01-01', '0001-01-01 00:00:00'), (2, '9999-12-31', '9999-12-31 00:00:00'), (3, '2024-02-29', '2024-02-29 12:00:00')")
        .await;
    for (sql, answer) in [
        (
            "SELECT id FROM d WHERE day < CAST('9999-12-31 12:00:00' AS TIMESTAMP) ORDER BY id",
            "1;2;3",
        ),
        ("SELECT id FROM d WHERE day = ts ORDER BY id", "1;2"),
        (
            "SELECT id FROM d WHERE CAST(day AS TIMESTAMP) = ts ORDER BY id",
            "1;2",
        ),
        ("SELECT id FROM d WHERE ts > DATE '9999-12-30'", "2"),
        (
            "SELECT id FROM d WHERE day BETWEEN CAST('0001-01-01' AS DATETIME) AND ts ORDER BY id",
            "1;2;3",
        ),
        (
            "SELECT id FROM d WHERE ts BETWEEN DATE '9999-01-01' AND day",
            "2",
        ),
        (
            "SELECT id FROM d WHERE day IN (CAST('9999-12-31' AS DATETIME), ts) ORDER BY id",
            "1;2",
        ),
        (
            "SELECT a.id FROM d a JOIN d b ON a.day = b.ts ORDER BY a.id",
            "1;2",
        ),
        ("SELECT id FROM d WHERE ts NOT IN (SELECT day FROM d) ", "3"),
        (
            "SELECT id, CASE day WHEN ts THEN 1 ELSE 0 END FROM d ORDER BY id",
            "1,1;2,1;3,0",
        ),
        (
            "SELECT count(*) FROM (SELECT day FROM d UNION SELECT ts FROM d) x",
            "4",
        ),
        (
            "SELECT CASE id WHEN 2 THEN day ELSE ts END FROM d ORDER BY id",
            "0001-01-01T00:00:00;9999-12-31T00:00:00;2024-02-29T12:00:00",
        ),
        (
            "SELECT CASE WHEN id = 1 THEN 1e-20 ELSE 0.5 END FROM d WHERE id < 3 ORDER BY id",
            "1e-20;0.5",
        ),
        (
            "SELECT 1e-20 AS x UNION ALL SELECT 0.5 ORDER BY x",
            "1e-20;0.5",
        ),
        (
            "SELECT id FROM d WHERE COALESCE(day, ts) >= CAST('9999-12-31' AS DATETIME)",
            "2",
        ),
        (
            "SELECT id FROM d WHERE ts >= CAST('9999-12-30 23:59:59.999999' AS TIMESTAMP)",
            "2",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_and_texts_are_numbers_in_arithmetic() {
    let harness = Harness::start().await;
    for (sql, answer) in [
        ("SELECT (2 > 1) + (3 > 2) + (1 > 2)", "2"),
        ("SELECT 10 * (1 = 1)", "10"),
        ("SELECT '5' + 1", "6.0"),
        ("SELECT '1.5' * '4'", "6.0"),
        (
            "SELECT sum((x > 1) * 10) FROM (VALUES (1), (2), (3)) t(x)",
            "20",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
    let error = harness.error("SELECT 'abc' + 1").await;
    assert_eq!(error.mysql_code(), 1292, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn floats_beside_decimals_stay_floats_in_values() {
    let harness = Harness::start().await;
    for (sql, answer) in [
        (
            "SELECT x FROM (VALUES (CAST('-Infinity' AS FLOAT)), (1.5), (NULL), (2)) t(x) WHERE x < 2",
            "-inf;1.5",
        ),
        (
            "SELECT max(x) FROM (VALUES (1.25), (1e20), (3)) t(x)",
            "1e20",
        ),
        (
            "SELECT sum(x) FROM (VALUES (1.25), (2), (3.5)) t(x)",
            "6.75",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

/// MySQL reads all of these.
#[tokio::test(flavor = "multi_thread")]
async fn literals_of_times_may_be_short() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE short_times (at TIMESTAMP, zoned TIMESTAMPTZ, day DATE)")
        .await;
    let done = harness
        .done("INSERT INTO short_times VALUES ('2026-3-7 9:05', '2026-03-07 9', '2026-3-7')")
        .await;
    assert_eq!(done.affected_rows, 1);
    assert_eq!(
        one(&harness, "SELECT at, zoned, day FROM short_times").await,
        "2026-03-07T09:05:00,2026-03-07T09:00:00Z,2026-03-07"
    );
    for condition in [
        "at = '2026-03-07 09:05'",
        "at BETWEEN '2026-03-07 9' AND '2026-03-07 9:6'",
        "at IN ('2025-1-1', '2026-3-7 9:5:0')",
        "zoned < '2026-03-07 9:01'",
        "day = '2026-3-7'",
        "day >= '2026-3-7' AND day < '2026-3-8'",
        "TIMESTAMP '2026-03-07 09:05' = at",
        "CAST('2026-3-7' AS DATE) = day",
        "date_trunc('hour', at) = '2026-03-07 09:00'",
    ] {
        let sql = format!("SELECT count(*) FROM short_times WHERE {condition}");
        assert_eq!(one(&harness, &sql).await, "1", "{condition}");
    }
    // Written, there is a blank between date and time.
    for (sql, text) in [
        (
            "SELECT CAST(at AS CHAR) FROM short_times",
            "2026-03-07 09:05:00",
        ),
        (
            "SELECT CONCAT(at, '|', day) FROM short_times",
            "2026-03-07 09:05:00|2026-03-07",
        ),
        (
            "SELECT CAST(TIMESTAMP '2026-03-07 09:05:00.25' AS CHAR)",
            "2026-03-07 09:05:00.250",
        ),
        (
            "SELECT count(*) FROM short_times WHERE at LIKE '2026-03-07 09%'",
            "1",
        ),
        (
            "SELECT count(*) FROM short_times WHERE day LIKE '2026-03%'",
            "1",
        ),
        (
            "SELECT count(*) FROM short_times WHERE day NOT LIKE '2026-04%'",
            "1",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, text, "{sql}");
    }
    let error = harness
        .error("SELECT count(*) FROM short_times WHERE at = '2026-03-07 x'")
        .await;
    assert_eq!(error.mysql_code(), 1292, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_cannot_be_cast_is_not_the_files_fault() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE c (id BIGINT, name VARCHAR(10))")
        .await;
    harness
        .done("INSERT INTO c VALUES (1, 'seven'), (2, '8')")
        .await;
    for sql in [
        "SELECT CAST(name AS SIGNED) FROM c",
        "SELECT id FROM c WHERE CAST(name AS SIGNED) > 7",
        "SELECT sum(CAST(name AS SIGNED)) FROM c",
    ] {
        let error = harness.error(sql).await;
        assert_eq!(error.kind, ErrorKind::WrongValue, "{sql}: {error}");
        assert!(
            error.message.contains("seven") && !error.message.contains("file"),
            "{sql}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_star_over_using_shows_the_joined_columns_once_and_first() {
    let harness = Harness::start().await;
    harness.done("CREATE TABLE z (x BIGINT, k BIGINT)").await;
    harness.done("CREATE TABLE a (k BIGINT, y BIGINT)").await;
    harness.done("INSERT INTO z VALUES (10, 1), (20, 2)").await;
    harness
        .done("INSERT INTO a VALUES (1, 100), (3, 300)")
        .await;
    for (sql, names, answer) in [
        ("SELECT * FROM z JOIN a USING (k)", "k,x,y", "1,10,100"),
        (
            "SELECT * FROM z LEFT JOIN a USING (k) ORDER BY k",
            "k,x,y",
            "1,10,100;2,20,NULL",
        ),
        (
            "SELECT * FROM z RIGHT JOIN a USING (k) ORDER BY k",
            "k,x,y",
            "1,10,100;3,NULL,300",
        ),
        (
            "SELECT k, x FROM z RIGHT JOIN a USING (k) WHERE k > 1",
            "k,x",
            "3,NULL",
        ),
        (
            "SELECT * FROM z t LEFT JOIN a AS b USING (k) LEFT JOIN a USING (k) ORDER BY k",
            "k,x,y,y",
            "1,10,100,100;2,20,NULL,NULL",
        ),
    ] {
        let found = harness.rows(sql).await;
        assert_eq!(found.columns.join(","), names, "{sql}");
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
    let error = harness.error("SELECT * FROM z NATURAL LEFT JOIN a").await;
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_in_text_is_read_as_mysql_reads_it() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE j (id BIGINT, doc VARCHAR(200))")
        .await;
    harness
        .done(r#"INSERT INTO j VALUES (1, '{"name": "ann", "n": 12, "tags": ["a", "b"], "in": {"x": null}}'), (2, '[1, {"k": 2.5}]'), (3, NULL)"#)
        .await;
    for (sql, answer) in [
        (
            "SELECT doc->'$.name', doc->>'$.name', doc->'$.n' FROM j WHERE id = 1",
            r#""ann",ann,12"#,
        ),
        (
            "SELECT JSON_EXTRACT(doc, '$.tags[last]'), JSON_EXTRACT(doc, '$.n', '$.name') FROM j WHERE id = 1",
            r#""b",[12, "ann"]"#,
        ),
        (
            "SELECT JSON_EXTRACT(doc, '$[1].k'), JSON_EXTRACT(doc, '$.none') FROM j WHERE id = 2",
            "2.5,NULL",
        ),
        (
            "SELECT JSON_UNQUOTE(JSON_EXTRACT(doc, '$.tags[0]')), JSON_VALUE(doc, '$.n'), JSON_VALUE(doc, '$.tags') FROM j WHERE id = 1",
            "a,12,NULL",
        ),
        (
            "SELECT JSON_LENGTH(doc), JSON_LENGTH(doc, '$.tags') FROM j WHERE id = 1",
            "4,2",
        ),
        (
            "SELECT JSON_KEYS(doc), JSON_KEYS(doc, '$.in') FROM j WHERE id = 1",
            r#"["n", "in", "name", "tags"],["x"]"#,
        ),
        (
            "SELECT JSON_CONTAINS(doc, '\"a\"', '$.tags'), JSON_CONTAINS(doc, '{\"n\": 12}'), JSON_CONTAINS(doc, '13', '$.n') FROM j WHERE id = 1",
            "1,1,0",
        ),
        (
            "SELECT JSON_VALID(doc), JSON_VALID('{') FROM j WHERE id = 1",
            "1,0",
        ),
        ("SELECT id, doc->'$.n' FROM j WHERE id = 3", "3,NULL"),
        ("SELECT id FROM j WHERE doc->'$.name' = 'ann'", "1"),
        ("SELECT id FROM j WHERE JSON_EXTRACT(doc, '$.n') > 9", "1"),
        (
            "SELECT JSON_OBJECT('id', id, 'd', 1.5, 't', 'x\"y', 'n', NULL), JSON_ARRAY(id, true) FROM j WHERE id = 3",
            r#"{"d": 1.5, "n": null, "t": "x\"y", "id": 3},[3, true]"#,
        ),
        (
            "SELECT doc->>'$.name', count(*) FROM j WHERE id = 1 GROUP BY doc->>'$.name'",
            "ann,1",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
    let error = harness.error("SELECT JSON_EXTRACT('{', '$.a')").await;
    assert!(
        error.message.starts_with("Invalid JSON text in argument 1"),
        "{error}"
    );
    let error = harness.error("SELECT JSON_EXTRACT('{}', 'a')").await;
    assert!(
        error.message.starts_with("Invalid JSON path expression"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_number_is_a_date_by_its_digits() {
    let harness = Harness::start().await;
    harness.done("CREATE TABLE k (d INT, at BIGINT)").await;
    harness
        .done("INSERT INTO k VALUES (20240131, 20240131235958), (19991201, 19991201000000)")
        .await;
    for (sql, answer) in [
        ("SELECT CAST(20240101 AS DATE)", "2024-01-01"),
        (
            "SELECT CAST(d AS DATE) FROM k ORDER BY d",
            "1999-12-01;2024-01-31",
        ),
        (
            "SELECT CAST(at AS DATETIME) FROM k ORDER BY d",
            "1999-12-01T00:00:00;2024-01-31T23:59:58",
        ),
        (
            "SELECT d FROM k WHERE CAST(d AS DATE) BETWEEN '2024-01-01' AND '2024-01-31'",
            "20240131",
        ),
        (
            "SELECT d FROM k WHERE CAST(d AS DATE) < '2000-01-01'",
            "19991201",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_list_has_the_order_that_it_asks_for() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE o (g INT, v VARCHAR, k INT)")
        .await;
    // In two files, so that lists are made in parts.
    harness
        .done("INSERT INTO o VALUES (1, 'b', 2), (1, 'd', 4), (2, 'x', 9)")
        .await;
    harness
        .done("INSERT INTO o VALUES (1, 'c', 3), (1, 'a', 1), (2, 'y', 8)")
        .await;
    for (sql, answer) in [
        (
            "SELECT g, group_concat(v ORDER BY k), group_concat(v ORDER BY k DESC) FROM o GROUP BY g ORDER BY g",
            "1,a,b,c,d,d,c,b,a;2,y,x,x,y",
        ),
        (
            "SELECT group_concat(v ORDER BY k DESC SEPARATOR ''), group_concat(v ORDER BY v SEPARATOR ''), group_concat(v ORDER BY g DESC, k SEPARATOR '') FROM o",
            "xydcba,abcdxy,yxabcd",
        ),
        (
            "SELECT group_concat(DISTINCT g ORDER BY g), group_concat(DISTINCT g ORDER BY g DESC) FROM o",
            "1,2,2,1",
        ),
        (
            "SELECT g, array_agg(k ORDER BY k DESC), array_agg(k ORDER BY v), max(k) FROM o GROUP BY g ORDER BY g",
            "1,[4, 3, 2, 1],[1, 2, 3, 4],4;2,[9, 8],[9, 8],9",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_integer_is_given_is_rounded() {
    let harness = Harness::start().await;
    harness
        .done("CREATE TABLE r (k INT, i INT, l BIGINT, s INT)")
        .await;
    harness
        .done("INSERT INTO r VALUES (1, 1.5, 2.5, -5.55), (2, -1.5, -0.4, 0.5)")
        .await;
    harness
        .done("INSERT INTO r SELECT 3, 1.5e0, 2.7e0, -2.5e0")
        .await;
    for (sql, answer) in [
        // Decimals away from zero, doubles to the even number.
        ("SELECT * FROM r ORDER BY k", "1,2,3,-6;2,-2,0,1;3,2,3,-2"),
        (
            "SELECT CAST(1.5 AS SIGNED), CAST(1.5e0 AS SIGNED), CAST(-2.7e0 AS SIGNED)",
            "2,2,-3",
        ),
        (
            "SELECT k FROM r WHERE CAST(l + 0.6e0 AS SIGNED) = 4 ORDER BY k",
            "1;3",
        ),
    ] {
        assert_eq!(one(&harness, sql).await, answer, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_bigint_has_no_opposite() {
    let harness = Harness::start().await;
    harness.done("CREATE TABLE n (k INT, l BIGINT)").await;
    harness
        .done("INSERT INTO n VALUES (1, -9223372036854775808), (2, 5)")
        .await;
    for sql in ["SELECT -l FROM n", "SELECT -sum(l) FROM n WHERE k = 1"] {
        let error = harness.error(sql).await;
        assert_eq!(error.mysql_code(), 1690, "{sql}: {error}");
    }
    assert_eq!(
        one(&harness, "SELECT -l, -k FROM n WHERE k = 2").await,
        "-5,-2"
    );
}
