//! The seam: the rows of one file, in the table's types.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::scalar::ScalarValue;
use futures::stream::BoxStream;
use iceberg::spec::{NameMapping, NestedFieldRef};

use super::column_plan::{StructPlan, plan_fields};
use super::error::FormatError;
use super::file_bytes::FileBytes;
use super::file_fields::{FileField, identify};
use super::file_format::FileFormat;
use super::shape::shape_fields;
use super::{avro, orc};

/// A column that is wanted from a file.
#[derive(Debug, Clone)]
pub(crate) struct WantedField {
    /// By whose id the file's column is found.
    pub(crate) field: NestedFieldRef,
    /// Name and type to give it.
    pub(crate) arrow: FieldRef,
    /// What it has in all rows if the file lacks it, as the file's partition says.
    pub(crate) constant: Option<ScalarValue>,
}

/// What is wanted of one file.
pub(crate) struct RowsRequest {
    pub(crate) bytes: Arc<dyn FileBytes>,
    pub(crate) size: u64,
    pub(crate) format: FileFormat,
    pub(crate) fields: Vec<WantedField>,
    pub(crate) name_mapping: Option<NameMapping>,
    /// The part of the file that is asked for. Parts that together cover a file have each of its rows once.
    pub(crate) range: Option<Range<u64>>,
    pub(crate) batch_rows: usize,
}

/// Some consecutive rows of a file.
#[derive(Debug)]
pub(crate) struct FileRows {
    /// Position in the file of the first one, by which deletes name rows.
    pub(crate) first_row: u64,
    pub(crate) batch: RecordBatch,
}

/// Reads a file in the order of its rows. Nothing is read before the stream is polled.
pub(crate) fn read_rows(request: RowsRequest) -> BoxStream<'static, Result<FileRows, FormatError>> {
    match request.format {
        FileFormat::Orc => orc::read(request),
        FileFormat::Avro => avro::read(request),
    }
}

/// What a format's reader makes batches by, once it knows the file's columns.
pub(super) struct RowShape {
    pub(super) plan: StructPlan,
    schema: SchemaRef,
}

impl RowShape {
    pub(super) fn new(request: &RowsRequest, file: &mut [FileField]) -> Result<Self, FormatError> {
        if !request.fields.is_empty() {
            identify(file, request.name_mapping.as_ref())?;
        }
        let wanted = request
            .fields
            .iter()
            .map(|wanted| (wanted.field.as_ref(), wanted.arrow.data_type()));
        let constant = |field: &iceberg::spec::NestedField| {
            let wanted = request.fields.iter().find(|w| w.field.id == field.id);
            wanted.and_then(|wanted| wanted.constant.clone())
        };
        let plan = plan_fields(wanted, file, &constant)?;
        let fields: Vec<FieldRef> = request
            .fields
            .iter()
            .map(|wanted| Arc::clone(&wanted.arrow))
            .collect();
        Ok(Self {
            plan,
            schema: Arc::new(Schema::new(fields)),
        })
    }

    /// A batch from the arrays that the plan reads.
    pub(super) fn batch(
        &self,
        reads: &[ArrayRef],
        rows: usize,
    ) -> Result<RecordBatch, FormatError> {
        let columns = shape_fields(&self.plan, reads, self.schema.fields(), rows)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &options,
        )?)
    }
}
