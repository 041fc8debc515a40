//! Iceberg tables, read by workers that know no catalog.

use crate::cluster::*;
use datafusion::arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, StringArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform, Type};
use std::sync::Arc;
use tarn_catalog::{
    CatalogSettings, Catalogs, DEFAULT_CATALOG, DEFAULT_DATABASE, NewTable, PartitionField,
    StoreSettings, WriteOptions,
};
use tarn_cluster::{ClusterDispatch, QueryContext};
use tarn_planner::{NoVirtualSchemas, QueryCatalogs, ScanStores, SessionOptions, session_builder};
use tempfile::TempDir;

struct Lake {
    catalogs: Arc<Catalogs>,
    stores: Arc<ScanStores>,
    _folder: TempDir,
}

impl Lake {
    /// `events`, partitioned by day, in several appends, and `shops`.
    async fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let catalogs = Catalogs::open(CatalogSettings::new(folder.path()))
            .await
            .unwrap();
        let lake = Self {
            catalogs,
            stores: ScanStores::new(None, StoreSettings::default()),
            _folder: folder,
        };
        let decimal = PrimitiveType::Decimal {
            precision: 12,
            scale: 2,
        };
        let columns = [
            ("id", PrimitiveType::Long),
            ("day", PrimitiveType::Date),
            ("shop", PrimitiveType::Long),
            ("amount", decimal),
        ];
        lake.create("events", &columns, Some("day")).await;
        for part in 0..4i64 {
            let ids: Vec<i64> = (part * 3000..(part + 1) * 3000).collect();
            let amounts =
                Decimal128Array::from_iter_values(ids.iter().map(|id| i128::from(id % 100_000)))
                    .with_precision_and_scale(12, 2)
                    .unwrap();
            lake.append(
                "events",
                vec![
                    Arc::new(Int64Array::from(ids.clone())) as ArrayRef,
                    Arc::new(Date32Array::from_iter_values(
                        ids.iter().map(|id| 20_000 + (id % 7) as i32),
                    )),
                    Arc::new(Int64Array::from_iter_values(ids.iter().map(|id| id % 60))),
                    Arc::new(amounts),
                ],
            )
            .await;
        }
        lake.create(
            "shops",
            &[
                ("shop", PrimitiveType::Long),
                ("city", PrimitiveType::String),
            ],
            None,
        )
        .await;
        lake.append(
            "shops",
            vec![
                Arc::new(Int64Array::from_iter_values(0..40)) as ArrayRef,
                Arc::new(StringArray::from_iter_values(
                    (0..40).map(|shop| format!("city {}", shop % 9)),
                )),
            ],
        )
        .await;
        lake
    }

    async fn create(&self, name: &str, columns: &[(&str, PrimitiveType)], partition: Option<&str>) {
        let fields = columns.iter().enumerate().map(|(i, (name, of))| {
            NestedField::optional(i as i32 + 1, *name, Type::Primitive(of.clone())).into()
        });
        let mut table = NewTable::new(name, Schema::builder().with_fields(fields).build().unwrap());
        table.partition = partition
            .into_iter()
            .map(|column| PartitionField {
                column: column.to_string(),
                transform: Transform::Identity,
                name: None,
            })
            .collect();
        let catalog = self.catalogs.get(DEFAULT_CATALOG).unwrap();
        catalog.create_table(DEFAULT_DATABASE, table).await.unwrap();
    }

    async fn append(&self, name: &str, columns: Vec<ArrayRef>) {
        let catalog = self.catalogs.get(DEFAULT_CATALOG).unwrap();
        let mut writer = catalog
            .append(DEFAULT_DATABASE, name, WriteOptions::default())
            .await
            .unwrap();
        let batch = RecordBatch::try_new(writer.arrow_schema(), columns).unwrap();
        writer.write(batch).await.unwrap();
        writer.commit().await.unwrap();
    }

    fn builder(&self) -> SessionStateBuilder {
        let options = SessionOptions {
            target_partitions: 2,
            ..SessionOptions::default()
        };
        let catalogs = QueryCatalogs::new(
            Arc::clone(&self.catalogs),
            Arc::clone(&self.stores),
            Arc::new(NoVirtualSchemas),
        );
        session_builder(
            &options,
            Arc::new(RuntimeEnv::default()),
            catalogs,
            DEFAULT_CATALOG,
            DEFAULT_DATABASE,
        )
        .unwrap()
    }

    fn local(&self) -> SessionContext {
        SessionContext::new_with_state(self.builder().build())
    }

    fn cluster(&self, dispatch: &ClusterDispatch, query: &QueryContext) -> SessionContext {
        SessionContext::new_with_state(dispatch.configure(self.builder(), query).unwrap().build())
    }
}

const QUERIES: &[&str] = &[
    "SELECT count(*), sum(amount), min(day), max(day) FROM events",
    "SELECT day, count(*) c, sum(amount) s FROM events GROUP BY day",
    "SELECT city, count(*) c, sum(amount) s FROM events e JOIN shops s ON e.shop = s.shop GROUP BY city",
    "SELECT id, amount FROM events WHERE day = DATE '2024-10-05' AND amount > 90 ORDER BY amount DESC, id LIMIT 9",
    "SELECT count(*) FROM events a JOIN events b ON a.id = b.id + 1 WHERE a.day < DATE '2024-10-06'",
    "SELECT e.shop, max(e.id) FROM events e WHERE e.shop NOT IN (SELECT shop FROM shops) GROUP BY e.shop",
    "SELECT date_format(day, '%Y-%m') m, count(*) FROM events GROUP BY 1",
    "SELECT * FROM shops",
    "SELECT count(*) FROM events WHERE day = DATE '1999-01-01'",
    "SELECT count(*) FROM events WHERE shop = (SELECT shop FROM shops WHERE city = 'city 8' AND shop < 10)",
    "SELECT count(*) FROM events WHERE shop = (SELECT shop FROM shops WHERE city = 'nowhere')",
    // The column that partitions is a constant, which the workers do not see.
    "SELECT id, row_number() OVER (PARTITION BY shop ORDER BY id) FROM events WHERE shop = 7",
    "SELECT id, row_number() OVER (PARTITION BY shop, day ORDER BY id) FROM events WHERE shop = 7",
    "SELECT id, row_number() OVER (PARTITION BY day, shop ORDER BY amount, id) FROM events WHERE shop = 7",
    "SELECT id, sum(amount) OVER (PARTITION BY shop ORDER BY id) FROM events WHERE shop = 7",
    "SELECT id, sum(amount) OVER (PARTITION BY shop) FROM events WHERE shop = 7",
    "SELECT id, ntile(5) OVER (PARTITION BY shop, day ORDER BY id DESC) FROM events WHERE shop = 7",
    "SELECT id, lead(id) OVER (PARTITION BY shop ORDER BY id DESC) FROM events WHERE shop = 7",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_workers_read_iceberg_as_one_process_does() {
    let lake = Lake::make().await;
    let coordinator = Coordinator::start().await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(TestWorker::start(coordinator.address).await);
    }
    coordinator.wait_for_workers(3).await;
    let dispatch = dispatch(&coordinator, small_scans());
    for sql in QUERIES {
        let expected = lines(&run(&lake.local(), sql).await.unwrap());
        let got = run(&lake.cluster(&dispatch, &query(sql)), sql).await;
        assert_eq!(
            lines(&got.unwrap_or_else(|error| panic!("{sql}: {error}"))),
            expected,
            "{sql}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_find_the_second_row_of_a_scalar_subquery() {
    let lake = Lake::make().await;
    let coordinator = Coordinator::start().await;
    let _worker = TestWorker::start(coordinator.address).await;
    coordinator.wait_for_workers(1).await;
    let dispatch = dispatch(&coordinator, small_scans());
    for sql in [
        "SELECT count(*) FROM events WHERE shop = (SELECT shop FROM shops)",
        "SELECT (SELECT id FROM events)",
    ] {
        let error = run(&lake.cluster(&dispatch, &query(sql)), sql)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("Subquery returns more than 1 row"),
            "{sql}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broadcast_join_prunes_the_scan_that_it_probes_on_the_workers() {
    let lake = Lake::make().await;
    let coordinator = Coordinator::start().await;
    let _workers = [
        TestWorker::start(coordinator.address).await,
        TestWorker::start(coordinator.address).await,
    ];
    coordinator.wait_for_workers(2).await;
    let dispatch = dispatch(&coordinator, small_scans());
    // Shops 3, 12, 21, 30 and 39 only; a day has every shop, so nothing but the join's own filter can prune rows.
    let sql =
        "SELECT count(*) FROM events e JOIN shops s ON e.shop = s.shop WHERE s.city = 'city 3'";
    let mut builder = lake.builder();
    builder
        .config()
        .get_or_insert_default()
        .options_mut()
        .execution
        .parquet
        .pushdown_filters = true;
    let context =
        SessionContext::new_with_state(dispatch.configure(builder, &query("q")).unwrap().build());
    let plan = plan(&context, sql).await.unwrap();
    let batches: Vec<_> = execute_stream(Arc::clone(&plan), context.task_ctx())
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    // 12,000 events, five shops of sixty.
    assert_eq!(lines(&batches), ["| 1000 |", "| count(*) |"]);
    let profile = tokio::time::timeout(
        PATIENCE,
        datafusion_distributed::explain_analyze(
            plan,
            datafusion_distributed::DistributedMetricsFormat::Aggregated,
        ),
    )
    .await
    .unwrap()
    .unwrap();
    let scanned: Vec<usize> = profile
        .lines()
        .filter(|line| line.contains("DataSourceExec") || line.contains("DistributedLeafExec"))
        .filter_map(|line| line.split("output_rows=").nth(1))
        .filter_map(|rest| {
            rest.split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        })
        .collect();
    assert!(
        scanned.iter().max().is_some_and(|rows| *rows <= 2000),
        "{scanned:?}\n{profile}"
    );
}
