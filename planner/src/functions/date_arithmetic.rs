//! `DATE_ADD`, `DATEDIFF`, `TIMESTAMPDIFF` and their like.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Date32Array, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, TimeDelta};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF};

use super::datetimes::{
    EPOCH_TO_DAYS, date_of_days, datetime_array, datetimes, days_of_date, micros_of_datetime,
};
use super::row_function::{Kind, RowFunction, returns_date, returns_integer, typed};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    const SHIFT: &[Kind] = &[Kind::Datetime, Kind::Amount, Kind::Text];
    vec![
        RowFunction::new("date_add", SHIFT, returns_shifted, |args, to| {
            shift(args, to, 1)
        })
        .udf(),
        RowFunction::new("date_sub", SHIFT, returns_shifted, |args, to| {
            shift(args, to, -1)
        })
        .udf(),
        RowFunction::new(
            "datediff",
            &[Kind::Datetime, Kind::Datetime],
            returns_integer,
            |args, _| {
                let (left, right) = (datetimes(&args[0])?, datetimes(&args[1])?);
                let days = left.into_iter().zip(right).map(|(left, right)| {
                    Some(
                        i64::from(days_of_date(left?.date()))
                            - i64::from(days_of_date(right?.date())),
                    )
                });
                Ok(Arc::new(days.collect::<Int64Array>()))
            },
        )
        .udf(),
        RowFunction::new(
            "timestampdiff",
            &[Kind::Text, Kind::Datetime, Kind::Datetime],
            returns_integer,
            |args, _| {
                let units = typed::<StringArray>(&args[0])?;
                let (start, end) = (datetimes(&args[1])?, datetimes(&args[2])?);
                let mut out = Vec::with_capacity(start.len());
                for (row, (start, end)) in start.into_iter().zip(end).enumerate() {
                    out.push(match (start, end) {
                        (Some(start), Some(end)) if units.is_valid(row) => {
                            Some(difference(units.value(row), start, end)?)
                        }
                        _ => None,
                    });
                }
                Ok(Arc::new(Int64Array::from(out)))
            },
        )
        .udf(),
        RowFunction::new("last_day", &[Kind::Datetime], returns_date, |args, _| {
            let days = datetimes(&args[0])?.into_iter().map(|value| {
                let date = value?.date().with_day(1)?;
                date.checked_add_months(Months::new(1))?
                    .pred_opt()
                    .map(days_of_date)
            });
            Ok(Arc::new(days.collect::<Date32Array>()))
        })
        .udf(),
        RowFunction::new(
            "makedate",
            &[Kind::Integer, Kind::Integer],
            returns_date,
            |args, _| {
                let (years, days) = (
                    typed::<Int64Array>(&args[0])?,
                    typed::<Int64Array>(&args[1])?,
                );
                Ok(Arc::new(
                    years
                        .iter()
                        .zip(days)
                        .map(|(year, day)| make_date(year?, day?))
                        .collect::<Date32Array>(),
                ))
            },
        )
        .udf(),
        RowFunction::new("from_days", &[Kind::Integer], returns_date, |args, _| {
            let days = typed::<Int64Array>(&args[0])?.iter().map(|days| {
                i32::try_from(days?.checked_sub(EPOCH_TO_DAYS)?)
                    .ok()
                    .filter(|days| date_of_days(*days).is_some())
            });
            Ok(Arc::new(days.collect::<Date32Array>()))
        })
        .udf(),
    ]
}

/// MySQL: years below 70 are of the 2000s, below 100 of the 1900s; a day of 0 or less is NULL.
fn make_date(year: i64, day: i64) -> Option<i32> {
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        other => other,
    };
    let first = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, 1, 1)?;
    let after = u64::try_from(day.checked_sub(1)?).ok()?;
    first.checked_add_days(Days::new(after)).map(days_of_date)
}

/// A date stays a date when whole days or months are added; a text becomes what it reads as.
fn returns_shifted(args: &ReturnFieldArgs<'_>) -> Result<DataType> {
    let unit = match args
        .scalar_arguments
        .get(2)
        .copied()
        .flatten()
        .and_then(|value| value.try_as_str().flatten())
    {
        Some(unit) => unit,
        None => return plan_err!("date_add and date_sub take the interval's unit as a literal"),
    };
    let whole_days = matches!(
        unit,
        "DAY" | "WEEK" | "MONTH" | "QUARTER" | "YEAR" | "YEAR_MONTH"
    );
    let datetime = DataType::Timestamp(TimeUnit::Microsecond, None);
    Ok(match args.arg_fields[0].data_type() {
        DataType::Date32 if whole_days => DataType::Date32,
        DataType::Utf8 => {
            let text = args.scalar_arguments[0].and_then(|value| value.try_as_str().flatten());
            if whole_days && text.is_some_and(|text| text.trim().len() <= 10) {
                DataType::Date32
            } else {
                datetime
            }
        }
        zoned @ DataType::Timestamp(..) => zoned.clone(),
        _ => datetime,
    })
}

fn shift(args: &[ArrayRef], to: &DataType, sign: i64) -> Result<ArrayRef> {
    let units = typed::<StringArray>(&args[2])?;
    let amounts = Amounts::new(&args[1])?;
    let mut out = Vec::with_capacity(args[0].len());
    for (row, value) in datetimes(&args[0])?.into_iter().enumerate() {
        let Some(value) = value.filter(|_| units.is_valid(row)) else {
            out.push(None);
            continue;
        };
        let unit = units.value(row);
        out.push(match amounts.step(row, unit)? {
            Some(step) => step.apply(value, sign),
            None => None,
        });
    }
    datetime_array(out.into_iter(), to)
}

/// How far an interval moves: calendar months first, then time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    months: i64,
    micros: i64,
}

impl Step {
    fn apply(self, value: NaiveDateTime, sign: i64) -> Option<NaiveDateTime> {
        let months = self.months.checked_mul(sign)?;
        let distance = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
        let moved = if months >= 0 {
            value.checked_add_months(distance)
        } else {
            value.checked_sub_months(distance)
        };
        moved?.checked_add_signed(TimeDelta::microseconds(self.micros.checked_mul(sign)?))
    }
}

enum Amounts<'a> {
    Whole(&'a Int64Array),
    Real(&'a Float64Array),
    Text(&'a StringArray),
}

impl<'a> Amounts<'a> {
    fn new(array: &'a ArrayRef) -> Result<Amounts<'a>> {
        Ok(match array.data_type() {
            DataType::Int64 => Amounts::Whole(typed(array)?),
            DataType::Float64 => Amounts::Real(typed(array)?),
            _ => Amounts::Text(typed(array)?),
        })
    }

    /// `None` for NULL and for what leaves the range.
    fn step(&self, row: usize, unit: &str) -> Result<Option<Step>> {
        match self {
            Amounts::Whole(values) if values.is_valid(row) => whole_step(values.value(row), unit),
            Amounts::Real(values) if values.is_valid(row) => real_step(values.value(row), unit),
            Amounts::Text(values) if values.is_valid(row) => text_step(values.value(row), unit),
            _ => Ok(None),
        }
    }
}

fn whole_step(amount: i64, unit: &str) -> Result<Option<Step>> {
    let months = |per: i64| {
        amount
            .checked_mul(per)
            .map(|months| Step { months, micros: 0 })
    };
    let micros = |per: i64| {
        amount
            .checked_mul(per)
            .map(|micros| Step { months: 0, micros })
    };
    Ok(match unit {
        "YEAR" => months(12),
        "QUARTER" => months(3),
        "MONTH" => months(1),
        "WEEK" => micros(7 * MICROS_PER_DAY),
        "DAY" => micros(MICROS_PER_DAY),
        "HOUR" => micros(3_600 * MICROS_PER_SECOND),
        "MINUTE" => micros(60 * MICROS_PER_SECOND),
        "SECOND" => micros(MICROS_PER_SECOND),
        "MILLISECOND" => micros(1_000),
        "MICROSECOND" => micros(1),
        // Of several fields, a single number is the last one.
        _ if unit.contains('_') => return text_step(&amount.to_string(), unit),
        _ => return exec_err!("{unit} is not a unit of time"),
    })
}

/// Only seconds have fractions; other units are rounded.
fn real_step(amount: f64, unit: &str) -> Result<Option<Step>> {
    if unit == "SECOND" {
        let micros = (amount * MICROS_PER_SECOND as f64).round();
        return Ok((micros.abs() < 9e18).then_some(Step {
            months: 0,
            micros: micros as i64,
        }));
    }
    let rounded = amount.round();
    if rounded.abs() < 9e18 {
        whole_step(rounded as i64, unit)
    } else {
        Ok(None)
    }
}

/// `'1:30' MINUTE_SECOND`: fields in order, divided by anything that is no digit; fewer fields than the unit has are the last ones.
fn text_step(text: &str, unit: &str) -> Result<Option<Step>> {
    if !unit.contains('_') {
        return match (text.trim().parse::<i64>(), text.trim().parse::<f64>()) {
            (Ok(amount), _) => whole_step(amount, unit),
            (_, Ok(amount)) => real_step(amount, unit),
            _ => Ok(None),
        };
    }
    const ORDER: [&str; 7] = [
        "YEAR",
        "MONTH",
        "DAY",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MICROSECOND",
    ];
    let place = |name: &str| ORDER.iter().position(|unit| *unit == name);
    let Some((first, last)) = unit
        .split_once('_')
        .and_then(|(first, last)| place(first).zip(place(last)))
    else {
        return exec_err!("{unit} is not a unit of time");
    };
    let negative = text.trim_start().starts_with('-');
    let fields: Vec<i64> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map_while(|digits| digits.parse().ok())
        .collect();
    let units = &ORDER[first..=last];
    if fields.is_empty() || fields.len() > units.len() {
        return Ok(None);
    }
    let mut total = Step {
        months: 0,
        micros: 0,
    };
    for (field, unit) in fields.iter().zip(&units[units.len() - fields.len()..]) {
        let Some(step) = whole_step(if negative { -field } else { *field }, unit)? else {
            return Ok(None);
        };
        total = Step {
            months: total.months.saturating_add(step.months),
            micros: total.micros.saturating_add(step.micros),
        };
    }
    Ok(Some(total))
}

/// Whole units from `start` to `end`, towards zero.
fn difference(unit: &str, start: NaiveDateTime, end: NaiveDateTime) -> Result<i64> {
    let micros = micros_of_datetime(end).saturating_sub(micros_of_datetime(start));
    let months = || {
        let month = |value: NaiveDateTime| i64::from(value.year()) * 12 + i64::from(value.month0());
        let within = |value: NaiveDateTime| (value.day(), value.time());
        let months = month(end) - month(start);
        // The last month counts only when it is complete.
        match months {
            1.. if within(end) < within(start) => months - 1,
            ..=-1 if within(end) > within(start) => months + 1,
            _ => months,
        }
    };
    Ok(match unit {
        "YEAR" => months() / 12,
        "QUARTER" => months() / 3,
        "MONTH" => months(),
        "WEEK" => micros / (7 * MICROS_PER_DAY),
        "DAY" => micros / MICROS_PER_DAY,
        "HOUR" => micros / (3_600 * MICROS_PER_SECOND),
        "MINUTE" => micros / (60 * MICROS_PER_SECOND),
        "SECOND" => micros / MICROS_PER_SECOND,
        "MILLISECOND" => micros / 1_000,
        "MICROSECOND" => micros,
        _ => return exec_err!("{unit} is not a unit of time"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::datetimes::parse_datetime;
    use super::*;

    fn moved(value: &str, amount: &str, unit: &str, sign: i64) -> Option<String> {
        let step = text_step(amount, unit).unwrap()?;
        step.apply(parse_datetime(value).unwrap(), sign)
            .map(|value| value.to_string())
    }

    #[test]
    fn intervals_move_dates_as_the_manual_says() {
        for (value, amount, unit, sign, expected) in [
            (
                "2008-12-31 23:59:59",
                "1",
                "SECOND",
                1,
                "2009-01-01 00:00:00",
            ),
            ("2008-12-31 23:59:59", "1", "DAY", 1, "2009-01-01 23:59:59"),
            (
                "2100-12-31 23:59:59",
                "1:1",
                "MINUTE_SECOND",
                1,
                "2101-01-01 00:01:00",
            ),
            (
                "2005-01-01 00:00:00",
                "1 1:1:1",
                "DAY_SECOND",
                -1,
                "2004-12-30 22:58:59",
            ),
            (
                "1900-01-01 00:00:00",
                "-1 10",
                "DAY_HOUR",
                1,
                "1899-12-30 14:00:00",
            ),
            ("1998-01-02", "31", "DAY", -1, "1997-12-02 00:00:00"),
            (
                "1992-12-31 23:59:59.000002",
                "1.999999",
                "SECOND_MICROSECOND",
                1,
                "1993-01-01 00:00:01.000001",
            ),
            ("2009-01-30", "1", "MONTH", 1, "2009-02-28 00:00:00"),
            ("2024-02-29", "1", "YEAR", 1, "2025-02-28 00:00:00"),
            ("2024-01-31", "1", "QUARTER", 1, "2024-04-30 00:00:00"),
            ("2024-01-01", "1-6", "YEAR_MONTH", 1, "2025-07-01 00:00:00"),
            ("2024-01-01", "1.5", "SECOND", 1, "2024-01-01 00:00:01.500"),
            ("2024-01-01", "1.5", "DAY", 1, "2024-01-03 00:00:00"),
        ] {
            assert_eq!(
                moved(value, amount, unit, sign).as_deref(),
                Some(expected),
                "{value} {sign} {amount} {unit}"
            );
        }
    }

    #[test]
    fn differences_count_whole_units() {
        for (unit, start, end, expected) in [
            ("MONTH", "2003-02-01", "2003-05-01", 3),
            ("YEAR", "2002-05-01", "2001-01-01", -1),
            ("MINUTE", "2003-02-01", "2003-05-01 12:05:55", 128_885),
            ("MONTH", "2024-01-31", "2024-02-29", 0),
            ("MONTH", "2024-01-29", "2024-02-29", 1),
            ("DAY", "2024-01-01 12:00:00", "2024-01-02 11:59:59", 0),
            ("DAY", "2024-01-02 11:59:59", "2024-01-01 12:00:00", 0),
            ("QUARTER", "2024-01-01", "2024-12-31", 3),
            ("WEEK", "2024-01-01", "2024-01-15", 2),
        ] {
            let (from, to) = (parse_datetime(start).unwrap(), parse_datetime(end).unwrap());
            assert_eq!(
                difference(unit, from, to).unwrap(),
                expected,
                "{unit} {start} {end}"
            );
        }
        assert!(difference("FORTNIGHT", NaiveDateTime::MIN, NaiveDateTime::MIN).is_err());
    }

    #[test]
    fn dates_are_made_from_the_day_of_the_year() {
        let date = |year, day| {
            make_date(year, day)
                .and_then(date_of_days)
                .map(|date| date.to_string())
        };
        assert_eq!(date(2011, 31).as_deref(), Some("2011-01-31"));
        assert_eq!(date(2011, 365).as_deref(), Some("2011-12-31"));
        assert_eq!(date(2014, 366).as_deref(), Some("2015-01-01"));
        assert_eq!(date(2011, 0), None);
        assert_eq!(date(99, 1).as_deref(), Some("1999-01-01"));
    }
}
