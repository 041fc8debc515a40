"""DuckDB's extensions as PyPI packages have them."""

import importlib.util
from pathlib import Path


def path(name):
    """The file of an extension, from the package `duckdb-extension-<name>`."""
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError(f"the package duckdb-extension-{name} is not installed")
    return next(Path(package.submodule_search_locations[0]).rglob(f"{name}.duckdb_extension"))
