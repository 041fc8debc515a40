"""Time to read a table with row-level deletes, beside the same table without, and beside DuckDB over the same files.

    benchmarks/run deletes --rows 20000000

Makes four tables of the same rows on first use: `plain`; `positions`, of which a tenth of the rows are deleted by position
delete files, one for each data file; `vectors`, by deletion vectors (format version 3); `keys`, with an equality delete
file of 100,000 ids. PyIceberg commits the deletes. Each query is run on each table in turn; `x` is the median time on a
table over that on `plain`. `cold` is the first run of a fresh server, which reads the deletes. Answers are compared with
what was deleted.
"""

import argparse
import glob
import os
import random
import statistics
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import cluster

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "clients"))

DATABASE = "deletes"
TABLES = {"plain": 2, "positions": 2, "vectors": 3, "keys": 2}
PATIENCE_SECONDS = 60  # with a query of a peer's
DELETED_SHARE = 10  # one row in so many
QUERIES = {
    "all": "SELECT count(id) AS n, sum(id) AS s, sum(amount) AS a, max(name) AS m, max(day) AS d FROM {}",
    "one column": "SELECT count(amount) AS n, sum(amount) AS a FROM {}",
    "filtered": "SELECT count(id) AS n, sum(amount) AS a FROM {} WHERE kind = 3",
    "groups": "SELECT kind, count(id) AS n, sum(amount) AS a FROM {} GROUP BY kind ORDER BY kind",
}


def main():
    args = parse_args()
    for table in set(TABLES) - set(args.tables.split(",")):
        del TABLES[table]
    data = Path(args.data_dir or f"/tmp/tarn-bench/deletes-{args.rows}-{args.keys}")
    data.mkdir(parents=True, exist_ok=True)
    with cluster.start(args.tarn, data, "server", args.threads) as tarn:
        fresh = make_tables(tarn, args)
    if fresh:
        delete_rows(data, args.keys)
    left = {table: args.rows - deleted for table, deleted in deleted_rows(data, args.keys).items()}
    with cluster.start(args.tarn, data, "server", args.threads) as tarn:
        def run(sql):
            return tarn.query(sql).to_pylist()

        names = {table: f"{DATABASE}.{table}" for table in TABLES}
        report("tarn", run, names, left, args.runs)
    if not args.no_peer:
        duckdb, names = open_duckdb(data, args.threads)
        report("duckdb", lambda sql: within_patience(duckdb, sql), names, left, args.runs)
    return 0


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=int, default=20_000_000)
    p.add_argument("--keys", type=int, default=100_000, help="keys of the equality delete file")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--tables", default=",".join(TABLES), help="those to make and read; `plain` is among them")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--tarn", default=cluster.default_binary(), help="the release binary")
    p.add_argument("--data-dir", help="where the lake is kept")
    p.add_argument("--no-peer", action="store_true", help="without DuckDB")
    return p.parse_args()


def report(engine, run, names, left, runs):
    tables, cold = [], {}
    for table, name in names.items():
        start = time.perf_counter()
        try:
            (row,) = run(QUERIES["all"].format(name))
        except Exception as error:  # noqa: BLE001 - a peer that cannot read a table is a result
            print(f"{engine:8}{table:11}cannot: {str(error).splitlines()[0][:150]}")
            continue
        cold[table] = time.perf_counter() - start
        assert row["n"] == left[table], f"{engine} counts {row['n']} rows of {table}, not {left[table]}"
        tables.append(table)
    for query, sql in QUERIES.items():
        times = {table: [] for table in tables}
        for _ in range(runs):
            for table in tables:
                start = time.perf_counter()
                run(sql.format(names[table]))
                times[table].append(time.perf_counter() - start)
        medians = {table: statistics.median(times[table]) for table in tables}
        for table in tables:
            first = f"   cold {cold[table] * 1e3:8.1f} ms" if query == "all" else ""
            print(f"{engine:8}{query:12}{table:11}{medians[table] * 1e3:9.1f} ms   {medians[table] / medians['plain']:5.2f}x{first}")


def within_patience(duckdb, sql):
    """The rows of an answer that comes soon enough."""
    timer = threading.Timer(PATIENCE_SECONDS, duckdb.interrupt)
    timer.start()
    try:
        return duckdb.sql(sql).arrow().read_all().to_pylist()
    finally:
        timer.cancel()


def make_tables(tarn, args):
    tarn.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    if tarn.query(f"SHOW TABLES FROM {DATABASE}").num_rows >= len(TABLES):
        return False
    for table, version in TABLES.items():
        tarn.query(
            f"CREATE TABLE {DATABASE}.{table} (id BIGINT, kind INT, name STRING, amount DOUBLE, day DATE)"
            f" TBLPROPERTIES ('format-version' = '{version}')"
        )
        step = max(args.rows // 8, 1)
        for first in range(0, args.rows, step):
            tarn.query(
                f"INSERT INTO {DATABASE}.{table} SELECT value, CAST(value * 7919 % 10 AS INT), concat('name ', value % 100000), value * 0.5,"
                f" DATE '2026-01-01' + INTERVAL (value % 365) DAY FROM range({first}, {min(first + step, args.rows)})"
            )
    return True


def load(data, table):
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{data}/catalog.db", warehouse=f"file://{data}/warehouse")
    return catalog.load_table((DATABASE, table))


def positions_of(path, rows):
    """A tenth of a file's rows, the same for every table that has it at the same place."""
    return sorted(random.Random(f"{path} {rows}").sample(range(rows), rows // DELETED_SHARE))


def keys_of(rows, keys):
    return sorted(random.Random(rows).sample(range(rows), min(keys, rows)))


def deleted_rows(data, keys):
    def by_position(table):
        return sum(task.file.record_count // DELETED_SHARE for task in plan_files(load(data, table)))

    rows = sum(task.file.record_count for task in plan_files(load(data, "plain")))
    deleted = {"plain": lambda _: 0, "keys": lambda _: min(keys, rows)}
    return {table: deleted.get(table, by_position)(table) for table in TABLES}


def plan_files(table):
    """Data files, by their manifests: PyIceberg plans no scan of a table with equality deletes."""
    from pyiceberg.manifest import DataFileContent

    entries = (
        entry for manifest in table.current_snapshot().manifests(table.io) for entry in manifest.fetch_manifest_entry(table.io)
    )
    return [SimpleNamespace(file=e.data_file) for e in entries if e.data_file.content == DataFileContent.DATA]


def delete_rows(data, keys):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record
    from random_tables.commit import commit
    from random_tables.version3 import write_deletion_vectors

    def column(id_, name, values, type_):
        field = pa.field(name, type_, nullable=False, metadata={"PARQUET:field_id": str(id_)})
        return field, pa.array(values, type_)

    def delete_file(table, name, content, columns, **more):
        path = f"{table.location()}/data/{name}.parquet"
        fields, arrays = zip(*columns)
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path.removeprefix("file://"), compression="zstd")
        return DataFile.from_args(
            _table_format_version=3,
            content=content,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=len(arrays[0]),
            file_size_in_bytes=Path(path.removeprefix("file://")).stat().st_size,
            **more,
        )

    def add(table, files):
        target = SimpleNamespace(iceberg=table, location=table.location())
        commit(random.Random(1), target, deletes=[(file, 0) for file in files])

    def by_positions(table):
        for number, task in enumerate(plan_files(table)):
            path, positions = task.file.file_path, positions_of(task.file.file_path, task.file.record_count)
            bounds = {2147483546: path.encode()}
            paths = column(2147483546, "file_path", [path] * len(positions), pa.string())
            yield delete_file(
                table,
                f"deletes-{number}",
                DataFileContent.POSITION_DELETES,
                [paths, column(2147483545, "pos", positions, pa.int64())],
                lower_bounds=bounds,
                upper_bounds=bounds,
            )

    def by_vectors(table):
        vectors = [(t.file.file_path, Record(), positions_of(t.file.file_path, t.file.record_count)) for t in plan_files(table)]
        return write_deletion_vectors(f"{table.location()}/data/deletes.puffin", vectors)

    def by_keys(table):
        rows = sum(task.file.record_count for task in plan_files(table))
        ids = column(1, "id", keys_of(rows, keys), pa.int64())
        return [delete_file(table, "deletes", DataFileContent.EQUALITY_DELETES, [ids], equality_ids=[1])]

    for name, deletes in {"positions": by_positions, "vectors": by_vectors, "keys": by_keys}.items():
        if name in TABLES:
            table = load(data, name)
            add(table, deletes(table))


def open_duckdb(data, threads):
    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": threads})
    packages = os.path.join(os.path.dirname(duckdb.__file__), "..")
    for extension in ("avro", "iceberg"):
        (path,) = glob.glob(f"{packages}/duckdb_extension_{extension}/**/*.duckdb_extension", recursive=True)
        connection.execute(f"load '{path}'")
    return connection, {table: f"iceberg_scan('{load(data, table).metadata_location}')" for table in TABLES}


if __name__ == "__main__":
    sys.exit(main())
