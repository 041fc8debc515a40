"""TPC-DS on Tarn (one process, and clusters of real worker processes) beside DuckDB, which makes the data and the queries.

    benchmarks/run tpcds --scale 1

Writes DuckDB's tables as Iceberg tables on first use, runs the 99 queries on every topology and on DuckDB in turn, checks
that all answers agree, and prints a table of times and ratios, as `tpch` does. The texts are DuckDB's; Tarn gets them
with names quoted by backticks, as MySQL's dialect has it.
"""

import argparse
import json
import re
import statistics
import sys
from pathlib import Path

import duckdb

import answers
import cluster
import extension
import tpch

# MySQL divides decimals to four more digits, DuckDB to a double; queries go on calculating with that.
TOLERANCE = 1e-6

# Tables of facts are written in several files, as a table that grew is.
FILES = {"store_sales": 6, "catalog_sales": 6, "web_sales": 6, "inventory": 6, "store_returns": 3, "catalog_returns": 3, "web_returns": 3}


def main():
    args = parse_args()
    data = Path(args.data_dir or f"/tmp/tarn-bench/tpcds-sf{args.scale:g}")
    peer = connect_duckdb(args.threads, data, args.scale)
    load(peer, args.tarn, data)
    texts = dict(peer.sql("select query_nr, query from tpcds_queries()").fetchall())
    queries = [int(q) for q in args.queries.split(",")] if args.queries else sorted(texts)

    results, failures = {}, []
    for topology in args.topologies.split(","):
        with cluster.start(args.tarn, data, topology, args.threads) as tarn:
            results[topology] = {}
            tarn.use("tpcds")
            for statement in args.set:
                tarn.query(f"SET {statement}")
            for q in queries:
                mine_text, theirs_text = mysql_text(texts[q]), texts[q].strip().rstrip(";")
                times = {"tarn": [], "duckdb": []}
                try:
                    for _ in range(args.runs + 1):
                        mine, seconds = tpch.timed(lambda: tarn.query(mine_text))
                        times["tarn"].append(seconds)
                        theirs, seconds = tpch.timed(lambda: peer.sql(theirs_text).to_arrow_table())
                        times["duckdb"].append(seconds)
                except Exception as error:  # a failed query is a result to report, not the end of the run
                    failures.append(f"{topology} q{q}: {error}")
                    print(failures[-1], flush=True)
                    continue
                difference = answers.difference(answers.table_rows(mine), answers.table_rows(theirs), TOLERANCE)
                if difference:
                    failures.append(f"{topology} q{q}: {difference}")
                    print(failures[-1], flush=True)
                results[topology][q] = times
                if args.runs:
                    print(tpch.row(topology, q, times), flush=True)
                else:
                    print(f"{topology:>7} q{q:02}  {times['tarn'][0] * 1e3:8.0f} ms   {mine.num_rows} rows", flush=True)
    if args.runs:
        tpch.summary(results, failures)
    else:
        print("answers: " + ("all agree with DuckDB" if not failures else f"{len(failures)} FAILURES"))
        for failure in failures:
            print("  " + failure)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))
    return 1 if failures else 0


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scale", type=float, default=1, help="TPC-DS scale factor")
    p.add_argument("--tarn", default=cluster.default_binary(), help="the release binary")
    p.add_argument("--data-dir", help="where the lake is kept; default /tmp/tarn-bench/tpcds-sf<scale>")
    p.add_argument("--topologies", default="server,3", help="`server` is one process, a number is that many workers")
    p.add_argument("--queries", help="comma-separated numbers; default all 99")
    p.add_argument("--runs", type=int, default=3, help="warm runs of each query; 0 only compares answers")
    p.add_argument("--threads", type=int, default=2, help="cores for DuckDB and for Tarn's single process")
    p.add_argument("--set", action="append", default=[], help="an assignment for Tarn's session, such as join_reorder=OFF")
    p.add_argument("--json", help="write the raw seconds here")
    return p.parse_args()


def connect_duckdb(threads, data, scale):
    """DuckDB with its TPC-DS tables, which are kept beside the lake."""
    data.mkdir(parents=True, exist_ok=True)
    db = duckdb.connect(str(data / "tpcds.duckdb"), config={"threads": threads, "allow_unsigned_extensions": "true"})
    db.execute(f"load '{extension.path('tpcds')}'")
    if not db.sql("show tables").fetchall():
        db.execute(f"call dsdgen(sf={scale})")
    return db


def load(db, binary, data):
    """Writes the tables as Iceberg tables of the embedded catalog, unless they are there."""
    from pyiceberg.catalog.sql import SqlCatalog

    # Makes the catalog's database as Tarn has it.
    with cluster.start(binary, data, "server", 1):
        pass
    catalog = SqlCatalog("lake", uri=f"sqlite:///{data}/catalog.db", warehouse=f"file://{data}/warehouse")
    catalog.create_namespace_if_not_exists("tpcds")
    there = {name[-1] for name in catalog.list_tables("tpcds")}
    for (name,) in db.sql("show tables").fetchall():
        if name in there:
            continue
        rows = db.sql(f"select * from {name}").to_arrow_table()
        table = catalog.create_table(f"tpcds.{name}", schema=rows.schema)
        files = FILES.get(name, 1)
        each = -(-max(rows.num_rows, 1) // files)
        for first in range(0, max(rows.num_rows, 1), each):
            table.append(rows.slice(first, each))


def mysql_text(text):
    """A query as MySQL's dialect reads it: names are quoted by backticks."""
    return re.sub(r'"([^"]*)"', r"`\1`", text.strip().rstrip(";"))


if __name__ == "__main__":
    sys.exit(main())
