"""Random joins over tables that are bucketed in random ways: Tarn's answers against DuckDB's over the same rows.

    random_joins.py --address 127.0.0.1:9040 --data DATA_DIR --joins 300 --seed 1

Each join is run `--repeat` times, since what goes wrong between partitions goes wrong now and then. A difference is
printed with the tables and the query; the exit code is 1 if there was any.
"""

import argparse
import datetime
import decimal
import random
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import cluster
import duckdb
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import BucketTransform

SCHEMA = "random_joins"
# Types by whether their keys can be joined; all of a family hash alike.
FAMILIES = {
    "number": ["INT", "BIGINT"],
    "text": ["STRING"],
    "date": ["DATE"],
    "decimal": ["DECIMAL(9,2)", "DECIMAL(14,2)"],
}
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", required=True, help="host:port of Flight SQL")
    parser.add_argument("--data", required=True, help="the data directory of the Tarn at the address")
    parser.add_argument("--joins", type=int, default=300)
    parser.add_argument("--joins-per-lake", type=int, default=60, help="then the tables are made anew")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class Table:
    """One table, in both engines."""

    def __init__(self, rng, number, engines, family):
        self.rng, self.family = rng, family
        self.name = f"{SCHEMA}.t{number}"
        self.type = rng.choice(FAMILIES[family])
        self.buckets = rng.choice([None, 1, 2, 3, 4, 4, 8, 8, 16])
        beside = rng.choice([None, None, None, "g", "truncate(10, v)"])
        fields = [f"bucket({self.buckets}, k)" if self.buckets else None, beside]
        rng.shuffle(fields)
        fields = [field for field in fields if field]
        partition = f" PARTITION BY ({', '.join(fields)})" if fields else ""
        self.log = [f"CREATE TABLE {self.name} (k {self.type}, g INT, v BIGINT){partition}"]
        engines.tarn(self.log[0])
        engines.duck.execute(f"CREATE TABLE {self.name} (k {self.type.replace('STRING', 'VARCHAR')}, g INT, v BIGINT)")
        self.grow(engines)

    def grow(self, engines):
        rng = self.rng
        keys = rng.choice([3, 20, 20, 100])
        for append in range(rng.choice([0, 1, 1, 2, 3])):
            if append and self.buckets and rng.random() < 0.3:
                self.evolve(engines)
            # Three tables of which one key has 40% join to thousands of rows; more would only take long.
            count = rng.choice([1, 5, 20, 50])
            skew = rng.choice([0, 0, 0.4])
            rows = []
            for _ in range(count):
                key = None if rng.random() < 0.1 else 1 if rng.random() < skew else rng.randrange(keys)
                rows.append(f"({self.literal(key)}, {rng.randrange(3)}, {rng.randrange(1000)})")
            insert = f"INSERT INTO {self.name} VALUES {', '.join(rows)}"
            self.log.append(insert if len(insert) < 2000 else f"{insert[:2000]} … ({count} rows)")
            engines.tarn(insert)
            engines.duck.execute(insert)

    def evolve(self, engines):
        """Another number of buckets for what is written from now on, or none."""
        table = engines.catalog.load_table(self.name)
        to = self.rng.choice([None, 2, 4, 8, 16, 6])
        with table.update_spec() as update:
            for field in table.spec().fields:
                if isinstance(field.transform, BucketTransform):
                    update.remove_field(field.name)
            if to:
                update.add_field("k", BucketTransform(to), f"k_by_{to}_{len(self.log)}")
        self.log.append(f"-- {to} buckets from here on")

    def literal(self, key):
        if key is None:
            return "NULL"
        return {
            "number": lambda: str(key - 2),
            "text": lambda: f"'{'k' * (key % 5)}{key}'",
            "date": lambda: f"DATE '{datetime.date(2026, 1, 1) + datetime.timedelta(key)}'",
            "decimal": lambda: f"{key - 2}.{key % 90 + 10}",
        }[self.family]()


class Engines:
    def __init__(self, options):
        client = cluster.Tarn({"flight": options.address}, None)
        self.tarn = client.query
        self.duck = duckdb.connect()
        self.catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{options.data}/catalog.db", warehouse=f"file://{options.data}/warehouse"
        )


def condition(rng, alias, table):
    return rng.choice(
        [
            f"{alias}.v < {rng.randrange(1000)}",
            f"{alias}.g = {rng.randrange(3)}",
            f"{alias}.k = {table.literal(rng.randrange(20))}",
            f"{alias}.k IN ({table.literal(1)}, {table.literal(7)})",
            f"{alias}.k IS NOT NULL",
            f"{alias}.v > 2000",
        ]
    )


def query(rng, tables):
    """A chain of two or three tables of one family."""
    chosen = [rng.choice(tables) for _ in range(rng.choice([2, 2, 3]))]
    names = [f"a{i}" for i in range(len(chosen))]
    text = f"{chosen[0].name} {names[0]}"
    for i in range(1, len(chosen)):
        kind = rng.choice(KINDS if rng.random() < 0.6 else ["JOIN"])
        on = [f"{names[rng.randrange(i)]}.k = {names[i]}.k"]
        if rng.random() < 0.15:
            on.append(f"{names[i - 1]}.v <> {names[i]}.v")
        if rng.random() < 0.15:
            on.append(f"{names[i - 1]}.g = {names[i]}.g")
        side = chosen[i].name
        if rng.random() < 0.2:
            side = f"(SELECT k, g, v FROM {side} s WHERE {condition(rng, 's', chosen[i])})"
        text += f" {kind} {side} {names[i]} ON {' AND '.join(on)}"
    where = []
    if rng.random() < 0.3:
        at = rng.randrange(len(chosen))
        where.append(condition(rng, names[at], chosen[at]))
    if rng.random() < 0.35:
        other = rng.choice(tables)
        inner = f"SELECT 1 FROM {other.name} x WHERE x.k = a0.k"
        if rng.random() < 0.5:
            inner += f" AND {condition(rng, 'x', other)}"
        where.append(
            rng.choice(
                [
                    f"EXISTS ({inner})",
                    f"NOT EXISTS ({inner})",
                    f"a0.k IN (SELECT k FROM {other.name})",
                    # Null NOT IN a list is not true, which is another test's.
                    f"a0.k IS NOT NULL AND a0.k NOT IN (SELECT k FROM {other.name} WHERE k IS NOT NULL)",
                ]
            )
        )
    filters = f" WHERE {' AND '.join(where)}" if where else ""
    by = rng.choice(names)
    outputs, group = rng.choice(
        [
            (", ".join(f"{name}.k, {name}.v" for name in names), ""),
            (f"count(*), {', '.join(f'sum({name}.v)' for name in names)}", ""),
            (f"{by}.k, count(*), sum({names[0]}.v), min({names[-1]}.v)", f" GROUP BY {by}.k"),
            (f"{by}.k, {by}.g, count({names[-1]}.v)", f" GROUP BY {by}.k, {by}.g"),
            (f"count(DISTINCT {by}.k)", ""),
            (f"DISTINCT {by}.k", ""),
            (f"{by}.k, sum({by}.v) OVER (PARTITION BY {by}.k)", ""),
        ]
    )
    return f"SELECT {outputs} FROM {text}{filters}{group}"


def plain(value):
    if isinstance(value, (int, decimal.Decimal)) and not isinstance(value, bool):
        return format(decimal.Decimal(value).normalize(), "f")
    return str(value)


def rows(table):
    columns = [column.to_pylist() for column in table.columns]
    return sorted(tuple(map(plain, row)) for row in zip(*columns, strict=True))


def main():
    options = arguments()
    warnings.simplefilter("ignore")
    engines = Engines(options)
    engines.tarn(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}")
    engines.duck.execute(f"CREATE SCHEMA {SCHEMA}")
    asked = differences = by_buckets = number = 0
    while asked < options.joins:
        lake = random.Random(f"{options.seed}/{asked}")
        tables = {}
        for family in FAMILIES:
            count = 5 if family == "number" else 3
            tables[family] = [Table(lake, number + i, engines, family) for i in range(count)]
            number += count
        for _ in range(min(options.joins_per_lake, options.joins - asked)):
            rng = random.Random(f"{options.seed}/{asked}/query")
            family = rng.choice(["number", "number", *FAMILIES])
            sql = query(rng, tables[family])
            asked += 1
            # DuckDB has no unsigned or view types to differ in: values are compared as text.
            expected = rows(engines.duck.execute(sql).to_arrow_table())
            problem = None
            try:
                plan = "\n".join(engines.tarn(f"EXPLAIN {sql}").column(0).to_pylist())
                by_buckets += "BucketJoinExec" in plan
                for attempt in range(options.repeat):
                    given = rows(engines.tarn(sql))
                    if given != expected:
                        missing = [row for row in expected if row not in given][:3]
                        more = [row for row in given if row not in expected][:3]
                        problem = f"attempt {attempt}: {len(given)} rows, not {len(expected)}; missing {missing}; too many {more}"
                        break
            except Exception as error:  # noqa: BLE001 - whatever the driver raises is the engine's answer
                problem = f"error: {error}"
            if problem:
                differences += 1
                print(f"join {asked - 1}: {sql}\n  {problem}")
                for table in tables[family]:
                    if table.name in sql:
                        print("    " + "\n    ".join(table.log))
                print(flush=True)
        for table in [table for family in tables.values() for table in family]:
            engines.tarn(f"DROP TABLE {table.name} PURGE")
            engines.duck.execute(f"DROP TABLE {table.name}")
    print(f"{asked} joins, {by_buckets} by buckets, {differences} differences")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
