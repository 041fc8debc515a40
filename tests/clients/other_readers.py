"""What Tarn wrote, as PyIceberg and DuckDB read it. Prints the rows that both agree on, as JSON. DuckDB knows no times of nanoseconds:
a table that has some is read by PyIceberg alone.

usage: other_readers.py DATA_DIR TABLE ORDER_COLUMN
"""

import glob
import json
import os
import sys

import duckdb
import pyarrow
from pyiceberg.catalog.sql import SqlCatalog

data_dir, name, order = sys.argv[1:]
catalog = SqlCatalog("lake", uri=f"sqlite:///{data_dir}/catalog.db", warehouse=f"file://{data_dir}/warehouse")
table = catalog.load_table(name)

db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
packages = os.path.join(os.path.dirname(duckdb.__file__), "..")
for extension in ("avro", "iceberg"):
    (path,) = glob.glob(f"{packages}/duckdb_extension_{extension}/**/*.duckdb_extension", recursive=True)
    db.execute(f"load '{path}'")


def as_text(rows):
    return [[None if v is None else str(v) for v in row] for row in rows]


def without_nanoseconds(column):
    """Python's times end at microseconds."""
    of = column.type
    if pyarrow.types.is_timestamp(of) and of.unit == "ns":
        return column.cast(pyarrow.timestamp("ns")).cast(pyarrow.string())
    return column


by_pyiceberg = table.scan().to_arrow().sort_by(order)
by_pyiceberg = as_text(zip(*(without_nanoseconds(c).to_pylist() for c in by_pyiceberg.columns)))
if not any(str(field.field_type).endswith("_ns") for field in table.schema().fields):
    rows = db.sql(f"select * from iceberg_scan('{table.metadata_location}') order by {order}")
    by_duckdb = as_text(zip(*(without_nanoseconds(c).to_pylist() for c in rows.arrow().read_all().columns)))
    assert by_pyiceberg == by_duckdb, f"PyIceberg\n{by_pyiceberg}\nDuckDB\n{by_duckdb}"
files = [
    {"partition": str(t.file.partition), "records": t.file.record_count, "bounds": len(t.file.lower_bounds), "order": t.file.sort_order_id}
    for t in table.scan().plan_files()
]
print(json.dumps({"rows": by_pyiceberg, "files": files, "spec": str(table.spec()), "order": str(table.sort_order()), "properties": table.properties}))
