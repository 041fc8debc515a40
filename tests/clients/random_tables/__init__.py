"""Random Iceberg tables with a plain model of what is in them, and random queries over them.

    schema      types, fields and random values, kept by field id
    transforms  partition transforms, worked out anew from the specification
    model       which row is alive, in which file, in each snapshot
    files       Parquet data and delete files, and the metrics that go into manifests
    version3    what PyIceberg does not write of format version 3
    commit      manifests, manifest lists and snapshots
    steps       what happens to a table: appends, evolution, partition specs, deletes
    predicates  conditions, as Tarn's SQL and as DuckDB's
    queries     whole queries, and how a failing one is made smaller
    answers     answers as values that can be compared
    known       differences that are explained

The model knows nothing of Iceberg's libraries; PyIceberg keeps the catalog, the metadata and the Avro files.
"""
