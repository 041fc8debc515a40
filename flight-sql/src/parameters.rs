//! Parameter values that a client sends with `DoPut`, and what it is told of their types.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use datafusion::common::ScalarValue;
use futures::{Stream, StreamExt, TryStreamExt, future};
use tarn_coordinator::Prepared;
use tonic::Status;

use crate::outgoing;
use crate::status::invalid;

/// Values that one `DoPut` may bind.
const VALUE_LIMIT: usize = 1 << 20;

/// The schema of a statement's parameters. One whose type is not known is announced as text, which is
/// what is left to a client that must send something; what it does send is taken as it is.
pub(crate) fn parameter_schema(prepared: &Prepared) -> Schema {
    let fields: Vec<_> = prepared
        .parameter_types
        .iter()
        .enumerate()
        .map(|(i, known)| {
            let data_type = known.clone().unwrap_or(DataType::Utf8);
            Field::new(format!("parameter_{}", i + 1), data_type, true)
        })
        .collect();
    Schema::clone(&outgoing::schema(&Schema::new(fields), false))
}

/// Reads rows of parameter values, each with `columns` of them.
pub(crate) async fn read(
    stream: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
    columns: usize,
) -> Result<Vec<Vec<ScalarValue>>, Status> {
    // The first message of a client without values holds the command and nothing else.
    let messages = stream
        .try_filter(|data| future::ready(!data.data_header.is_empty()))
        .map_err(FlightError::from);
    let mut batches = FlightRecordBatchStream::new_from_flight_data(messages.boxed());
    let mut rows = Vec::new();
    while let Some(batch) = batches.try_next().await.map_err(unreadable)? {
        if batch.num_rows() == 0 {
            continue;
        }
        if batch.num_columns() != columns {
            return Err(invalid(format!(
                "the statement has {columns} parameters, but {} values were bound",
                batch.num_columns()
            )));
        }
        if (rows.len() + batch.num_rows()).saturating_mul(columns) > VALUE_LIMIT {
            return Err(Status::resource_exhausted(format!(
                "more than {VALUE_LIMIT} parameter values were bound at once"
            )));
        }
        for row in 0..batch.num_rows() {
            rows.push(values(&batch, row)?);
        }
    }
    Ok(rows)
}

fn values(batch: &RecordBatch, row: usize) -> Result<Vec<ScalarValue>, Status> {
    batch
        .columns()
        .iter()
        .map(|column| value(column, row))
        .collect()
}

fn value(column: &Arc<dyn Array>, row: usize) -> Result<ScalarValue, Status> {
    let value = ScalarValue::try_from_array(column, row)
        .map_err(|e| invalid(format!("a parameter value cannot be read: {e}")))?;
    Ok(match value {
        // The type of a union is that of the value in it.
        ScalarValue::Union(Some((_, value)), _, _) => *value,
        ScalarValue::Union(None, _, _) => ScalarValue::Null,
        ScalarValue::Dictionary(_, value) => *value,
        value => value,
    })
}

fn unreadable(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => invalid(format!("the parameter values cannot be read: {other}")),
    }
}
