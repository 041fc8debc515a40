"""What is in a table, in plain Python: its files with their rows, and which of them are deleted."""

import copy
import math
import struct
from dataclasses import dataclass, field

from .schema import columns, projected
from .transforms import applied


@dataclass
class PartitionField:
    source: int
    id: int
    name: str
    transform: str


@dataclass
class DataFile:
    path: str
    rows: list  # by position; dictionaries by field id, also of columns that have been dropped since
    spec: int
    partition: tuple
    sequence: int
    deleted: set = field(default_factory=set)
    by_position: set = field(default_factory=set)  # those of `deleted` that a deletion vector has to hold

    def alive(self):
        return [(n, row) for n, row in enumerate(self.rows) if n not in self.deleted]


def key(value):
    """A value as something that can be compared and hashed: floats by their bits."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value)
    return (type(value).__name__, value)


class Model:
    def __init__(self, fields, uid):
        self.fields = fields
        self.uid = uid  # field id of the unique key
        self.specs = {0: []}
        self.spec = 0
        self.files = {}
        self.next_uid = 1
        self.history = []  # (snapshot id, fields, [(file, deleted positions)])

    def source(self, source_id):
        return next(c for c in columns(self.fields) if c.leaf.id == source_id)

    def partition(self, row, spec):
        values = []
        for f in self.specs[spec]:
            column = self.source(f.source)
            values.append(applied(f.transform, column.type.kind, column.value(row)))
        return tuple(values)

    def live(self):
        return [(file, n, row) for file in self.files.values() for n, row in file.alive()]

    def rows(self):
        return [self.read(row, self.fields) for _, _, row in self.live()]

    @staticmethod
    def read(row, fields):
        return {f.id: projected(row.get(f.id, f.default), f.type) for f in fields}

    def is_unpartitioned(self, spec):
        return all(f.transform == "void" for f in self.specs[spec])

    def delete_positions(self, positions):
        for path, n in positions:
            self.files[path].deleted.add(n)
            self.files[path].by_position.add(n)

    def delete_equal(self, key_columns, keys, spec, partition, sequence):
        """An equality delete file (specification, "Scan Planning"): older files of the same spec and partition, or
        all older files if its spec is unpartitioned; nulls are equal; a column that a file lacks is null, or its default."""
        wanted = {tuple(key(v) for v in values) for values in keys}
        everywhere = self.is_unpartitioned(spec)
        for file in self.files.values():
            same = file.spec == spec and tuple(map(key, file.partition)) == tuple(map(key, partition))
            if file.sequence < sequence and (everywhere or same):
                for n, row in enumerate(file.rows):
                    if tuple(key(c.value(row)) for c in key_columns) in wanted:
                        file.deleted.add(n)

    def remember(self, snapshot_id):
        state = [(file, frozenset(file.deleted)) for file in self.files.values()]
        self.history.append((snapshot_id, copy.deepcopy(self.fields), state))

    def rows_at(self, n):
        _, fields, state = self.history[n]
        return [self.read(row, fields) for file, deleted in state for i, row in enumerate(file.rows) if i not in deleted]
