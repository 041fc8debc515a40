"""Says whether two answers, as lists of row tuples, are the same."""

import datetime
import decimal


def table_rows(table):
    """The rows of an Arrow table."""
    return list(zip(*(column.to_pylist() for column in table.columns)))


def difference(mine, theirs, tolerance=1e-9):
    """None if the answers agree, else one sentence. Rows are compared in order, then as a bag, since ties may be
    ordered either way; numbers within a relative `tolerance`, and a decimal within a unit of its last digit, since
    one engine gives AVG and a division as decimals of some scale and another as doubles."""
    if len(mine) != len(theirs):
        return f"{len(mine)} rows against {len(theirs)}"
    left, right = ([tuple(map(plain, row)) for row in rows] for rows in (mine, theirs))
    if all(equal(a, b, tolerance) for a, b in zip(left, right)):
        return None
    for a, b in zip(sorted(left, key=sort_key), sorted(right, key=sort_key)):
        if not equal(a, b, tolerance):
            return f"{a} against {b}"
    return None


def plain(value):
    """Engines give the same value as int, float or Decimal, and a date as date or datetime."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day).isoformat()
    if isinstance(value, decimal.Decimal):
        return Rounded(value)
    if isinstance(value, int):
        return float(value)
    return value


class Rounded(float):
    """A decimal as a float that knows how far it may be off."""

    def __new__(cls, value):
        self = super().__new__(cls, value)
        self.unit = 10.0 ** value.as_tuple().exponent if value.as_tuple().exponent < 0 else 0.0
        return self


def equal(a, b, tolerance):
    return len(a) == len(b) and all(
        abs(x - y) <= allowed(x, y, tolerance) if isinstance(x, float) and isinstance(y, float) else x == y
        for x, y in zip(a, b)
    )


def allowed(x, y, tolerance):
    relative = tolerance * max(1.0, abs(x), abs(y))
    # Two decimals of one scale are exact; a decimal beside a double is rounded or cut off.
    units = [getattr(v, "unit", 0.0) for v in (x, y)]
    return relative + (max(units) if min(units) != max(units) else 0.0)


def sort_key(row):
    # Rounded, so that two engines' last digits do not change the order.
    return tuple((0, "") if v is None else (1, f"{v:.6e}") if isinstance(v, float) else (2, str(v)) for v in row)
