//! Parquet tables small enough to make for each test, in many files so that every worker has some.

use crate::cluster::file_url;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

pub struct Tables {
    directory: TempDir,
}

impl Tables {
    /// `facts` (files x rows: id, shop, amount, note) and `shops` (40 rows: shop, city).
    pub fn make(files: i64, rows: i64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let facts = directory.path().join("facts");
        std::fs::create_dir(&facts).unwrap();
        for file in 0..files {
            let ids: Vec<i64> = (file * rows..(file + 1) * rows).collect();
            write(
                &facts.join(format!("part-{file:03}.parquet")),
                vec![
                    ("id", Arc::new(Int64Array::from(ids.clone())) as ArrayRef),
                    (
                        "shop",
                        Arc::new(Int64Array::from_iter_values(ids.iter().map(|id| id % 50))),
                    ),
                    (
                        "amount",
                        Arc::new(Float64Array::from_iter_values(
                            ids.iter().map(|id| (id % 1000) as f64 / 4.0),
                        )),
                    ),
                    (
                        "note",
                        Arc::new(StringArray::from_iter(
                            ids.iter()
                                .map(|id| (id % 7 != 0).then(|| format!("note {}", id % 113))),
                        )),
                    ),
                ],
            );
        }
        let shops = directory.path().join("shops");
        std::fs::create_dir(&shops).unwrap();
        for part in 0..2i64 {
            let keys: Vec<i64> = (part * 20..(part + 1) * 20).collect();
            write(
                &shops.join(format!("part-{part}.parquet")),
                vec![
                    ("shop", Arc::new(Int64Array::from(keys.clone())) as ArrayRef),
                    (
                        "city",
                        Arc::new(StringArray::from_iter_values(
                            keys.iter().map(|key| format!("city {}", key % 6)),
                        )),
                    ),
                ],
            );
        }
        Self { directory }
    }

    pub async fn register(&self, context: &SessionContext) {
        for table in ["facts", "shops"] {
            context
                .register_parquet(
                    table,
                    file_url(&self.directory.path().join(table)),
                    ParquetReadOptions::default(),
                )
                .await
                .unwrap();
        }
    }
}

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
