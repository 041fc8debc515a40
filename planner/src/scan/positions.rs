//! Positions of rows in their file, as one more column of it.
//!
//! DataFusion's reader yields what is in a file, and where a row is in the file is not in there, nor is it known above:
//! row groups and pages were skipped by then. So the file is given one more column before anybody sees it, the last of
//! each row group, that holds the positions. Its bytes lie behind the file's end and are made when they are asked for.
//! Filters, byte ranges, row groups and pages that are skipped, and deletes then work as for any other column.
//!
//! ```text
//!   row group 0: rows 0..100       │ id │ name │ ␁position 0..100   ◄── bytes size..size+n
//!   row group 1: rows 100..250     │ id │ name │ ␁position 100..250 ◄── bytes size+n..size+n+m
//! ```

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parquet::basic::{ColumnOrder, Encoding, Repetition, Type as PhysicalType};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};

/// The name of the column; no column of a table has a control character in its name.
pub(super) const POSITION: &str = "\u{1}position";

/// A footer of a file of `size` bytes, with the column.
pub(super) fn with_positions(
    footer: ParquetMetaData,
    size: u64,
) -> Result<ParquetMetaData, ParquetError> {
    let file = footer.file_metadata();
    let root = file.schema_descr().root_schema();
    let position = Type::primitive_type_builder(POSITION, PhysicalType::INT64)
        .with_repetition(Repetition::REQUIRED)
        .build()?;
    let mut fields = root.get_fields().to_vec();
    fields.push(Arc::new(position));
    let root = Type::group_type_builder(root.name())
        .with_fields(fields)
        .build()?;
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    let column = schema.column(schema.num_columns() - 1);
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::clone(&schema),
        file.column_orders().map(|orders| {
            let mut orders = orders.clone();
            orders.push(ColumnOrder::UNDEFINED);
            orders
        }),
    );
    let mut parts = footer.into_builder();
    let groups = parts.take_row_groups();
    let mut column_index = parts.take_column_index();
    let mut offset_index = parts.take_offset_index();
    let mut offset = i64::try_from(size).map_err(|e| ParquetError::General(e.to_string()))?;
    let mut first = 0;
    let mut extended = Vec::with_capacity(groups.len());
    for (number, group) in groups.into_iter().enumerate() {
        let (_, chunk) = position_chunk(&column, first, group.num_rows())?;
        first += group.num_rows();
        if let Some(index) = column_index.as_mut().and_then(|all| all.get_mut(number)) {
            index.push(ColumnIndexMetaData::NONE);
        }
        if let Some(index) = offset_index.as_mut().and_then(|all| all.get_mut(number)) {
            index.push(moved_pages(chunk.offset_index.as_ref(), offset)?);
        }
        let length = chunk.metadata.compressed_size();
        let start = chunk.metadata.data_page_offset() + offset;
        let metadata = chunk
            .metadata
            .into_builder()
            .set_data_page_offset(start)
            .build()?;
        offset += length;
        extended.push(with_column(&schema, group, metadata)?);
    }
    Ok(ParquetMetaDataBuilder::new(file)
        .set_row_groups(extended)
        .set_column_index(column_index)
        .set_offset_index(offset_index)
        .build())
}

/// Bytes of the column behind the end of a file whose footer it was added to.
pub(super) fn position_bytes(
    footer: &ParquetMetaData,
    range: &Range<u64>,
) -> Result<Bytes, ParquetError> {
    let schema = footer.file_metadata().schema_descr();
    let column = schema.column(schema.num_columns() - 1);
    let mut bytes = BytesMut::new();
    let mut first = 0;
    for group in footer.row_groups() {
        let (start, length) = match group.columns().last() {
            Some(chunk) => chunk.byte_range(),
            None => (0, 0),
        };
        let from = range.start.max(start);
        let to = range.end.min(start + length);
        if from < to {
            let (chunk, _) = position_chunk(&column, first, group.num_rows())?;
            let part = (from - start) as usize..(to - start) as usize;
            let part = chunk.get(part).ok_or_else(|| {
                ParquetError::General("positions of rows were made anew otherwise".to_owned())
            })?;
            bytes.extend_from_slice(part);
        }
        first += group.num_rows();
    }
    if bytes.len() as u64 != range.end - range.start {
        return Err(ParquetError::EOF(format!(
            "bytes {range:?} are behind the end of the file"
        )));
    }
    Ok(bytes.freeze())
}

/// The column of one row group: the same bytes each time.
fn position_chunk(
    column: &ColumnDescPtr,
    first: i64,
    rows: i64,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut sink = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut sink));
    let mut writer = get_column_writer(Arc::clone(column), Arc::new(properties), pages);
    let ColumnWriter::Int64ColumnWriter(positions) = &mut writer else {
        return Err(ParquetError::General(
            "positions of rows are 64 bits".to_owned(),
        ));
    };
    let values: Vec<i64> = (first..first + rows).collect();
    positions.write_batch(&values, None, None)?;
    let closed = writer.close()?;
    Ok((sink.into_inner()?.into(), closed))
}

/// Where the pages are once the chunk is at `offset`.
fn moved_pages(
    index: Option<&OffsetIndexMetaData>,
    offset: i64,
) -> Result<OffsetIndexMetaData, ParquetError> {
    let index = index.ok_or_else(|| {
        ParquetError::General("positions of rows were written without an index".to_owned())
    })?;
    Ok(OffsetIndexMetaData {
        page_locations: index
            .page_locations
            .iter()
            .map(|page| PageLocation {
                offset: page.offset + offset,
                ..page.clone()
            })
            .collect(),
        unencoded_byte_array_data_bytes: None,
    })
}

/// A row group of the schema with one more column.
fn with_column(
    schema: &Arc<SchemaDescriptor>,
    group: RowGroupMetaData,
    column: parquet::file::metadata::ColumnChunkMetaData,
) -> Result<RowGroupMetaData, ParquetError> {
    let mut built = RowGroupMetaData::builder(Arc::clone(schema))
        .set_num_rows(group.num_rows())
        .set_total_byte_size(group.total_byte_size() + column.uncompressed_size())
        .set_sorting_columns(group.sorting_columns().cloned());
    if let Some(ordinal) = group.ordinal() {
        built = built.set_ordinal(ordinal);
    }
    if let Some(offset) = group.file_offset() {
        built = built.set_file_offset(offset);
    }
    let mut columns = group.into_builder().take_columns();
    columns.push(column);
    built.set_column_metadata(columns).build()
}
