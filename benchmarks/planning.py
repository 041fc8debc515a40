"""Time to plan a point query on a table of many files, beside PyIceberg's scan planning of the same filter.

    benchmarks/run planning --files 10000 --commits 10

Makes a table whose files each hold a range of `id` and one `day`, with a manifest for each commit, on first use. Then it
plans `SELECT * FROM t WHERE id = …` by EXPLAIN. `cold` is the first plan of a fresh server, `warm` the median of the plans
after it, each for another id. `kept` is how many files the plan reads.
"""

import argparse
import re
import statistics
import sys
import time
from pathlib import Path

import cluster

DATABASE, TABLE = "planning", "points"
ROWS_PER_FILE = 10


def main():
    args = parse_args()
    data = Path(args.data_dir or f"/tmp/tarn-bench/planning-{args.files}-{args.commits}")
    data.mkdir(parents=True, exist_ok=True)
    with cluster.start(args.tarn, data, "server", args.threads) as tarn:
        make_table(tarn, args.files, args.commits)
    with cluster.start(args.tarn, data, "server", args.threads) as tarn:
        rows = args.files * ROWS_PER_FILE
        step = rows // (args.runs + 2)
        times, kept = [], set()
        for i in range(args.runs + 1):
            seconds, files = plan(tarn, (i + 1) * step)
            times.append(seconds)
            kept.add(files)
        memory = resident_bytes(tarn.pid)
        print(f"tarn       cold {times[0] * 1e3:8.1f} ms   warm {statistics.median(times[1:]) * 1e3:8.1f} ms   kept {sorted(kept)} files"
              f"   memory {memory / 2**20:.0f} MiB")
    if not args.no_peer:
        times, kept = pyiceberg(data, [(i + 1) * step for i in range(min(args.runs, 3))])
        print(f"pyiceberg  cold {times[0] * 1e3:8.1f} ms   warm {statistics.median(times[1:]) * 1e3:8.1f} ms   kept {sorted(kept)} files")
    return 0


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--files", type=int, default=10_000, help="data files of the table")
    p.add_argument("--commits", type=int, default=10, help="commits that made them: a manifest each")
    p.add_argument("--runs", type=int, default=20, help="warm plans")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--tarn", default=cluster.default_binary(), help="the release binary")
    p.add_argument("--data-dir", help="where the lake is kept")
    p.add_argument("--no-peer", action="store_true", help="without PyIceberg")
    return p.parse_args()


def make_table(tarn, files, commits):
    tarn.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    tarn.query(
        f"CREATE TABLE IF NOT EXISTS {DATABASE}.{TABLE} (part INT, id BIGINT, day DATE, name STRING, amount DOUBLE, note STRING)"
        " PARTITION BY (part)"
    )
    have = tarn.query(f"SELECT count(*) AS n FROM {DATABASE}.{TABLE}").to_pylist()[0]["n"]
    each = files // commits
    for commit in range(have // (each * ROWS_PER_FILE), commits):
        first = commit * each * ROWS_PER_FILE
        tarn.query(
            f"INSERT INTO {DATABASE}.{TABLE} SELECT CAST(value DIV {ROWS_PER_FILE} AS INT), value, DATE '2026-01-01' + INTERVAL (value DIV 100000) DAY,"
            f" concat('name ', value), value * 0.5, 'note' FROM range({first}, {first + each * ROWS_PER_FILE})"
        )
        print(f"\rcommit {commit + 1} of {commits}", end="", file=sys.stderr, flush=True)


def plan(tarn, id):
    start = time.perf_counter()
    text = tarn.query(f"EXPLAIN SELECT * FROM {DATABASE}.{TABLE} WHERE id = {id}")
    seconds = time.perf_counter() - start
    lines = "\n".join(str(value) for column in text.columns for value in column.to_pylist())
    return seconds, int(re.search(r"files=(\d+)/", lines).group(1))


def pyiceberg(data, ids):
    from pyiceberg.catalog.sql import SqlCatalog

    table = SqlCatalog("lake", uri=f"sqlite:///{data}/catalog.db", warehouse=f"file://{data}/warehouse").load_table((DATABASE, TABLE))
    times, kept = [], set()
    for id in ids:
        start = time.perf_counter()
        kept.add(len(list(table.scan(row_filter=f"id = {id}").plan_files())))
        times.append(time.perf_counter() - start)
    return times, kept


def resident_bytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


if __name__ == "__main__":
    sys.exit(main())
