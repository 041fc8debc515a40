"""Every Iceberg type through PyMySQL (text protocol) and mysql-connector-python (text, and binary by prepared statements).

usage: mysql_types.py MYSQL_PORT
"""

import datetime
import json
import sys
from decimal import Decimal

import mysql.connector
import pymysql

port = int(sys.argv[1])

DDL = """
CREATE TABLE types_seen (
  id INT NOT NULL, b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, dec9 DECIMAL(9,2), dec38 DECIMAL(38,10),
  dt DATE, t TIME, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, s STRING, u UUID, bin BINARY,
  arr ARRAY<INT>, st STRUCT<a: INT, b: STRING>, m MAP<STRING, INT>
)"""
ROWS = [
    "(1, true, -2147483648, -9223372036854775808, 1.5, 2.25, -1234567.89, 1234567890123456789012345678.0123456789, "
    "DATE '1969-12-31', TIME '23:59:59.999999', TIMESTAMP '2024-02-29 12:34:56.789012', "
    "TIMESTAMP '2024-02-29 12:34:56.789012', 'naïve ☃ 🦀', 'f79c3e09-677c-4bbd-a479-3f349cb785e7', X'00FF10', "
    "[1, 2, NULL], named_struct('a', 7, 'b', 'x'), MAP {'k': 1})",
    "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
]
EXPECTED = [
    (
        1,
        1,
        -2147483648,
        -9223372036854775808,
        1.5,
        2.25,
        Decimal("-1234567.89"),
        Decimal("1234567890123456789012345678.0123456789"),
        datetime.date(1969, 12, 31),
        datetime.timedelta(hours=23, minutes=59, seconds=59, microseconds=999999),
        datetime.datetime(2024, 2, 29, 12, 34, 56, 789012),
        datetime.datetime(2024, 2, 29, 12, 34, 56, 789012),
        "naïve ☃ 🦀",
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        b"\x00\xff\x10",
        [1, 2, None],
        {"a": 7, "b": "x"},
        {"k": 1},
    ),
    (2,) + (None,) * 17,
]


def check(how, rows):
    rows = [
        tuple(json.loads(v) if n >= 15 and v is not None else bytes(v) if isinstance(v, bytearray) else v for n, v in enumerate(row))
        for row in rows
    ]
    assert rows == EXPECTED, f"{how}:\n{rows}\nexpected\n{EXPECTED}"


def chosen_values(cursor):
    """What is one of several values is of their type, in each of the ways that MySQL has to choose one."""
    seen = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    for sql, answer in [
        ("SELECT min(u), max(u), any_value(u) FROM types_seen WHERE id = 1", [(seen, seen, seen)]),
        ("SELECT IFNULL(u, u), COALESCE(u, u), NULLIF(u, NULL) FROM types_seen WHERE id = 1", [(seen, seen, seen)]),
        (
            "SELECT IF(id = 1, u, NULL), CASE id WHEN 1 THEN u END FROM types_seen ORDER BY id",
            [(seen, seen), (None, None)],
        ),
        ("SELECT GREATEST(u, u), LEAST(u, u) FROM types_seen WHERE id = 1", [(seen, seen)]),
        (
            "SELECT u FROM types_seen WHERE id = 1 UNION SELECT max(u) FROM types_seen UNION ALL SELECT NULL ORDER BY 1 DESC",
            [(seen,), (None,)],
        ),
        (
            "SELECT id, max(u) FROM types_seen GROUP BY id WITH ROLLUP ORDER BY id DESC",
            [(2, None), (1, seen), (None, seen)],
        ),
        (
            "SELECT lag(u) OVER (ORDER BY id), row_number() OVER (ORDER BY u) FROM types_seen ORDER BY id",
            [(None, 2), (seen, 1)],
        ),
        (
            "SELECT (SELECT max(u) FROM types_seen), CAST(u AS CHAR), CONCAT(u, '!') FROM types_seen WHERE id = 1",
            [(seen, seen, seen + "!")],
        ),
        (f"SELECT m FROM (SELECT max(u) AS m FROM types_seen) x WHERE m = '{seen}'", [(seen,)]),
        (
            "SELECT IFNULL(dec38, 0), IFNULL(dt, NULL), IFNULL(NULL, ts) FROM types_seen WHERE id = 1",
            [(EXPECTED[0][7], EXPECTED[0][8], EXPECTED[0][10])],
        ),
        ("SELECT array_agg(u) FROM types_seen WHERE id = 1", [(f'["{seen}"]',)]),
    ]:
        cursor.execute(sql)
        found = list(cursor.fetchall())
        assert found == answer, f"{sql}:\n{found}\nexpected\n{answer}"


def with_pymysql():
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", database="default", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute(DDL)
        for row in ROWS:
            assert cursor.execute(f"INSERT INTO types_seen VALUES {row}") == 1
        cursor.execute("SELECT * FROM types_seen ORDER BY id")
        check("pymysql", cursor.fetchall())
        chosen_values(cursor)
        cursor.execute("SELECT s FROM types_seen WHERE i = %s AND ts > %s", (-2147483648, datetime.datetime(2024, 1, 1)))
        assert cursor.fetchall() == (("naïve ☃ 🦀",),)
        try:
            cursor.execute("SELECT * FROM types_sen")
            raise AssertionError("a missing table gave no error")
        except pymysql.err.ProgrammingError as error:
            assert error.args[0] == 1146 and "types_seen" in error.args[1], error.args
        try:
            cursor.execute("SELEC 1")
            raise AssertionError("a syntax error gave no error")
        except pymysql.err.ProgrammingError as error:
            assert error.args[0] == 1064, error.args
    connection.close()
    many = pymysql.connect(
        host="127.0.0.1", port=port, user="root", client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS
    )
    with many.cursor() as cursor:
        cursor.execute("SELECT 1; SELECT 'a' AS x, 2 AS y; SET @z = 3; SELECT @z")
        results = [cursor.fetchall()]
        while cursor.nextset():
            results.append(cursor.fetchall())
        assert [r for r in results if r] == [((1,),), (("a", 2),), ((3,),)], results
    many.close()


def with_connector():
    connection = mysql.connector.connect(host="127.0.0.1", port=port, user="root", database="default")
    text = connection.cursor()
    text.execute("SELECT * FROM types_seen ORDER BY id")
    check("mysql-connector text", text.fetchall())
    text.close()
    prepared = connection.cursor(prepared=True)
    prepared.execute("SELECT * FROM types_seen WHERE id >= %s ORDER BY id", (1,))
    check("mysql-connector binary", prepared.fetchall())
    chosen_values(prepared)
    for wanted, answer in ((1, [(2.25,)]), (2, [(None,)]), (3, [])):
        prepared.execute("SELECT d FROM types_seen WHERE id = %s", (wanted,))
        assert prepared.fetchall() == answer, wanted
    prepared.execute("SELECT id FROM types_seen WHERE s = %s AND dt = %s", ("naïve ☃ 🦀", datetime.date(1969, 12, 31)))
    assert prepared.fetchall() == [(1,)]
    prepared.close()
    connection.close()


with_pymysql()
with_connector()
print("ok")
