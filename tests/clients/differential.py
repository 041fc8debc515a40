"""Random tables and random queries: Tarn's answers against those of DuckDB over a plain model of the rows.

    differential.py --binary target/release/tarn --workers 3 --tables 2000 --queries 20 --seed 1
    differential.py --address 127.0.0.1:9040 --mysql 127.0.0.1:9030 --data DATA_DIR --tables 100 --queries 10

The tables are made in the embedded catalog of the data directory; Tarn runs beside it. Every difference is printed with
the steps that made the table, the smallest query that still differs, and the arguments that bring it back. The exit code
is 1 if there was any. What the packages of `random_tables` are for is said there.
"""

import argparse
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import cluster
import duckdb
import pymysql
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import event

from random_tables import answers, known
from random_tables.queries import Queries
from random_tables.schema import arrow_table, by_id
from random_tables.steps import Table

DATABASE = "random_tables"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--queries", type=int, default=10, help="a table")
    parser.add_argument("--steps", type=int, default=8, help="at most, a table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first table")
    parser.add_argument("--query", type=int, help="this one alone")
    parser.add_argument("--address", help="host:port of Flight SQL")
    parser.add_argument("--mysql", help="host:port of the MySQL protocol")
    parser.add_argument("--data", help="the data directory of the Tarn at the address")
    parser.add_argument("--binary", help="start this Tarn instead, over a temporary directory")
    parser.add_argument("--workers", type=int, default=3, help="0 for one process")
    parser.add_argument("--deletes", action=argparse.BooleanOptionalAction, default=True, help="row-level deletes")
    parser.add_argument("--version3", action=argparse.BooleanOptionalAction, default=True, help="format version 3")
    parser.add_argument("--time-travel", action=argparse.BooleanOptionalAction, default=True, help="FOR VERSION AS OF")
    parser.add_argument("--keep", action="store_true", help="do not drop the tables")
    return parser.parse_args()


class Engines:
    def __init__(self, tarn, mysql):
        self.tarn, self.duck = tarn, duckdb.connect()
        host, port = mysql.rsplit(":", 1)
        self.mysql = pymysql.connect(host=host, port=int(port), user="root", autocommit=True)
        self.duck.execute("SET TimeZone = 'UTC'")

    def execute(self, sql):
        return self.tarn.query(sql)

    def register(self, query):
        """The rows of the model's states that the query reads, under names that DuckDB knows."""
        for table, state in query.states:
            if state in table.known:
                continue
            fields, rows = table.model.fields, table.model.rows()
            if state != "now":
                fields, rows = table.model.history[state][1], table.model.rows_at(state)
            # As a table of DuckDB's own: filters on Arrow tables need libraries that are not among the clients.
            self.duck.register("rows_of_model", arrow_table(rows, fields, by_id))
            self.duck.execute(f"CREATE TABLE {table.duck}_{state} AS SELECT * FROM rows_of_model")
            table.known.add(state)

    def forget(self, table):
        for state in table.known:
            self.duck.execute(f"DROP TABLE {table.duck}_{state}")

    def difference(self, query):
        """None if Tarn's answer is right."""
        try:
            expected = self.duck.execute(query.sql("duck")).to_arrow_table()
        except duckdb.Error as error:
            return f"DuckDB does not answer: {error}"
        right = answers.rows_of(expected, query.outputs)
        sql = query.sql("tarn")
        try:
            if query.protocol == "mysql":
                with self.mysql.cursor() as cursor:
                    cursor.execute(sql)
                    given = answers.mysql_rows(cursor.fetchall(), expected, query.outputs)
            else:
                table = self.tarn.query(sql)
                for n, output in enumerate(query.outputs):
                    if output.type is not None:
                        came, wanted = answers.name_of(table.schema.field(n).type), answers.expected_name(output.type)
                        if came != wanted:
                            return f"column {n} is of type {came}, should be {wanted}"
                given = answers.rows_of(table, query.outputs)
        except Exception as error:  # noqa: BLE001 - whatever a driver raises is the engine's answer
            return f"error: {error}"
        return answers.difference(given, right, bool(query.order))


def shrunk(engines, query, difference):
    """The smallest query that still gives wrong rows (or still fails, if that is what it did)."""
    tries = 0
    failed = difference.startswith("error: ")
    while tries < 200:
        for less in query.smaller():
            tries += 1
            found = engines.difference(less)
            if found and found.startswith("error: ") == failed and not known.reason(less, found):
                query, difference = less, found
                break
        else:
            break
    return query, difference


class Run:
    def __init__(self, options, engines, data):
        self.options, self.engines, self.failures, self.asked = options, engines, [], 0
        self.known = Counter()
        self.catalog = SqlCatalog("lake", uri=f"sqlite:///{data}/catalog.db", warehouse=f"file://{data}/warehouse")
        # Nothing is to outlive a crash: a commit need not wait for the disk.
        event.listen(self.catalog.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        self.catalog.engine.dispose()
        engines.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")

    def build(self, number):
        """The table of that number, or None if it could not be made as meant."""
        rng = random.Random(f"{self.options.seed}/{number}")
        name = f"{DATABASE}.t{number}"
        table = None
        try:
            table = Table(rng, self.catalog, name, self.options, self.engines)
            table.duck = f"t{number}"
            table.grow(rng.randint(0, self.options.steps))
        except Exception as error:  # noqa: BLE001 - reported as a failure of this table
            reason = known.reason(None, f"error: {error}")
            if reason:
                self.known[reason] += 1
                return None
            self.report(number, None, table, traceback.format_exc(limit=-3))
            return None
        return table

    def tables(self):
        first, last = self.options.first, self.options.first + self.options.tables
        other = self.build(first - 1) if first else None
        for number in range(first, last):
            table = self.build(number)
            if table:
                self.query(number, table, other)
            if other:
                self.drop(other)
            other = table
            if (done := number + 1 - first) % 50 == 0:
                print(f"{done} tables, {self.asked} queries, {len(self.failures)} differences so far", file=sys.stderr, flush=True)
        if other:
            self.drop(other)

    def query(self, number, table, other):
        wanted = range(self.options.queries) if self.options.query is None else [self.options.query]
        for n in wanted:
            query = Queries(random.Random(f"{self.options.seed}/{number}/{n}"), table, other, self.options).query()
            self.engines.register(query)
            self.asked += 1
            difference = self.engines.difference(query)
            reason = known.reason(query, difference) if difference else None
            if reason:
                self.known[reason] += 1
            elif difference:
                query, difference = shrunk(self.engines, query, difference)
                text = f"{query.protocol}: {query.sql('tarn')}\n  duckdb: {query.sql('duck')}\n  {difference}"
                self.report(number, n, table, text)

    def report(self, number, query, table, text):
        self.failures.append(number)
        again = f"--seed {self.options.seed} --first {number} --tables 1" + (f" --query {query}" if query is not None else "")
        print(f"table {number}, again by: {again}")
        for line in table.log if table else []:
            print(f"    {line}")
        print(f"  {text}\n", flush=True)

    def drop(self, table):
        self.engines.forget(table)
        if not self.options.keep:
            self.catalog.drop_table(table.name)
            shutil.rmtree(table.location.removeprefix("file://"), ignore_errors=True)


@contextlib.contextmanager
def engines(options):
    if not options.binary:
        yield Engines(cluster.Tarn({"flight": options.address}, None), options.mysql), options.data
        return
    # So small a scan would otherwise stay on one worker.
    os.environ.setdefault("TARN_QUERY_SPREAD", "1")
    with tempfile.TemporaryDirectory() as data:
        with cluster.start(options.binary, data, str(options.workers or "server"), 2) as tarn:
            yield Engines(tarn, tarn.addresses["mysql"]), data


def main():
    options = arguments()
    warnings.simplefilter("ignore")
    began = time.monotonic()
    with engines(options) as (both, data):
        run = Run(options, both, data)
        run.tables()
    for reason, count in run.known.most_common():
        print(f"explained: {count} x {reason}")
    print(f"{options.tables} tables, {run.asked} queries, {len(run.failures)} differences", flush=True)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(bool(run.failures))


if __name__ == "__main__":
    main()
