//! `UNIX_TIMESTAMP`, `FROM_UNIXTIME` and `CONVERT_TZ`. Timestamps without a zone are read as UTC, the sessions' zone.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::DataType;
use chrono::{NaiveDateTime, Offset, TimeZone};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::datetimes::{datetime_array, datetime_of_micros, datetimes};
use super::row_function::{Kind, RowFunction, returns_datetime, returns_integer, typed};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        RowFunction::new(
            "unix_timestamp",
            &[Kind::Datetime],
            returns_integer,
            |args, _| {
                let seconds = datetimes(&args[0])?
                    .into_iter()
                    .map(|value| value.map(|value| value.and_utc().timestamp()));
                Ok(Arc::new(seconds.collect::<Int64Array>()))
            },
        )
        .udf(),
        RowFunction::new(
            "from_unixtime",
            &[Kind::Number],
            returns_datetime,
            |args, to| {
                let values = typed::<Float64Array>(&args[0])?
                    .iter()
                    .map(|seconds| seconds.and_then(from_seconds));
                datetime_array(values, to)
            },
        )
        .udf(),
        RowFunction::new(
            "convert_tz",
            &[Kind::Datetime, Kind::Text, Kind::Text],
            returns_datetime,
            convert,
        )
        .udf(),
    ]
}

/// MySQL: NULL before 1970.
fn from_seconds(seconds: f64) -> Option<NaiveDateTime> {
    let micros = (seconds * 1e6).round();
    // Larger values lose microseconds, and are far beyond MySQL's own last year.
    if (0.0..9e15).contains(&micros) {
        datetime_of_micros(micros as i64)
    } else {
        None
    }
}

fn convert(args: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let (from, into) = (
        typed::<StringArray>(&args[1])?,
        typed::<StringArray>(&args[2])?,
    );
    let values = datetimes(&args[0])?
        .into_iter()
        .enumerate()
        .map(|(row, value)| {
            if from.is_null(row) || into.is_null(row) {
                None
            } else {
                converted(value?, from.value(row), into.value(row))
            }
        });
    datetime_array(values, to)
}

/// NULL for a zone that is not known, and for a time that its zone skips.
fn converted(value: NaiveDateTime, from: &str, to: &str) -> Option<NaiveDateTime> {
    let (from, to) = (zone(from)?, zone(to)?);
    let instant = from.from_local_datetime(&value).earliest()?;
    let offset = instant.with_timezone(&to).offset().fix();
    instant.naive_utc().checked_add_offset(offset)
}

fn zone(name: &str) -> Option<Tz> {
    let name = if name.eq_ignore_ascii_case("SYSTEM") {
        "UTC"
    } else {
        name
    };
    Tz::from_str(name).ok()
}

#[cfg(test)]
mod tests {
    use super::super::datetimes::parse_datetime;
    use super::*;

    #[test]
    fn zones_are_converted() {
        let value = parse_datetime("2004-01-01 12:00:00").unwrap();
        let shown = |from, to| converted(value, from, to).map(|value| value.to_string());
        assert_eq!(
            shown("+00:00", "+10:00").as_deref(),
            Some("2004-01-01 22:00:00")
        );
        assert_eq!(
            shown("SYSTEM", "-03:30").as_deref(),
            Some("2004-01-01 08:30:00")
        );
        assert_eq!(shown("nowhere", "+00:00"), None);
    }

    #[test]
    fn seconds_become_datetimes() {
        assert_eq!(
            from_seconds(1_447_430_881.5)
                .map(|v| v.to_string())
                .as_deref(),
            Some("2015-11-13 16:08:01.500")
        );
        assert_eq!(from_seconds(-1.0), None);
        assert_eq!(from_seconds(f64::NAN), None);
    }
}
