"""Says whether two Arrow tables hold the same answer."""

import datetime
import decimal


def difference(mine, theirs, tolerance=1e-9):
    """None if the answers agree, else one sentence. Rows are compared in order, or as a sorted bag where ties may be
    ordered differently; numbers within a relative `tolerance`, since engines give a division other scales."""
    if mine.num_columns != theirs.num_columns:
        return f"{mine.num_columns} columns against {theirs.num_columns}"
    if mine.num_rows != theirs.num_rows:
        return f"{mine.num_rows} rows against {theirs.num_rows}"
    left, right = rows(mine), rows(theirs)
    if all(equal(a, b, tolerance) for a, b in zip(left, right)):
        return None
    for a, b in zip(sorted(left, key=sort_key), sorted(right, key=sort_key)):
        if not equal(a, b, tolerance):
            return f"{a} against {b}"
    return None


def rows(table):
    columns = [column.to_pylist() for column in table.columns]
    return [tuple(map(plain, row)) for row in zip(*columns)]


def plain(value):
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day).isoformat()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return float(value)


def equal(a, b, tolerance):
    return all(
        abs(x - y) <= tolerance * max(1.0, abs(x), abs(y))
        if isinstance(x, float) and isinstance(y, float)
        else x == y
        for x, y in zip(a, b)
    )


def sort_key(row):
    # Rounded, so that two engines' last digits do not change the order.
    return tuple(
        (0, "") if v is None else (1, f"{v:.6e}") if isinstance(v, float) else (2, str(v)) for v in row
    )
