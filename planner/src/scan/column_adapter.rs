//! Expressions over the table's columns, made to fit one file.
//!
//! The names in a footer are already the table's (see [`file_columns`](super::file_columns)), so what is left is
//! types that were changed since the file was written, and columns that it does not have. For those stand, by the
//! specification's "column projection": the file's partition value, else the column's default value, else null.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
    replace_columns_with_literals,
};
use datafusion::scalar::ScalarValue;

use super::conform::ConformExpr;
use super::file_columns::TableColumns;
use super::row_lineage::{is_row_lineage, lineage_expr};

/// The values of a file's identity partition fields by column name, for columns that the file itself lacks (the
/// specification's "column projection", rule 1). Files of one partition share them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileConstants(pub(crate) Arc<HashMap<String, ScalarValue>>);

/// Makes adapters for the files of a scan, or for one file when it has constants.
#[derive(Debug, Clone)]
pub(crate) struct ColumnAdapterFactory {
    pub(crate) columns: Arc<TableColumns>,
    pub(crate) constants: Option<FileConstants>,
}

impl PhysicalExprAdapterFactory for ColumnAdapterFactory {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let mut fields = Vec::with_capacity(logical_file_schema.fields().len());
        let mut conformed = HashMap::new();
        let mut constants = HashMap::new();
        for logical in logical_file_schema.fields() {
            let name = logical.name();
            let column = self.columns.field(name);
            let constant = self.constants.as_ref().and_then(|c| c.0.get(name));
            if column.is_some_and(|column| is_row_lineage(column.id)) {
                let inherited = constant.unwrap_or(&ScalarValue::Int64(None));
                let read = lineage_expr(name, inherited, &physical_file_schema)?;
                conformed.insert(name.clone(), read);
                fields.push(Arc::clone(logical));
                continue;
            }
            let Some((index, physical)) = physical_file_schema.fields().find(name) else {
                if let Some(value) = constant.or_else(|| self.columns.default_of(name)) {
                    constants.insert(name.clone(), value.clone());
                }
                fields.push(Arc::clone(logical));
                continue;
            };
            let nested = logical.data_type().is_nested() || physical.data_type().is_nested();
            // DataFusion's adapter casts a column whose nullability or metadata alone differ, and behind a cast a
            // column is worse to prune and to filter by. A column of the right type is taken as the file has it, and
            // so is one that is made to fit here.
            if physical.data_type() == logical.data_type() && !holds_map(physical.data_type()) {
                fields.push(Arc::clone(physical));
            } else if let Some(column) = column.filter(|_| nested) {
                fields.push(Arc::clone(physical));
                let read = Arc::new(Column::new(name, index));
                let conform = ConformExpr::new(read, Arc::clone(logical), Arc::clone(column));
                conformed.insert(name.clone(), Arc::new(conform) as Arc<dyn PhysicalExpr>);
            } else {
                fields.push(Arc::clone(logical));
            }
        }
        let inner = DefaultPhysicalExprAdapterFactory
            .create(Arc::new(Schema::new(fields)), physical_file_schema)?;
        Ok(Arc::new(ColumnAdapter {
            inner,
            constants,
            conformed,
        }))
    }
}

/// Whether a struct has a map in it. DataFusion reads of a struct no more than the fields that an expression names, and
/// takes a map's key for one; a column that is made to fit is read as a whole.
fn holds_map(of: &DataType) -> bool {
    match of {
        DataType::Struct(fields) => fields.iter().any(|field| {
            matches!(field.data_type(), DataType::Map(..)) || holds_map(field.data_type())
        }),
        _ => false,
    }
}

#[derive(Debug)]
struct ColumnAdapter {
    inner: Arc<dyn PhysicalExprAdapter>,
    constants: HashMap<String, ScalarValue>,
    /// For columns that are not read as they are: what reads them.
    conformed: HashMap<String, Arc<dyn PhysicalExpr>>,
}

impl ColumnAdapter {
    fn conform(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        // From below, so that what was put in place of a column is not looked into.
        expr.transform_up(|expr| {
            let column = expr.downcast_ref::<Column>();
            Ok(match column.and_then(|c| self.conformed.get(c.name())) {
                Some(conform) => Transformed::yes(Arc::clone(conform)),
                None => Transformed::no(expr),
            })
        })
        .data()
    }
}

impl PhysicalExprAdapter for ColumnAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let expr = if self.constants.is_empty() {
            expr
        } else {
            replace_columns_with_literals(expr, &self.constants)?
        };
        let expr = if self.conformed.is_empty() {
            expr
        } else {
            self.conform(expr)?
        };
        self.inner.rewrite(expr)
    }
}
