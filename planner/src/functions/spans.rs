//! `SEC_TO_TIME` and `TIMEDIFF`: spans of time, which MySQL writes like times of day but which run to 838 hours.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::datetimes::{datetimes, fraction_micros, micros_of_datetime};
use super::row_function::{Kind, RowFunction, returns_text, typed};

/// MySQL's longest TIME, 838:59:59.
const LONGEST_SECONDS: u64 = 838 * 3_600 + 59 * 60 + 59;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        RowFunction::new("sec_to_time", &[Kind::Integer], returns_text, |args, _| {
            let seconds = typed::<Int64Array>(&args[0])?;
            texts(
                seconds
                    .iter()
                    .map(|seconds| seconds.and_then(|seconds| seconds.checked_mul(1_000_000))),
            )
        })
        .udf(),
        RowFunction::new(
            "timediff",
            &[Kind::Datetime, Kind::Datetime],
            returns_text,
            |args, _| {
                let (left, right) = (instants(&args[0])?, instants(&args[1])?);
                // A time and a date have no difference.
                texts(
                    left.into_iter()
                        .zip(right)
                        .map(|(left, right)| match (left?, right?) {
                            (Instant::Span(left), Instant::Span(right))
                            | (Instant::Datetime(left), Instant::Datetime(right)) => {
                                left.checked_sub(right)
                            }
                            _ => None,
                        }),
                )
            },
        )
        .udf(),
    ]
}

/// What `TIMEDIFF` subtracts, in microseconds.
enum Instant {
    Span(i64),
    /// Since 1970.
    Datetime(i64),
}

fn instants(array: &ArrayRef) -> Result<Vec<Option<Instant>>> {
    let datetimes = datetimes(array)?
        .into_iter()
        .map(|value| value.map(|value| Instant::Datetime(micros_of_datetime(value))));
    if *array.data_type() != DataType::Utf8 {
        return Ok(datetimes.collect());
    }
    Ok(typed::<StringArray>(array)?
        .iter()
        .zip(datetimes)
        .map(|(text, datetime)| text.and_then(parse_span).map(Instant::Span).or(datetime))
        .collect())
}

/// `[-]hhh:mm[:ss[.ffffff]]` in microseconds.
fn parse_span(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, text) = text
        .strip_prefix('-')
        .map_or((1, text), |positive| (-1, positive));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let number = |digits: &str, most: usize| {
        let fits = (1..=most).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<i64>().ok().filter(|_| fits)
    };
    let (hours, minutes, seconds) = (number(hours, 3)?, number(minutes, 2)?, number(seconds, 2)?);
    if parts.next().is_some() || minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = i64::from(fraction_micros(fraction)?);
    Some(sign * ((hours * 3_600 + minutes * 60 + seconds) * 1_000_000 + micros))
}

fn texts(micros: impl Iterator<Item = Option<i64>>) -> Result<ArrayRef> {
    Ok(Arc::new(
        micros
            .map(|micros| micros.map(span))
            .collect::<StringArray>(),
    ))
}

/// `[-]hhh:mm:ss[.ffffff]`, cut at MySQL's longest.
fn span(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let (seconds, fraction) = (
        micros.unsigned_abs() / 1_000_000,
        micros.unsigned_abs() % 1_000_000,
    );
    let (seconds, fraction) = if seconds > LONGEST_SECONDS {
        (LONGEST_SECONDS, 0)
    } else {
        (seconds, fraction)
    };
    let text = format!(
        "{sign}{:02}:{:02}:{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    );
    if fraction == 0 {
        text
    } else {
        format!("{text}.{fraction:06}")
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_span, span};

    #[test]
    fn spans_are_read() {
        assert_eq!(parse_span("10:30:00"), Some(37_800_000_000));
        assert_eq!(parse_span("-100:00:00.5"), Some(-360_000_500_000));
        assert_eq!(parse_span("1:02"), Some(3_720_000_000));
        for text in [
            "",
            "10",
            "1:2:3:4",
            "10:60:00",
            "2024-01-01 10:00:00",
            "a:b",
        ] {
            assert_eq!(parse_span(text), None, "{text}");
        }
    }

    #[test]
    fn spans_are_written_like_times() {
        assert_eq!(span(2_378_000_000), "00:39:38");
        assert_eq!(
            span(-46 * 3_600_000_000 - 58 * 60_000_000 - 57_999_999),
            "-46:58:57.999999"
        );
        assert_eq!(span(i64::MAX), "838:59:59");
        assert_eq!(span(100 * 3_600_000_000), "100:00:00");
    }
}
