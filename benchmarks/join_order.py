"""Time to plan a query over a star of 4, 8, 12 and 20 tables, with its joins ordered and as they are written.

    benchmarks/run join_order

A table of facts has a key for each dimension. On first use it makes the tables. Then it plans the same query by EXPLAIN with `join_reorder`
ON and OFF in turn; the difference of the medians is what ordering takes. Dimensions come before the facts in the text.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import cluster

DATABASE = "join_order"
DIMENSIONS = 19
ROWS = 1000


def main():
    args = parse_args()
    data = Path(args.data_dir or "/tmp/tarn-bench/join-order")
    data.mkdir(parents=True, exist_ok=True)
    with cluster.start(args.tarn, data, "server", args.threads) as tarn:
        make_tables(tarn)
        print("tables   ordered, ms   as written, ms   ordering, ms")
        for tables in map(int, args.tables.split(",")):
            sql = query(tables)
            times = {"ON": [], "OFF": []}
            for _ in range(args.runs + 1):
                for switch, seconds in times.items():
                    tarn.query(f"SET join_reorder = {switch}")
                    start = time.perf_counter()
                    tarn.query(f"EXPLAIN {sql}")
                    seconds.append(time.perf_counter() - start)
            on, off = (statistics.median(times[switch][1:]) * 1e3 for switch in ("ON", "OFF"))
            print(f"{tables:6}   {on:11.1f}   {off:14.1f}   {on - off:12.1f}", flush=True)
    return 0


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tables", default="4,8,12,20", help="comma-separated numbers of tables, 20 at most")
    p.add_argument("--runs", type=int, default=20, help="warm plans of each")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--tarn", default=cluster.default_binary(), help="the release binary")
    p.add_argument("--data-dir", help="where the lake is kept")
    return p.parse_args()


def make_tables(tarn):
    tarn.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    tarn.use(DATABASE)
    for n in range(1, DIMENSIONS + 1):
        tarn.query(f"CREATE TABLE IF NOT EXISTS d{n} AS SELECT value AS id, value % {n + 1} AS kind FROM range(0, {n * 10})")
    keys = ", ".join(f"value % {n * 10} AS k{n}" for n in range(1, DIMENSIONS + 1))
    tarn.query(f"CREATE TABLE IF NOT EXISTS facts AS SELECT value AS id, {keys} FROM range(0, {ROWS})")


def query(tables):
    dimensions = range(1, tables)
    names = ", ".join([*(f"d{n}" for n in dimensions), "facts"])
    links = " AND ".join(f"d{n}.id = k{n} AND d{n}.kind < {n}" for n in dimensions)
    return f"SELECT count(*) FROM {names} WHERE {links}"


if __name__ == "__main__":
    sys.exit(main())
