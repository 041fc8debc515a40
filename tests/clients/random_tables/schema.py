"""Types, fields and values by field id, and random ones.

Values are held as Iceberg holds them: dates are days, times and timestamps microseconds, uuids 16 bytes, structs
dictionaries by field id, maps lists of pairs.
"""

import math
import struct
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa


@dataclass
class Primitive:
    kind: str
    precision: int = 0  # of a decimal; the length of a fixed
    scale: int = 0

    def __str__(self):
        if self.kind == "decimal":
            return f"decimal({self.precision}, {self.scale})"
        return f"fixed[{self.precision}]" if self.kind == "fixed" else self.kind


@dataclass
class Struct:
    fields: list

    def __str__(self):
        return "struct<" + ", ".join(f"{f.id}: {f.name!r}: {f.type}" for f in self.fields) + ">"


@dataclass
class List:
    element: "Field"

    def __str__(self):
        return f"list<{self.element.id}: {self.element.type}>"


@dataclass
class Map:
    key: "Field"
    value: "Field"

    def __str__(self):
        return f"map<{self.key.id}: {self.key.type}, {self.value.id}: {self.value.type}>"


@dataclass
class Field:
    id: int
    name: str
    type: object
    required: bool = False
    default: object = None  # of rows in files that were written before the field was there


@dataclass
class Column:
    """A column, or a field of a struct in it: the way to it from the top."""

    path: list = field(default_factory=list)

    @property
    def leaf(self):
        return self.path[-1]

    @property
    def type(self):
        return self.path[-1].type

    def names(self):
        return tuple(f.name for f in self.path)

    def value(self, row):
        for f in self.path:
            if row is None:
                return None
            row = row.get(f.id, f.default)
        return row


def columns(fields, above=()):
    """All columns and struct fields, outermost first."""
    for f in fields:
        yield Column([*above, f])
        if isinstance(f.type, Struct):
            yield from columns(f.type.fields, (*above, f))


def structs(fields, above=()):
    """Every list of struct fields at any depth, with the path of names that leads to it."""
    yield above, fields
    for f in fields:
        yield from _structs_of(f.type, (*above, f.name))


def _structs_of(type_, path):
    if isinstance(type_, Struct):
        yield from structs(type_.fields, path)
    elif isinstance(type_, List):
        yield from _structs_of(type_.element.type, (*path, "element"))
    elif isinstance(type_, Map):
        yield from _structs_of(type_.value.type, (*path, "value"))


PRIMITIVES = (
    "boolean int long float double decimal date time timestamp timestamptz string uuid fixed binary".split()
)
DAY = 86_400_000_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01, 9999-12-31


def random_primitive(rng):
    kind = rng.choice([*PRIMITIVES, "int", "long", "date", "timestamp", "string", "string", "decimal"])
    if kind == "decimal":
        precision = rng.choice([3, 5, 9, 10, 18, 19, 28, 38])
        return Primitive(kind, precision, rng.randint(0, min(precision, 10)))
    if kind == "fixed":
        return Primitive(kind, rng.choice([1, 3, 16]))
    return Primitive(kind)


def random_name(rng):
    base = rng.choice(
        ["a", "b", "val", "Name", "order", "select", "x y", "x.y", "größe", "q'u", 'd"q', "1st", "$m", "group", "k-v", "b`q"]
    )
    return base if rng.random() < 0.3 else f"{base}{rng.randint(0, 99)}"


def random_fields(rng, count, depth, ids, taken=()):
    names, fields = {name.lower() for name in taken}, []
    for _ in range(count):
        name = random_name(rng)
        while name.lower() in names:
            name = random_name(rng)
        names.add(name.lower())
        fields.append(Field(next(ids), name, random_type(rng, depth, ids)))
    return fields


def random_type(rng, depth, ids):
    if depth == 0 or rng.random() < 0.75:
        return random_primitive(rng)
    kind = rng.choice(["struct", "struct", "list", "map"])
    if kind == "struct":
        return Struct(random_fields(rng, rng.randint(1, 3), depth - 1, ids))
    if kind == "list":
        return List(Field(next(ids), "element", random_type(rng, depth - 1, ids)))
    key = Field(next(ids), "key", Primitive(rng.choice(["string", "int", "long"])), True)
    return Map(key, Field(next(ids), "value", random_type(rng, depth - 1, ids)))


def single(value):
    """The value as a 32-bit float holds it."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def random_value(rng, type_, nulls=0.12):
    if rng.random() < nulls:
        return None
    if isinstance(type_, Struct):
        return {f.id: random_value(rng, f.type, 0 if f.required else nulls) for f in type_.fields}
    if isinstance(type_, List):
        return [random_value(rng, type_.element.type, nulls) for _ in range(rng.randint(0, 3))]
    if isinstance(type_, Map):
        keys = {random_value(rng, type_.key.type, 0): None for _ in range(rng.randint(0, 3))}
        return [(key, random_value(rng, type_.value.type, nulls)) for key in keys]
    near = rng.random() < 0.85
    match type_.kind:
        case "boolean":
            return rng.random() < 0.5
        case "int" | "long":
            bits = 31 if type_.kind == "int" else 63
            return rng.randint(-15, 15) if near else rng.choice([-(2**bits), 2**bits - 1, rng.randrange(-(2**bits), 2**bits)])
        case "float" | "double":
            if near:
                return rng.randint(-12, 12) / 4
            value = rng.choice([math.nan, math.inf, -math.inf, -0.0, 1e-30, rng.uniform(-1e30, 1e30)])
            return single(value) if type_.kind == "float" else value
        case "decimal":
            most = 10**type_.precision - 1
            least = -(most // 30 * 30)  # A partition's lower edge must fit, too.
            if near:
                return decimal_of(rng.randint(max(least, -1500), min(most, 1500)), type_.scale)
            return decimal_of(rng.choice([least, most, rng.randint(least, most)]), type_.scale)
        case "date":
            if near:
                return rng.choice([0, 0, 19_782, -365]) + rng.randint(-40, 40)
            return rng.choice([FIRST_DAY, LAST_DAY, rng.randint(FIRST_DAY, LAST_DAY)])
        case "time":
            if near:
                return rng.randint(0, 23) * 3_600_000_000 + rng.choice([0, 0, 1, 1_500_000])
            return rng.choice([0, DAY - 1, rng.randrange(DAY)])
        case "timestamp" | "timestamptz":
            if near:
                at = rng.choice([0, 0, 19_782, -365]) * DAY + rng.randint(-60, 60) * 3_600_000_000
                return at + rng.choice([0, 0, -1, 1, rng.randint(-DAY, DAY)])
            return rng.choice([FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1, rng.randint(FIRST_DAY * DAY, LAST_DAY * DAY)])
        case "string":
            text = "".join(rng.choice("aabbcäz 😀%'\\_\U0010ffff") for _ in range(rng.randint(0, 4)))
            return text if near else text + "a" * 20
        case "uuid":
            return bytes([rng.choice([0, 1, 127, 128, 255])] * 15 + [rng.randint(0, 3)])
        case "fixed":
            return bytes(rng.choice([0, 97, 255]) for _ in range(type_.precision))
        case "binary":
            return bytes(rng.choice([0, 97, 255]) for _ in range(rng.randint(0, 4)))
    raise ValueError(type_)


def decimal_of(unscaled, scale):
    sign = 1 if unscaled < 0 else 0
    return Decimal((sign, tuple(int(d) for d in str(abs(unscaled))), -scale))


def random_row(rng, fields):
    return {f.id: random_value(rng, f.type, 0 if f.required else 0.12) for f in fields}


def projected(value, type_):
    """The value as a reader sees it whose schema has this type: by field id, what is missing is null, or the field's default."""
    if value is None:
        return None
    if isinstance(type_, Struct):
        return {f.id: projected(value.get(f.id, f.default), f.type) for f in type_.fields}
    if isinstance(type_, List):
        return [projected(item, type_.element.type) for item in value]
    if isinstance(type_, Map):
        return [(projected(k, type_.key.type), projected(v, type_.value.type)) for k, v in value]
    return value


def by_id(f):
    return f"f{f.id}"


def by_name(f):
    return f.name


ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "uuid": pa.binary(16),
    "binary": pa.binary(),
}


def arrow_type(type_, name):
    if isinstance(type_, Struct):
        return pa.struct([arrow_field(f, name) for f in type_.fields])
    if isinstance(type_, List):
        return pa.list_(arrow_field(type_.element, name))
    if isinstance(type_, Map):
        return pa.map_(arrow_field(type_.key, name), arrow_field(type_.value, name))
    if type_.kind == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    return pa.binary(type_.precision) if type_.kind == "fixed" else ARROW[type_.kind]


def arrow_field(f, name):
    return pa.field(name(f), arrow_type(f.type, name), not f.required, {"PARQUET:field_id": str(f.id)})


def arrow_array(values, type_, name):
    """Fields of a null struct are null: from dictionaries pyarrow would make them empty, and DuckDB would see that."""
    of = arrow_type(type_, name)
    nulls = [value is None for value in values]
    if isinstance(type_, Struct):
        parts = [arrow_array([None if v is None else v.get(f.id) for v in values], f.type, name) for f in type_.fields]
        return pa.StructArray.from_arrays(parts, fields=list(of), mask=pa.array(nulls, pa.bool_()))
    if isinstance(type_, (List, Map)):
        items, offsets = [], []
        for value in values:
            offsets.append(len(items))
            items += value or []
        starts = pa.array([*offsets, len(items)], pa.int32())
        mask = pa.array(nulls, pa.bool_())
        if isinstance(type_, List):
            return pa.ListArray.from_arrays(starts, arrow_array(items, type_.element.type, name), type=of, mask=mask)
        keys = arrow_array([k for k, _ in items], type_.key.type, name)
        values = arrow_array([v for _, v in items], type_.value.type, name)
        return pa.MapArray.from_arrays(starts, keys, values, type=of, mask=mask)
    return pa.array(values, of)


def arrow_table(rows, fields, name):
    """Rows (by field id) as an Arrow table with these columns."""
    arrays = [arrow_array([row.get(f.id) for row in rows], f.type, name) for f in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema([arrow_field(f, name) for f in fields]))
