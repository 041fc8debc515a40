"""TPC-DS on Tarn (one process, and clusters of real worker processes) beside DuckDB, which makes the data and the queries.

    benchmarks/run tpcds --scale 1

Writes DuckDB's tables as Iceberg tables on first use, runs the 99 queries on every topology and on DuckDB in turn, checks
that all answers agree, and prints a table of times and ratios, as `tpch` does. The texts are DuckDB's; Tarn gets them
with names quoted by backticks, as MySQL's dialect has it.
"""

import argparse
import re
import sys

import duckdb

import cluster
import comparison
import extension

# MySQL divides decimals to four more digits, DuckDB to a double; queries go on calculating with that.
TOLERANCE = 1e-6

# Tables of facts are written in several files, as a table that grew is.
FILES = {"store_sales": 6, "catalog_sales": 6, "web_sales": 6, "inventory": 6, "store_returns": 3, "catalog_returns": 3, "web_returns": 3}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    comparison.arguments(parser, "tpcds", "server,3")
    args = parser.parse_args()
    data = comparison.data_folder(args, "tpcds")
    peer = connect_duckdb(args.threads, data, args.scale)
    load(peer, args.tarn, data)
    texts = sorted(peer.sql("select query_nr, query from tpcds_queries()").fetchall())
    queries = {number: (mysql_text(text), text.strip().rstrip(";")) for number, text in texts}
    return comparison.run(args, data, "tpcds", peer, queries, TOLERANCE)


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
