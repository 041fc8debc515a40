"""TPC-H on Tarn (one process, and clusters of real worker processes) beside DuckDB, over the same Parquet files.

    benchmarks/run tpch --scale 1

Makes the data as Iceberg tables on first use, runs the 22 queries on every topology and on DuckDB in turn, checks that
all answers agree, and prints a table of times and ratios. `cold` is the first run of a query in a fresh process (the
files may be in the operating system's page cache), `warm` the median of the runs after it. Tarn and DuckDB run each
query in turn, so that a machine whose speed drifts slows both.
"""

import argparse
import sys
from pathlib import Path

import duckdb

import cluster
import comparison

QUERIES = Path(__file__).resolve().parent.parent / "tests" / "tpch"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    comparison.arguments(parser, "tpch", "server,1,2,3")
    args = parser.parse_args()
    data = comparison.data_folder(args, "tpch")
    cluster.generate_tpch(args.tarn, data, args.scale)
    peer = connect_duckdb(cluster.data_files(data, "tpch"), args.threads)
    texts = {q: (QUERIES / f"q{q:02}.sql").read_text().rstrip().rstrip(";") for q in range(1, 23)}
    return comparison.run(args, data, "tpch", peer, {q: (text, text) for q, text in texts.items()})


def connect_duckdb(files, threads):
    db = duckdb.connect(config={"threads": threads})
    for table, paths in files.items():
        db.execute(f"create view {table} as select * from read_parquet({paths!r})")
    return db


if __name__ == "__main__":
    sys.exit(main())
