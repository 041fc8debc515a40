"""Works on a SQL catalog in PostgreSQL by PyIceberg, beside Tarn.

usage: postgres_by_pyiceberg.py NAME URI WAREHOUSE read TABLE       prints the rows as JSON
       postgres_by_pyiceberg.py NAME URI WAREHOUSE append TABLE ID  appends a row
       postgres_by_pyiceberg.py NAME URI WAREHOUSE create TABLE     makes its database and a table of two rows
       postgres_by_pyiceberg.py NAME URI WAREHOUSE list DATABASE    prints the tables as JSON
"""

import json
import sys

import pyarrow
from pyiceberg.catalog.sql import SqlCatalog

name, uri, warehouse, action, target, *rest = sys.argv[1:]
catalog = SqlCatalog(name, uri=uri.replace("postgresql://", "postgresql+psycopg2://"), warehouse=warehouse)


def rows(ids):
    return pyarrow.table({"id": ids, "name": ["python"] * len(ids)})


if action == "read":
    found = catalog.load_table(target).scan().to_arrow().sort_by("id")
    print(json.dumps([[str(row["id"]), row["name"]] for row in found.to_pylist()]))
elif action == "append":
    catalog.load_table(target).append(rows([int(rest[0])]))
elif action == "create":
    catalog.create_namespace(target.split(".")[0], {"owner": "python"})
    catalog.create_table(target, schema=rows([1]).schema).append(rows([101, 102]))
elif action == "list":
    print(json.dumps(sorted(".".join(table) for table in catalog.list_tables(target))))
