"""Answers as bags of values that are equal only if they are the same, and the engines that give them."""

import datetime
import math
import struct
import uuid
from collections import Counter
from decimal import Decimal

import pyarrow as pa

from .schema import ARROW, List, Map, Struct


def canonical(array):
    """The values of an Arrow array: times as integers, floats by their bits, decimals with their scale."""
    if isinstance(array, pa.ChunkedArray):
        if not array.num_chunks:
            return []  # pyarrow cannot make an empty array of what holds an extension type.
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type_ = array.type
    if pa.types.is_struct(type_):
        # `field` does not look at the validity of the struct around it.
        parts = [canonical(array.field(n)) for n in range(type_.num_fields)]
        return [None if not valid else tuple(values) for valid, *values in zip(array.is_valid().to_pylist(), *parts)]
    if pa.types.is_map(type_):
        pairs = list(zip(canonical(array.keys), canonical(array.items)))
        return sliced(array, [tuple(p) for p in pairs], lambda items: tuple(sorted(items, key=repr)))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return sliced(array, canonical(array.values), tuple)
    if pa.types.is_timestamp(type_):
        array = array.cast(pa.timestamp("us", type_.tz)).cast(pa.int64())
    elif pa.types.is_time(type_):
        array = array.cast(pa.time64("us")).cast(pa.int64())
    elif pa.types.is_date32(type_):
        array = array.cast(pa.int32())
    values = array.to_pylist()
    if pa.types.is_floating(type_):
        return [bits(value) for value in values]
    if pa.types.is_decimal(type_):
        return [None if v is None else ("decimal", f"{v:f}") for v in values]
    return [("bool", v) if isinstance(v, bool) else v for v in values]


def bits(value):
    if value is None:
        return None
    return ("float", "nan" if math.isnan(value) else struct.pack(">d", value).hex())


def sliced(array, items, made):
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [made(items[offsets[n] : offsets[n + 1]]) if valid[n] else None for n in range(len(array))]


def loosened(value):
    """For aggregates, whose type is the engine's own business: numbers by value, zero without a sign."""
    if isinstance(value, tuple) and value and value[0] == "decimal":
        number = Decimal(value[1])
        return int(number) if number == int(number) else number.normalize()
    if value == ("float", struct.pack(">d", -0.0).hex()):
        return ("float", struct.pack(">d", 0.0).hex())
    return value


def name_of(type_):
    """An Arrow type by what it means."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if pa.types.is_struct(type_):
        return "struct<" + ", ".join(f"{f.name!r}: {name_of(f.type)}" for f in type_) + ">"
    if pa.types.is_map(type_):
        return f"map<{name_of(type_.key_type)}, {name_of(type_.item_type)}>"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list<{name_of(type_.value_type)}>"
    if type_ in (pa.string(), pa.large_string(), pa.string_view()):
        return "string"
    if type_ in (pa.binary(), pa.large_binary(), pa.binary_view()):
        return "binary"
    return str(type_)


def expected_name(type_):
    if isinstance(type_, Struct):
        return "struct<" + ", ".join(f"{f.name!r}: {expected_name(f.type)}" for f in type_.fields) + ">"
    if isinstance(type_, List):
        return f"list<{expected_name(type_.element.type)}>"
    if isinstance(type_, Map):
        return f"map<{expected_name(type_.key.type)}, {expected_name(type_.value.type)}>"
    if type_.kind == "decimal":
        return str(pa.decimal128(type_.precision, type_.scale))
    return name_of(pa.binary(type_.precision) if type_.kind == "fixed" else ARROW[type_.kind])


def rows_of(table, outputs):
    columns = [canonical(table.column(n)) for n in range(table.num_columns)]
    columns = [c if o.type is not None else [loosened(v) for v in c] for c, o in zip(columns, outputs)]
    return list(zip(*columns)) if columns else []


def mysql_rows(rows, expected, outputs):
    """Rows of the MySQL protocol as the canonical values of the expected table's types."""
    types = [expected.schema.field(n).type for n in range(expected.num_columns)]
    converted = []
    for row in rows:
        values = [from_mysql(v, type_, getattr(o.type, "kind", None) == "uuid") for v, type_, o in zip(row, types, outputs)]
        converted.append(tuple(v if o.type is not None else loosened(v) for v, o in zip(values, outputs)))
    return converted


def from_mysql(value, type_, uuid_column=False):
    if value is None:
        return None
    if pa.types.is_boolean(type_):
        return ("bool", bool(value))
    if pa.types.is_floating(type_):
        value = float(value)
        return bits(struct.unpack("<f", struct.pack("<f", value))[0] if pa.types.is_float32(type_) else value)
    if pa.types.is_decimal(type_):
        return ("decimal", f"{Decimal(value):f}")
    if pa.types.is_date32(type_) and isinstance(value, datetime.date):
        return value.toordinal() - 719_163
    if isinstance(value, datetime.datetime):
        delta = value - datetime.datetime(1970, 1, 1)
        return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    if isinstance(value, datetime.timedelta):
        return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    if pa.types.is_fixed_size_binary(type_) or pa.types.is_binary(type_):
        if uuid_column and len(value) == 36:
            return uuid.UUID(value if isinstance(value, str) else value.decode()).bytes
        return value.encode("latin-1") if isinstance(value, str) else bytes(value)
    return value


def difference(given, right, ordered):
    """What distinguishes two answers, as text; None if nothing does."""
    if ordered and given != right:
        n = next((n for n, (a, b) in enumerate(zip(given, right)) if a != b), min(len(given), len(right)))
        return f"row {n} of {len(given)} and {len(right)}: {given[n : n + 1]} came, {right[n : n + 1]} is right"
    came, wanted = Counter(given), Counter(right)
    if came == wanted:
        return None
    extra, missing = list((came - wanted).elements()), list((wanted - came).elements())
    return f"{len(given)} rows came, {len(right)} are right; too many: {extra[:4]}; missing: {missing[:4]}"


