//! Batches of the engine as Flight clients read them.
//!
//! Drivers for JDBC, ADBC and ODBC do not know Arrow's newest layouts, so views become plain strings
//! and binaries, dictionaries and runs become their values, wherever they are nested.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use tarn_coordinator::{Done, ResultRows};
use tonic::Status;

use crate::statements::Running;
use crate::status::{cancelled, status};

/// The stream that `DoGet` answers with.
pub(crate) type DataStream = BoxStream<'static, Result<FlightData, Status>>;

/// The columns as the client gets them.
pub(crate) fn schema(schema: &Schema, view_types: bool) -> SchemaRef {
    let fields: Vec<FieldRef> = schema
        .fields()
        .iter()
        .map(|f| field(f, view_types))
        .collect();
    Arc::new(Schema::new(fields))
}

fn field(of: &Field, view_types: bool) -> FieldRef {
    // Iceberg and Parquet ids are of no use to a client; what names an extension type is.
    let metadata: HashMap<_, _> = of
        .metadata()
        .iter()
        .filter(|(key, _)| key.starts_with("ARROW:extension"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let data_type = data_type(of.data_type(), view_types);
    Arc::new(Field::new(of.name(), data_type, of.is_nullable()).with_metadata(metadata))
}

fn data_type(of: &DataType, view_types: bool) -> DataType {
    let nested = |f: &FieldRef| field(f, view_types);
    match of {
        DataType::Utf8View if !view_types => DataType::Utf8,
        DataType::BinaryView if !view_types => DataType::Binary,
        DataType::Dictionary(_, value) => data_type(value, view_types),
        DataType::RunEndEncoded(_, values) => data_type(values.data_type(), view_types),
        DataType::List(f) | DataType::ListView(f) => DataType::List(nested(f)),
        DataType::LargeList(f) | DataType::LargeListView(f) => DataType::LargeList(nested(f)),
        DataType::FixedSizeList(f, size) => DataType::FixedSizeList(nested(f), *size),
        DataType::Map(entries, sorted) => DataType::Map(nested(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nested).collect::<Fields>()),
        other => other.clone(),
    }
}

/// A batch with the columns of `schema`, which [`schema`] made of the batch's own.
fn batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(Arc::clone(column))
            } else {
                cast(column, field.data_type())
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    // A result without columns still has rows.
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// The rows of a query. Nothing is read ahead: the encoder asks for a batch when the transport has room
/// for it. Dropping the stream, or cancelling `running`, stops the query.
pub(crate) fn rows(
    rows: ResultRows,
    announced: Option<&Schema>,
    view_types: bool,
    running: Running,
) -> DataStream {
    let schema = promised(announced, &rows.schema, view_types);
    let to = Arc::clone(&schema);
    let token = running.token.clone();
    let state = Some((rows.stream, running));
    let batches = stream::unfold(state, move |state| {
        let (to, token) = (Arc::clone(&to), token.clone());
        async move {
            let (mut stream, running) = state?;
            let next = tokio::select! {
                biased;
                () = token.cancelled() => return Some((Err(FlightError::from(cancelled())), None)),
                next = stream.next() => next?,
            };
            match next {
                Ok(next) => Some((
                    batch(&next, &to).map_err(FlightError::from),
                    Some((stream, running)),
                )),
                // After an error nothing follows.
                Err(error) => Some((Err(FlightError::from(status(&error))), None)),
            }
        }
    });
    encode(schema, batches.boxed())
}

/// The columns that were announced, if the rows fit them: drivers refuse a stream whose columns differ
/// from those of its FlightInfo, be it in whether they may be NULL.
fn promised(announced: Option<&Schema>, actual: &Schema, view_types: bool) -> SchemaRef {
    let actual = schema(actual, view_types);
    let Some(announced) = announced.map(|announced| schema(announced, view_types)) else {
        return actual;
    };
    let fits = announced.fields().len() == actual.fields().len()
        && announced
            .fields()
            .iter()
            .zip(actual.fields())
            .all(|(a, b)| a.data_type().equals_datatype(b.data_type()));
    if fits { announced } else { actual }
}

/// The one row of a statement that has no result set.
pub(crate) fn done(done: &Done) -> Result<DataStream, Status> {
    let affected = i64::try_from(done.affected_rows).unwrap_or(i64::MAX);
    let batch = RecordBatch::try_new(
        done_schema(),
        vec![Arc::new(Int64Array::from(vec![affected]))],
    )
    .map_err(|e| Status::internal(e.to_string()))?;
    Ok(one(batch))
}

/// The columns of [`done`].
pub(crate) fn done_schema() -> SchemaRef {
    let field = Field::new("affected_rows", DataType::Int64, false);
    Arc::new(Schema::new(vec![field]))
}

/// A single batch.
pub(crate) fn one(batch: RecordBatch) -> DataStream {
    encode(batch.schema(), stream::once(async { Ok(batch) }).boxed())
}

fn encode(
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch, FlightError>>,
) -> DataStream {
    FlightDataEncoderBuilder::new()
        // Sent before the first batch: an empty result has columns too.
        .with_schema(schema)
        .build(batches)
        .map(|data| data.map_err(Status::from))
        .boxed()
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Array, ArrayRef, AsArray, DictionaryArray, ListViewArray, StringViewArray, StructArray,
    };
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn views_and_dictionaries_become_plain_wherever_they_are() {
        let text: ArrayRef = Arc::new(StringViewArray::from(vec![
            Some("a"),
            None,
            Some("a long text, out of line"),
        ]));
        let words: DictionaryArray<Int32Type> = vec!["x", "y", "x"].into_iter().collect();
        let inner = Arc::new(Field::new("t", DataType::Utf8View, true));
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(
            Arc::clone(&inner),
            Arc::clone(&text),
        )]));
        let list: ArrayRef = Arc::new(ListViewArray::new(
            inner,
            vec![0, 1, 1].into(),
            vec![1, 2, 0].into(),
            Arc::clone(&text),
            None,
        ));
        let from = RecordBatch::try_from_iter_with_nullable(vec![
            ("text", text, true),
            ("word", Arc::new(words) as ArrayRef, false),
            ("nested", nested, true),
            ("list", list, true),
        ])
        .unwrap();

        let to = schema(&from.schema(), false);
        let types: Vec<_> = to.fields().iter().map(|f| f.data_type().clone()).collect();
        let plain = Arc::new(Field::new("t", DataType::Utf8, true));
        assert_eq!(types[0], DataType::Utf8);
        assert_eq!(types[1], DataType::Utf8);
        assert_eq!(types[2], DataType::Struct(vec![Arc::clone(&plain)].into()));
        assert_eq!(types[3], DataType::List(plain));

        let out = batch(&from, &to).unwrap();
        assert_eq!(
            out.column(0).as_string::<i32>().value(2),
            "a long text, out of line"
        );
        assert!(out.column(0).is_null(1));
        assert_eq!(
            out.column(1)
                .as_string::<i32>()
                .iter()
                .flatten()
                .collect::<Vec<_>>(),
            ["x", "y", "x"]
        );
        let first = out.column(3).as_list::<i32>().value(0);
        assert_eq!(first.as_string::<i32>().value(0), "a");
    }

    #[test]
    fn a_client_that_asks_gets_views() {
        let from = Schema::new(vec![Field::new("t", DataType::Utf8View, true)]);
        assert_eq!(
            schema(&from, true).field(0).data_type(),
            &DataType::Utf8View
        );
    }

    #[test]
    fn what_was_announced_is_sent_if_the_rows_fit_it() {
        let one = |data_type, nullable| Schema::new(vec![Field::new("a", data_type, nullable)]);
        let announced = one(DataType::Utf8View, true);
        let sent = promised(Some(&announced), &one(DataType::Utf8View, false), false);
        assert_eq!(*sent, one(DataType::Utf8, true));
        let sent = promised(Some(&announced), &one(DataType::Int64, false), false);
        assert_eq!(*sent, one(DataType::Int64, false));
        assert_eq!(
            *promised(None, &announced, false),
            one(DataType::Utf8, true)
        );
    }

    #[test]
    fn ids_of_the_lake_are_left_out() {
        let field = Field::new("a", DataType::Int32, true).with_metadata(HashMap::from([
            ("PARQUET:field_id".to_owned(), "1".to_owned()),
            ("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned()),
        ]));
        let out = schema(&Schema::new(vec![field]), false);
        assert_eq!(
            out.field(0).metadata().keys().collect::<Vec<_>>(),
            ["ARROW:extension:name"]
        );
    }
}
