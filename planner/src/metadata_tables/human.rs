//! Partition values as people read them, in the words of Iceberg's Java library: `2024-01` for a month.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use iceberg::spec::{Datum, PrimitiveLiteral as L, PrimitiveType as P, Transform};

/// The text of a bound of a partition summary; `null` is a text too. `None` if the bytes are no such value.
pub(super) fn human_bound(bytes: Option<&[u8]>, transform: Transform, of: &P) -> Option<String> {
    let Some(bytes) = bytes else {
        return Some("null".to_owned());
    };
    let value = Datum::try_from_bytes(bytes, of.clone()).ok()?;
    Some(human(value.literal(), transform, of))
}

fn human(value: &L, transform: Transform, of: &P) -> String {
    match (transform, value) {
        (Transform::Void, _) => "null".to_owned(),
        (Transform::Year, L::Int(years)) => format!("{:04}", 1970 + i64::from(*years)),
        (Transform::Month, L::Int(months)) => format!(
            "{:04}-{:02}",
            1970 + i64::from(months.div_euclid(12)),
            1 + months.rem_euclid(12)
        ),
        (Transform::Day, L::Int(days)) => day(*days),
        (Transform::Hour, L::Int(hours)) => {
            let time = DateTime::from_timestamp(i64::from(*hours) * 3600, 0);
            time.map_or_else(
                || hours.to_string(),
                |time| format!("{}-{:02}", date(time.naive_utc()), time.hour()),
            )
        }
        _ => plain(value, of),
    }
}

fn plain(value: &L, of: &P) -> String {
    match (value, of) {
        (L::Int(days), P::Date) => day(*days),
        (L::Long(micros), P::Time) => time_of_day(*micros),
        (L::Long(micros), P::Timestamp) => timestamp(i128::from(*micros) * 1000, ""),
        (L::Long(micros), P::Timestamptz) => timestamp(i128::from(*micros) * 1000, "+00:00"),
        (L::Long(nanos), P::TimestampNs) => timestamp(i128::from(*nanos), ""),
        (L::Long(nanos), P::TimestamptzNs) => timestamp(i128::from(*nanos), "+00:00"),
        (L::Boolean(value), _) => value.to_string(),
        (L::Int(value), _) => value.to_string(),
        (L::Long(value), _) => value.to_string(),
        (L::Float(value), _) => float(
            f64::from(value.0),
            format!("{:E}", value.0),
            format!("{:?}", value.0),
        ),
        (L::Double(value), _) => float(value.0, format!("{:E}", value.0), format!("{:?}", value.0)),
        (L::String(value), _) => value.clone(),
        (L::Binary(value), _) => BASE64_STANDARD.encode(value),
        (L::Int128(unscaled), P::Decimal { scale, .. }) => decimal(*unscaled, *scale as usize),
        (L::UInt128(value), P::Uuid) => uuid::Uuid::from_u128(*value).to_string(),
        (other, _) => format!("{other:?}"),
    }
}

fn day(days: i32) -> String {
    match DateTime::from_timestamp(i64::from(days) * 86_400, 0) {
        Some(time) => date(time.naive_utc()),
        None => days.to_string(),
    }
}

fn date(time: NaiveDateTime) -> String {
    format!("{:04}-{:02}-{:02}", time.year(), time.month(), time.day())
}

/// As many digits of the second as it needs.
fn timestamp(nanos: i128, zone: &str) -> String {
    let (seconds, rest) = (
        nanos.div_euclid(1_000_000_000),
        nanos.rem_euclid(1_000_000_000),
    );
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let Some(time) = time else {
        return nanos.to_string();
    };
    let fraction = match rest {
        0 => String::new(),
        rest => format!(".{}", format!("{rest:09}").trim_end_matches('0')),
    };
    format!(
        "{}T{}{fraction}{zone}",
        date(time.naive_utc()),
        time.format("%H:%M:%S")
    )
}

/// Without seconds that are zero; the fraction in groups of three digits.
fn time_of_day(micros: i64) -> String {
    let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let minutes = format!("{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    match (seconds % 60, rest) {
        (0, 0) => minutes,
        (seconds, 0) => format!("{minutes}:{seconds:02}"),
        (seconds, rest) if rest % 1000 == 0 => format!("{minutes}:{seconds:02}.{:03}", rest / 1000),
        (seconds, rest) => format!("{minutes}:{seconds:02}.{rest:06}"),
    }
}

/// As Java writes floats: plain from 0.001 to 10 million, else with an exponent.
fn float(value: f64, scientific: String, plain: String) -> String {
    let size = value.abs();
    if value.is_nan() || (1e-3..1e7).contains(&size) || size == 0.0 {
        return plain;
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    match scientific.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => scientific,
    }
}

fn decimal(unscaled: i128, scale: usize) -> String {
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_java_writes_them() {
        let decimal = P::Decimal {
            precision: 9,
            scale: 2,
        };
        for (value, transform, of, text) in [
            (L::Int(-1), Transform::Year, P::Int, "1969"),
            (L::Int(-841), Transform::Month, P::Int, "1899-12"),
            (L::Int(649), Transform::Month, P::Int, "2024-02"),
            (L::Int(-1), Transform::Day, P::Date, "1969-12-31"),
            (L::Int(-1), Transform::Hour, P::Int, "1969-12-31-23"),
            (L::Int(3), Transform::Bucket(4), P::Int, "3"),
            (L::Int(0), Transform::Void, P::Int, "null"),
            (L::Int(19_782), Transform::Identity, P::Date, "2024-02-29"),
            (L::Long(0), Transform::Identity, P::Time, "00:00"),
            (
                L::Long(45_296_123_000),
                Transform::Identity,
                P::Time,
                "12:34:56.123",
            ),
            (
                L::Long(-1),
                Transform::Identity,
                P::Timestamp,
                "1969-12-31T23:59:59.999999",
            ),
            (
                L::Long(1_500_000),
                Transform::Identity,
                P::Timestamptz,
                "1970-01-01T00:00:01.5+00:00",
            ),
            (
                L::Long(1),
                Transform::Identity,
                P::TimestampNs,
                "1970-01-01T00:00:00.000000001",
            ),
            (L::Double(1.0.into()), Transform::Identity, P::Double, "1.0"),
            (
                L::Double(1e10.into()),
                Transform::Identity,
                P::Double,
                "1.0E10",
            ),
            (
                L::Double(1.5e-5.into()),
                Transform::Identity,
                P::Double,
                "1.5E-5",
            ),
            (
                L::Double((-0.0).into()),
                Transform::Identity,
                P::Double,
                "-0.0",
            ),
            (L::Int128(-50), Transform::Truncate(50), decimal, "-0.50"),
            (
                L::Binary(vec![0, 1]),
                Transform::Truncate(2),
                P::Binary,
                "AAE=",
            ),
            (
                L::String("ü".into()),
                Transform::Truncate(1),
                P::String,
                "ü",
            ),
            (L::Boolean(true), Transform::Identity, P::Boolean, "true"),
        ] {
            assert_eq!(human(&value, transform, &of), text, "{value:?} {transform}");
        }
        assert_eq!(
            human_bound(Some(&[3, 0, 0, 0]), Transform::Bucket(4), &P::Int).as_deref(),
            Some("3")
        );
        assert_eq!(
            human_bound(None, Transform::Identity, &P::Int).as_deref(),
            Some("null")
        );
        assert_eq!(human_bound(Some(&[3]), Transform::Identity, &P::Int), None);
    }
}
