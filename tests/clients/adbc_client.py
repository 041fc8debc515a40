"""The ADBC Flight SQL driver: queries, parameters, updates, metadata, errors.

usage: adbc_client.py FLIGHT_PORT
"""

import sys

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow
import pyarrow.compute

port = int(sys.argv[1])
connection = flight_sql.connect(
    f"grpc://127.0.0.1:{port}", db_kwargs={"username": "root", "password": ""}, autocommit=True
)
with connection.cursor() as cursor:
    cursor.execute("CREATE DATABASE adbc")
    cursor.execute("CREATE TABLE adbc.t (id BIGINT, name STRING, price DECIMAL(10,2))")
    cursor.executemany("INSERT INTO adbc.t VALUES (?, ?, ?)", [(1, "a", "1.10"), (2, "b", "2.20"), (3, None, None)])
    cursor.execute("SELECT id, name, price FROM adbc.t WHERE id >= ? ORDER BY id", (2,))
    table = cursor.fetch_arrow_table()
    assert table.column("id").to_pylist() == [2, 3], table
    assert [None if v is None else str(v) for v in table.column("price").to_pylist()] == ["2.20", None], table
    assert table.schema.field("price").type == pyarrow.decimal128(10, 2), table.schema
    assert table.schema.field("name").type in (pyarrow.string(), pyarrow.large_string()), table.schema
    try:
        cursor.execute("SELECT * FROM adbc.tt")
        cursor.fetchall()
        raise AssertionError("a missing table gave no error")
    except flight_sql.Error as error:
        assert "adbc.t" in str(error), error
    # A query whose rows do not fit one message.
    cursor.execute("SELECT a.value * 1000 + b.value AS n FROM range(0, 1000) a CROSS JOIN range(0, 1000) b")
    numbers = cursor.fetch_arrow_table().column("n")
    assert len(numbers) == 1_000_000 and pyarrow.compute.sum(numbers).as_py() == 999_999 * 1_000_000 // 2

objects = connection.adbc_get_objects(depth="columns", catalog_filter="lake", db_schema_filter="adbc").read_all().to_pylist()
schemas = objects[0]["catalog_db_schemas"]
assert [s["db_schema_name"] for s in schemas] == ["adbc"], schemas
(t,) = schemas[0]["db_schema_tables"]
assert t["table_name"] == "t" and [c["column_name"] for c in t["table_columns"]] == ["id", "name", "price"], t
assert connection.adbc_get_table_schema("t", catalog_filter="lake", db_schema_filter="adbc").names == ["id", "name", "price"]
info = connection.adbc_get_info()
assert info["vendor_name"] == "Tarn", info
connection.close()
print("ok")
