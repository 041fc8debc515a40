"""Random joins over tables that are bucketed in random ways: Tarn's answers against DuckDB's over the same rows.

    random_joins.py --address 127.0.0.1:9040 --data DATA_DIR --joins 300 --seed 1
    random_joins.py --binary target/release/tarn --workers 3 --broadcast 0 --joins 2000 --seed 2

With `--binary`, Tarn is started over a temporary directory, and its scans are spread over all workers however small they
are. Each join is run `--repeat` times, since what goes wrong between partitions goes wrong now and then. A difference is
printed with the tables, the query and its plan; the exit code is 1 if there was any.
"""

import argparse
import contextlib
import datetime
import decimal
import os
import random
import re
import sys
import tempfile
import uuid
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import cluster
import duckdb
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import BucketTransform

SCHEMA = "random_joins"
# Types by whether their keys can be joined; all of a family hash alike. The second name is DuckDB's.
FAMILIES = {
    "number": [("INT", "INT"), ("BIGINT", "BIGINT")],
    "text": [("STRING", "VARCHAR")],
    "date": [("DATE", "DATE")],
    "decimal": [("DECIMAL(9,2)", "DECIMAL(9,2)"), ("DECIMAL(14,2)", "DECIMAL(14,2)")],
    "wide": [("DECIMAL(30,4)", "DECIMAL(30,4)")],
    "timestamp": [("TIMESTAMP", "TIMESTAMP"), ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")],
    "time": [("TIME", "TIME")],
    "binary": [("BINARY", "BLOB")],
    "uuid": [("UUID", "UUID")],
}
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
HINTS = ["BROADCAST", "SHUFFLE", "BUCKET", "COLOCATE"]
BUCKETS = [1, 2, 3, 4, 4, 6, 8, 8, 16, 32]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", help="host:port of Flight SQL")
    parser.add_argument("--data", help="the data directory of the Tarn at the address")
    parser.add_argument("--binary", help="start this Tarn instead, over a temporary directory")
    parser.add_argument("--workers", type=int, default=3, help="0 for one process")
    parser.add_argument("--broadcast", help="`query.broadcast` of a Tarn that is started")
    parser.add_argument("--joins", type=int, default=300)
    parser.add_argument("--joins-per-lake", type=int, default=60, help="then the tables are made anew")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the join of this number alone")
    return parser.parse_args()


def literal(family, key):
    """A key as both engines write it."""
    if key is None:
        return "NULL"
    return {
        "number": lambda: str(key - 2),
        "text": lambda: f"'{'kö' * (key % 5)}{key}'",
        "date": lambda: f"DATE '{datetime.date(1969, 12, 30) + datetime.timedelta(key)}'",
        "decimal": lambda: f"{key - 2}.{key % 90 + 10}",
        "wide": lambda: f"{'-' * (key % 3 == 0)}{key * 10**22 + 1}.{key % 90 + 10}",
        "timestamp": lambda: f"TIMESTAMP '{datetime.datetime(1969, 12, 31, 23, 59) + datetime.timedelta(seconds=key * 10, microseconds=key)}'",
        "time": lambda: f"TIME '{(datetime.datetime(1970, 1, 1, 1) + datetime.timedelta(seconds=key)).time()}'",
        "binary": lambda: f"X'{bytes(range(key % 7)).hex()}{key:02x}'",
        "uuid": lambda: f"'{key:08x}-0000-4000-8000-{key * 7:012x}'",
    }[family]()


class Table:
    """One table, in both engines."""

    def __init__(self, rng, number, engines, family):
        self.rng, self.family = rng, family
        self.name = f"{SCHEMA}.t{number}"
        self.type, duck = rng.choice(FAMILIES[family])
        fields = []
        if rng.random() < 0.85:
            fields.append(f"bucket({rng.choice(BUCKETS)}, k)")
        if rng.random() < 0.25:
            fields.append(f"bucket({rng.choice(BUCKETS)}, j)")
        beside = rng.choice([None, None, None, "g", "truncate(10, v)"])
        if beside:
            fields.append(beside)
        rng.shuffle(fields)
        partition = f" PARTITION BY ({', '.join(fields)})" if fields else ""
        self.log = [f"CREATE TABLE {self.name} (k {self.type}, j INT, g INT, v BIGINT){partition}"]
        engines.tarn(self.log[0])
        engines.duck.execute(f"CREATE TABLE {self.name} (k {duck}, j INT, g INT, v BIGINT)")
        self.grow(engines)

    def grow(self, engines):
        rng = self.rng
        keys = rng.choice([3, 20, 20, 100])
        for append in range(rng.choice([0, 1, 1, 1, 2, 3])):
            if append and rng.random() < 0.3:
                self.evolve(engines)
            # Three tables of which one key has 40% join to thousands of rows; more would only take long.
            count = rng.choice([1, 5, 20, 50])
            skew = rng.choice([0, 0, 0.4])
            nulls = rng.choice([0, 0.1, 0.1, 1])
            rows = []
            for _ in range(count):
                key = None if rng.random() < nulls else 1 if rng.random() < skew else rng.randrange(keys)
                second = "NULL" if rng.random() < 0.1 else rng.randrange(12)
                rows.append(f"({self.literal(key)}, {second}, {rng.randrange(3)}, {rng.randrange(1000)})")
            insert = f"INSERT INTO {self.name} VALUES {', '.join(rows)}"
            self.log.append(insert if len(insert) < 2000 else f"{insert[:2000]} … ({count} rows)")
            engines.tarn(insert)
            engines.duck.execute(for_duck(insert))
        # Rows of no spec but an older one.
        if rng.random() < 0.1:
            self.evolve(engines)

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
        self.log.append(f"-- {to} buckets of k from here on")

    def literal(self, key):
        return literal(self.family, key)


class Engines:
    def __init__(self, tarn, data):
        self.tarn = tarn.query
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'; SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        self.catalog = SqlCatalog("lake", uri=f"sqlite:///{data}/catalog.db", warehouse=f"file://{data}/warehouse")


def for_duck(sql):
    """The statement in DuckDB's words."""
    sql = re.sub(r"X'([0-9a-f]*)'", lambda m: "'" + re.sub("(..)", r"\\x\1", m[1]) + "'::BLOB", sql)
    return re.sub(r" \[\w+\]", "", sql).replace("<=>", "IS NOT DISTINCT FROM")


def condition(rng, alias, table):
    key = table.literal(rng.randrange(20))
    return rng.choice(
        [
            f"{alias}.v < {rng.randrange(1000)}",
            f"{alias}.g = {rng.randrange(3)}",
            f"{alias}.j = {rng.randrange(12)}",
            f"{alias}.k = {key}",
            f"{alias}.k <> {key}",
            f"{alias}.k >= {key}",
            f"{alias}.k IN ({table.literal(1)}, {table.literal(7)})",
            f"{alias}.k IS NOT NULL",
            f"{alias}.k IS NULL",
            f"{alias}.v > 2000",
        ]
    )


def side(rng, table, others):
    """What is joined: most often a table as it is."""
    where = f" WHERE {condition(rng, 's', table)}" if rng.random() < 0.5 else ""
    if rng.random() < 0.6:
        return table.name
    other = rng.choice([other for other in others if other.type == table.type])
    return rng.choice(
        [
            f"(SELECT k, j, g, v FROM {table.name} s WHERE {condition(rng, 's', table)})",
            f"(SELECT k, j, g, v FROM {table.name} s WHERE {condition(rng, 's', table)})",
            f"(SELECT k, min(j) AS j, max(g) AS g, count(*) AS v FROM {table.name} s{where} GROUP BY k)",
            f"(SELECT k, j, max(g) AS g, count(*) AS v FROM {table.name} s{where} GROUP BY k, j)",
            f"(SELECT DISTINCT k, j, g, 1 AS v FROM {table.name} s{where})",
            f"(SELECT k, j, g, sum(v) OVER (PARTITION BY k) AS v FROM {table.name} s{where})",
            f"(SELECT k, j, g, v FROM {table.name} s{where} UNION ALL SELECT k, j, g, v FROM {other.name})",
        ]
    )


def query(rng, tables):
    """A chain of one to four tables of one family."""
    chosen = [rng.choice(tables) for _ in range(rng.choice([1, 2, 2, 2, 2, 3, 3, 4]))]
    names = [f"a{i}" for i in range(len(chosen))]
    text = f"{side(rng, chosen[0], tables)} {names[0]}"
    hinted = rng.random() < 0.25
    for i in range(1, len(chosen)):
        kind = rng.choice(KINDS if rng.random() < 0.6 else ["JOIN"])
        hint = f" [{rng.choice(HINTS)}]" if hinted and rng.random() < 0.7 else ""
        left, right = names[rng.randrange(i)], names[i]
        equal = "<=>" if rng.random() < 0.08 else "="
        on = [f"{left}.k {equal} {right}.k"] if rng.random() < 0.9 else []
        if not on or rng.random() < 0.15:
            on.append(f"{left}.j = {right}.j")
        if rng.random() < 0.15:
            on.append(f"{names[i - 1]}.v <> {right}.v")
        if rng.random() < 0.15:
            on.append(f"{names[i - 1]}.g = {right}.g")
        text += f" {kind}{hint} {side(rng, chosen[i], tables)} {right} ON {' AND '.join(on)}"
    where = []
    if rng.random() < 0.35:
        at = rng.randrange(len(chosen))
        where.append(condition(rng, names[at], chosen[at]))
    if rng.random() < 0.35:
        other = rng.choice(tables)
        at = rng.choice(names)
        inner = f"SELECT 1 FROM {other.name} x WHERE x.k = {at}.k"
        if rng.random() < 0.5:
            inner += f" AND {condition(rng, 'x', other)}"
        if rng.random() < 0.15:
            inner += f" AND x.v < {at}.v"
        where.append(
            rng.choice(
                [
                    f"EXISTS ({inner})",
                    f"NOT EXISTS ({inner})",
                    f"{at}.k IN (SELECT k FROM {other.name})",
                    f"{at}.k NOT IN (SELECT k FROM {other.name} WHERE k IS NOT NULL)",
                    f"{at}.k NOT IN (SELECT k FROM {other.name})",
                    f"({at}.g = 1 OR EXISTS ({inner}))",
                ]
            )
        )
    filters = f" WHERE {' AND '.join(where)}" if where else ""
    by, first, last = rng.choice(names), names[0], names[-1]
    columns = ", ".join(f"{name}.k AS k{i}, {name}.v AS v{i}" for i, name in enumerate(names))
    outputs, group = rng.choice(
        [
            (columns, ""),
            (f"count(*), {', '.join(f'sum({name}.v)' for name in names)}", ""),
            (f"count({by}.k), min({by}.k), max({by}.k)", ""),
            (f"{by}.k, count(*), sum({first}.v), min({last}.v)", f" GROUP BY {by}.k"),
            (f"{by}.k, {by}.g, count({last}.v)", f" GROUP BY {by}.k, {by}.g"),
            (f"{by}.j, {by}.k, max({last}.v)", f" GROUP BY {by}.j, {by}.k HAVING count(*) > 1"),
            (f"{by}.j, count(*)", f" GROUP BY {by}.j"),
            (f"count(DISTINCT {by}.k)", ""),
            (f"{by}.k, count(DISTINCT {last}.v)", f" GROUP BY {by}.k"),
            (f"DISTINCT {by}.k", ""),
            (f"{by}.k, sum({by}.v) OVER (PARTITION BY {by}.k)", ""),
            (f"{by}.k, {by}.v, rank() OVER (PARTITION BY {by}.k, {by}.g ORDER BY {last}.v)", ""),
            (f"{by}.k, count(*) OVER (PARTITION BY {by}.j)", ""),
            (f"{by}.k, {by}.v, {last}.v", f" ORDER BY {by}.k, {by}.v DESC, {last}.v LIMIT {rng.randrange(20)}"),
        ]
    )
    sql = f"SELECT {outputs} FROM {text}{filters}{group}"
    if rng.random() < 0.1 and outputs == columns:
        sql = f"SELECT count(*) FROM ({sql} LIMIT {rng.randrange(30)}) q"
    return sql


def plain(value):
    if isinstance(value, (int, decimal.Decimal)) and not isinstance(value, bool):
        return format(decimal.Decimal(value).normalize(), "f")
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, bytes):
        return value.hex()
    # DuckDB gives a UUID as text, Tarn its bytes.
    if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value):
        return value.replace("-", "")
    return str(value)


def rows(table):
    columns = [column.to_pylist() for column in table.columns]
    return sorted(tuple(map(plain, row)) for row in zip(*columns, strict=True))


def difference(expected, given):
    if given == expected:
        return None
    missing = list((Counter(expected) - Counter(given)).elements())
    more = list((Counter(given) - Counter(expected)).elements())
    return f"{len(given)} rows, not {len(expected)}; missing {missing[:3]}; too many {more[:3]}"


def asked(engines, sql, repeat):
    """What is wrong with the answers, if anything, and the plan."""
    # Values are compared as text: DuckDB has other types for the same ones.
    expected = rows(engines.duck.execute(for_duck(sql)).to_arrow_table())
    plan = ""
    try:
        plan = "\n".join(engines.tarn(f"EXPLAIN {sql}").column(0).to_pylist())
        for attempt in range(repeat):
            problem = difference(expected, rows(engines.tarn(sql)))
            if problem:
                return f"attempt {attempt}: {problem}", plan
    except Exception as error:  # noqa: BLE001 - whatever the driver raises is the engine's answer
        # Not every hint can be followed, and which can is not this test's to know.
        if "[" in sql and "hint " in str(error) and "impossible" in str(error):
            return None, "refused"
        return f"error: {error}", plan
    return None, plan


def run(options, engines):
    engines.tarn("SET bucket_joins = ON")
    # However small its sides are, a join may have a filter.
    engines.tarn("SET runtime_filter_min_rows = 0")
    engines.tarn("SET skew_join_min_rows = 0")
    engines.tarn(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}")
    engines.duck.execute(f"CREATE SCHEMA {SCHEMA}")
    kinds = Counter()
    done = differences = number = 0
    while done < options.joins:
        skipped = options.only is not None and not 0 <= options.only - done < options.joins_per_lake
        lake = random.Random(f"{options.seed}/{done}")
        families = ["number", *lake.sample([family for family in FAMILIES if family != "number"], 3)]
        tables = {}
        for family in families:
            count = 5 if family == "number" else 3
            if not skipped:
                tables[family] = [Table(lake, number + i, engines, family) for i in range(count)]
            number += count
        for _ in range(min(options.joins_per_lake, options.joins - done)):
            rng = random.Random(f"{options.seed}/{done}/query")
            family = rng.choice(["number", *families])
            done += 1
            if done % 20 == 0:
                print(f"{done} asked", file=sys.stderr, flush=True)
            if options.only not in (None, done - 1):
                continue
            sql = query(rng, tables[family])
            problem, plan = asked(engines, sql, options.repeat)
            kinds["refused hints"] += plan == "refused"
            kinds.update(set(re.findall(r"distribution +(\w+)", plan)))
            kinds["with runtime filters"] += "RuntimeFilterTarget" in plan
            kinds["with spread keys"] += "__salt" in plan
            kinds["by buckets"] += "BucketJoinExec" in plan or "buckets=" in plan
            if problem:
                differences += 1
                print(f"join {done - 1} of seed {options.seed}: {sql}\n  {problem}")
                for table in tables[family]:
                    if table.name in sql:
                        print("    " + "\n    ".join(table.log))
                print("    " + plan.replace("\n", "\n    "), end="\n\n", flush=True)
        for table in [table for family in tables.values() for table in family]:
            engines.tarn(f"DROP TABLE {table.name} PURGE")
            engines.duck.execute(f"DROP TABLE {table.name}")
    seen = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{done} joins ({seen}), {differences} differences")
    return differences


@contextlib.contextmanager
def started(options):
    """The Tarn that is asked, and its data directory."""
    if not options.binary:
        yield cluster.Tarn({"flight": options.address}, None), options.data
        return
    os.environ["TARN_QUERY_SPREAD"] = "1"
    if options.broadcast is not None:
        os.environ["TARN_QUERY_BROADCAST"] = options.broadcast
    with tempfile.TemporaryDirectory() as data:
        with cluster.start(options.binary, data, options.workers or "server", threads=2) as tarn:
            yield tarn, data


def main():
    options = arguments()
    warnings.simplefilter("ignore")
    with started(options) as (tarn, data):
        sys.exit(bool(run(options, Engines(tarn, data))))


if __name__ == "__main__":
    main()
