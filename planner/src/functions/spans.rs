//! `SEC_TO_TIME` and `TIMEDIFF`: spans of time, which MySQL writes like times of day but which run to 838 hours.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::datetimes::{datetimes, micros_of_datetime};
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
                let (left, right) = (datetimes(&args[0])?, datetimes(&args[1])?);
                texts(left.into_iter().zip(right).map(|(left, right)| {
                    micros_of_datetime(left?).checked_sub(micros_of_datetime(right?))
                }))
            },
        )
        .udf(),
    ]
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
    use super::span;

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
