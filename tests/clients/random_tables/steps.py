"""What happens to a table, step by step, to the real one and to the model of it."""

import ctypes
import itertools
import math
import uuid

import pyarrow.parquet as pq
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestEntryStatus
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import UpgradeFormatVersionUpdate

from . import commit as commits
from .files import FILE_PATH, POSITION, write_data_file, write_delete_file
from .model import DataFile, Model, PartitionField, key
from .predicates import tarn_literal, tarn_name
from .schema import (
    Field,
    List,
    Map,
    Primitive,
    Struct,
    arrow_table,
    by_name,
    columns,
    random_fields,
    random_row,
    random_value,
    structs,
)
from .transforms import possible
from .version3 import write_deletion_vectors


class Table:
    """An Iceberg table and its model."""

    def __init__(self, rng, catalog, name, options, tarn):
        self.rng, self.name, self.options, self.tarn, self.log = rng, name, options, tarn, []
        self.dropped, self.partition_fields, self.paths = [], 0, 0
        self.known = set()  # states that DuckDB has a table of
        ids = itertools.count(1)
        uid = Field(next(ids), "uid", Primitive(rng.choice(["int", "long"])), True)
        fields = [uid, *random_fields(rng, rng.randint(3, 8), 2, ids, ["uid"])]
        version = rng.choices([1, 2, 3], [2, 4, 2 if options.version3 else 0])[0]
        self.iceberg = catalog.create_table(
            name, Schema(*map(commits.iceberg_field, fields)), properties={"format-version": str(version)}
        )
        self.location = self.iceberg.location()
        # The catalog gives ids of its own.
        self.model = Model([commits.field_of(f) for f in self.iceberg.schema().fields], 1)
        self.note(f"create, version {version}: " + "; ".join(f"{f.id}: {f.name!r} {f.type}" for f in self.model.fields))

    def note(self, text):
        self.log.append(text)

    def grow(self, steps):
        choices = {
            append: 6, append_by_tarn: 2, append_by_pyiceberg: 1, add_column: 2, drop_column: 1.5, rename_column: 2,
            move_column: 1, promote_column: 2, change_spec: 3, copy_on_write: 1.5, upgrade: 0.5,
        }  # fmt: skip
        if self.options.deletes:
            choices |= {delete_positions: 2.5, delete_equal: 3, replace_keys: 1}
        if self.rng.random() < 0.6:
            change_spec(self)
        append(self)
        for _ in range(steps):
            (step,) = self.rng.choices(list(choices), list(choices.values()))
            step(self)
        if not self.model.files:
            append(self)

    def new_path(self, kind=""):
        """Names are the same each time a table is made: the order of files must be, too."""
        self.paths += 1
        return f"{self.location}/data/{self.paths:05}{kind}.parquet"

    def refresh_schema(self):
        """Takes over the schema after a change, having checked that PyIceberg made the change that was meant."""
        now = [commits.field_of(f) for f in self.iceberg.schema().fields]
        assert now == self.model.fields, f"{self.name}: the model has {self.model.fields}, the table {now}"

    def new_row(self):
        row = random_row(self.rng, self.model.fields)
        row[self.model.uid] = self.model.next_uid
        self.model.next_uid += 1
        return row


def grouped(table, rows, spec):
    parts = {}
    for row in rows:
        partition = table.model.partition(row, spec)
        parts.setdefault(tuple(map(key, partition)), (partition, []))[1].append(row)
    for partition, members in parts.values():
        # Now and then several files of a partition.
        cut = table.rng.randint(1, len(members)) if table.rng.random() < 0.2 else len(members)
        for part in members[:cut], members[cut:]:
            if part:
                yield partition, part


def new_files(table, rows, spec):
    return [
        (write_data_file(table.rng, table, part, table.model.fields, spec, partition), part, partition)
        for partition, part in grouped(table, rows, spec)
    ]


def add_to_model(table, files, spec, sequence):
    for entry, rows, partition in files:
        table.model.files[entry.file_path] = DataFile(entry.file_path, rows, spec, partition, sequence)


def append(table):
    rows = [table.new_row() for _ in range(table.rng.choice([1, 4, 12, 24]))]
    # Files may also be added under an earlier spec.
    spec = table.rng.choice(list(table.model.specs)) if table.rng.random() < 0.1 else table.model.spec
    files = new_files(table, rows, spec)
    snapshot, sequence = commits.commit(table.rng, table, data=[(entry, spec) for entry, _, _ in files])
    add_to_model(table, files, spec, sequence)
    table.model.remember(snapshot)
    table.note(f"append {len(rows)} rows in {len(files)} files of spec {spec}")


def append_by_tarn(table):
    written = [f for f in table.model.fields if isinstance(f.type, Primitive)]
    written = [f for f in written if f.required or table.rng.random() < 0.8]
    rows = [table.new_row() for _ in range(table.rng.choice([1, 3, 8]))]
    rows = [{f.id: row[f.id] for f in written} for row in rows]
    values = ", ".join("(" + ", ".join(tarn_literal(row[f.id], f.type, True) for f in written) + ")" for row in rows)
    names = ", ".join(tarn_name(f.name) for f in written)
    sql = f"INSERT INTO {table.name} ({names}) VALUES {values}"
    table.note(sql)
    table.tarn.execute(sql)
    adopt(table, rows)


def append_by_pyiceberg(table):
    transforms = {f.transform for f in table.model.specs[table.model.spec]}
    kinds = {c.type.kind for c in columns(table.model.fields) if isinstance(c.type, Primitive)}
    lists = any(isinstance(f.type, (List, Map)) for _, fields in structs(table.model.fields) for f in fields)
    if table.iceberg.metadata.format_version == 3 or transforms - {"void"} or "uuid" in kinds or lists:
        # It does not write version 3, needs a library for transforms that is not among the clients, and makes null
        # lists empty.
        return append(table)
    rows = [table.new_row() for _ in range(table.rng.choice([1, 5, 20]))]
    table.iceberg.append(arrow_table(rows, table.model.fields, by_name))
    table.note(f"append {len(rows)} rows by PyIceberg")
    adopt(table, rows)


def adopt(table, rows):
    """Finds the files that another writer has just added, and which of the rows each holds where."""
    table.iceberg.refresh()
    model, by_uid = table.model, {row[table.model.uid]: row for row in rows}
    snapshot = table.iceberg.current_snapshot()
    for manifest in snapshot.manifests(table.iceberg.io):
        if manifest.content != ManifestContent.DATA:
            continue
        for entry in manifest.fetch_manifest_entry(table.iceberg.io):
            file = entry.data_file
            if file.file_path in model.files or entry.status == ManifestEntryStatus.DELETED:
                continue
            arrow = pq.read_table(file.file_path.removeprefix("file://"), partitioning=None)
            ids = [f.metadata[b"PARQUET:field_id"] for f in arrow.schema]
            uid = ids.index(str(model.uid).encode())
            held = [by_uid.pop(n) for n in arrow.column(uid).to_pylist()]
            spec = manifest.partition_spec_id
            partition = model.partition(held[0], spec)
            recorded = tuple(file.partition[n] for n in range(len(partition)))
            for n, field in enumerate(model.specs[spec]):
                given = recorded[n].bytes if isinstance(recorded[n], uuid.UUID) else recorded[n]
                # PyIceberg 0.12 rounds a partition's DOUBLE to 32 bits as it reads it.
                rounded = isinstance(given, float) and given == ctypes.c_float(partition[n] or 0).value
                assert rounded or key(given) == key(partition[n]) or given == partition[n] == 0, (
                    f"{table.name}: partition {field}: {given!r} was written, {partition[n]!r} is right"
                )
            for row in held:
                assert tuple(map(key, model.partition(row, spec))) == tuple(map(key, partition)) or 0.0 in partition, (
                    f"{table.name}: rows of several partitions in {file.file_path}"
                )
            model.files[file.file_path] = DataFile(file.file_path, held, spec, partition, entry.sequence_number or 0)
    assert not by_uid, f"{table.name}: {len(by_uid)} rows are in no file"
    model.remember(snapshot.snapshot_id)


def in_use(table):
    """Columns whose transform is in a partition spec, with the structs around them."""
    sources = {f.source for spec in table.model.specs.values() for f in spec} | {table.model.uid}
    return {f.id for c in columns(table.model.fields) if c.leaf.id in sources for f in c.path}


def add_column(table):
    rng, model = table.rng, table.model
    path, fields = rng.choice(list(structs(model.fields)))
    (f,) = random_fields(rng, 1, 1, itertools.count(1000), [f.name for f in fields])
    dropped = [name for name in table.dropped if name.lower() not in {f.name.lower() for f in fields}]
    if dropped and rng.random() < 0.5:
        f.name = rng.choice(dropped)  # A name that was there before: its old values must not come back.
    kind = getattr(f.type, "kind", None)
    if table.iceberg.metadata.format_version == 3 and kind in ("int", "long", "double", "string", "boolean") and rng.random() < 0.6:
        default = random_value(rng, f.type, 0)
        # PyIceberg's JSON has no place for the others.
        f.default = default if default == default and default not in (math.inf, -math.inf) else None
    with table.iceberg.update_schema() as update:
        update.add_column((*path, f.name), commits.iceberg_type(f.type), default_value=f.default)
    parent = {p: fs for p, fs in structs([commits.field_of(f) for f in table.iceberg.schema().fields])}[path]
    fields.append(parent[-1])
    table.refresh_schema()
    table.note(f"add column {'.'.join((*path, f.name))!r} {parent[-1].type} as {parent[-1].id}, default {f.default!r}")


def drop_column(table):
    used = in_use(table)
    parents = [(path, fields, f) for path, fields in structs(table.model.fields) for f in fields if f.id not in used]
    parents = [(path, fields, f) for path, fields, f in parents if len(fields) > 1]
    if not parents or (len(table.model.fields) < 4 and not parents[0][0]):
        return add_column(table)
    path, fields, f = table.rng.choice(parents)
    with table.iceberg.update_schema() as update:
        update.delete_column((*path, f.name))
    fields.remove(f)
    table.dropped.append(f.name)
    table.refresh_schema()
    table.note(f"drop column {'.'.join((*path, f.name))!r} ({f.id})")


def rename_column(table):
    rng = table.rng
    path, fields = rng.choice(list(structs(table.model.fields)))
    f = rng.choice(fields)
    (new,) = random_fields(rng, 1, 0, itertools.count(1000), [f.name for f in fields])
    if len(fields) > 1 and rng.random() < 0.3:
        # Two columns swap their names.
        other = rng.choice([o for o in fields if o is not f])
        for who, target in [(f, new.name), (other, f.name), (f, other.name)]:
            rename(table, path, who, target)
    else:
        rename(table, path, f, new.name)


def rename(table, path, f, target):
    with table.iceberg.update_schema() as update:
        update.rename_column((*path, f.name), target)
    table.note(f"rename {'.'.join((*path, f.name))!r} to {target!r}")
    f.name = target
    table.refresh_schema()


def move_column(table):
    path, fields = table.rng.choice(list(structs(table.model.fields)))
    if len(fields) < 2:
        return
    f = table.rng.choice(fields)
    with table.iceberg.update_schema() as update:
        update.move_first((*path, f.name))
    fields.remove(f)
    fields.insert(0, f)
    table.refresh_schema()
    table.note(f"move {'.'.join((*path, f.name))!r} to the front")


def promote_column(table):
    found = []
    for path, fields in structs(table.model.fields):
        found += [((*path, f.name), f) for f in fields]
        for f in fields:
            # Elements of lists and values of maps, too.
            if isinstance(f.type, List):
                found.append(((*path, f.name, "element"), f.type.element))
            if isinstance(f.type, Map):
                found.append(((*path, f.name, "value"), f.type.value))
    wider = [(path, f) for path, f in found if isinstance(f.type, Primitive) and f.type.kind in ("int", "float", "decimal")]
    wider = [(path, f) for path, f in wider if f.type.precision < 38]
    if not wider:
        return add_column(table)
    path, f = table.rng.choice(wider)
    match f.type.kind:
        case "int":
            f.type = Primitive("long")
        case "float":
            f.type = Primitive("double")
        case _:
            f.type = Primitive("decimal", table.rng.choice([p for p in (18, 19, 38) if p > f.type.precision]), f.type.scale)
    with table.iceberg.update_schema() as update:
        update.update_column(path, field_type=commits.iceberg_type(f.type))
    table.refresh_schema()
    table.note(f"promote {'.'.join(path)!r} to {f.type}")


def change_spec(table):
    rng, model = table.rng, table.model
    sources = [c for c in columns(model.fields) if isinstance(c.type, Primitive)]
    current = [f for f in model.specs[model.spec] if f.transform != "void"]
    with table.iceberg.update_spec() as update:
        kept = []
        for f in current:
            # A version 1 table keeps the field as `void`, and PyIceberg cannot write null for a required column.
            stays = table.iceberg.metadata.format_version == 1 and f.source == model.uid
            if rng.random() < 0.5 and not stays:
                update.remove_field(f.name)
            else:
                kept.append((f.source, f.transform.partition("[")[0]))
        for _ in range(rng.choice([0, 1, 1, 2]) if current else rng.choice([1, 1, 2])):
            column = rng.choice(sources)
            transform = rng.choice(possible(column.type.kind))
            if any(source == column.leaf.id for source, _ in kept) or any(f.source == column.leaf.id for f in current):
                continue
            kept.append((column.leaf.id, transform))
            if transform in ("bucket", "truncate"):
                transform += f"[{rng.choice([1, 2, 3, 5, 10] if transform == 'truncate' else [2, 3, 16])}]"
            table.partition_fields += 1
            update.add_field(".".join(column.names()), transform, f"p{table.partition_fields}")
    spec = table.iceberg.spec()
    model.spec = spec.spec_id
    model.specs[spec.spec_id] = [PartitionField(f.source_id, f.field_id, f.name, str(f.transform)) for f in spec.fields]
    table.note(f"partition by {[(f.source, f.transform) for f in model.specs[spec.spec_id]]} (spec {spec.spec_id})")


def upgrade(table):
    version = table.iceberg.metadata.format_version + 1
    if version > (3 if table.options.version3 else 2):
        return append(table)
    table.iceberg.catalog.commit_table(table.iceberg, (), (UpgradeFormatVersionUpdate(format_version=version),))
    table.iceberg.refresh()
    table.note(f"upgrade to version {version}")


def some_rows(table):
    """Live rows to be deleted: of a partition, a file, a range of keys, or here and there."""
    rng, live = table.rng, table.model.live()
    if not live:
        return []
    match rng.choice(["file", "range", "scattered", "scattered", "one"]):
        case "file":
            file = rng.choice(live)[0]
            return [hit for hit in live if hit[0] is file]
        case "range":
            low = rng.choice(live)[2][table.model.uid]
            return [hit for hit in live if low <= hit[2][table.model.uid] < low + 10]
        case "scattered":
            return [hit for hit in live if rng.random() < 0.2]
    return [rng.choice(live)]


def copy_on_write(table):
    """Rewrites the files that hold the deleted rows; with none chosen it compacts a few files."""
    rng, model = table.rng, table.model
    gone = [] if rng.random() < 0.3 else some_rows(table)
    paths = {file.path for file, _, _ in gone} or {p for p in model.files if rng.random() < 0.4}
    if not paths:
        return
    paths = [path for path in model.files if path in paths]
    dead = {(file.path, n) for file, n, _ in gone}
    rows = [row for p in paths for n, row in model.files[p].alive() if (p, n) not in dead]
    # Only columns of today's schema are written anew.
    rows = [{f.id: value for f, value in zip(model.fields, model.read(row, model.fields).values())} for row in rows]
    files = new_files(table, rows, model.spec)
    data = [(entry, model.spec) for entry, _, _ in files]
    snapshot, sequence = commits.commit(rng, table, data, removed=paths, operation=Operation.OVERWRITE)
    for p in paths:
        del model.files[p]
    add_to_model(table, files, model.spec, sequence)
    model.remember(snapshot)
    table.note(f"rewrite {len(paths)} files as {len(files)} without {len(dead)} rows")


def needs_version_2(table):
    if table.iceberg.metadata.format_version == 1:
        upgrade(table)


def delete_positions(table):
    """Position deletes, a file of them for each data file or for each partition; sometimes of rows of the same commit."""
    needs_version_2(table)
    rng, model = table.rng, table.model
    added = new_files(table, [table.new_row() for _ in range(8)], model.spec) if rng.random() < 0.2 else []
    add_to_model(table, added, model.spec, None)
    gone = some_rows(table)
    if added:
        gone += [(model.files[entry.file_path], 0, None) for entry, _, _ in added]
    if not gone:
        return append(table)
    by_file, groups = rng.random() < 0.5, {}
    for file, n, _ in gone:
        group = file.path if by_file else (file.spec, tuple(map(key, file.partition)))
        groups.setdefault(group, (file.spec, file.partition, set()))[2].add((file.path, n))
    if table.iceberg.metadata.format_version == 3:
        deletes = vectors(table, groups)
    else:
        deletes = [(position_deletes(table, *group), group[0]) for group in groups.values()]
    touched = {file.path for file, _, _ in gone}
    data = [(entry, model.spec) for entry, _, _ in added]
    snapshot, sequence = commits.commit(rng, table, data, deletes, replaced=touched, operation=Operation.DELETE)
    for entry, _, _ in added:
        model.files[entry.file_path].sequence = sequence
    model.delete_positions([(file.path, n) for file, n, _ in gone])
    model.remember(snapshot)
    table.note(f"delete {len(gone)} positions in {len(deletes)} files" + (", some just added" if added else ""))


def position_deletes(table, spec, partition, positions):
    rows = [{FILE_PATH.id: path, POSITION.id: n} for path, n in sorted(positions)]
    content = DataFileContent.POSITION_DELETES
    return write_delete_file(table.rng, table, content, rows, [FILE_PATH, POSITION], spec, partition)


def vectors(table, groups):
    """Deletion vectors in one Puffin file or several; each holds all that was ever deleted from its file by position
    (specification, "Deletion Vectors"), in place of an earlier vector and of position delete files."""
    entries = []
    for _, _, positions in groups.values():
        files = [table.model.files[path] for path in dict.fromkeys(path for path, _ in sorted(positions))]
        wanted = [(f.path, f.partition, f.by_position | {n for path, n in positions if path == f.path}) for f in files]
        written = write_deletion_vectors(table.new_path("-dv").replace(".parquet", ".puffin"), wanted)
        entries += [(entry, file.spec) for entry, file in zip(written, files)]
    return entries


def delete_equal(table, with_data=False):
    """An equality delete of some keys, for one partition or (under an unpartitioned spec) for all."""
    needs_version_2(table)
    rng, model = table.rng, table.model
    # Field ids of floats are not allowed (specification, "Equality Delete Files").
    usable = [c for c in columns(model.fields) if isinstance(c.type, Primitive) and c.type.kind not in ("float", "double")]
    keys = rng.sample(usable, rng.choice([1, 1, 1, 2]) if len(usable) > 1 else 1)
    if rng.random() < 0.25:
        keys = [c for c in usable if c.leaf.id == model.uid]
    live = model.live()
    if not live:
        return append(table)
    spec, partition = rng.choice([(f.spec, f.partition) for f, _, _ in live])
    unpartitioned = [n for n in model.specs if model.is_unpartitioned(n)]
    if unpartitioned and rng.random() < 0.4:
        spec = rng.choice(unpartitioned)
        partition = (None,) * len(model.specs[spec])
    rows = [row for _, _, row in rng.sample(live, min(len(live), rng.choice([1, 1, 2, 5])))]
    # Struct fields around a nested key are written with it.
    written = written_keys(model.fields, {c.leaf.id for c in keys})
    if rng.random() < 0.2:
        written = model.fields  # Whole rows, as some writers leave them.
    entry = write_delete_file(
        rng, table, DataFileContent.EQUALITY_DELETES, rows, written, spec, partition, [c.leaf.id for c in keys]
    )
    added = []
    if with_data:
        # The keys come back in the same commit: the delete is not for them.
        again = []
        for row in rows:
            fresh = table.new_row()
            for c in keys:
                if len(c.path) == 1 and c.leaf.id != model.uid:
                    fresh[c.leaf.id] = row.get(c.leaf.id)
            again.append(fresh)
        added = new_files(table, again, model.spec)
    data = [(file, model.spec) for file, _, _ in added]
    snapshot, sequence = commits.commit(rng, table, data, [(entry, spec)], operation=Operation.DELETE)
    values = [tuple(c.value(row) for c in keys) for row in rows]
    model.delete_equal(keys, values, spec, partition, sequence)
    add_to_model(table, added, model.spec, sequence)
    model.remember(snapshot)
    shown = [(c.leaf.id, ".".join(c.names())) for c in keys]
    table.note(f"delete where {shown} in {values} (spec {spec}, partition {partition}, {len(added)} files added with it)")


def written_keys(fields, ids):
    kept = []
    for f in fields:
        if f.id in ids:
            kept.append(f)
        elif isinstance(f.type, Struct) and (inner := written_keys(f.type.fields, ids)):
            kept.append(Field(f.id, f.name, Struct(inner), f.required))
    return kept


def replace_keys(table):
    delete_equal(table, with_data=True)
