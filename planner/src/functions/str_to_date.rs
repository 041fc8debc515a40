//! `STR_TO_DATE`: text to a date by MySQL's specifiers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray, Time64MicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use datafusion::common::Result;
use datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF};

use super::date_format::{MONTHS, WEEKDAYS};
use super::datetimes::{datetime_array, fraction_micros};
use super::row_function::{Kind, RowFunction, typed};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![RowFunction::new("str_to_date", &[Kind::Text, Kind::Text], returns, evaluate).udf()]
}

/// A DATE, a TIME or a DATETIME, by what the format holds; a DATETIME where the format is not a literal.
fn returns(args: &ReturnFieldArgs<'_>) -> Result<DataType> {
    let format = args
        .scalar_arguments
        .get(1)
        .copied()
        .flatten()
        .and_then(|value| value.try_as_str().flatten());
    Ok(format.map_or(
        DataType::Timestamp(TimeUnit::Microsecond, None),
        type_of_format,
    ))
}

fn type_of_format(format: &str) -> DataType {
    let specifiers: Vec<char> = format
        .char_indices()
        .filter(|(_, c)| *c == '%')
        .filter_map(|(at, _)| format[at + 1..].chars().next())
        .collect();
    let time = specifiers.iter().any(|c| "fHhIiklprSsT".contains(*c));
    let date = specifiers
        .iter()
        .any(|c| "abcDdejMmUuVvWwXxYy".contains(*c));
    match (date, time) {
        (true, false) => DataType::Date32,
        (false, true) => DataType::Time64(TimeUnit::Microsecond),
        _ => DataType::Timestamp(TimeUnit::Microsecond, None),
    }
}

fn evaluate(args: &[ArrayRef], data_type: &DataType) -> Result<ArrayRef> {
    let (texts, formats) = (
        typed::<StringArray>(&args[0])?,
        typed::<StringArray>(&args[1])?,
    );
    let parsed = (0..texts.len()).map(|row| {
        if texts.is_null(row) || formats.is_null(row) {
            None
        } else {
            parse(texts.value(row), formats.value(row))
        }
    });
    if *data_type == DataType::Time64(TimeUnit::Microsecond) {
        let micros = parsed.map(|parts| {
            let time = parts?.time()?;
            Some(
                i64::from(time.num_seconds_from_midnight()) * 1_000_000
                    + i64::from(time.nanosecond() / 1_000),
            )
        });
        return Ok(Arc::new(micros.collect::<Time64MicrosecondArray>()));
    }
    datetime_array(parsed.map(|parts| parts?.datetime()), data_type)
}

#[derive(Debug, Default, PartialEq)]
struct Parts {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    /// From `%p`: whether it is the afternoon.
    afternoon: Option<bool>,
}

impl Parts {
    fn time(&self) -> Option<NaiveTime> {
        let hour = match self.afternoon {
            None => self.hour,
            Some(_) if self.hour == 0 || self.hour > 12 => return None,
            Some(afternoon) => self.hour % 12 + if afternoon { 12 } else { 0 },
        };
        NaiveTime::from_hms_micro_opt(hour, self.minute, self.second, self.micros)
    }

    fn datetime(&self) -> Option<NaiveDateTime> {
        let year = self.year?;
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_ymd_opt(year, 1, 1)?
                .checked_add_days(Days::new(u64::from(day.checked_sub(1)?)))
                .filter(|date| date.year() == year)?,
            // A date without a month or a day has a zero in it, which is no date here.
            None => NaiveDate::from_ymd_opt(year, self.month?, self.day?)?,
        };
        Some(date.and_time(self.time()?))
    }
}

/// Reads `text` by `format`; text after the format's end is passed over, as MySQL does with a warning.
fn parse(text: &str, format: &str) -> Option<Parts> {
    let mut parts = Parts::default();
    let mut rest = text;
    let mut format = format.chars();
    while let Some(c) = format.next() {
        if c.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        if c != '%' {
            rest = rest.trim_start().strip_prefix(c)?;
            continue;
        }
        rest = rest.trim_start();
        match format.next()? {
            'Y' => parts.year = Some(year(&mut rest, 4)?),
            'y' => parts.year = Some(year(&mut rest, 2)?),
            'm' | 'c' => parts.month = Some(number(&mut rest, 2)?),
            'd' | 'e' => parts.day = Some(number(&mut rest, 2)?),
            'D' => {
                parts.day = Some(number(&mut rest, 2)?);
                rest = rest.get(2..)?;
            }
            'j' => parts.day_of_year = Some(number(&mut rest, 3)?),
            'H' | 'k' => parts.hour = number(&mut rest, 2)?,
            'h' | 'I' | 'l' => {
                parts.hour = number(&mut rest, 2)?;
                // Twelve o'clock without AM or PM is midnight's.
                parts.afternoon = parts.afternoon.or(Some(false));
            }
            'i' => parts.minute = number(&mut rest, 2)?,
            'S' | 's' => parts.second = number(&mut rest, 2)?,
            'f' => {
                let digits = rest.bytes().take(6).take_while(u8::is_ascii_digit).count();
                parts.micros = fraction_micros(&rest[..digits]).filter(|_| digits > 0)?;
                rest = &rest[digits..];
            }
            'p' => parts.afternoon = Some(half(&mut rest)?),
            'T' => time_of_day(&mut rest, &mut parts)?,
            'r' => {
                time_of_day(&mut rest, &mut parts)?;
                rest = rest.trim_start();
                parts.afternoon = Some(half(&mut rest)?);
            }
            'M' => parts.month = Some(name(&mut rest, &MONTHS, false)? + 1),
            'b' => parts.month = Some(name(&mut rest, &MONTHS, true)? + 1),
            'W' => {
                name(&mut rest, &WEEKDAYS, false)?;
            }
            'a' => {
                name(&mut rest, &WEEKDAYS, true)?;
            }
            'w' => {
                number(&mut rest, 1)?;
            }
            '%' => rest = rest.strip_prefix('%')?,
            // Weeks (%U, %V, %X, …) do not say a day.
            _ => return None,
        }
    }
    Some(parts)
}

fn number(rest: &mut &str, most: usize) -> Option<u32> {
    let digits = rest
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    let number = rest[..digits].parse().ok()?;
    *rest = &rest[digits..];
    Some(number)
}

fn year(rest: &mut &str, most: usize) -> Option<i32> {
    let before = rest.len();
    let year = i32::try_from(number(rest, most)?).ok()?;
    Some(match before - rest.len() {
        1 | 2 if year >= 70 => year + 1900,
        1 | 2 => year + 2000,
        _ => year,
    })
}

fn half(rest: &mut &str) -> Option<bool> {
    let afternoon = match rest.get(..2)?.to_ascii_uppercase().as_str() {
        "AM" => false,
        "PM" => true,
        _ => return None,
    };
    *rest = &rest[2..];
    Some(afternoon)
}

fn time_of_day(rest: &mut &str, parts: &mut Parts) -> Option<()> {
    parts.hour = number(rest, 2)?;
    *rest = rest.strip_prefix(':')?;
    parts.minute = number(rest, 2)?;
    *rest = rest.strip_prefix(':')?;
    parts.second = number(rest, 2)?;
    Some(())
}

/// The place of the name in the list; short names are the first three letters.
fn name(rest: &mut &str, names: &[&str], short: bool) -> Option<u32> {
    for (place, name) in (0..).zip(names) {
        let name = if short { &name[..3] } else { name };
        if rest
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
        {
            *rest = &rest[name.len()..];
            return Some(place);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_the_manual_says() {
        for (text, format, expected) in [
            ("01,5,2013", "%d,%m,%Y", Some("2013-05-01 00:00:00")),
            ("May 1, 2013", "%M %d,%Y", Some("2013-05-01 00:00:00")),
            (
                "2025-11-30 00:00:00.000000",
                "%Y-%m-%d %T.%f",
                Some("2025-11-30 00:00:00"),
            ),
            (
                "2024-02-29 23:59:58.5",
                "%Y-%m-%d %H:%i:%s.%f",
                Some("2024-02-29 23:59:58.500"),
            ),
            ("04/31/2004", "%m/%d/%Y", None),
            ("00/00/0000", "%m/%d/%Y", None),
            ("abc", "abc", None),
            ("9", "%m", None),
            ("2024-060", "%Y-%j", Some("2024-02-29 00:00:00")),
            (
                "Tue, 02 Jan 2024 11:00 PM",
                "%a, %d %b %Y %h:%i %p",
                Some("2024-01-02 23:00:00"),
            ),
            (
                "2024-01-02 12:30:00 AM",
                "%Y-%m-%d %r",
                Some("2024-01-02 00:30:00"),
            ),
            ("99-1-2", "%y-%c-%e", Some("1999-01-02 00:00:00")),
            ("2024-01-02x", "%Y-%m-%d", Some("2024-01-02 00:00:00")),
            ("2024-01-02", "%Y/%m/%d", None),
            ("3rd March 2024", "%D %M %Y", Some("2024-03-03 00:00:00")),
        ] {
            let parsed = parse(text, format)
                .and_then(|parts| parts.datetime())
                .map(|value| value.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text} {format}");
        }
    }

    #[test]
    fn the_formats_parts_decide_the_type() {
        assert_eq!(type_of_format("%Y-%m-%d"), DataType::Date32);
        assert_eq!(
            type_of_format("%T"),
            DataType::Time64(TimeUnit::Microsecond)
        );
        assert_eq!(
            type_of_format("%Y-%m-%d %T.%f"),
            DataType::Timestamp(TimeUnit::Microsecond, None)
        );
    }
}
