//! Files of several formats in one scan: what is pushed down to them, and parts of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::FileRange;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use iceberg::spec::{
    MappedField, NameMapping, NestedField, PrimitiveType, Schema as IcebergSchema, Type,
};
use parquet::arrow::ArrowWriter;
use tarn_audit::ScanReport;
use tarn_catalog::{StorageDescriptor, StoreSettings, TableName, location_to_path};

use super::lake::rows;
use crate::formats::FileFormat;
use crate::scan::{
    FileConstants, IcebergSource, ScanStores, ScanTable, TableColumns, data_file, inherited,
    with_row_lineage,
};
use crate::{ScanCodec, SessionOptions, session_config};

/// `id` and `word`: an ORC file of ids 0 to 19999 in 20 stripes, whose columns have no ids; an Avro file of 20000 to
/// 20099 in many blocks; and a Parquet file of 20100 to 20199.
#[derive(Debug)]
struct MixedTable {
    folder: PathBuf,
    /// Each file is cut into so many parts.
    parts: u64,
    stores: Arc<ScanStores>,
}

impl MixedTable {
    fn columns(&self) -> Arc<TableColumns> {
        let field = |id, name, of| NestedField::optional(id, name, Type::Primitive(of)).into();
        let schema = IcebergSchema::builder().with_fields(vec![
            field(1, "id", PrimitiveType::Long),
            field(2, "word", PrimitiveType::String),
        ]);
        let mapped = MappedField::new(Some(1), vec!["n".to_string()], vec![]);
        let schema = with_row_lineage(&schema.build().expect("a schema")).expect("a schema");
        let columns = TableColumns::new(Arc::new(schema), Some(NameMapping::new(vec![mapped])));
        Arc::new(columns.expect("columns"))
    }
}

#[async_trait]
impl TableProvider for MixedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.columns().arrow())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut groups = vec![vec![], vec![]];
        for (name, format, first_row_id) in [
            ("numbers.orc", Some(FileFormat::Orc), 1_000_000),
            ("numbers.avro", Some(FileFormat::Avro), 2_000_000),
            ("numbers.parquet", None, 3_000_000),
        ] {
            let path = self.folder.join(name);
            let size = path.metadata()?.len();
            let location = path.to_str().expect("a plain path");
            let mut file = data_file(location_to_path(location).expect("a path"), size);
            if let Some(format) = format {
                file = file.with_extension(format);
            }
            let constants = inherited(Some(first_row_id), Some(first_row_id / 1_000_000));
            file = file.with_extension(FileConstants(Arc::new(HashMap::from(constants))));
            for part in 0..self.parts {
                let at = |part: u64| (size * part / self.parts) as i64;
                let mut file = file.clone();
                if self.parts > 1 {
                    file.range = Some(FileRange {
                        start: at(part),
                        end: at(part + 1),
                    });
                }
                groups[part as usize % 2].push(file);
            }
        }
        let storage = StorageDescriptor::local();
        let url = self.stores.register(&storage, state.runtime_env())?;
        let table = ScanTable::new(
            TableName::new("lake", "default", "t"),
            storage,
            self.columns(),
            ScanReport::default(),
        );
        let parquet = ParquetSource::new(TableSchema::new(self.schema(), vec![]))
            .with_table_parquet_options(TableParquetOptions {
                global: state.config_options().execution.parquet.clone(),
                ..Default::default()
            });
        let source = IcebergSource::new(parquet, Arc::new(table), Arc::clone(&self.stores), None);
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(groups.into_iter().map(FileGroup::new).collect())
            .with_limit(limit)
            .with_projection_indices(projection.cloned())?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

fn write_files(folder: &std::path::Path) {
    let orc = include_bytes!("../formats/orc/testdata/stripes.orc");
    std::fs::write(folder.join("numbers.orc"), orc).expect("a file");
    let avro = include_bytes!("../formats/avro/testdata/numbers.avro");
    std::fs::write(folder.join("numbers.avro"), avro).expect("a file");
    let id = [("PARQUET:field_id".to_string(), "1".to_string())];
    let field = Field::new("id", DataType::Int64, true).with_metadata(id.into());
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(20_100..20_200));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![numbers])
        .expect("the columns fit");
    let file = std::fs::File::create(folder.join("numbers.parquet")).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("rows are written");
    writer.close().expect("the file is closed");
}

/// The plan as a worker gets it.
fn travelled(plan: Arc<dyn ExecutionPlan>, worker: &SessionContext) -> Arc<dyn ExecutionPlan> {
    let codec = || ScanCodec::new(ScanStores::new(None, StoreSettings::default()));
    let node = PhysicalPlanNode::try_from_physical_plan(plan, &codec()).expect("it is encoded");
    node.try_into_physical_plan(&worker.task_ctx(), &codec())
        .expect("it is decoded")
}

#[tokio::test]
async fn files_of_all_formats_answer_together() {
    let folder = tempfile::tempdir().expect("a folder");
    write_files(folder.path());
    for (late_materialization, parts) in [(false, 1), (true, 1), (false, 3), (true, 7)] {
        let options = SessionOptions {
            late_materialization,
            target_partitions: 2,
            ..SessionOptions::default()
        };
        let context = SessionContext::new_with_config(
            session_config(&options).with_create_default_catalog_and_schema(true),
        );
        let table = MixedTable {
            folder: folder.path().to_path_buf(),
            parts,
            stores: ScanStores::new(None, StoreSettings::default()),
        };
        context
            .register_table("t", Arc::new(table))
            .expect("a table");
        let worker = SessionContext::new_with_config_rt(
            session_config(&options),
            Arc::new(RuntimeEnv::default()),
        );
        for (sql, expected) in [
            (
                "SELECT count(*), count(id), count(word) FROM t",
                "20200,20200,100",
            ),
            // 0 + 1 + … + 20199
            (
                "SELECT sum(id), count(DISTINCT id) FROM t",
                "204009900,20200",
            ),
            (
                "SELECT id + 1 AS next, word FROM t WHERE id % 10000 = 7 OR id IN (20001, 20150) ORDER BY id",
                "8,; 10008,; 20002,avro-1; 20008,avro-7; 20151,",
            ),
            (
                "SELECT word FROM t WHERE word LIKE '%-9' OR word = 'avro-42'",
                "avro-9; avro-42",
            ),
            ("SELECT id FROM t ORDER BY id DESC LIMIT 2", "20199; 20198"),
            (
                "SELECT id FROM t WHERE id > 19998 ORDER BY id LIMIT 3",
                "19999; 20000; 20001",
            ),
            (
                "SELECT count(*) FROM (SELECT id FROM t LIMIT 20150)",
                "20150",
            ),
            (
                "SELECT count(*) FROM t WHERE word IS NULL AND id >= 20000",
                "100",
            ),
            (
                "SELECT a.id FROM t a JOIN t b ON a.id = b.id AND b.word = 'avro-5'",
                "20005",
            ),
            // By their position in their file, whatever is skipped.
            (
                "SELECT id, _row_id, _last_updated_sequence_number FROM t WHERE id IN (0, 13579, 20000, 20042, 20107) ORDER BY id",
                "0,1000000,1; 13579,1013579,1; 20000,2000000,2; 20042,2000042,2; 20107,3000007,3",
            ),
            (
                "SELECT _last_updated_sequence_number, min(_row_id - id), max(_row_id - id), count(*) FROM t GROUP BY 1 ORDER BY 1",
                "1,1000000,1000000,20000; 2,1980000,1980000,100; 3,2979900,2979900,100",
            ),
            ("SELECT id FROM t WHERE _row_id = 1019999", "19999"),
        ] {
            let frame = context
                .sql(sql)
                .await
                .unwrap_or_else(|e| panic!("{sql}: {e}"));
            let plan = frame
                .create_physical_plan()
                .await
                .unwrap_or_else(|e| panic!("{sql}: {e}"));
            let remote = travelled(Arc::clone(&plan), &worker);
            for (plan, context) in [(plan, &context), (remote, &worker)] {
                let batches = collect(plan, context.task_ctx())
                    .await
                    .unwrap_or_else(|e| panic!("{sql}: {e}"));
                assert_eq!(
                    rows(&batches),
                    expected,
                    "{sql}, late {late_materialization}, in {parts} parts"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_damaged_file_is_named_with_its_table() {
    let folder = tempfile::tempdir().expect("a folder");
    write_files(folder.path());
    for name in ["numbers.orc", "numbers.avro"] {
        write_files(folder.path());
        let path = folder.path().join(name);
        let whole = std::fs::read(&path).expect("it is read");
        std::fs::write(&path, &whole[..whole.len() - 5]).expect("it is written");
        let context = SessionContext::new_with_config(
            session_config(&SessionOptions::default()).with_create_default_catalog_and_schema(true),
        );
        let table = MixedTable {
            folder: folder.path().to_path_buf(),
            parts: 1,
            stores: ScanStores::new(None, StoreSettings::default()),
        };
        context
            .register_table("t", Arc::new(table))
            .expect("a table");
        let frame = context.sql("SELECT sum(id) FROM t").await.expect("a plan");
        let error = frame
            .collect()
            .await
            .expect_err("it is damaged")
            .to_string();
        assert!(
            error.contains("lake.default.t") && error.contains(name) && error.contains("damaged"),
            "{error}"
        );
    }
}
