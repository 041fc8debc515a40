"""Differences that are explained: what Tarn does not do yet, or does otherwise than DuckDB, and why.

They are counted apart and do not fail the run. Rows that are wrong are no such thing. An entry goes when its reason does.
"""

import re

ERRORS = [
    (
        "DuckDB does not order by a field of a struct that it selects",
        # 1.5.5 takes another field for the key; the query has no such cast in it.
        r"^DuckDB does not answer: .*Unimplemented type for cast \((STRUCT|BLOB -> TIMESTAMP WITH TIME ZONE)",
    ),
    ("DuckDB looks for what comes after a prefix of U+10FFFF", r"^DuckDB does not answer: .*Invalid unicode"),
]


def reason(query, difference):
    """Why the difference is there, or None."""
    if difference.startswith(("error: ", "DuckDB does not answer: ")):
        return next((why for why, pattern in ERRORS if re.search(pattern, difference)), None)
    return None
