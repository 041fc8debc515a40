"""Format version 3, which PyIceberg 0.12 reads but does not write: metadata, manifests and deletion vectors."""

import json
import struct
import zlib

import pyiceberg.manifest as manifest
import pyiceberg.table.metadata as metadata
import pyiceberg.table.update as update
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestListWriterV2, ManifestWriterV2
from pyiceberg.typedef import IcebergBaseModel, Record
from pyroaring import BitMap


def _dumped(self, *arguments, **options):
    # Required in version 3, and absent in a table that was upgraded.
    self.__dict__["next_row_id"] = self.next_row_id or 0
    return IcebergBaseModel.model_dump_json(self, *arguments, **options)


# PyIceberg has the models and the Avro schemas of version 3; only these gates are shut.
metadata.TableMetadataV3.model_dump_json = _dumped
update.SUPPORTED_TABLE_FORMAT_VERSION = 3
manifest.DEFAULT_READ_VERSION = 3  # What is read is written again, with the fields that only version 3 has.


class ManifestWriterV3(ManifestWriterV2):
    @property
    def version(self):
        return 3


class ManifestListWriterV3(ManifestListWriterV2):
    """Gives a `first_row_id` to each data manifest that has none (specification, "First Row ID Assignment")."""

    def __init__(self, *arguments, first_row_id):
        super().__init__(*arguments)
        self._format_version = 3
        self._meta |= {"format-version": "3", "first-row-id": str(first_row_id)}
        self.next_row_id = first_row_id

    def prepare_manifest(self, manifest_file):
        prepared = super().prepare_manifest(manifest_file)
        fields = [*manifest_file._data[:15], manifest_file._data[15] if len(manifest_file._data) > 15 else None]
        fields[4:6] = prepared.sequence_number, prepared.min_sequence_number
        if prepared.content == ManifestContent.DATA and fields[15] is None:
            fields[15] = self.next_row_id
            self.next_row_id += prepared.added_rows_count + prepared.existing_rows_count
        return Record(*fields)


def deletion_vector(positions):
    """A blob of type `deletion-vector-v1` (Puffin specification)."""
    keys = {}
    for n in positions:
        keys.setdefault(n >> 32, BitMap()).add(n & 0xFFFFFFFF)
    vector = struct.pack("<Q", len(keys))
    for key in sorted(keys):
        keys[key].run_optimize()
        vector += struct.pack("<I", key) + keys[key].serialize()
    body = bytes.fromhex("d1d33964") + vector
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def write_deletion_vectors(path, vectors):
    """A Puffin file with a vector for each (data file, partition, positions); the manifest's entries for them."""
    content, blobs, entries = b"PFA1", [], []
    for data_file, partition, positions in vectors:
        blob = deletion_vector(positions)
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [2147483645],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {"referenced-data-file": data_file, "cardinality": str(len(positions))},
            }
        )
        entries.append(
            {
                "partition": Record(*partition),
                "record_count": len(positions),
                "referenced_data_file": data_file,
                "content_offset": len(content),
                "content_size_in_bytes": len(blob),
            }
        )
        content += blob
    footer = json.dumps({"blobs": blobs}).encode()
    content += b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
    with open(path.removeprefix("file://"), "wb") as file:
        file.write(content)
    return [
        DataFile.from_args(
            _table_format_version=3,
            content=DataFileContent.POSITION_DELETES,
            file_path=path,
            file_format=FileFormat.PUFFIN,
            file_size_in_bytes=len(content),
            **entry,
        )
        for entry in entries
    ]
