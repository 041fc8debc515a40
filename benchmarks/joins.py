"""Joins by buckets on three workers, beside the same joins shuffled; the colocated join on 1, 2, 3 and 5 workers; a shuffled
join that asks for 1 % of the keys, with and without its runtime filter; and one of a table in which one key has 80 % of the
rows, with and without spreading them.

    benchmarks/run joins --scale 1

`events` (TPC-H's lineitem) and `users` (its orders) are made in buckets of the order's key, and as copies without. Each query
runs `--runs` times after one warm-up; times are medians. The rows over the network are those that shuffles and broadcasts
moved, by EXPLAIN ANALYZE. Every answer is compared with that of the copies without buckets.
"""

import argparse
import os
import re
import statistics
import time
from pathlib import Path

import cluster

DATABASE = "joins"
TABLES = {
    "events": ("l_orderkey AS user_id, l_partkey AS item, l_quantity AS amount, l_shipdate AS day", "lineitem"),
    "users": ("o_orderkey AS user_id, o_custkey AS city, o_orderstatus AS state", "orders"),
}
# Without buckets: the keys in a hundred waves, the events sorted by them, and a table with one heavy key.
OTHERS = {
    "waves": "SELECT o_orderkey AS user_id, o_orderkey * 100 DIV (SELECT max(o_orderkey) + 1 FROM tpch.orders) AS wave FROM tpch.orders",
    "sorted_events": "SELECT l_orderkey AS user_id, l_quantity AS amount FROM tpch.lineitem ORDER BY l_orderkey",
    "skewed_events": "SELECT CASE WHEN l_suppkey % 10 < 8 THEN 7 ELSE l_orderkey END AS user_id, l_quantity AS amount FROM tpch.lineitem",
}
FILTERED = "SELECT count(*) AS n, sum(amount) AS total FROM sorted_events WHERE user_id IN (SELECT user_id FROM waves WHERE wave = 42)"
SKEWED = "SELECT u.state, count(*) AS n, sum(e.amount) AS total FROM skewed_events e JOIN plain_users u ON e.user_id = u.user_id GROUP BY u.state ORDER BY u.state"
# All columns of both tables, and two of each.
JOIN = "SELECT u.state, count(*) AS n, sum(e.amount) AS total, max(e.item) AS item, min(e.day) AS day, max(u.city) AS city FROM {} e JOIN {} u ON e.user_id = u.user_id GROUP BY u.state ORDER BY u.state"
NARROW = "SELECT u.state, count(*) AS n, sum(e.amount) AS total FROM {} e JOIN {} u ON e.user_id = u.user_id GROUP BY u.state ORDER BY u.state"


def main():
    args = parse_args()
    # The side without buckets is to be shuffled, however small the scale makes it.
    os.environ.setdefault("TARN_QUERY_BROADCAST", "64KiB")
    data = Path(args.data_dir or f"/tmp/tarn-bench/joins-sf{args.scale:g}-{args.buckets}")
    data.mkdir(parents=True, exist_ok=True)
    cluster.generate_tpch(args.tarn, data, args.scale)
    with cluster.start(args.tarn, data, 3, args.threads) as tarn:
        make_tables(tarn, args.buckets)
        by_buckets(tarn)
        for width, join in [("two columns", NARROW), ("all columns", JOIN)]:
            shuffled = measure(tarn, join.format("plain_events", "plain_users"), args.runs)
            print_line(f"shuffle {width}", 3, shuffled)
            for name, tables in {
                "colocate": ("events", "users"),
                "bucket shuffle": ("events", "plain_users"),
            }.items():
                found = measure(tarn, join.format(*tables), args.runs)
                assert found["answer"] == shuffled["answer"], f"{name}: {found['answer']} is not {shuffled['answer']}"
                print_line(f"{name} {width}", 3, found, shuffled)
        for name, sql, variable in [("runtime filter", FILTERED, "runtime_filters"), ("spread keys", SKEWED, "skew_joins")]:
            tarn.query(f"SET {variable} = OFF")
            without = measure(tarn, sql, args.runs)
            tarn.query(f"SET {variable} = ON")
            found = measure(tarn, sql, args.runs)
            assert found["answer"] == without["answer"], f"{name}: {found['answer']} is not {without['answer']}"
            print_line(f"no {name}", 3, without)
            print_line(name, 3, found, without)
    for workers in [1, 2, 3, 5]:
        with cluster.start(args.tarn, data, workers, args.threads) as tarn:
            by_buckets(tarn)
            found = measure(tarn, JOIN.format("events", "users"), args.runs)
            assert found["answer"] == shuffled["answer"], f"{workers} workers: {found['answer']}"
            print_line("colocate", workers, found)


def by_buckets(tarn):
    tarn.use(DATABASE)
    tarn.query("SET bucket_joins = ON")


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scale", type=float, default=1)
    p.add_argument("--buckets", type=int, default=12)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--tarn", default=cluster.default_binary(), help="the release binary")
    p.add_argument("--data-dir", help="where the lake is kept")
    return p.parse_args()


def make_tables(tarn, buckets):
    tarn.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    tarn.use(DATABASE)
    there = {row["table_name"] for row in tarn.query(f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}'").to_pylist()}
    for name, (columns, source) in TABLES.items():
        for table, partition in [(name, f" PARTITION BY (bucket({buckets}, user_id))"), (f"plain_{name}", "")]:
            if table not in there:
                tarn.query(f"CREATE TABLE {table}{partition} AS SELECT {columns} FROM tpch.{source}")
    for name, query in OTHERS.items():
        if name not in there:
            tarn.query(f"CREATE TABLE {name} AS {query}")


def measure(tarn, sql, runs):
    answer = tarn.query(sql).to_pylist()
    times = []
    for _ in range(runs):
        began = time.monotonic()
        assert tarn.query(sql).to_pylist() == answer
        times.append(time.monotonic() - began)
    plan = tarn.query(f"EXPLAIN ANALYZE {sql}").column(0).to_pylist()
    distribution = next((line.split()[1].rstrip(":") for line in plan if line.startswith("  distribution")), "none")
    events = re.search(r"FROM (\w+)", sql)[1]
    read = int(re.search(rf"scan of \S+\.{events} .*?\n  read +(\d+) rows", "\n".join(plan), re.DOTALL)[1])
    return {"read": read, "answer": answer, "seconds": statistics.median(times), "rows": network_rows(plan), "distribution": distribution}


def network_rows(plan):
    """Rows that shuffles and broadcasts brought to the stages above them."""
    rows = 0
    for line in plan:
        if "NetworkShuffleExec" in line or "NetworkBroadcastExec" in line:
            found = re.search(r"output_rows=([\d.]+)\s*([KMB]?)", line)
            if found:
                rows += float(found[1]) * {"": 1, "K": 1e3, "M": 1e6, "B": 1e9}[found[2]]
    return int(rows)


def print_line(name, workers, found, beside=None):
    ratio = f"   {beside['seconds'] / found['seconds']:.2f}x as fast" if beside else ""
    print(f"{name:15} {workers} workers   {found['seconds'] * 1e3:8.1f} ms   {found['rows']:>10} rows over the network   {found['read']:>9} rows of the events read   {found['distribution']}{ratio}")


if __name__ == "__main__":
    main()
