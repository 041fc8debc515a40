"""Differences that are explained: what Tarn does not do yet, or does otherwise than DuckDB, and why.

They are counted apart and do not fail the run. Rows that are wrong are no such thing, but for `MIN` and `MAX` below. An
entry goes when its reason does.
"""

import re

ERRORS = [
    ("a time literal has nanoseconds, a time column microseconds", r"Time64\(ns\)"),
    (
        "CAST(… AS TIMESTAMP) must fit 64-bit nanoseconds",
        r"Overflow happened on: -?\d+ \* 1000|Timestamp\(ns\): converted value exceeds",
    ),
    (
        "a struct inside a map's value cannot have changed",
        r"Cannot cast struct field .* from type Map|Cannot cast column .* from 'Map",
    ),
    (
        "the optimiser loses a column over a join when it takes struct fields out",
        r"Unknown column .*__datafusion_extracted_|Unknown column '[tu]\.",
    ),
    (
        "a map inside a struct cannot be asked for a key",
        r"references column .* but input schema only has|get_field is only possible on maps or structs",
    ),
    (
        "a uuid in a partition tuple cannot be read",
        r"Failed to convert &str to UUID|Cannot convert i64 to usize|Overflow when decoding integer value",
    ),
    ("an estimate of a filter's share of rows is NaN or infinite", r"Selectivity is out of limit: (NaN|inf)"),
    ("a table with initial default values is refused", r"initial default values of columns"),
    ("INSERT cannot partition by a binary prefix or a uuid", r"partitioning of a (binary column by truncate|uuid column)"),
    (
        "INSERT cannot name the partition of a timestamptz before 1970 that has a fraction",
        r"commit's task failed: .*Option::unwrap",
    ),
    (
        "DuckDB does not order by a field of a struct that it selects",
        r"^DuckDB does not answer: .*Unimplemented type for cast \(STRUCT",
    ),
    ("DuckDB looks for what comes after a prefix of U+10FFFF", r"^DuckDB does not answer: .*Invalid unicode"),
]

# Infinities and the greatest finite floats and doubles, as bits.
UNBOUNDED = "7ff0000000000000 fff0000000000000 47efffffe0000000 c7efffffe0000000 7fefffffffffffff ffefffffffffffff".split()


def reason(query, difference):
    """Why the difference is there, or None."""
    if difference.startswith(("error: ", "DuckDB does not answer: ")):
        return next((why for why, pattern in ERRORS if re.search(pattern, difference)), None)
    extreme = query and query.group and re.search(r"\b(min|max)\(", query.sql("tarn"))
    if extreme and re.search(f"'(nan|{'|'.join(UNBOUNDED)})'", difference):
        return "MIN and MAX in groups pass over NaN, and give the greatest finite number for infinity"
    return None
