//! `YEAR`, `MONTH`, `DAY`, … : parts of a date, as numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::compute::{DatePart, cast, date_part};
use arrow::datatypes::DataType;
use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::date_ranges::date_scalar;
use super::datetimes::{EPOCH_TO_DAYS, datetimes, days_of_date, midnight, times_of_day};
use super::row_function::{Evaluate, Kind, RowFunction, returns_integer, typed};
use super::week::week;

const DATETIME: &[Kind] = &[Kind::Datetime];

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let part = |name: &'static str, evaluate: Evaluate| {
        RowFunction::new(name, DATETIME, returns_integer, evaluate)
    };
    vec![
        part("year", |args, _| {
            calendar(args, DatePart::Year, |value| value.year().into())
        })
        .preimage(year_preimage)
        .udf(),
        part("quarter", |args, _| {
            calendar(args, DatePart::Quarter, |value| value.quarter().into())
        })
        .udf(),
        part("month", |args, _| {
            calendar(args, DatePart::Month, |value| value.month().into())
        })
        .udf(),
        part("day", |args, _| {
            calendar(args, DatePart::Day, |value| value.day().into())
        })
        .udf(),
        part("dayofyear", |args, _| {
            calendar(args, DatePart::DayOfYear, |value| value.ordinal().into())
        })
        .udf(),
        part("dayofweek", |args, _| {
            each(args, |value| {
                i64::from(value.weekday().num_days_from_sunday()) + 1
            })
        })
        .udf(),
        part("weekday", |args, _| {
            each(args, |value| value.weekday().num_days_from_monday().into())
        })
        .udf(),
        part("weekofyear", |args, _| {
            each(args, |value| week(value.date(), 3).0.into())
        })
        .udf(),
        part("hour", |args, _| of_day(args, |time| time.hour().into())).udf(),
        part("minute", |args, _| {
            of_day(args, |time| time.minute().into())
        })
        .udf(),
        part("second", |args, _| {
            of_day(args, |time| time.second().into())
        })
        .udf(),
        part("microsecond", |args, _| {
            of_day(args, |time| i64::from(time.nanosecond() / 1_000))
        })
        .udf(),
        part("to_days", |args, _| {
            each(args, |value| {
                i64::from(days_of_date(value.date())) + EPOCH_TO_DAYS
            })
        })
        .udf(),
        part("time_to_sec", |args, _| {
            of_day(args, |time| time.num_seconds_from_midnight().into())
        })
        .udf(),
        RowFunction::new(
            "week",
            &[Kind::Datetime, Kind::Integer],
            returns_integer,
            |args, _| by_mode(args, |date, mode| week(date, mode).0.into()),
        )
        .optional(1)
        .udf(),
        RowFunction::new(
            "yearweek",
            &[Kind::Datetime, Kind::Integer],
            returns_integer,
            |args, _| {
                // A week belongs to one year, so it is counted from 1 whatever the mode says.
                by_mode(args, |date, mode| {
                    let (number, year) = week(date, mode | 2);
                    i64::from(year) * 100 + i64::from(number)
                })
            },
        )
        .optional(1)
        .udf(),
    ]
}

/// Parts of the date alone have a kernel for dates and timestamps.
fn calendar(args: &[ArrayRef], part: DatePart, of: fn(NaiveDateTime) -> i64) -> Result<ArrayRef> {
    match args[0].data_type() {
        DataType::Date32 | DataType::Timestamp(_, None) => {
            Ok(cast(&date_part(args[0].as_ref(), part)?, &DataType::Int64)?)
        }
        _ => each(args, of),
    }
}

fn each(args: &[ArrayRef], of: fn(NaiveDateTime) -> i64) -> Result<ArrayRef> {
    let values = datetimes(&args[0])?;
    Ok(Arc::new(
        values
            .into_iter()
            .map(|value| value.map(of))
            .collect::<Int64Array>(),
    ))
}

fn of_day(args: &[ArrayRef], of: fn(NaiveTime) -> i64) -> Result<ArrayRef> {
    let times = times_of_day(&args[0])?;
    Ok(Arc::new(
        times
            .into_iter()
            .map(|time| time.map(of))
            .collect::<Int64Array>(),
    ))
}

fn by_mode(args: &[ArrayRef], of: fn(NaiveDate, i64) -> i64) -> Result<ArrayRef> {
    let modes = args.get(1).map(typed::<Int64Array>).transpose()?;
    let values = datetimes(&args[0])?
        .into_iter()
        .enumerate()
        .map(|(row, value)| {
            let mode = match modes {
                None => 0,
                Some(modes) if modes.is_null(row) => return None,
                Some(modes) => modes.value(row),
            };
            value.map(|value| of(value.date(), mode))
        });
    Ok(Arc::new(values.collect::<Int64Array>()))
}

/// `year(x) = 2024` is a range of x.
fn year_preimage(args: &[Expr], literal: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
    let ([column], Some(ScalarValue::Int64(Some(year)))) = (args, literal.as_literal()) else {
        return Ok(PreimageResult::None);
    };
    let data_type = info.get_data_type(column)?;
    let first = |year: i64| NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, 1, 1).map(midnight);
    let bounds = year.checked_add(1).and_then(|next| {
        Some((
            date_scalar(first(*year)?, &data_type)?,
            date_scalar(first(next)?, &data_type)?,
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
