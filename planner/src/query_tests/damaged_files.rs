//! Damaged data and delete files: an error that names table and file, or rows; never a panic, never without end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::physical_plan::collect;
use iceberg::spec::{FormatVersion, PrimitiveType as P};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{TestCaseError, TestRunner};
use tarn_catalog::StoreSettings;

use super::lake::Lake;
use crate::ScanStores;

/// How long a query of a damaged file may take; of whole ones it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

const CASES: u32 = 96;

/// A table of two hundred rows (id, name), and one file of it that will be damaged.
struct Case {
    lake: Lake,
    file: PathBuf,
}

fn ids(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

async fn table() -> (Lake, super::deleting::Listed) {
    let lake = Lake::new().await;
    lake.create("t", &[("id", P::Long), ("name", P::String)], &[])
        .await;
    let names = StringArray::from_iter_values((0..200).map(|id| format!("name {id}")));
    lake.append("t", vec![ids(0..200), Arc::new(names)]).await;
    let file = lake.data_files("t").await.remove(0);
    (lake, file)
}

fn on_disk(location: &str) -> PathBuf {
    location.strip_prefix("file://").unwrap_or(location).into()
}

/// A few bytes are others, or a part of the file is zeros.
#[derive(Debug, Clone)]
enum Damage {
    Set(Vec<(Index, u8)>),
    Zeros(Index, Index),
    /// The file is shorter than its manifest says.
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => prop::collection::vec((any::<Index>(), any::<u8>()), 1..4).prop_map(Damage::Set),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Zeros(from, to)),
        1 => any::<Index>().prop_map(Damage::Cut),
    ]
}

impl Damage {
    fn done_to(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let length = bytes.len();
        match self {
            Self::Set(changes) => {
                for (at, value) in changes {
                    bytes[at.index(length)] = *value;
                }
            }
            Self::Zeros(from, to) => {
                let (from, to) = (from.index(length), to.index(length));
                bytes[from.min(to)..from.max(to)].fill(0);
            }
            Self::Cut(at) => bytes.truncate(at.index(length)),
        }
        bytes
    }
}

impl Case {
    /// Runs queries on the table with its file as it is now, from fresh caches.
    async fn ask(&mut self) -> Result<(), String> {
        self.lake.stores = ScanStores::new(None, StoreSettings::default());
        for sql in [
            "SELECT sum(id % 7), max(name) FROM t",
            "SELECT id FROM t WHERE id IN (3, 150) ORDER BY id",
        ] {
            let context = self.lake.session();
            let plan = context
                .sql(sql)
                .await
                .map_err(|e| e.to_string())?
                .create_physical_plan()
                .await
                .map_err(|e| e.to_string())?;
            collect(plan, context.task_ctx())
                .await
                .map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

/// Damages the file in many ways, and looks at what queries say.
fn withstands(make: impl AsyncFnOnce() -> Case) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut case = runtime.block_on(make());
    let whole = std::fs::read(&case.file).expect("the file");
    runtime.block_on(case.ask()).expect("whole, it is read");
    let name = case.file.file_name().and_then(|name| name.to_str());
    let name = name.expect("a name").to_string();
    let case = std::cell::RefCell::new(case);
    let outcome = TestRunner::new(ProptestConfig::with_cases(CASES)).run(&damage(), |damage| {
        let mut case = case.borrow_mut();
        std::fs::write(&case.file, damage.done_to(&whole)).expect("it is written");
        let asked = runtime.block_on(async { tokio::time::timeout(PATIENCE, case.ask()).await });
        match asked {
            Err(_) => Err(TestCaseError::fail("the query does not end")),
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                prop_assert!(!error.contains("panic"), "{error}");
                prop_assert!(error.contains(&name), "the file is not named: {error}");
                prop_assert!(error.contains(".t'"), "the table is not named: {error}");
                Ok(())
            }
        }
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_damaged_data_file_does_no_harm() {
    withstands(async || {
        let (lake, file) = table().await;
        let file = on_disk(&file.path);
        Case { lake, file }
    });
}

#[test]
fn a_damaged_position_delete_file_does_no_harm() {
    withstands(async || {
        let (mut lake, of) = table().await;
        let rows: Vec<(&str, i64)> = (0..100).map(|row| (of.path.as_str(), row * 2)).collect();
        let deletes = lake.position_deletes("d.parquet", &rows, &of);
        lake.commit("t", vec![deletes]).await;
        let file = lake.new_file("d.parquet").0;
        Case { lake, file }
    });
}

#[test]
fn a_damaged_equality_delete_file_does_no_harm() {
    withstands(async || {
        let (mut lake, _) = table().await;
        let deletes = lake.equality_deletes("e.parquet", &[1], vec![(1, "id", ids(50..120))]);
        lake.commit("t", vec![deletes]).await;
        let file = lake.new_file("e.parquet").0;
        Case { lake, file }
    });
}

#[test]
fn a_damaged_deletion_vector_does_no_harm() {
    withstands(async || {
        let (mut lake, of) = table().await;
        lake.edit("t", |metadata| {
            metadata
                .upgrade_format_version(FormatVersion::V3)
                .expect("it can be upgraded")
        })
        .await;
        let positions: Vec<u64> = (0..200).filter(|row| row % 3 == 0).collect();
        let vectors = lake.vectors("v.puffin", &[(&of, &positions)]);
        lake.commit("t", vectors).await;
        let file = lake.new_file("v.puffin").0;
        Case { lake, file }
    });
}
