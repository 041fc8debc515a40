"""All 22 TPC-H queries through both protocols, compared with DuckDB over the same Parquet files.

usage: tpch_answers.py MYSQL_PORT FLIGHT_PORT DATA_DIR DATABASE
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import adbc_driver_flightsql.dbapi as flight_sql
import duckdb
import pymysql

import answers
import cluster

mysql_port, flight_port, data_dir, database = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]

peer = duckdb.connect()
files = cluster.data_files(data_dir, database)
assert len(files) == 8, files.keys()
for table, paths in files.items():
    peer.execute(f"create view {table} as select * from read_parquet({paths!r})")

mysql = pymysql.connect(host="127.0.0.1", port=mysql_port, user="root", database=database)
flight = flight_sql.connect(
    f"grpc://127.0.0.1:{flight_port}", db_kwargs={"username": "root", "password": ""}, autocommit=True
)
flight_cursor = flight.cursor()
flight_cursor.execute(f"USE {database}")
flight_cursor.fetchall()

failures = []
for n in range(1, 23):
    sql = (ROOT / "tests" / "tpch" / f"q{n:02}.sql").read_text()
    expected = peer.sql(sql).fetchall()
    with mysql.cursor() as cursor:
        cursor.execute(sql)
        by_mysql = list(cursor.fetchall())
    flight_cursor.execute(sql)
    by_flight = answers.table_rows(flight_cursor.fetch_arrow_table())
    for protocol, rows in ("mysql", by_mysql), ("flight_sql", by_flight):
        # 1e-6: the MySQL text of an average has fewer digits than a double.
        difference = answers.difference(rows, expected, tolerance=1e-6)
        if difference:
            failures.append(f"q{n} by {protocol}: {difference}")
print(f"22 queries, {len(failures)} failures")
for failure in failures:
    print(failure)
sys.exit(bool(failures))
