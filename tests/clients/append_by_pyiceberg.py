"""Appends one row (ID, NAME) to a table by PyIceberg.

usage: append_by_pyiceberg.py DATA_DIR TABLE ID NAME
"""

import sys

import pyarrow
from pyiceberg.catalog.sql import SqlCatalog

data_dir, name, row_id, row_name = sys.argv[1:]
catalog = SqlCatalog("lake", uri=f"sqlite:///{data_dir}/catalog.db", warehouse=f"file://{data_dir}/warehouse")
catalog.load_table(name).append(pyarrow.table({"id": [int(row_id)], "name": [row_name]}))
