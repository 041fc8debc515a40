"""Queries on Tarn and on DuckDB in turn: times, ratios, and whether the answers agree."""

import json
import math
import statistics
import time
from pathlib import Path

import answers
import cluster


def arguments(parser, suite, topologies):
    """The arguments that all suites have."""
    parser.add_argument("--scale", type=float, default=1, help="scale factor")
    parser.add_argument("--tarn", default=cluster.default_binary(), help="the release binary")
    parser.add_argument("--data-dir", help=f"where the lake is kept; default /tmp/tarn-bench/{suite}-sf<scale>")
    parser.add_argument("--topologies", default=topologies, help="`server` is one process, a number is that many workers")
    parser.add_argument("--queries", help="comma-separated numbers; default all")
    parser.add_argument("--runs", type=int, default=3, help="warm runs of each query; 0 only compares answers")
    parser.add_argument("--threads", type=int, default=2, help="cores for DuckDB and for Tarn's single process")
    parser.add_argument("--set", action="append", default=[], help="an assignment for Tarn's session, such as join_reorder=OFF")
    parser.add_argument("--json", help="write the raw seconds here")


def data_folder(args, suite):
    return Path(args.data_dir or f"/tmp/tarn-bench/{suite}-sf{args.scale:g}")


def run(args, data, database, peer, queries, tolerance=None):
    """Runs `queries` (number: Tarn's text and DuckDB's) on every topology, prints what they took; the process's exit code."""
    if args.queries:
        queries = {int(number): queries[int(number)] for number in args.queries.split(",")}
    results, failures = {}, []
    for topology in args.topologies.split(","):
        with cluster.start(args.tarn, data, topology, args.threads) as tarn:
            results[topology] = {}
            tarn.use(database)
            for statement in args.set:
                tarn.query(f"SET {statement}")
            for number, (text, theirs_text) in queries.items():
                times = {"tarn": [], "duckdb": []}
                try:
                    for _ in range(args.runs + 1):
                        mine, seconds = timed(lambda: tarn.query(text))
                        times["tarn"].append(seconds)
                        theirs, seconds = timed(lambda: peer.sql(theirs_text).to_arrow_table())
                        times["duckdb"].append(seconds)
                except Exception as error:  # a failed query is a result to report, not the end of the run
                    failures.append(f"{topology} q{number}: {error}")
                    print(failures[-1], flush=True)
                    continue
                limits = [] if tolerance is None else [tolerance]
                difference = answers.difference(answers.table_rows(mine), answers.table_rows(theirs), *limits)
                if difference:
                    failures.append(f"{topology} q{number}: {difference}")
                    print(failures[-1], flush=True)
                results[topology][number] = times
                if args.runs:
                    print(row(topology, number, times), flush=True)
                else:
                    print(f"{topology:>7} q{number:02}  {times['tarn'][0] * 1e3:8.0f} ms   {mine.num_rows} rows", flush=True)
    if args.runs:
        summary(results)
    print("answers: " + ("all agree with DuckDB" if not failures else f"{len(failures)} FAILURES"))
    for failure in failures:
        print("  " + failure)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))
    return 1 if failures else 0


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


def summary(results):
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


def geomean(ratios):
    ratios = list(ratios)
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios))
