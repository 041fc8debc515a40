"""Conditions and values, in Tarn's SQL (MySQL's dialect) and in DuckDB's.

In DuckDB a column is named by its field id, so that no name of the table takes part in the right answer.
"""

import datetime
import math
from dataclasses import dataclass, field

from .schema import DAY, FIRST_DAY, LAST_DAY, Primitive, decimal_of, random_value
from .transforms import EPOCH, unscaled


def tarn_name(name):
    return "`" + name.replace("`", "``") + "`"


def tarn_string(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def clock(micros):
    seconds, micros = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"


def day_text(days):
    return datetime.date.fromordinal(EPOCH + days).isoformat()


def text_of(value, kind):
    match kind:
        case "date":
            return day_text(value)
        case "time":
            return clock(value)
        case "timestamp" | "timestamptz":
            return f"{day_text(value // DAY)} {clock(value % DAY)}"
    raise ValueError(kind)


def tarn_literal(value, type_, exact=False, styled=False):
    """`exact`: of the column's very type, as for INSERT; `styled`: with the type's keyword instead of a plain string."""
    if value is None:
        return "NULL"
    match type_.kind:
        case "boolean":
            return "TRUE" if value else "FALSE"
        case "int" | "long":
            return str(value)
        case "float" | "double":
            plain = math.isfinite(value) and not (value == 0 and math.copysign(1, value) < 0)
            return f"{value!r}e0" if plain and not exact and "e" not in repr(value) else f"CAST('{value!r}' AS DOUBLE)"
        case "decimal":
            # A literal of many digits would be read as a double.
            if exact or type_.precision > 15:
                return duck_literal(value, type_)
            return f"{value:f}"
        case "string":
            return tarn_string(value)
        case "uuid" | "fixed" | "binary":
            return f"X'{value.hex()}'"
    text = text_of(value, type_.kind)
    if styled and type_.kind == "date":
        return f"DATE '{text}'"
    return f"CAST('{text}' AS {type_.kind.upper()})" if styled and type_.kind in ("timestamp", "time") else f"'{text}'"


def duck_literal(value, type_):
    if value is None:
        return "NULL"
    match type_.kind:
        case "boolean":
            return "TRUE" if value else "FALSE"
        case "int" | "long":
            return str(value)
        case "float" | "double":
            return f"CAST('{value!r}' AS DOUBLE)"
        case "decimal":
            return f"CAST('{value:f}' AS DECIMAL({type_.precision}, {type_.scale}))"
        case "string":
            return "'" + value.replace("'", "''") + "'"
        case "uuid" | "fixed" | "binary":
            return "'" + "".join(f"\\x{b:02X}" for b in value) + "'::BLOB"
    text = text_of(value, type_.kind)
    return f"TIMESTAMPTZ '{text}+00'" if type_.kind == "timestamptz" else f"{type_.kind.upper()} '{text}'"


def tarn_column(column, alias):
    """A struct's field by dots or by a subscript."""
    first, *others = column.path
    return f"{alias}.{tarn_name(first.name)}" + "".join(f"[{tarn_string(f.name)}]" for f in others)


def duck_column(column, alias):
    first, *others = column.path
    return f"{alias}.f{first.id}" + "".join(f"['f{f.id}']" for f in others)


@dataclass
class Condition:
    """A condition as templates for both dialects, or AND, OR, NOT over others."""

    operator: str
    tarn: str = ""
    duck: str = ""
    parts: list = field(default_factory=list)

    def sql(self, dialect):
        if self.operator == "leaf":
            return self.tarn if dialect == "tarn" else self.duck
        inner = [f"({part.sql(dialect)})" for part in self.parts]
        return f"NOT {inner[0]}" if self.operator == "NOT" else f" {self.operator} ".join(inner)

    def smaller(self):
        """Conditions with less in them, the smallest first."""
        yield from self.parts
        for n, part in enumerate(self.parts):
            for less in part.smaller():
                yield Condition(self.operator, parts=[*self.parts[:n], less, *self.parts[n + 1 :]])


def leaf(tarn, duck):
    return Condition("leaf", tarn, duck)


class Conditions:
    """Random conditions over the columns of a table, with literals at and around the values that are in it."""

    def __init__(self, rng, columns, rows, alias):
        self.rng, self.rows, self.alias = rng, rows, alias
        self.columns = columns
        self.plain = [c for c in columns if isinstance(c.type, Primitive)]

    def condition(self, depth=2):
        if depth == 0 or self.rng.random() < 0.45:
            return self.simple()
        operator = self.rng.choice(["AND", "AND", "OR", "OR", "NOT"])
        count = 1 if operator == "NOT" else self.rng.choice([2, 2, 3])
        return Condition(operator, parts=[self.condition(depth - 1) for _ in range(count)])

    def value(self, column):
        """A value near one of the column's, or near an edge of a partition of it."""
        rng, kind = self.rng, column.type.kind
        value = column.value(rng.choice(self.rows)) if self.rows and rng.random() < 0.8 else None
        if value is None:
            value = random_value(rng, column.type, 0)
        shift = rng.choice([0, 0, -1, 1])
        match kind:
            case "int" | "long":
                return max(-(2**63), min(2**63 - 1, rng.choice([value, value // 10 * 10, value // 3 * 3]) + shift))
            case "float" | "double":
                return value + shift / 4 if math.isfinite(value) and abs(value) < 1000 else value
            case "decimal":
                most = 10**column.type.precision - 1
                return decimal_of(max(-most, min(most, unscaled(value) + shift)), column.type.scale)
            case "date":
                return max(FIRST_DAY, min(LAST_DAY, rng.choice([value, month_start(value), year_start(value)]) + shift))
            case "time":
                return max(0, min(DAY - 1, value + shift))
            case "timestamp" | "timestamptz":
                day = value // DAY
                edges = [value, value // 3_600_000_000 * 3_600_000_000, day * DAY, month_start(day) * DAY, year_start(day) * DAY]
                return max(FIRST_DAY * DAY, min(LAST_DAY * DAY + DAY - 1, rng.choice(edges) + shift))
            case "string" if shift and value:
                return value[:shift]
            case "binary" if shift and value:
                return value[:-1]
        return value

    def literals(self, column, value):
        styled = self.rng.random() < 0.5
        return tarn_literal(value, column.type, styled=styled), duck_literal(value, column.type)

    def names(self, column):
        return tarn_column(column, self.alias), duck_column(column, self.alias)

    def simple(self):
        rng = self.rng
        if rng.random() < 0.12:
            tarn, duck = self.names(rng.choice(self.columns))
            test = rng.choice(["IS NULL", "IS NOT NULL"])
            return leaf(f"{tarn} {test}", f"{duck} {test}")
        column = rng.choice(self.plain)
        tarn, duck = self.names(column)
        kind = column.type.kind
        special = self.special(column, kind, tarn, duck) if rng.random() < 0.3 else None
        if special:
            return special
        match rng.choice(["compare", "compare", "compare", "in", "not in", "between", "null-safe", "columns"]):
            case "in":
                return self.in_list(column, tarn, duck, "IN")
            case "not in":
                return self.in_list(column, tarn, duck, "NOT IN")
            case "between":
                low, high = (self.literals(column, self.value(column)) for _ in range(2))
                word = rng.choice(["BETWEEN", "NOT BETWEEN"])
                return leaf(f"{tarn} {word} {low[0]} AND {high[0]}", f"{duck} {word} {low[1]} AND {high[1]}")
            case "null-safe":
                t, d = self.literals(column, self.value(column))
                return leaf(f"{tarn} <=> {t}", f"{duck} IS NOT DISTINCT FROM {d}")
            case "columns":
                other = rng.choice([c for c in self.plain if c.type == column.type])
                operator = rng.choice(["=", "<>", "<", "<="])
                t, d = self.names(other)
                return leaf(f"{tarn} {operator} {t}", f"{duck} {operator} {d}")
        operator = rng.choice(["=", "<>", "<", "<=", ">", ">="])
        t, d = self.literals(column, self.value(column))
        if rng.random() < 0.1:
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
            return leaf(f"{t} {flipped} {tarn}", f"{duck} {operator} {d}")
        return leaf(f"{tarn} {operator} {t}", f"{duck} {operator} {d}")

    def in_list(self, column, tarn, duck, word):
        pairs = [self.literals(column, self.value(column)) for _ in range(self.rng.choice([1, 2, 3, 6]))]
        if self.rng.random() < 0.1:
            pairs.append(("NULL", "NULL"))
        return leaf(f"{tarn} {word} ({', '.join(p[0] for p in pairs)})", f"{duck} {word} ({', '.join(p[1] for p in pairs)})")

    def special(self, column, kind, tarn, duck):
        """What only some types have: casts, functions, prefixes, literals of another type."""
        rng = self.rng
        operator = rng.choice(["=", "<>", "<", "<=", ">", ">="])
        match kind:
            case "boolean":
                return leaf(tarn, duck)
            case "string":
                prefix = "".join(c for c in self.value(column)[:3] if c not in "\\%_")
                pattern = rng.choice([f"{prefix}%", f"{prefix}%", f"%{prefix}", f"{prefix[:1]}_%", prefix])
                word = rng.choice(["LIKE", "LIKE", "NOT LIKE"])
                return leaf(f"{tarn} {word} {tarn_string(pattern)}", f"{duck} {word} '{pattern.replace(chr(39), chr(39) * 2)}'")
            case "int" | "long":
                number = self.value(column)
                match rng.choice(["half", "wide", "cast"]):
                    case "half":
                        return leaf(f"{tarn} {operator} {number}.5", f"{duck} {operator} {number}.5")
                    case "wide":
                        big = rng.choice([3_000_000_000, -3_000_000_000])
                        return leaf(f"{tarn} {operator} {big}", f"{duck} {operator} {big}")
                return leaf(f"CAST({tarn} AS BIGINT) {operator} {number}", f"CAST({duck} AS BIGINT) {operator} {number}")
            case "decimal" if column.type.precision < 30:
                number = rng.randint(-5, 5)
                return leaf(f"{tarn} {operator} {number}", f"{duck} {operator} {number}")
            case "date" | "timestamp":
                value = self.value(column)
                day = value if kind == "date" else value // DAY
                match rng.choice(["cast", "year", "month", "other"]):
                    case "cast" if kind == "timestamp":
                        text = day_text(day)
                        date = f"{operator} DATE '{text}'"
                        return leaf(f"CAST({tarn} AS DATE) {date}", f"CAST({duck} AS DATE) {date}")
                    case "month":
                        month = datetime.date.fromordinal(EPOCH + day).month
                        return leaf(f"month({tarn}) {operator} {month}", f"month({duck}) {operator} {month}")
                    case "other" if kind == "date":
                        at = day * DAY + rng.choice([0, -1, 1, 7_200_000_000])
                        at = text_of(min(LAST_DAY * DAY, max(FIRST_DAY * DAY, at)), "timestamp")
                        return leaf(f"{tarn} {operator} CAST('{at}' AS TIMESTAMP)", f"{duck} {operator} TIMESTAMP '{at}'")
                    case "other":
                        text = day_text(day)
                        return leaf(f"{tarn} {operator} DATE '{text}'", f"{duck} {operator} TIMESTAMP '{text}'")
                year = datetime.date.fromordinal(EPOCH + day).year
                return leaf(f"year({tarn}) {operator} {year}", f"year({duck}) {operator} {year}")
        return None


def month_start(days):
    date = datetime.date.fromordinal(EPOCH + days)
    return date.replace(day=1).toordinal() - EPOCH


def year_start(days):
    date = datetime.date.fromordinal(EPOCH + days)
    return date.replace(month=1, day=1).toordinal() - EPOCH
