"""What Tarn wrote, as Spark with the Iceberg runtime reads it. Takes queries as a JSON list on standard input, and prints
for each a list of its rows, values as Spark's text.

usage: spark_reads.py DATA_DIR JARS
"""

import decimal
import json
import sys

from pyspark.sql import SparkSession

data_dir, jars = sys.argv[1:]
catalog = "spark.sql.catalog.lake"
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
    .config(f"{catalog}.type", "jdbc")
    .config(f"{catalog}.uri", f"jdbc:sqlite:file:{data_dir}/catalog.db")
    .config(f"{catalog}.jdbc.schema-version", "V1")
    .config(f"{catalog}.warehouse", f"file://{data_dir}/warehouse")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def text(value):
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, decimal.Decimal):
        # On their way to Python they may get zeros at the end.
        return f"{value.normalize(decimal.Context(prec=60)):f}"
    return None if value is None else str(value)


answers = [[[text(v) for v in row] for row in spark.sql(sql).collect()] for sql in json.load(sys.stdin)]
print(json.dumps(answers))
