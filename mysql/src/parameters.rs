//! Values of a prepared statement's parameters, as the engine takes them.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, i256};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use datafusion::common::ScalarValue;
use tarn_coordinator::{Error, ErrorKind};

use crate::wire::parameter::{Clock, Date, ParameterValue};

/// The engine's value of a parameter. `expected` is the type that the statement's plan wants there, if
/// that is known: it settles what bytes are, text or binary, and what a NULL is of.
pub(crate) fn to_scalar(
    value: ParameterValue,
    expected: Option<&DataType>,
) -> Result<ScalarValue, Error> {
    Ok(match value {
        ParameterValue::Null => match expected {
            Some(data_type) => ScalarValue::try_from(data_type).unwrap_or(ScalarValue::Null),
            None => ScalarValue::Null,
        },
        ParameterValue::Int(value) => ScalarValue::Int64(Some(value)),
        ParameterValue::UInt(value) => match i64::try_from(value) {
            Ok(value) => ScalarValue::Int64(Some(value)),
            Err(_) => ScalarValue::UInt64(Some(value)),
        },
        ParameterValue::Float(value) => ScalarValue::Float32(Some(value)),
        ParameterValue::Double(value) => ScalarValue::Float64(Some(value)),
        ParameterValue::Decimal(text) => decimal(&String::from_utf8_lossy(&text))?,
        ParameterValue::Text(bytes) => match String::from_utf8(bytes) {
            Ok(text) if !expected.is_some_and(is_binary) => ScalarValue::Utf8(Some(text)),
            Ok(text) => ScalarValue::Binary(Some(text.into_bytes())),
            Err(error) => ScalarValue::Binary(Some(error.into_bytes())),
        },
        ParameterValue::Blob(bytes) => {
            if expected.is_some_and(is_text) {
                let text = String::from_utf8(bytes)
                    .map_err(|_| wrong_value("a string that is not valid utf8mb4"))?;
                ScalarValue::Utf8(Some(text))
            } else {
                ScalarValue::Binary(Some(bytes))
            }
        }
        ParameterValue::Date(date) => {
            let days = naive_date(date)?
                .signed_duration_since(NaiveDate::default())
                .num_days();
            let days = i32::try_from(days).map_err(|_| wrong_value("a date out of range"))?;
            ScalarValue::Date32(Some(days))
        }
        ParameterValue::DateTime(date, clock) => {
            let moment = NaiveDateTime::new(naive_date(date)?, naive_time(clock)?);
            let microseconds = moment.and_utc().timestamp_micros();
            ScalarValue::TimestampMicrosecond(Some(microseconds), None)
        }
        ParameterValue::Time {
            negative,
            days,
            clock,
        } => {
            if negative || days != 0 {
                return Err(wrong_value("a time that is not within one day"));
            }
            let since_midnight = naive_time(clock)?.signed_duration_since(NaiveTime::MIN);
            ScalarValue::Time64Microsecond(since_midnight.num_microseconds())
        }
    })
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

fn wrong_value(what: &str) -> Error {
    Error::new(
        ErrorKind::WrongValue,
        format!("a parameter of the statement is {what}"),
    )
}

fn naive_date(date: Date) -> Result<NaiveDate, Error> {
    NaiveDate::from_ymd_opt(i32::from(date.year), date.month.into(), date.day.into()).ok_or_else(
        || {
            let Date { year, month, day } = date;
            wrong_value(&format!(
                "'{year:04}-{month:02}-{day:02}', which is no date"
            ))
        },
    )
}

fn naive_time(clock: Clock) -> Result<NaiveTime, Error> {
    let Clock {
        hour,
        minute,
        second,
        microsecond,
    } = clock;
    NaiveTime::from_hms_micro_opt(hour.into(), minute.into(), second.into(), microsecond)
        .filter(|_| microsecond < 1_000_000)
        .ok_or_else(|| {
            wrong_value(&format!(
                "'{hour:02}:{minute:02}:{second:02}.{microsecond:06}', which is no time"
            ))
        })
}

/// A decimal with exactly the digits of its text.
fn decimal(text: &str) -> Result<ScalarValue, Error> {
    let wrong = || wrong_value(&format!("'{text}', which is no decimal number"));
    let trimmed = text.trim();
    let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = whole
        .bytes()
        .chain(fraction.bytes())
        .all(|byte| byte.is_ascii_digit());
    if !all_digits || whole.len() + fraction.len() == 0 {
        // 1e5, say: a number, but not one with a number of decimals.
        return match trimmed.parse::<f64>() {
            Ok(value) if value.is_finite() && !unsigned.is_empty() => {
                Ok(ScalarValue::Float64(Some(value)))
            }
            _ => Err(wrong()),
        };
    }
    let whole = whole.trim_start_matches('0');
    let sign = if trimmed.starts_with('-') { "-" } else { "" };
    let digits = format!("{sign}{whole}{fraction}");
    let digits = if digits == sign {
        "0".to_owned()
    } else {
        digits
    };
    let scale = fraction.len();
    let precision = (whole.len() + scale).max(1);
    let (Ok(precision), Ok(scale)) = (u8::try_from(precision), i8::try_from(scale)) else {
        return Err(wrong_value("a decimal number with too many digits"));
    };
    if precision <= DECIMAL128_MAX_PRECISION {
        let value = digits.parse::<i128>().map_err(|_| wrong())?;
        Ok(ScalarValue::Decimal128(Some(value), precision, scale))
    } else if precision <= DECIMAL256_MAX_PRECISION {
        let value = i256::from_string(&digits).ok_or_else(wrong)?;
        Ok(ScalarValue::Decimal256(Some(value), precision, scale))
    } else {
        Err(wrong_value("a decimal number with too many digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_their_digits() {
        let cases = [
            ("123.450", ScalarValue::Decimal128(Some(123_450), 6, 3)),
            ("-0.05", ScalarValue::Decimal128(Some(-5), 2, 2)),
            ("007", ScalarValue::Decimal128(Some(7), 1, 0)),
            ("0", ScalarValue::Decimal128(Some(0), 1, 0)),
            ("-0", ScalarValue::Decimal128(Some(0), 1, 0)),
            (".5", ScalarValue::Decimal128(Some(5), 1, 1)),
            ("1e3", ScalarValue::Float64(Some(1000.0))),
        ];
        for (text, expected) in cases {
            assert_eq!(decimal(text).unwrap(), expected, "{text}");
        }
        let forty = "1".repeat(40);
        assert!(matches!(
            decimal(&forty).unwrap(),
            ScalarValue::Decimal256(Some(_), 40, 0)
        ));
        for wrong in ["", "-", ".", "abc", "1.2.3", "nan", "inf"] {
            assert!(decimal(wrong).is_err(), "{wrong}");
        }
        assert!(decimal(&"1".repeat(77)).is_err());
        assert!(decimal(&format!("0.{}", "0".repeat(300))).is_err());
    }

    #[test]
    fn dates_and_times() {
        let date = Date {
            year: 2010,
            month: 10,
            day: 17,
        };
        let clock = Clock {
            hour: 19,
            minute: 27,
            second: 30,
            microsecond: 1,
        };
        assert_eq!(
            to_scalar(ParameterValue::Date(date), None).unwrap(),
            ScalarValue::Date32(Some(14_899))
        );
        assert_eq!(
            to_scalar(ParameterValue::DateTime(date, clock), None).unwrap(),
            ScalarValue::TimestampMicrosecond(Some(1_287_343_650_000_001), None)
        );
        let time = |negative, days, clock| ParameterValue::Time {
            negative,
            days,
            clock,
        };
        assert_eq!(
            to_scalar(time(false, 0, clock), None).unwrap(),
            ScalarValue::Time64Microsecond(Some(70_050_000_001))
        );
        assert!(to_scalar(time(true, 0, clock), None).is_err());
        assert!(to_scalar(time(false, 1, clock), None).is_err());
        assert!(to_scalar(ParameterValue::Date(Date::default()), None).is_err());
        let late = Clock { hour: 25, ..clock };
        assert!(to_scalar(time(false, 0, late), None).is_err());
    }

    #[test]
    fn what_the_plan_expects_settles_what_bytes_are() {
        let text = || ParameterValue::Text(b"ab".to_vec());
        let blob = || ParameterValue::Blob(b"ab".to_vec());
        let binary = ScalarValue::Binary(Some(b"ab".to_vec()));
        let utf8 = ScalarValue::Utf8(Some("ab".into()));
        assert_eq!(to_scalar(text(), None).unwrap(), utf8);
        assert_eq!(to_scalar(text(), Some(&DataType::Binary)).unwrap(), binary);
        assert_eq!(to_scalar(blob(), None).unwrap(), binary);
        assert_eq!(to_scalar(blob(), Some(&DataType::Utf8View)).unwrap(), utf8);
        let null = to_scalar(ParameterValue::Null, Some(&DataType::Int32)).unwrap();
        assert_eq!(null, ScalarValue::Int32(None));
    }
}
