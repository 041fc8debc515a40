"""TPC-H on Tarn (one process, and clusters of real worker processes) beside DuckDB, over the same Parquet files.

    benchmarks/run tpch --scale 1

Makes the data as Iceberg tables on first use, runs the 22 queries on every topology and on DuckDB in turn, checks that
all answers agree, and prints a table of times and ratios. `cold` is the first run of a query in a fresh process (the
files may be in the operating system's page cache), `warm` the median of the runs after it. Tarn and DuckDB run each
query in turn, so that a machine whose speed drifts slows both.
"""

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

import duckdb

import answers
import cluster

QUERIES = Path(__file__).resolve().parent.parent / "tests" / "tpch"


def main():
    args = parse_args()
    data = Path(args.data_dir or f"/tmp/tarn-bench/tpch-sf{args.scale:g}")
    cluster.generate_tpch(args.tarn, data, args.scale)
    files = cluster.data_files(data, "tpch")
    queries = [int(q) for q in args.queries.split(",")] if args.queries else range(1, 23)
    texts = {q: (QUERIES / f"q{q:02}.sql").read_text().rstrip().rstrip(";") for q in queries}

    results, failures = {}, []
    for topology in args.topologies.split(","):
        peer = connect_duckdb(files, args.threads)
        with cluster.start(args.tarn, data, topology, args.threads) as tarn:
            results[topology] = {}
            tarn.use("tpch")
            for q, text in texts.items():
                times = {"tarn": [], "duckdb": []}
                try:
                    for _ in range(args.runs + 1):
                        mine, seconds = timed(lambda: tarn.query(text))
                        times["tarn"].append(seconds)
                        theirs, seconds = timed(lambda: peer.sql(text).to_arrow_table())
                        times["duckdb"].append(seconds)
                except Exception as error:  # a failed query is a result to report, not the end of the run
                    failures.append(f"{topology} q{q}: {error}")
                    continue
                difference = answers.difference(answers.table_rows(mine), answers.table_rows(theirs))
                if difference:
                    failures.append(f"{topology} q{q}: {difference}")
                results[topology][q] = times
                line = row(topology, q, times)
                print(line, flush=True)
    summary(results, failures)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))
    return 1 if failures else 0


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scale", type=float, default=1, help="TPC-H scale factor")
    p.add_argument("--tarn", default=cluster.default_binary(), help="the release binary")
    p.add_argument("--data-dir", help="where the lake is kept; default /tmp/tarn-bench/tpch-sf<scale>")
    p.add_argument("--topologies", default="server,1,2,3", help="`server` is one process, a number is that many workers")
    p.add_argument("--queries", help="comma-separated numbers; default all 22")
    p.add_argument("--runs", type=int, default=3, help="warm runs of each query")
    p.add_argument("--threads", type=int, default=2, help="cores for DuckDB and for Tarn's single process")
    p.add_argument("--json", help="write the raw seconds here")
    return p.parse_args()


def connect_duckdb(files, threads):
    db = duckdb.connect(config={"threads": threads})
    for table, paths in files.items():
        db.execute(f"create view {table} as select * from read_parquet({paths!r})")
    return db


def timed(run):
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def row(topology, q, times):
    cold = times["tarn"][0], times["duckdb"][0]
    warm = statistics.median(times["tarn"][1:]), statistics.median(times["duckdb"][1:])
    return (
        f"{topology:>7} q{q:02}  cold {cold[0]*1e3:8.0f} ms / {cold[1]*1e3:8.0f} ms = {cold[0]/cold[1]:5.2f}x"
        f"   warm {warm[0]*1e3:8.0f} ms / {warm[1]*1e3:8.0f} ms = {warm[0]/warm[1]:5.2f}x"
    )


def summary(results, failures):
    print("\ntopology   queries   geomean warm   worst warm        geomean cold   total warm (tarn / duckdb)")
    medians = {}
    for topology, by_query in results.items():
        if not by_query:
            continue
        warm = {q: statistics.median(t["tarn"][1:]) / statistics.median(t["duckdb"][1:]) for q, t in by_query.items()}
        cold = {q: t["tarn"][0] / t["duckdb"][0] for q, t in by_query.items()}
        medians[topology] = {q: statistics.median(t["tarn"][1:]) for q, t in by_query.items()}
        worst = max(warm, key=warm.get)
        total = sum(medians[topology].values())
        peer = sum(statistics.median(t["duckdb"][1:]) for t in by_query.values())
        print(
            f"{topology:>8}   {len(by_query):7}   {geomean(warm.values()):11.2f}x   {warm[worst]:5.2f}x (q{worst:02})"
            f"   {geomean(cold.values()):15.2f}x   {total:8.2f} s / {peer:6.2f} s"
        )
    if {"server", "1"} <= medians.keys():
        both = medians["server"].keys() & medians["1"].keys()
        ratio = geomean(medians["1"][q] / medians["server"][q] for q in both)
        print(f"\none worker against one process: {ratio:.2f}x (geomean of warm medians)")
    print("answers: " + ("all agree with DuckDB" if not failures else f"{len(failures)} FAILURES"))
    for failure in failures:
        print("  " + failure)


def geomean(ratios):
    ratios = list(ratios)
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios))


if __name__ == "__main__":
    sys.exit(main())
