//! `DATE_FORMAT`, `DAYNAME` and `MONTHNAME`: dates as text, by MySQL's specifiers.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use chrono::{Datelike, NaiveDateTime, Timelike};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::datetimes::datetimes;
use super::row_function::{Kind, RowFunction, returns_text, typed};
use super::week::week;

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        RowFunction::new(
            "date_format",
            &[Kind::Datetime, Kind::Text],
            returns_text,
            evaluate,
        )
        .udf(),
        RowFunction::new("dayname", &[Kind::Datetime], returns_text, |args, _| {
            named(args, weekday_name)
        })
        .udf(),
        RowFunction::new("monthname", &[Kind::Datetime], returns_text, |args, _| {
            named(args, month_name)
        })
        .udf(),
    ]
}

fn named(args: &[ArrayRef], name: fn(NaiveDateTime) -> &'static str) -> Result<ArrayRef> {
    let values = datetimes(&args[0])?;
    Ok(Arc::new(
        values
            .into_iter()
            .map(|value| value.map(name))
            .collect::<StringArray>(),
    ))
}

fn weekday_name(value: NaiveDateTime) -> &'static str {
    WEEKDAYS[value.weekday().num_days_from_sunday() as usize]
}

fn month_name(value: NaiveDateTime) -> &'static str {
    MONTHS[value.month0() as usize]
}

fn evaluate(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let values = datetimes(&args[0])?;
    let formats = typed::<StringArray>(&args[1])?;
    let mut out = StringBuilder::new();
    for (row, value) in values.into_iter().enumerate() {
        match value {
            Some(value) if formats.is_valid(row) => {
                format_into(&mut out, value, formats.value(row));
                out.append_value("");
            }
            _ => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// Appends `value` as `format` says.
fn format_into(out: &mut impl Write, value: NaiveDateTime, format: &str) {
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        // Writing to memory does not fail.
        let _ = match c {
            '%' => match rest.next() {
                Some(specifier) => specified(out, value, specifier),
                None => out.write_char('%'),
            },
            other => out.write_char(other),
        };
    }
}

fn specified(out: &mut impl Write, value: NaiveDateTime, specifier: char) -> std::fmt::Result {
    let (date, twelve) = (value.date(), value.hour12().1);
    let half = if value.hour() < 12 { "AM" } else { "PM" };
    match specifier {
        'a' => out.write_str(&weekday_name(value)[..3]),
        'b' => out.write_str(&month_name(value)[..3]),
        'c' => write!(out, "{}", value.month()),
        'D' => write!(out, "{}{}", value.day(), ordinal_suffix(value.day())),
        'd' => write!(out, "{:02}", value.day()),
        'e' => write!(out, "{}", value.day()),
        'f' => write!(out, "{:06}", value.and_utc().timestamp_subsec_micros()),
        'H' => write!(out, "{:02}", value.hour()),
        'h' | 'I' => write!(out, "{twelve:02}"),
        'i' => write!(out, "{:02}", value.minute()),
        'j' => write!(out, "{:03}", value.ordinal()),
        'k' => write!(out, "{}", value.hour()),
        'l' => write!(out, "{twelve}"),
        'M' => out.write_str(month_name(value)),
        'm' => write!(out, "{:02}", value.month()),
        'p' => out.write_str(half),
        'r' => write!(
            out,
            "{twelve:02}:{:02}:{:02} {half}",
            value.minute(),
            value.second()
        ),
        'S' | 's' => write!(out, "{:02}", value.second()),
        'T' => write!(
            out,
            "{:02}:{:02}:{:02}",
            value.hour(),
            value.minute(),
            value.second()
        ),
        'U' => write!(out, "{:02}", week(date, 0).0),
        'u' => write!(out, "{:02}", week(date, 1).0),
        'V' => write!(out, "{:02}", week(date, 2).0),
        'v' => write!(out, "{:02}", week(date, 3).0),
        'W' => out.write_str(weekday_name(value)),
        'w' => write!(out, "{}", value.weekday().num_days_from_sunday()),
        'X' => write!(out, "{:04}", week(date, 2).1),
        'x' => write!(out, "{:04}", week(date, 3).1),
        'Y' => write!(out, "{:04}", value.year()),
        'y' => write!(out, "{:02}", value.year().rem_euclid(100)),
        other => out.write_char(other),
    }
}

fn ordinal_suffix(day: u32) -> &'static str {
    match (day, day % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::super::datetimes::parse_datetime;
    use super::*;

    fn formatted(value: &str, format: &str) -> String {
        let mut out = String::new();
        format_into(&mut out, parse_datetime(value).unwrap(), format);
        out
    }

    #[test]
    fn every_specifier() {
        for (value, format, expected) in [
            ("2009-10-04 22:23:00", "%W %M %Y", "Sunday October 2009"),
            ("2007-10-04 22:23:00", "%H:%i:%s", "22:23:00"),
            (
                "1900-10-04 22:23:00",
                "%D %y %a %d %m %b %j",
                "4th 00 Thu 04 10 Oct 277",
            ),
            (
                "1997-10-04 22:23:00",
                "%H %k %I %r %T %S %w",
                "22 22 10 10:23:00 PM 22:23:00 00 6",
            ),
            ("1999-01-01", "%X %V", "1998 52"),
            ("2006-06-01", "%d", "01"),
            (
                "2024-01-02 03:04:05.000678",
                "%f|%e|%c|%l|%p|%h",
                "000678|2|1|3|AM|03",
            ),
            ("2024-01-01 00:00:00", "%r", "12:00:00 AM"),
            ("2024-01-01 12:00:00", "%r %l", "12:00:00 PM 12"),
            ("2021-01-01", "%U %u %V %v %X %x", "00 00 52 53 2020 2020"),
            ("2024-01-11", "%D", "11th"),
            ("2024-01-21", "%D", "21st"),
            ("2024-01-22", "%D", "22nd"),
            ("2024-01-23", "%D", "23rd"),
            ("2024-01-01", "100%% %q %", "100% q %"),
            ("2024-03-09", "%Y年%m月", "2024年03月"),
        ] {
            assert_eq!(formatted(value, format), expected, "{value} {format}");
        }
    }
}
