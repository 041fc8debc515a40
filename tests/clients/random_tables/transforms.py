"""Partition transforms, from the specification's text ("Partition Transforms", appendix B)."""

import datetime
import struct
from decimal import Decimal

from .schema import decimal_of

EPOCH = datetime.date(1970, 1, 1).toordinal()
HOUR = 3_600_000_000
DAY = 24 * HOUR


def murmur3(data):
    """The 32-bit x86 variant with seed 0, as a signed integer."""

    def mixed(k):
        k = k * 0xCC9E2D51 & 0xFFFFFFFF
        return ((k << 15 | k >> 17) & 0xFFFFFFFF) * 0x1B873593 & 0xFFFFFFFF

    h, whole = 0, len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        h ^= mixed(k)
        h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    if len(data) > whole:
        h ^= mixed(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def unscaled(value):
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


def hash_bytes(value):
    if isinstance(value, int):
        return struct.pack("<q", value)
    if isinstance(value, Decimal):
        number = unscaled(value)
        return number.to_bytes(((number if number >= 0 else ~number).bit_length() // 8) + 1, "big", signed=True)
    return value.encode() if isinstance(value, str) else value


# The examples of appendix B.
assert murmur3(hash_bytes(34)) == 2017239379
assert murmur3(hash_bytes(Decimal("14.20"))) == -500754589
assert murmur3(hash_bytes(17486)) == -653330422
assert murmur3(hash_bytes("iceberg")) == 1210000089
assert murmur3(hash_bytes(bytes([0, 1, 2, 3]))) == -188683207


def applied(transform, kind, value):
    """`transform` is as PyIceberg writes it: `identity`, `bucket[4]`, `truncate[3]`, `day`, …, `void`."""
    if value is None or transform == "void":
        return None
    name, _, argument = transform.rstrip("]").partition("[")
    match name:
        case "identity":
            return value
        case "bucket":
            return (murmur3(hash_bytes(value)) & 0x7FFFFFFF) % int(argument)
        case "truncate":
            width = int(argument)
            if isinstance(value, int):
                # Below the lowest value of the type Java's arithmetic wraps, and so do the partitions of its tables.
                bits = 32 if kind in ("int", "date") else 64
                return (value - value % width + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
            if isinstance(value, Decimal):
                number = unscaled(value)
                return decimal_of(number - number % width, -value.as_tuple().exponent)
            return value[:width]
        case "hour":
            return value // HOUR
    days = value if kind == "date" else value // DAY
    if name == "day":
        return days
    date = datetime.date.fromordinal(EPOCH + days)
    return date.year - 1970 if name == "year" else (date.year - 1970) * 12 + date.month - 1


def possible(kind):
    """The transforms that the specification allows for a type, as name and bounds of the argument."""
    found = ["identity"]
    if kind in ("int", "long", "decimal", "string", "binary"):
        found.append("truncate")
    if kind in ("int", "long", "decimal", "date", "time", "timestamp", "timestamptz", "string", "uuid", "fixed", "binary"):
        found.append("bucket")
    if kind in ("date", "timestamp", "timestamptz"):
        found += ["year", "month", "day"]
    if kind in ("timestamp", "timestamptz"):
        found += ["hour", "hour"]
    return found
