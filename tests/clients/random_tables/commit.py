"""Manifests and snapshots, by PyIceberg's writers; a commit goes through the catalog."""

import uuid
from collections import defaultdict

import pyiceberg.types as t
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate

from .schema import Field, List, Map, Primitive, Struct
from .version3 import ManifestListWriterV3, ManifestWriterV3

SIMPLE = {
    "boolean": t.BooleanType(),
    "int": t.IntegerType(),
    "long": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "date": t.DateType(),
    "time": t.TimeType(),
    "timestamp": t.TimestampType(),
    "timestamptz": t.TimestamptzType(),
    "string": t.StringType(),
    "uuid": t.UUIDType(),
    "binary": t.BinaryType(),
}


def iceberg_type(type_):
    if isinstance(type_, Struct):
        return t.StructType(*(iceberg_field(f) for f in type_.fields))
    if isinstance(type_, List):
        return t.ListType(type_.element.id, iceberg_type(type_.element.type), type_.element.required)
    if isinstance(type_, Map):
        value = type_.value
        return t.MapType(type_.key.id, iceberg_type(type_.key.type), value.id, iceberg_type(value.type), value.required)
    if type_.kind == "decimal":
        return t.DecimalType(type_.precision, type_.scale)
    return t.FixedType(type_.precision) if type_.kind == "fixed" else SIMPLE[type_.kind]


def iceberg_field(f):
    return t.NestedField(field_id=f.id, name=f.name, field_type=iceberg_type(f.type), required=f.required)


def field_of(f):
    """A field of PyIceberg's as one of the model's."""
    return Field(f.field_id, f.name, type_of(f.field_type), f.required, f.initial_default)


def type_of(type_):
    if isinstance(type_, t.StructType):
        return Struct([field_of(f) for f in type_.fields])
    if isinstance(type_, t.ListType):
        return List(field_of(type_.element_field))
    if isinstance(type_, t.MapType):
        return Map(field_of(type_.key_field), field_of(type_.value_field))
    if isinstance(type_, t.DecimalType):
        return Primitive("decimal", type_.precision, type_.scale)
    if isinstance(type_, t.FixedType):
        return Primitive("fixed", len(type_))
    return Primitive(next(kind for kind, simple in SIMPLE.items() if simple == type_))


class Deletes:
    """What makes a writer of manifests one of delete manifests."""

    def content(self):
        return ManifestContent.DELETES

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


class DeleteManifestWriterV2(Deletes, ManifestWriterV2):
    pass


class DeleteManifestWriterV3(Deletes, ManifestWriterV3):
    pass


def commit(rng, table, data=(), deletes=(), removed=(), replaced=(), operation=Operation.APPEND):
    """A snapshot that adds data and delete files (each with its spec id), removes data files by path and the deletion
    vectors of the `replaced` ones, and rewrites other manifests now and then. Returns its id and sequence number."""
    metadata = table.iceberg.metadata
    snapshot_id = metadata.new_snapshot_id()
    parent = metadata.current_snapshot()
    manifests = ManifestFiles(rng, table, snapshot_id)

    added = defaultdict(list)
    for content, files in (ManifestContent.DATA, data), (ManifestContent.DELETES, deletes):
        for entry, spec in files:
            part = rng.randint(0, 2) if rng.random() < 0.2 else 0  # several manifests in a commit, sometimes
            added[content, spec, part].append(ManifestEntry.from_args(data_file=entry))
    for (content, spec, _), entries in added.items():
        manifests.write(content, spec, added=entries)

    merge, merged = rng.random() < 0.25, defaultdict(list)
    for manifest in parent.manifests(table.iceberg.io) if parent else []:
        entries = manifest.fetch_manifest_entry(table.iceberg.io, discard_deleted=True)
        # A data file goes, and so do its deletion vectors; or a new vector takes the place of the last one.
        gone = [e for e in entries if e.data_file.file_path in removed or referenced(e.data_file) in {*removed, *replaced}]
        kept = [e for e in entries if e not in gone]
        if merge:
            merged[manifest.content, manifest.partition_spec_id].append((kept, gone))
        elif gone:
            manifests.write(manifest.content, manifest.partition_spec_id, existing=kept, deleted=gone)
        else:
            manifests.keep(manifest)
    for (content, spec), parts in merged.items():
        kept, gone = ([e for part in parts for e in part[n]] for n in (0, 1))
        if kept or gone:
            manifests.write(content, spec, existing=kept, deleted=gone)

    path = f"{table.location}/metadata/snap-{snapshot_id}-{uuid.uuid4()}.avro"
    sequence = metadata.next_sequence_number() if metadata.format_version > 1 else 0
    arguments = (
        table.iceberg.io.new_output(path),
        snapshot_id,
        parent.snapshot_id if parent else None,
        sequence,
        rng.choice(["null", "deflate"]),
    )
    rows = {}
    if metadata.format_version == 3:
        rows["first_row_id"] = metadata.next_row_id or 0
        writer = ManifestListWriterV3(*arguments, **rows)
    else:
        writer = write_manifest_list(metadata.format_version, *arguments)
    with writer:
        writer.add_manifests(manifests.written)
    if rows:
        rows["added_rows"] = writer.next_row_id - rows["first_row_id"]
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=sequence,
        manifest_list=path,
        summary=Summary(operation),
        schema_id=metadata.current_schema_id,
        **rows,
    )
    table.iceberg.catalog.commit_table(
        table.iceberg,
        (AssertRefSnapshotId(ref="main", snapshot_id=parent.snapshot_id if parent else None),),
        (
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot_id),
        ),
    )
    table.iceberg.refresh()
    return snapshot_id, sequence


REFERENCED = [f.name for f in DATA_FILE_TYPE[3].fields].index("referenced_data_file")


def referenced(file):
    """The data file that a deletion vector is for."""
    return file._data[REFERENCED] if file.file_format == FileFormat.PUFFIN else None


class ManifestFiles:
    """The manifests of a snapshot in the making."""

    def __init__(self, rng, table, snapshot_id):
        self.rng, self.table, self.snapshot_id, self.written = rng, table, snapshot_id, []

    def keep(self, manifest):
        self.written.append(manifest)

    def write(self, content, spec, added=(), existing=(), deleted=()):
        metadata = self.table.iceberg.metadata
        output = self.table.iceberg.io.new_output(f"{self.table.location}/metadata/{uuid.uuid4()}.avro")
        arguments = (metadata.specs()[spec], metadata.schema(), output, self.snapshot_id, self.rng.choice(["null", "deflate"]))
        if content == ManifestContent.DELETES:
            writer = (DeleteManifestWriterV3 if metadata.format_version == 3 else DeleteManifestWriterV2)(*arguments)
        elif metadata.format_version == 3:
            writer = ManifestWriterV3(*arguments)
        else:
            writer = write_manifest(metadata.format_version, *arguments)
        with writer:
            for entry in added:
                added_entry = ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=self.snapshot_id,
                    sequence_number=None,
                    file_sequence_number=None,
                    data_file=entry.data_file,
                )
                writer.add_entry(added_entry)
            for entry in existing:
                writer.existing(entry)
            for entry in deleted:
                writer.delete(entry)
        self.written.append(writer.to_manifest_file())
