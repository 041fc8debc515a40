//! `DATE(x)`, `TIME(x)`, `TIMESTAMP(x)`: a value as a date, a time or both. Comparing `DATE(x)` with a literal is a range of x,
//! which prunes partitions, files and pages:
//!
//! ```text
//! DATE(ts) =  '2024-01-02'   ──►   ts >= '2024-01-02 00:00:00' AND ts < '2024-01-03 00:00:00'
//! DATE(ts) >  '2024-01-02'   ──►   ts >= '2024-01-03 00:00:00'
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, Time64MicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{NaiveDateTime, Timelike};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ReturnFieldArgs, ScalarUDF, cast};

use super::datetimes::{
    date_of_days, datetime_array, datetimes, days_of_date, micros_of_datetime, midnight,
    times_of_day,
};
use super::row_function::{Kind, RowFunction, returns_date, returns_datetime};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        date(),
        timestamp(),
        RowFunction::new("time", &[Kind::Datetime], returns_time, time_of).udf(),
    ]
}

fn date() -> Arc<ScalarUDF> {
    RowFunction::new("date", &[Kind::Datetime], returns_date, as_type)
        .preimage(date_preimage)
        .udf()
}

fn timestamp() -> Arc<ScalarUDF> {
    RowFunction::new("timestamp", &[Kind::Datetime], returns_datetime, as_type).udf()
}

/// The date, or the date and time, that a whole number's digits say: 20240131, 20240131235959.
pub(crate) fn moment_of_digits(number: Expr, of: &DataType) -> Expr {
    let digits = cast(number, DataType::Utf8);
    match of {
        DataType::Date32 => date().call(vec![digits]),
        _ => timestamp().call(vec![digits]),
    }
}

fn as_type(args: &[ArrayRef], data_type: &DataType) -> Result<ArrayRef> {
    if args[0].data_type() == data_type {
        return Ok(Arc::clone(&args[0]));
    }
    datetime_array(datetimes(&args[0])?.into_iter(), data_type)
}

fn returns_time(_: &ReturnFieldArgs<'_>) -> Result<DataType> {
    Ok(DataType::Time64(TimeUnit::Microsecond))
}

fn time_of(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let times = times_of_day(&args[0])?;
    let micros = times.into_iter().map(|time| {
        time.map(|time| {
            i64::from(time.num_seconds_from_midnight()) * 1_000_000
                + i64::from(time.nanosecond() / 1_000)
        })
    });
    Ok(Arc::new(micros.collect::<Time64MicrosecondArray>()))
}

/// A moment as a literal of a date or timestamp type; `None` for other types.
pub(super) fn date_scalar(value: NaiveDateTime, data_type: &DataType) -> Option<ScalarValue> {
    let micros = micros_of_datetime(value);
    Some(match data_type {
        DataType::Date32 => ScalarValue::Date32(Some(days_of_date(value.date()))),
        DataType::Timestamp(TimeUnit::Second, zone) => {
            ScalarValue::TimestampSecond(Some(micros / 1_000_000), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            ScalarValue::TimestampMillisecond(Some(micros / 1_000), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            ScalarValue::TimestampMicrosecond(Some(micros), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            ScalarValue::TimestampNanosecond(Some(micros.checked_mul(1_000)?), zone.clone())
        }
        _ => return None,
    })
}

fn date_preimage(args: &[Expr], literal: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
    let ([column], Some(ScalarValue::Date32(Some(days)))) = (args, literal.as_literal()) else {
        return Ok(PreimageResult::None);
    };
    let data_type = info.get_data_type(column)?;
    let start = |days: Option<i32>| days.and_then(date_of_days).map(midnight);
    let bounds = start(Some(*days))
        .zip(start(days.checked_add(1)))
        .and_then(|(lower, upper)| {
            Some((
                date_scalar(lower, &data_type)?,
                date_scalar(upper, &data_type)?,
            ))
        });
    match bounds {
        Some((lower, upper)) => Ok(PreimageResult::Range {
            expr: column.clone(),
            interval: Box::new(Interval::try_new(lower, upper)?),
        }),
        None => Ok(PreimageResult::None),
    }
}
