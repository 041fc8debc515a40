//! A catalog in a temporary folder, and queries on it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use iceberg::spec::{NestedField, NestedFieldRef, PrimitiveType, Schema, Transform, Type};
use tarn_audit::ScanReport;
use tarn_catalog::{
    CatalogSettings, Catalogs, DEFAULT_CATALOG, DEFAULT_DATABASE, NewTable, PartitionField,
    StoreSettings, WriteOptions,
};

use crate::{
    NoVirtualSchemas, QueryCatalogs, ScanStores, SessionOptions, finish_scan_reports,
    iceberg_scans, session_builder,
};

pub(crate) struct Lake {
    pub catalogs: Arc<Catalogs>,
    pub stores: Arc<ScanStores>,
    pub options: SessionOptions,
    pub folder: tempfile::TempDir,
    /// Sides of joins with fewer bytes are broadcast; `None`: as many as DataFusion says.
    pub broadcast_bytes: Option<usize>,
}

/// What a query answered, and what its scans did.
pub(crate) struct Answer {
    pub text: String,
    pub reports: Vec<ScanReport>,
}

impl Lake {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let catalogs = Catalogs::open(CatalogSettings::new(folder.path()))
            .await
            .expect("catalogs open");
        Self {
            catalogs,
            stores: ScanStores::new(None, StoreSettings::default()),
            options: SessionOptions {
                target_partitions: 2,
                ..SessionOptions::default()
            },
            folder,
            broadcast_bytes: None,
        }
    }

    pub(crate) async fn create(
        &self,
        name: &str,
        columns: &[(&str, PrimitiveType)],
        partition: &[(&str, Transform)],
    ) {
        let fields: Vec<NestedFieldRef> = columns
            .iter()
            .enumerate()
            .map(|(i, (name, of))| {
                NestedField::optional(i as i32 + 1, *name, Type::Primitive(of.clone())).into()
            })
            .collect();
        let schema = Schema::builder()
            .with_fields(fields)
            .build()
            .expect("a schema");
        let mut table = NewTable::new(name, schema);
        table.partition = partition
            .iter()
            .map(|(column, transform)| PartitionField {
                column: column.to_string(),
                transform: *transform,
                name: None,
            })
            .collect();
        table.properties = HashMap::new();
        let catalog = self
            .catalogs
            .get(DEFAULT_CATALOG)
            .expect("the catalog is there");
        catalog
            .create_table(DEFAULT_DATABASE, table)
            .await
            .expect("the table is made");
    }

    /// One append: one manifest, and a file for each partition.
    pub(crate) async fn append(&self, name: &str, columns: Vec<ArrayRef>) {
        let catalog = self
            .catalogs
            .get(DEFAULT_CATALOG)
            .expect("the catalog is there");
        let mut writer = catalog
            .append(DEFAULT_DATABASE, name, WriteOptions::default())
            .await
            .expect("an append opens");
        let batch = RecordBatch::try_new(writer.arrow_schema(), columns).expect("the columns fit");
        writer.write(batch).await.expect("rows are written");
        writer.commit().await.expect("the append is committed");
    }

    pub(crate) fn session(&self) -> SessionContext {
        let catalogs = QueryCatalogs::new(
            Arc::clone(&self.catalogs),
            Arc::clone(&self.stores),
            Arc::new(NoVirtualSchemas),
        );
        SessionContext::new_with_state(self.state(catalogs))
    }

    pub(crate) fn state(&self, catalogs: Arc<QueryCatalogs>) -> SessionState {
        let builder = session_builder(
            &self.options,
            Arc::new(RuntimeEnv::default()),
            catalogs,
            DEFAULT_CATALOG,
            DEFAULT_DATABASE,
        );
        let mut builder = builder.expect("a session");
        if let Some(bytes) = self.broadcast_bytes {
            let optimizer = &mut builder
                .config()
                .get_or_insert_default()
                .options_mut()
                .optimizer;
            optimizer.hash_join_single_partition_threshold = bytes;
            optimizer.hash_join_single_partition_threshold_rows = bytes;
        }
        builder.build()
    }

    pub(crate) async fn plan(&self, sql: &str) -> Arc<dyn ExecutionPlan> {
        let frame = self
            .session()
            .sql(sql)
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        frame
            .create_physical_plan()
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// The plan, as EXPLAIN shows it.
    pub(crate) async fn explain(&self, sql: &str) -> String {
        let plan = self.plan(sql).await;
        datafusion::physical_plan::displayable(plan.as_ref())
            .indent(false)
            .to_string()
    }

    pub(crate) async fn query(&self, sql: &str) -> Answer {
        let context = self.session();
        let frame = context
            .sql(sql)
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        let plan = frame
            .create_physical_plan()
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        let batches = collect(Arc::clone(&plan), context.task_ctx())
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        Answer {
            text: rows(&batches),
            reports: finish_scan_reports(&plan),
        }
    }

    /// What a query fails with.
    pub(crate) async fn error(&self, sql: &str) -> String {
        let context = self.session();
        let frame = match context.sql(sql).await {
            Ok(frame) => frame,
            Err(error) => return error.to_string(),
        };
        match frame.collect().await {
            Ok(batches) => panic!("{sql}: {}", rows(&batches)),
            Err(error) => error.to_string(),
        }
    }

    /// Files of the one scan of a query: kept, of so many.
    pub(crate) async fn files(&self, sql: &str) -> (u64, u64) {
        let scans = iceberg_scans(&self.plan(sql).await);
        assert_eq!(scans.len(), 1, "{sql}");
        (scans[0].report.files.kept, scans[0].report.files.total)
    }

    /// Manifests of the one scan of a query: kept, of so many.
    pub(crate) async fn manifests(&self, sql: &str) -> (u64, u64) {
        let scans = iceberg_scans(&self.plan(sql).await);
        assert_eq!(scans.len(), 1, "{sql}");
        (
            scans[0].report.manifests.kept,
            scans[0].report.manifests.total,
        )
    }
}

/// Rows as text: values by comma, rows by semicolon.
pub(crate) fn rows(batches: &[RecordBatch]) -> String {
    let table = pretty_format_batches(batches)
        .expect("values print")
        .to_string();
    let lines = table.lines().filter(|line| line.starts_with('|')).skip(1);
    let rows: Vec<String> = lines
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(",")
        })
        .collect();
    rows.join("; ")
}
