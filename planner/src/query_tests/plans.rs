//! The plans of TPC-H and TPC-DS at scale 1, kept as text: `plans/*/q*.plan`.
//!
//! The tables are made of metadata alone (`plans/*_tables.tsv`, written by `plans/make_tables.py`): planning opens no data
//! file. A change of the planner that changes a plan shows in the diff of these files, after
//!
//! ```text
//! TARN_RENEW_PLANS=1 cargo test --workspace plans::
//! ```

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, Datum, PrimitiveType, Struct,
};

use super::lake::Lake;
use super::versions::planned;

/// Writes the plans instead of comparing them.
const RENEW: &str = "TARN_RENEW_PLANS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/query_tests/plans")
}

/// A column as `make_tables.py` writes it.
struct Column<'a> {
    name: &'a str,
    of: PrimitiveType,
    bytes: u64,
    nulls: u64,
    bounds: [&'a str; 2],
}

impl<'a> Column<'a> {
    fn parse(line: &'a str) -> Self {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[_, name, of, bytes, nulls, low, high] = fields.as_slice() else {
            panic!("{line}")
        };
        let of = match of
            .strip_prefix("decimal(")
            .and_then(|of| of.strip_suffix(')'))
        {
            Some(of) => {
                let (precision, scale) = of.split_once(',').expect("precision and scale");
                PrimitiveType::Decimal {
                    precision: precision.parse().expect("a number"),
                    scale: scale.parse().expect("a number"),
                }
            }
            None => match of {
                "int" => PrimitiveType::Int,
                "long" => PrimitiveType::Long,
                "date" => PrimitiveType::Date,
                "string" => PrimitiveType::String,
                other => panic!("{other}"),
            },
        };
        Self {
            name,
            of,
            bytes: bytes.parse().expect("a number"),
            nulls: nulls.parse().expect("a number"),
            bounds: [low, high],
        }
    }

    /// The value in the bytes that metadata has it in.
    fn bound(&self, text: &str) -> Option<Datum> {
        let bytes = match &self.of {
            _ if text.is_empty() => return None,
            PrimitiveType::Date => return Some(Datum::date_from_str(text).expect("a date")),
            PrimitiveType::String => text.as_bytes().to_vec(),
            PrimitiveType::Int => text
                .parse::<i32>()
                .expect("a number")
                .to_le_bytes()
                .to_vec(),
            PrimitiveType::Long => text
                .parse::<i64>()
                .expect("a number")
                .to_le_bytes()
                .to_vec(),
            _ => {
                let unscaled: i128 = text.replace('.', "").parse().expect("a number");
                unscaled.to_be_bytes().to_vec()
            }
        };
        Some(Datum::try_from_bytes(&bytes, self.of.clone()).expect("a value"))
    }
}

/// The tables of a benchmark, each with one file that is not there.
async fn lake(benchmark: &str) -> Lake {
    let mut lake = Lake::new().await;
    lake.options.workers = (0..3).map(|i| format!("http://w{i}")).collect();
    lake.broadcast_bytes = Some(8 << 20);
    let path = folder().join(format!("{benchmark}_tables.tsv"));
    let text = fs::read_to_string(path).expect("tables");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (table, rows) = line.split_once('\t').expect("a table and its rows");
        let rows = rows.parse().expect("a number");
        let mut columns = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('\t')) {
            columns.push(Column::parse(line));
        }
        let named: Vec<_> = columns.iter().map(|c| (c.name, c.of.clone())).collect();
        lake.create(table, &named, &[]).await;
        let file = data_file(table, rows, &columns);
        lake.commit(table, vec![file]).await;
    }
    lake
}

fn data_file(table: &str, rows: u64, columns: &[Column<'_>]) -> DataFileBuilder {
    let by_field = |value: &dyn Fn(&Column<'_>) -> u64| -> HashMap<i32, u64> {
        let values = columns.iter().map(value);
        (1..).zip(values).collect()
    };
    let bounds = |which: usize| -> HashMap<i32, Datum> {
        let bounds = columns.iter().map(|c| c.bound(c.bounds[which]));
        (1..)
            .zip(bounds)
            .filter_map(|(id, bound)| Some((id, bound?)))
            .collect()
    };
    let mut file = DataFileBuilder::default();
    file.content(DataContentType::Data)
        .file_path(format!("file:///nowhere/{table}.parquet"))
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .partition_spec_id(0)
        .record_count(rows)
        .file_size_in_bytes(columns.iter().map(|c| c.bytes).sum())
        .column_sizes(by_field(&|c| c.bytes))
        .value_counts(by_field(&|_| rows))
        .null_value_counts(by_field(&|c| c.nulls))
        .lower_bounds(bounds(0))
        .upper_bounds(bounds(1));
    file
}

/// The nodes of a plan that say what is done; those that only hand rows on are left out.
fn digest(plan: &Arc<dyn ExecutionPlan>) -> String {
    let mut text = String::new();
    let mut open = vec![(plan, 0)];
    while let Some((node, depth)) = open.pop() {
        let hands_on = node.is::<ProjectionExec>()
            || node.is::<CoalescePartitionsExec>()
            || node.is::<CooperativeExec>();
        let below = match hands_on {
            true => depth,
            false => {
                let shown = OneLine(node.as_ref());
                let _ = writeln!(text, "{:indent$}{shown}", "", indent = 2 * depth);
                depth + 1
            }
        };
        let children = node.children().into_iter().rev();
        open.extend(children.map(|child| (child, below)));
    }
    text
}

struct OneLine<'a>(&'a dyn ExecutionPlan);

impl std::fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        DisplayAs::fmt_as(self.0, DisplayFormatType::Default, f)
    }
}

/// Compares the plans of all queries in a folder with what is kept of them.
async fn plans_are_as_kept(benchmark: &str, texts: &Path) {
    let lake = lake(benchmark).await;
    let kept = folder().join(benchmark);
    let renew = std::env::var_os(RENEW).is_some();
    let mut queries: Vec<PathBuf> = fs::read_dir(texts)
        .expect("queries")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "sql"))
        .collect();
    queries.sort();
    assert!(!queries.is_empty());
    let mut changed = Vec::new();
    for query in queries {
        let sql = fs::read_to_string(&query).expect("a query");
        let (plan, _) = planned(&lake, sql.trim().trim_end_matches(';'))
            .await
            .unwrap_or_else(|e| panic!("{}: {e}", query.display()));
        let plan = digest(&plan);
        let name = query.file_stem().expect("a name").to_string_lossy();
        let path = kept.join(format!("{name}.plan"));
        if renew {
            fs::write(&path, &plan).expect("the plan is written");
        } else if fs::read_to_string(&path).ok().as_ref() != Some(&plan) {
            changed.push(format!("{}:\n{plan}", path.display()));
        }
    }
    assert!(
        changed.is_empty(),
        "{} plans are other ones now; {RENEW}=1 keeps these:\n{}",
        changed.len(),
        changed.join("\n")
    );
}

#[tokio::test]
async fn tpch() {
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tpch");
    plans_are_as_kept("tpch", &texts).await;
}

#[tokio::test]
async fn tpcds() {
    plans_are_as_kept("tpcds", &folder().join("tpcds")).await;
}
