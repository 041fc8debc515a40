//! Dates, timestamps and texts as one kind of value, read as MySQL reads them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Date32Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime};
use datafusion::common::{Result, exec_err};

use super::row_function::typed;

/// Days from 0000-01-01 as MySQL counts them (`TO_DAYS`) to 1970-01-01.
pub(super) const EPOCH_TO_DAYS: i64 = 719_528;

/// Every row's date and time; a zoned timestamp's in UTC. What is no date is `None`.
pub(super) fn datetimes(array: &ArrayRef) -> Result<Vec<Option<NaiveDateTime>>> {
    Ok(match array.data_type() {
        DataType::Date32 => typed::<Date32Array>(array)?
            .iter()
            .map(|days| days.and_then(date_of_days).map(midnight))
            .collect(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => typed::<TimestampMicrosecondArray>(array)?
            .iter()
            .map(|micros| micros.and_then(datetime_of_micros))
            .collect(),
        DataType::Utf8 => typed::<StringArray>(array)?
            .iter()
            .map(|text| text.and_then(parse_datetime))
            .collect(),
        other => return exec_err!("not a date, a timestamp or a text: {other}"),
    })
}

/// Every row's time of day; a text may be a time alone.
pub(super) fn times_of_day(array: &ArrayRef) -> Result<Vec<Option<NaiveTime>>> {
    if *array.data_type() == DataType::Utf8 {
        let read =
            |text| parse_time(text).or_else(|| parse_datetime(text).map(|value| value.time()));
        return Ok(typed::<StringArray>(array)?
            .iter()
            .map(|text| text.and_then(read))
            .collect());
    }
    Ok(datetimes(array)?
        .into_iter()
        .map(|value| value.map(|value| value.time()))
        .collect())
}

pub(super) fn midnight(date: NaiveDate) -> NaiveDateTime {
    NaiveDateTime::new(date, NaiveTime::MIN)
}

/// From days since 1970-01-01.
pub(super) fn date_of_days(days: i32) -> Option<NaiveDate> {
    let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    let distance = Days::new(u64::from(days.unsigned_abs()));
    if days >= 0 {
        epoch.checked_add_days(distance)
    } else {
        epoch.checked_sub_days(distance)
    }
}

/// Days since 1970-01-01.
pub(super) fn days_of_date(date: NaiveDate) -> i32 {
    // The day 1 of chrono is 0001-01-01.
    date.num_days_from_ce() - 719_163
}

/// From microseconds since 1970-01-01.
pub(super) fn datetime_of_micros(micros: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|instant| instant.naive_utc())
}

/// Microseconds since 1970-01-01.
pub(super) fn micros_of_datetime(datetime: NaiveDateTime) -> i64 {
    datetime.and_utc().timestamp_micros()
}

/// Values as the array of a date or timestamp type.
pub(super) fn datetime_array(
    values: impl Iterator<Item = Option<NaiveDateTime>>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Date32 => Arc::new(
            values
                .map(|value| value.map(|value| days_of_date(value.date())))
                .collect::<Date32Array>(),
        ),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let array: TimestampMicrosecondArray =
                values.map(|value| value.map(micros_of_datetime)).collect();
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        other => return exec_err!("not a date or timestamp type: {other}"),
    })
}

/// A date, or a date and a time, in the forms MySQL takes: any punctuation between the parts, parts of one digit, years of two
/// digits (70 to 99 are of the 1900s), no punctuation at all (`20240131235959`), a fraction, and a zone `Z` or `±hh:mm`.
pub(super) fn parse_datetime(text: &str) -> Option<NaiveDateTime> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == text.len() || (digits >= 12 && text.as_bytes().get(digits) == Some(&b'.')) {
        return parse_packed(text, digits);
    }
    let mut rest = text;
    let (year, year_digits) = take_number(&mut rest, 4)?;
    let month = take_part(&mut rest)?;
    let day = take_part(&mut rest)?;
    let date = NaiveDate::from_ymd_opt(full_year(year, year_digits), month, day)?;
    if rest.is_empty() {
        return Some(midnight(date));
    }
    let after = rest.trim_start();
    let time_text = after.strip_prefix(['T', 't']).unwrap_or(after);
    if time_text.len() == rest.len() {
        return None;
    }
    let (time, zone) = parse_time_and_rest(time_text)?;
    let offset_minutes = zone_minutes(zone)?;
    date.and_time(time)
        .checked_sub_signed(chrono::TimeDelta::minutes(offset_minutes))
}

/// A time of day `hh:mm[:ss[.ffffff]]`.
fn parse_time(text: &str) -> Option<NaiveTime> {
    let (time, rest) = parse_time_and_rest(text.trim())?;
    rest.is_empty().then_some(time)
}

fn parse_packed(text: &str, digits: usize) -> Option<NaiveDateTime> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
    // YYMMDD, YYYYMMDD, YYMMDDhhmmss, YYYYMMDDhhmmss
    let year_digits = match digits {
        6 | 12 => 2,
        8 | 14 => 4,
        _ => return None,
    };
    let year = full_year(number(0, year_digits)? as i32, year_digits);
    let date = NaiveDate::from_ymd_opt(
        year,
        number(year_digits, year_digits + 2)?,
        number(year_digits + 2, year_digits + 4)?,
    )?;
    if digits <= 8 {
        return Some(midnight(date));
    }
    let at = year_digits + 4;
    let micros = match text.get(digits..) {
        Some(fraction) if !fraction.is_empty() => fraction_micros(fraction.strip_prefix('.')?)?,
        _ => 0,
    };
    date.and_hms_micro_opt(
        number(at, at + 2)?,
        number(at + 2, at + 4)?,
        number(at + 4, at + 6)?,
        micros,
    )
}

fn full_year(year: i32, digits: usize) -> i32 {
    match (digits, year) {
        (1 | 2, 70..) => year + 1900,
        (1 | 2, _) => year + 2000,
        _ => year,
    }
}

fn take_number(rest: &mut &str, most: usize) -> Option<(i32, usize)> {
    let digits = rest
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    let number = rest.get(..digits)?.parse().ok()?;
    *rest = &rest[digits..];
    Some((number, digits))
}

/// One separator and a number of one or two digits.
fn take_part(rest: &mut &str) -> Option<u32> {
    *rest = rest.strip_prefix(|c: char| c.is_ascii_punctuation())?;
    take_number(rest, 2).and_then(|(number, _)| u32::try_from(number).ok())
}

fn parse_time_and_rest(text: &str) -> Option<(NaiveTime, &str)> {
    let mut rest = text;
    let (hour, _) = take_number(&mut rest, 2)?;
    let mut parts = [0_u32; 2];
    let mut count = 0;
    while count < 2 && rest.starts_with(':') {
        parts[count] = take_part(&mut rest)?;
        count += 1;
    }
    if count == 0 && text.len() > 2 {
        return None;
    }
    let mut micros = 0;
    if count == 2
        && let Some(fraction) = rest.strip_prefix('.')
    {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        micros = fraction_micros(&fraction[..digits])?;
        rest = &fraction[digits..];
    }
    Some((
        NaiveTime::from_hms_micro_opt(hour as u32, parts[0], parts[1], micros)?,
        rest,
    ))
}

/// The digits after the point as microseconds; digits past the sixth are cut off.
pub(super) fn fraction_micros(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut micros = 0;
    for place in 0..6 {
        micros = micros * 10
            + digits
                .as_bytes()
                .get(place)
                .map_or(0, |digit| u32::from(digit - b'0'));
    }
    Some(micros)
}

fn zone_minutes(zone: &str) -> Option<i64> {
    match zone.trim() {
        "" | "Z" | "z" => Some(0),
        offset => {
            let sign = match offset.as_bytes().first()? {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let (hours, minutes) = offset[1..].split_once(':')?;
            let hours = hours
                .parse::<i64>()
                .ok()
                .filter(|hours| (0..=14).contains(hours))?;
            let minutes = minutes
                .parse::<i64>()
                .ok()
                .filter(|minutes| (0..60).contains(minutes))?;
            Some(sign * (hours * 60 + minutes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_mysqls_forms() {
        for (text, expected) in [
            ("2024-01-31", "2024-01-31 00:00:00"),
            ("2024-1-2", "2024-01-02 00:00:00"),
            ("2024/01/31 10:11:12", "2024-01-31 10:11:12"),
            ("2024-01-31T10:11:12.5", "2024-01-31 10:11:12.500"),
            ("2024-01-31 10:11", "2024-01-31 10:11:00"),
            ("20240131", "2024-01-31 00:00:00"),
            ("20240131101112", "2024-01-31 10:11:12"),
            ("20240131101112.000001", "2024-01-31 10:11:12.000001"),
            ("240131", "2024-01-31 00:00:00"),
            ("98-12-31", "1998-12-31 00:00:00"),
            ("69-12-31", "2069-12-31 00:00:00"),
            ("2024-01-31T10:11:12Z", "2024-01-31 10:11:12"),
            ("2024-01-31 10:11:12+02:00", "2024-01-31 08:11:12"),
        ] {
            assert_eq!(
                parse_datetime(text).map(|value| value.to_string()),
                Some(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "x",
            "2024-13-01",
            "2024-02-30",
            "0000-00-00",
            "2024-01-31x",
            "2024-01",
            "2024-01-31 25:00:00",
        ] {
            assert_eq!(parse_datetime(text), None, "{text}");
        }
    }

    #[test]
    fn days_and_dates_are_inverse() {
        for (days, date) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_754, "2024-02-01"),
        ] {
            assert_eq!(
                date_of_days(days).map(|date| date.to_string()),
                Some(date.to_owned())
            );
            assert_eq!(date_of_days(days).map(days_of_date), Some(days));
        }
    }
}
