"""Says whether the folder of a table holds data files that no snapshot names.

usage: data_files_on_disk.py DATA_DIR TABLE
"""

import glob
import sys

from pyiceberg.catalog.sql import SqlCatalog

data_dir, name = sys.argv[1:]
catalog = SqlCatalog("lake", uri=f"sqlite:///{data_dir}/catalog.db", warehouse=f"file://{data_dir}/warehouse")
table = catalog.load_table(name)
known = {task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()}
folder = table.location().removeprefix("file://")
found = set(glob.glob(f"{folder}/data/**/*.parquet", recursive=True))
assert known <= found, known - found
print("no orphans" if found == known else f"orphans: {sorted(found - known)}")
