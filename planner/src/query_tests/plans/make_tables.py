"""Writes what metadata would say of the tables of TPC-H and TPC-DS, and the texts of TPC-DS: `make_tables.py FOLDER`.

The tables are those that DuckDB's extensions make in memory, at scale 1. A line is a table with its rows, or a column of it
with type, bytes of all its values, nulls, smallest and largest value; texts are cut to 16 letters, as writers of Iceberg do.
Needs the packages duckdb, duckdb-extension-tpch and duckdb-extension-tpcds. The same versions give the same files.
"""

import importlib.util
import re
import sys
from pathlib import Path

import duckdb

TYPES = {"INTEGER": ("int", 4), "BIGINT": ("long", 8), "DATE": ("date", 4), "VARCHAR": ("string", None)}


def extension(name):
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    return next(Path(package.submodule_search_locations[0]).rglob(f"{name}.duckdb_extension"))


def column_lines(db, table, rows):
    for column, kind, *_ in db.sql(f"DESCRIBE {table}").fetchall():
        name, width = TYPES.get(kind) or (kind.lower().replace(" ", ""), 8)
        size = f"coalesce(sum(strlen({column})), 0)" if width is None else str(rows * width)
        low, high = f"min({column})", f"max({column})"
        if width is None:
            low, high = f"left({low}, 16)", f"left({high}, 16)"
        size, nulls, low, high = db.sql(
            f"SELECT {size}, count(*) - count({column}), {low}, {high} FROM {table}"
        ).fetchone()
        if width is None and high is not None and len(high) == 16:
            high = high[:-1] + chr(ord(high[-1]) + 1)
        values = ["" if value is None else str(value) for value in (low, high)]
        yield "\t".join(["", column, name, str(int(size)), str(nulls), *values])


def main():
    folder = Path(sys.argv[1])
    for benchmark, make in [("tpch", "dbgen"), ("tpcds", "dsdgen")]:
        db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        db.execute(f"LOAD '{extension(benchmark)}'")
        db.execute(f"CALL {make}(sf = 1)")
        lines = []
        for (table,) in db.sql("SHOW TABLES").fetchall():
            (rows,) = db.sql(f"SELECT count(*) FROM {table}").fetchone()
            lines += [f"{table}\t{rows}", *column_lines(db, table, rows)]
        (folder / f"{benchmark}_tables.tsv").write_text("\n".join(lines) + "\n")
    texts = folder / "tpcds"
    texts.mkdir(exist_ok=True)
    for number, text in db.sql("SELECT query_nr, query FROM tpcds_queries()").fetchall():
        # MySQL quotes names by backticks.
        text = re.sub(r'"([^"]*)"', r"`\1`", text.strip().rstrip(";"))
        (texts / f"q{number:02}.sql").write_text(text + "\n")


if __name__ == "__main__":
    main()
