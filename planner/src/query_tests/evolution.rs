//! Columns are matched by field id, whatever a file calls them.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Decimal128Array, Float32Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use iceberg::spec::{
    ListType, MappedField, NameMapping, NestedField, PrimitiveType as P, Schema as IcebergSchema,
    StructType, Type,
};
use parquet::arrow::ArrowWriter;
use tarn_audit::ScanReport;
use tarn_catalog::{StorageDescriptor, StoreSettings, TableName, location_to_path};

use super::lake::rows;
use crate::scan::{FileConstants, IcebergSource, ScanStores, ScanTable, TableColumns, data_file};
use crate::{SessionOptions, session_config};

/// A table of one file, without a catalog.
#[derive(Debug)]
struct OneFile {
    columns: Arc<TableColumns>,
    file: std::path::PathBuf,
    constants: Option<FileConstants>,
    stores: Arc<ScanStores>,
}

#[async_trait]
impl TableProvider for OneFile {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.columns.arrow())
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
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let location = self.file.to_str().expect("a plain path");
        let size = self.file.metadata()?.len();
        let mut file = data_file(location_to_path(location).expect("a path"), size);
        if let Some(constants) = &self.constants {
            file = file.with_extension(constants.clone());
        }
        let storage = StorageDescriptor::local();
        let url = self.stores.register(&storage, state.runtime_env())?;
        let name = TableName::new("lake", "default", "t");
        let table = ScanTable::new(
            name,
            storage,
            Arc::clone(&self.columns),
            ScanReport::default(),
        );
        let parquet = ParquetSource::new(TableSchema::new(self.schema(), vec![]))
            .with_table_parquet_options(TableParquetOptions {
                global: state.config_options().execution.parquet.clone(),
                ..Default::default()
            });
        let source = IcebergSource::new(parquet, Arc::new(table), Arc::clone(&self.stores), None);
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(vec![FileGroup::new(vec![file])])
            .with_projection_indices(projection.cloned())?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

pub(super) fn with_id(field: Field, id: i32) -> Field {
    field.with_metadata(HashMap::from([(
        "PARQUET:field_id".to_string(),
        id.to_string(),
    )]))
}

pub(super) fn write(path: &Path, columns: Vec<(Field, ArrayRef)>) {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch =
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("the columns fit");
    let mut writer =
        ArrowWriter::try_new(File::create(path).expect("a file"), batch.schema(), None)
            .expect("a writer");
    writer.write(&batch).expect("rows are written");
    writer.close().expect("the file is closed");
}

pub(super) fn optional(id: i32, name: &str, of: Type) -> Arc<NestedField> {
    NestedField::optional(id, name, of).into()
}

pub(super) fn primitive(id: i32, name: &str, of: P) -> Arc<NestedField> {
    optional(id, name, Type::Primitive(of))
}

pub(super) fn table(fields: Vec<Arc<NestedField>>) -> IcebergSchema {
    IcebergSchema::builder()
        .with_fields(fields)
        .build()
        .expect("a schema")
}

pub(super) struct Case {
    pub(super) folder: tempfile::TempDir,
    pub(super) schema: IcebergSchema,
    pub(super) mapping: Option<NameMapping>,
    pub(super) constants: Option<FileConstants>,
}

impl Case {
    pub(super) fn new(schema: IcebergSchema, file: Vec<(Field, ArrayRef)>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        write(&folder.path().join("f.parquet"), file);
        Self {
            folder,
            schema,
            mapping: None,
            constants: None,
        }
    }

    /// The answer, the same with filters evaluated by the reader and above it.
    pub(super) async fn query(&self, sql: &str) -> Result<String> {
        let mut answers = Vec::new();
        for late_materialization in [false, true] {
            let options = SessionOptions {
                late_materialization,
                ..SessionOptions::default()
            };
            let context = SessionContext::new_with_config(
                session_config(&options).with_create_default_catalog_and_schema(true),
            );
            context.register_table(
                "t",
                Arc::new(OneFile {
                    columns: Arc::new(
                        TableColumns::new(Arc::new(self.schema.clone()), self.mapping.clone())
                            .expect("columns"),
                    ),
                    file: self.folder.path().join("f.parquet"),
                    constants: self.constants.clone(),
                    stores: ScanStores::new(None, StoreSettings::default()),
                }),
            )?;
            answers.push(rows(&context.sql(sql).await?.collect().await?));
        }
        assert_eq!(
            answers[0], answers[1],
            "{sql}: late materialization changes the answer"
        );
        Ok(answers.remove(0))
    }

    pub(super) async fn answer(&self, sql: &str) -> String {
        self.query(sql)
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e}"))
    }
}

pub(super) fn ints(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

pub(super) fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[tokio::test]
async fn a_renamed_column_keeps_its_values_and_a_new_one_of_the_old_name_has_none() {
    // The file: a (1), b (2). Since then a became x, b was dropped, and b was added anew as 3; the order changed too.
    let case = Case::new(
        table(vec![
            primitive(3, "b", P::String),
            primitive(1, "x", P::Int),
        ]),
        vec![
            (
                with_id(Field::new("a", DataType::Int32, true), 1),
                ints(&[10, 20, 30]),
            ),
            (
                with_id(Field::new("b", DataType::Utf8, true), 2),
                strings(&["old", "old", "old"]),
            ),
        ],
    );
    assert_eq!(
        case.answer("SELECT * FROM t ORDER BY x").await,
        ",10; ,20; ,30"
    );
    assert_eq!(
        case.answer("SELECT x FROM t WHERE x > 15 ORDER BY x").await,
        "20; 30"
    );
    assert_eq!(case.answer("SELECT x FROM t WHERE b = 'old'").await, "");
    assert_eq!(
        case.answer("SELECT count(*) FROM t WHERE b IS NULL AND x < 25")
            .await,
        "2"
    );
    // Row groups are ruled out by the renamed column's statistics, not by those of its old name.
    assert_eq!(
        case.answer("SELECT count(*) FROM t WHERE x = 31").await,
        "0"
    );
}

#[tokio::test]
async fn swapped_names_are_not_swapped_values() {
    let case = Case::new(
        table(vec![primitive(1, "b", P::Int), primitive(2, "a", P::Int)]),
        vec![
            (
                with_id(Field::new("a", DataType::Int32, true), 1),
                ints(&[1, 2]),
            ),
            (
                with_id(Field::new("b", DataType::Int32, true), 2),
                ints(&[100, 200]),
            ),
        ],
    );
    assert_eq!(
        case.answer("SELECT a, b FROM t ORDER BY a").await,
        "100,1; 200,2"
    );
    assert_eq!(case.answer("SELECT a FROM t WHERE b = 2").await, "200");
    assert_eq!(case.answer("SELECT b FROM t WHERE a > 150").await, "2");
}

#[tokio::test]
async fn promoted_columns_are_widened() {
    let decimal = Decimal128Array::from(vec![1234, -5])
        .with_precision_and_scale(9, 2)
        .expect("a decimal");
    let case = Case::new(
        table(vec![
            primitive(1, "i", P::Long),
            primitive(2, "f", P::Double),
            primitive(
                3,
                "d",
                P::Decimal {
                    precision: 18,
                    scale: 2,
                },
            ),
        ]),
        vec![
            (
                with_id(Field::new("i", DataType::Int32, true), 1),
                ints(&[7, -7]),
            ),
            (
                with_id(Field::new("f", DataType::Float32, true), 2),
                Arc::new(Float32Array::from(vec![0.5, -0.5])),
            ),
            (
                with_id(Field::new("d", DataType::Decimal128(9, 2), true), 3),
                Arc::new(decimal),
            ),
        ],
    );
    assert_eq!(
        case.answer("SELECT * FROM t ORDER BY i").await,
        "-7,-0.5,-0.05; 7,0.5,12.34"
    );
    // Beyond the old type: no row, and no overflow either.
    assert_eq!(
        case.answer("SELECT count(*) FROM t WHERE i > 3000000000")
            .await,
        "0"
    );
    assert_eq!(
        case.answer("SELECT count(*) FROM t WHERE i < 3000000000 AND f > 0 AND d = 12.34")
            .await,
        "1"
    );
}

#[tokio::test]
async fn a_column_of_another_type_is_an_error_that_names_file_and_column() {
    let case = Case::new(
        table(vec![primitive(1, "x", P::Int)]),
        vec![(
            with_id(Field::new("x", DataType::Utf8, true), 1),
            strings(&["1"]),
        )],
    );
    let error = case
        .query("SELECT x FROM t")
        .await
        .expect_err("text is no number")
        .to_string();
    assert!(
        error.contains("lake.default.t") && error.contains("f.parquet"),
        "{error}"
    );
    assert!(
        error.contains("column 'x'") && error.contains("Utf8"),
        "{error}"
    );
}

#[tokio::test]
async fn a_partition_value_stands_for_a_column_that_the_file_lacks() {
    let mut case = Case::new(
        table(vec![
            primitive(1, "x", P::Int),
            primitive(2, "city", P::String),
            primitive(3, "zone", P::Int),
        ]),
        vec![
            (
                with_id(Field::new("x", DataType::Int32, true), 1),
                ints(&[1, 2]),
            ),
            (
                with_id(Field::new("zone", DataType::Int32, true), 3),
                ints(&[5, 6]),
            ),
        ],
    );
    case.constants = Some(FileConstants(Arc::new(HashMap::from([
        (
            "city".to_string(),
            ScalarValue::Utf8View(Some("Oslo".to_string())),
        ),
        // The file has this one: its own values count.
        ("zone".to_string(), ScalarValue::Int32(Some(9))),
    ]))));
    assert_eq!(
        case.answer("SELECT x, city, zone FROM t ORDER BY x").await,
        "1,Oslo,5; 2,Oslo,6"
    );
    assert_eq!(
        case.answer("SELECT x FROM t WHERE city = 'Oslo' AND x > 1")
            .await,
        "2"
    );
    assert_eq!(
        case.answer("SELECT x FROM t WHERE city = 'Bergen'").await,
        ""
    );
    assert_eq!(
        case.answer("SELECT city, count(*) FROM t GROUP BY city")
            .await,
        "Oslo,2"
    );
}

#[tokio::test]
async fn files_without_ids_need_a_name_mapping() {
    let file = || {
        vec![
            (Field::new("a", DataType::Int32, true), ints(&[1])),
            (Field::new("b", DataType::Int32, true), ints(&[2])),
        ]
    };
    let schema = table(vec![primitive(1, "x", P::Int), primitive(2, "b", P::Int)]);
    let mut case = Case::new(schema, file());
    let error = case
        .query("SELECT x FROM t")
        .await
        .expect_err("nothing says which column is which")
        .to_string();
    assert!(
        error.contains("no Iceberg field ids") && error.contains("name mapping"),
        "{error}"
    );
    case.mapping = Some(NameMapping::new(vec![
        MappedField::new(Some(1), vec!["old".to_string(), "a".to_string()], vec![]),
        // `b` is not mapped, so its column is null though the names agree.
    ]));
    assert_eq!(case.answer("SELECT x, b FROM t").await, "1,");
}

#[tokio::test]
async fn fields_of_structs_are_matched_by_id_too() {
    let inner = |names: [&str; 2]| {
        Fields::from(vec![
            with_id(Field::new(names[0], DataType::Int32, true), 3),
            with_id(Field::new(names[1], DataType::Int32, true), 4),
        ])
    };
    let values = StructArray::new(
        inner(["p", "q"]),
        vec![ints(&[1, 2]), ints(&[10, 20])],
        None,
    );
    let items = StructArray::new(
        inner(["p", "q"]),
        vec![ints(&[5, 6]), ints(&[50, 60])],
        None,
    );
    let item = with_id(Field::new("element", items.data_type().clone(), true), 6);
    let list = ListArray::new(
        Arc::new(item),
        OffsetBuffer::from_lengths([1, 1]),
        Arc::new(items),
        None,
    );
    // p and q swapped names, and r is new.
    let fields = || {
        Type::Struct(StructType::new(vec![
            primitive(4, "p", P::Long),
            primitive(3, "q", P::Int),
            primitive(9, "r", P::Int),
        ]))
    };
    let case = Case::new(
        table(vec![optional(1, "s", fields())]),
        vec![
            (
                with_id(Field::new("s", values.data_type().clone(), true), 1),
                Arc::new(values),
            ),
            (
                with_id(Field::new("l", list.data_type().clone(), true), 2),
                Arc::new(list),
            ),
        ],
    );
    assert_eq!(
        case.answer("SELECT s['p'], s['q'], s['r'] FROM t ORDER BY s['q']")
            .await,
        "10,1,; 20,2,"
    );
    assert_eq!(
        case.answer("SELECT s['q'] FROM t WHERE s['p'] > 15").await,
        "2"
    );
    assert_eq!(
        case.answer("SELECT s FROM t WHERE s['q'] = 1").await,
        "{p: 10, q: 1, r: }"
    );
}

#[tokio::test]
async fn fields_of_structs_in_lists_are_matched_by_id_too() {
    let fields = Fields::from(vec![
        with_id(Field::new("p", DataType::Int32, true), 7),
        with_id(Field::new("q", DataType::Int32, true), 8),
    ]);
    let items = StructArray::new(fields, vec![ints(&[5, 6]), ints(&[50, 60])], None);
    let item = with_id(Field::new("item", items.data_type().clone(), true), 6);
    let list = ListArray::new(
        Arc::new(item),
        OffsetBuffer::from_lengths([2]),
        Arc::new(items),
        None,
    );
    let renamed = StructType::new(vec![primitive(8, "p", P::Int), primitive(7, "q", P::Int)]);
    let element = NestedField::list_element(6, Type::Struct(renamed), false).into();
    let case = Case::new(
        table(vec![optional(2, "l", Type::List(ListType::new(element)))]),
        vec![(
            with_id(Field::new("list", list.data_type().clone(), true), 2),
            Arc::new(list),
        )],
    );
    assert_eq!(
        case.answer("SELECT l FROM t").await,
        "[{p: 50, q: 5}, {p: 60, q: 6}]"
    );
}

#[tokio::test]
async fn a_required_column_that_a_file_lacks_is_an_error() {
    let case = Case::new(
        table(vec![
            primitive(1, "x", P::Int),
            NestedField::required(2, "must", Type::Primitive(P::Long)).into(),
        ]),
        vec![(
            with_id(Field::new("x", DataType::Int32, true), 1),
            Arc::new(Int32Array::from(vec![1])) as ArrayRef,
        )],
    );
    assert_eq!(case.answer("SELECT x FROM t").await, "1");
    let error = case
        .query("SELECT must FROM t")
        .await
        .expect_err("it has no value")
        .to_string();
    assert!(
        error.contains("must") && error.contains("f.parquet"),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_is_cut_off_or_missing_is_an_error_that_names_it() {
    let case = Case::new(
        table(vec![primitive(1, "x", P::Long)]),
        vec![(
            with_id(Field::new("x", DataType::Int64, true), 1),
            Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef,
        )],
    );
    let path = case.folder.path().join("f.parquet");
    let bytes = std::fs::read(&path).expect("the file is there");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("it is cut");
    let error = case
        .query("SELECT x FROM t")
        .await
        .expect_err("half a file")
        .to_string();
    assert!(
        error.contains("lake.default.t") && error.contains("f.parquet"),
        "{error}"
    );
}
