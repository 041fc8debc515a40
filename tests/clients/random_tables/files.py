"""Parquet files of many shapes, and what manifests say of them."""

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from .commit import iceberg_type
from .schema import Field, Primitive, arrow_table, by_name, columns
from .transforms import unscaled

# Reserved field ids (specification, "Reserved Field IDs").
FILE_PATH = Field(2147483546, "file_path", Primitive("string"), True)
POSITION = Field(2147483545, "pos", Primitive("long"), True)


def write_data_file(rng, table, rows, fields, spec, partition):
    """Writes rows of one partition; returns the manifest's entry for the file."""
    written = shuffled(rng, fields) if rng.random() < 0.3 else list(fields)
    # Columns of nulls only may be left out of a file: a reader fills them with nulls.
    if rng.random() < 0.2:
        written = [f for f in written if f.required or f.default is not None or any(row.get(f.id) is not None for row in rows)]
    # So may those whose value is in the partition tuple (specification, "Column Projection").
    # NaN is not left to the tuple: Tarn's library reads it as null there.
    if rng.random() < 0.1 and not any(isinstance(v, float) and math.isnan(v) for v in partition):
        in_partition = {f.source for f in table.model.specs[spec] if f.transform == "identity"}
        written = [f for f in written if f.id not in in_partition or f.id == table.model.uid]
    path = table.new_path()
    size, offsets = write_parquet(rng, path, arrow_table(rows, written, by_name), written)
    return DataFile.from_args(
        _table_format_version=3,
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=len(rows),
        file_size_in_bytes=size,
        split_offsets=offsets,
        **metrics(rng, table, rows, written),
    )


def write_delete_file(rng, table, content, rows, fields, spec, partition, equality_ids=None):
    path = table.new_path("-deletes")
    size, offsets = write_parquet(rng, path, arrow_table(rows, fields, by_name), fields)
    bounds = metrics(rng, table, rows, fields)
    if content == DataFileContent.POSITION_DELETES:
        # The paths share long prefixes, so a truncated bound is of no use; writers keep them whole.
        paths = [row[FILE_PATH.id].encode() for row in rows]
        bounds["lower_bounds"] = {FILE_PATH.id: min(paths)}
        bounds["upper_bounds"] = {FILE_PATH.id: max(paths)}
    return DataFile.from_args(
        _table_format_version=3,
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=len(rows),
        file_size_in_bytes=size,
        split_offsets=offsets,
        equality_ids=equality_ids,
        **bounds,
    )


def shuffled(rng, fields):
    fields = list(fields)
    rng.shuffle(fields)
    return fields


def write_parquet(rng, path, arrow, fields):
    dictionary = rng.random() < 0.6
    options = {
        "compression": rng.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        "row_group_size": rng.choice([3, 10, 40, 1000]),
        "data_page_size": rng.choice([32, 256, 1 << 20]),
        "write_batch_size": rng.choice([1, 8, 1024]),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "use_dictionary": dictionary,
        "write_statistics": rng.random() < 0.8,
        "write_page_index": rng.random() < 0.5,
        "use_compliant_nested_type": rng.random() < 0.8,
        "store_schema": rng.random() < 0.3,
    }
    if not dictionary:
        encodings = {f.name: rng.choice(choice) for f in fields if (choice := ENCODINGS.get(getattr(f.type, "kind", None)))}
        encodings = {name: encoding for name, encoding in encodings.items() if encoding and "." not in name}
        options["column_encoding"] = encodings or None
    for n, f in enumerate(fields):
        if getattr(f.type, "kind", None) == "uuid" and rng.random() < 0.8:
            annotated = pa.ExtensionArray.from_storage(pa.uuid(), arrow.column(n).combine_chunks())
            arrow = arrow.set_column(n, arrow.schema.field(n).with_type(pa.uuid()), annotated)
    local = path.removeprefix("file://")
    Path(local).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(arrow, local, **options)
    footer = pq.read_metadata(local)
    groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
    offsets = [g.column(0).dictionary_page_offset or g.column(0).data_page_offset for g in groups]
    return Path(local).stat().st_size, (offsets or None) if rng.random() < 0.7 else None


ENCODINGS = {
    "int": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", None],
    "long": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", None],
    "date": ["DELTA_BINARY_PACKED", None],
    "timestamp": ["DELTA_BINARY_PACKED", None],
    "float": ["BYTE_STREAM_SPLIT", None],
    "double": ["BYTE_STREAM_SPLIT", None],
    "string": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", None],
    "binary": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", None],
}


def metrics(rng, table, rows, fields):
    """Counts and bounds as the modes of `write.metadata.metrics` give them, by a mode of its own for each column."""
    found = {name: {} for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")}
    default = rng.choice(["none", "counts", "truncate", "full", "full", "mixed"])
    for column in columns(fields):
        mode = rng.choice(["none", "counts", "truncate", "full"]) if default == "mixed" else default
        if not isinstance(column.type, Primitive) or mode == "none":
            continue
        id_, kind = column.leaf.id, column.type.kind
        values = [column.value(row) for row in rows]
        present = [v for v in values if v is not None]
        found["value_counts"][id_] = len(values)
        found["null_value_counts"][id_] = len(values) - len(present)
        if kind in ("float", "double"):
            numbers = [v for v in present if not math.isnan(v)]
            found["nan_value_counts"][id_] = len(present) - len(numbers)
            present = numbers
        if mode == "counts" or not present:
            continue
        low, high = min(present), max(present)
        if kind in ("float", "double"):
            low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
        if mode == "truncate" and kind in ("string", "binary"):
            width = rng.choice([1, 2, 16])
            low, high = low[:width], high if len(high) <= width else successor(high[:width])
        found["lower_bounds"][id_] = bound(column.type, low)
        if high is not None:
            found["upper_bounds"][id_] = bound(column.type, high)
    return {name: values or None for name, values in found.items()}


def bound(type_, value):
    """The single-value serialization (specification, appendix D)."""
    if type_.kind == "decimal":
        number = unscaled(value)
        return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
    if type_.kind in ("uuid", "fixed", "binary"):
        return value
    return to_bytes(iceberg_type(type_), value)


def successor(prefix):
    """The least value that is above all that begin with the prefix, or None."""
    for n in range(len(prefix) - 1, -1, -1):
        if isinstance(prefix, bytes):
            if prefix[n] < 255:
                return prefix[:n] + bytes([prefix[n] + 1])
        elif (code := ord(prefix[n])) < 0x10FFFF:
            return prefix[:n] + chr(0xE000 if code == 0xD7FF else code + 1)
    return None
