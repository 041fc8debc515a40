//! What a partition value says of the column that it derives from.
//!
//! | transform      | partition value `p` of a file        | bounds of the column            |
//! |----------------|--------------------------------------|---------------------------------|
//! | identity       | the value itself                     | `p ..= p`                       |
//! | truncate(w)    | `v - (v mod w)`, or a prefix         | `p ..= p + w - 1`, or `p…`      |
//! | year … hour    | units since 1970                     | start of the unit ..= its end   |
//! | bucket, void   |                                      | none (buckets: see `contained`) |

use chrono::{Datelike, NaiveDate};
use iceberg::spec::{PrimitiveLiteral, PrimitiveType, Transform};

use PrimitiveLiteral as L;

/// The smallest value of the column (of type `source`) whose transform is `p` or more.
pub(crate) fn lower(
    transform: &Transform,
    source: &PrimitiveType,
    p: &PrimitiveLiteral,
) -> Option<PrimitiveLiteral> {
    match (transform, p) {
        (Transform::Identity, p) => Some(p.clone()),
        (Transform::Truncate(_), p) if is_wrapped(transform, p) => None,
        (Transform::Truncate(_), p) => Some(p.clone()),
        // A date is its own day; nothing is rounded.
        (Transform::Day, L::Int(p)) if *source == PrimitiveType::Date => Some(L::Int(*p)),
        (Transform::Year | Transform::Month | Transform::Day | Transform::Hour, L::Int(p)) => {
            // Some writers rounded times before 1970 towards zero, so that a file may hold values of one unit less
            // than its partition says.
            let p = if *p <= 0 { p.checked_sub(1)? } else { *p };
            unit_start(transform, source, i64::from(p))
        }
        _ => None,
    }
}

/// Whether a partition value lies below the type's range, wrapped around to large numbers: `v - (v mod w)` of the
/// smallest values does, and writers let it. It is no multiple of the width then.
pub(crate) fn is_wrapped(transform: &Transform, p: &PrimitiveLiteral) -> bool {
    let Transform::Truncate(width) = transform else {
        return false;
    };
    let value = match p {
        L::Int(p) => i64::from(*p),
        L::Long(p) => *p,
        _ => return false,
    };
    *width == 0 || value.rem_euclid(i64::from(*width)) != 0
}

/// The largest value of the column (of type `source`) whose transform is `p` or less.
pub(crate) fn upper(
    transform: &Transform,
    source: &PrimitiveType,
    p: &PrimitiveLiteral,
) -> Option<PrimitiveLiteral> {
    match (transform, p) {
        (Transform::Identity, p) => Some(p.clone()),
        (Transform::Truncate(w), L::Int(p)) => Some(L::Int(
            p.saturating_add(i32::try_from(*w).ok()?.checked_sub(1)?),
        )),
        (Transform::Truncate(w), L::Long(p)) => {
            Some(L::Long(p.saturating_add(i64::from(*w).checked_sub(1)?)))
        }
        (Transform::Truncate(w), L::Int128(p)) => {
            Some(L::Int128(p.saturating_add(i128::from(*w).checked_sub(1)?)))
        }
        // A value shorter than the width is whole.
        (Transform::Truncate(w), L::String(p)) if p.chars().count() < *w as usize => {
            Some(L::String(p.clone()))
        }
        (Transform::Truncate(_), L::String(p)) => after_prefix(p).map(L::String),
        (Transform::Truncate(w), L::Binary(p)) if p.len() < *w as usize => {
            Some(L::Binary(p.clone()))
        }
        (Transform::Truncate(_), L::Binary(p)) => after_bytes(p).map(L::Binary),
        (Transform::Year | Transform::Month | Transform::Day | Transform::Hour, L::Int(p)) => {
            match unit_start(transform, source, i64::from(*p) + 1)? {
                L::Int(next) => Some(L::Int(next.checked_sub(1)?)),
                L::Long(next) => Some(L::Long(next.checked_sub(1)?)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The first value of a date or timestamp column in unit number `p` since 1970.
fn unit_start(transform: &Transform, source: &PrimitiveType, p: i64) -> Option<PrimitiveLiteral> {
    let days = match transform {
        Transform::Year => first_day(1970i64.checked_add(p)?, 1)?,
        Transform::Month => first_day(
            1970i64.checked_add(p.div_euclid(12))?,
            p.rem_euclid(12) as u32 + 1,
        )?,
        Transform::Day => p,
        Transform::Hour => {
            return Some(L::Long(
                p.checked_mul(ticks_per_second(source)?.checked_mul(3_600)?)?,
            ));
        }
        _ => return None,
    };
    match source {
        PrimitiveType::Date => Some(L::Int(i32::try_from(days).ok()?)),
        // Nanoseconds reach from 1677 to 2262 only: a unit that begins earlier has no start among them.
        _ => Some(L::Long(
            days.checked_mul(ticks_per_second(source)?.checked_mul(86_400)?)?,
        )),
    }
}

/// How finely a type of timestamps counts.
fn ticks_per_second(source: &PrimitiveType) -> Option<i64> {
    match source {
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz => Some(1_000_000),
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => Some(1_000_000_000),
        _ => None,
    }
}

/// Days from 1970-01-01 to the first day of a month.
fn first_day(year: i64, month: u32) -> Option<i64> {
    let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, 1)?;
    let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    Some(i64::from(day.num_days_from_ce()) - i64::from(epoch.num_days_from_ce()))
}

/// A string that is larger than all that begin with `prefix`. `None` if there is no such string.
pub(crate) fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // UTF-8 orders like code points; the gap of surrogates is skipped.
        let next = match last as u32 {
            0xD7FF => Some('\u{E000}'),
            code => char::from_u32(code + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// Bytes that are larger than all that begin with `prefix`. `None` if there are no such bytes.
fn after_bytes(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrimitiveType as P;

    const MICROS_PER_DAY: i64 = 86_400_000_000;
    const MICROS_PER_HOUR: i64 = 3_600_000_000;

    fn bounds(
        transform: Transform,
        source: P,
        p: PrimitiveLiteral,
    ) -> (Option<PrimitiveLiteral>, Option<PrimitiveLiteral>) {
        (
            lower(&transform, &source, &p),
            upper(&transform, &source, &p),
        )
    }

    #[test]
    fn identity_is_the_value() {
        assert_eq!(
            bounds(Transform::Identity, P::Int, L::Int(5)),
            (Some(L::Int(5)), Some(L::Int(5)))
        );
    }

    #[test]
    fn truncated_numbers_span_a_width() {
        // truncate(10) of 40..=49 is 40, of -10..=-1 is -10.
        assert_eq!(
            bounds(Transform::Truncate(10), P::Int, L::Int(40)),
            (Some(L::Int(40)), Some(L::Int(49)))
        );
        assert_eq!(
            bounds(Transform::Truncate(10), P::Int, L::Int(-10)),
            (Some(L::Int(-10)), Some(L::Int(-1)))
        );
        assert_eq!(
            bounds(Transform::Truncate(10), P::Long, L::Long(-20)),
            (Some(L::Long(-20)), Some(L::Long(-11)))
        );
        // decimal(9,2): truncate(50) of 10.65 (unscaled 1065) is 10.50 (unscaled 1050); the last of it is 10.99.
        assert_eq!(
            bounds(
                Transform::Truncate(50),
                P::Decimal {
                    precision: 9,
                    scale: 2
                },
                L::Int128(1050)
            ),
            (Some(L::Int128(1050)), Some(L::Int128(1099)))
        );
        assert_eq!(
            bounds(Transform::Truncate(10), P::Int, L::Int(2_147_483_640)),
            (Some(L::Int(2_147_483_640)), Some(L::Int(i32::MAX)))
        );
        // The smallest int is -2147483648; -2147483650 is no int, and becomes 2147483646.
        assert_eq!(
            bounds(Transform::Truncate(10), P::Int, L::Int(2_147_483_646)),
            (None, Some(L::Int(i32::MAX)))
        );
    }

    #[test]
    fn truncated_strings_are_prefixes() {
        let string = |s: &str| L::String(s.to_string());
        assert_eq!(
            bounds(Transform::Truncate(3), P::String, string("abc")),
            (Some(string("abc")), Some(string("abd")))
        );
        // Shorter than the width: nothing was cut off.
        assert_eq!(
            bounds(Transform::Truncate(3), P::String, string("ab")),
            (Some(string("ab")), Some(string("ab")))
        );
        // The width counts characters, and the largest one cannot be followed by a larger one.
        assert_eq!(
            upper(&Transform::Truncate(2), &P::String, &string("é\u{10FFFF}")),
            Some(string("ê"))
        );
        assert_eq!(
            upper(&Transform::Truncate(1), &P::String, &string("\u{10FFFF}")),
            None
        );
        assert_eq!(
            upper(&Transform::Truncate(1), &P::String, &string("\u{D7FF}")),
            Some(string("\u{E000}"))
        );
        assert_eq!(
            bounds(Transform::Truncate(2), P::Binary, L::Binary(vec![1, 255])),
            (Some(L::Binary(vec![1, 255])), Some(L::Binary(vec![2])))
        );
    }

    #[test]
    fn units_of_time_span_from_start_to_end() {
        // 2024-01-01 is day 19723, month 648 and year 54 since 1970; 19723 * 24 = 473352.
        let start = 19723 * MICROS_PER_DAY;
        assert_eq!(
            bounds(Transform::Day, P::Timestamp, L::Int(19723)),
            (
                Some(L::Long(start)),
                Some(L::Long(start + MICROS_PER_DAY - 1))
            )
        );
        assert_eq!(
            bounds(Transform::Hour, P::Timestamptz, L::Int(473_352)),
            (
                Some(L::Long(start)),
                Some(L::Long(start + MICROS_PER_HOUR - 1))
            )
        );
        // January has 31 days, 2024 has 366.
        assert_eq!(
            bounds(Transform::Month, P::Date, L::Int(648)),
            (Some(L::Int(19723)), Some(L::Int(19723 + 30)))
        );
        assert_eq!(
            bounds(Transform::Year, P::Date, L::Int(54)),
            (Some(L::Int(19723)), Some(L::Int(19723 + 365)))
        );
    }

    #[test]
    fn nanoseconds_count_a_thousand_times_finer() {
        let day = MICROS_PER_DAY * 1000;
        assert_eq!(
            bounds(Transform::Day, P::TimestampNs, L::Int(19723)),
            (Some(L::Long(19723 * day)), Some(L::Long(19724 * day - 1)))
        );
        assert_eq!(
            bounds(Transform::Hour, P::TimestamptzNs, L::Int(1)),
            (
                Some(L::Long(MICROS_PER_HOUR * 1000)),
                Some(L::Long(2 * MICROS_PER_HOUR * 1000 - 1))
            )
        );
        // 1677-09-21 is day -106752, and begins before the first nanosecond of 64 bits.
        assert_eq!(
            bounds(Transform::Day, P::TimestampNs, L::Int(-106_752)),
            (None, Some(L::Long(-106_751 * day - 1)))
        );
    }

    #[test]
    fn times_before_1970_may_be_of_the_unit_before() {
        // 1969-12-31 is day -1. A writer that rounds towards zero files the evening of 1969-12-30 there too.
        assert_eq!(
            bounds(Transform::Day, P::Timestamp, L::Int(-1)),
            (Some(L::Long(-2 * MICROS_PER_DAY)), Some(L::Long(-1)))
        );
        assert_eq!(
            bounds(Transform::Day, P::Timestamp, L::Int(0)),
            (
                Some(L::Long(-MICROS_PER_DAY)),
                Some(L::Long(MICROS_PER_DAY - 1))
            )
        );
        // December 1969 is month -1; it begins 31 days before 1970, November 30 days earlier.
        assert_eq!(
            bounds(Transform::Month, P::Date, L::Int(-1)),
            (Some(L::Int(-61)), Some(L::Int(-1)))
        );
        // 1969 has 365 days, 1968 had 366.
        assert_eq!(
            bounds(Transform::Year, P::Date, L::Int(-1)),
            (Some(L::Int(-731)), Some(L::Int(-1)))
        );
    }

    #[test]
    fn other_transforms_and_types_say_nothing() {
        assert_eq!(
            bounds(Transform::Bucket(16), P::Int, L::Int(3)),
            (None, None)
        );
        assert_eq!(bounds(Transform::Void, P::Int, L::Int(3)), (None, None));
        assert_eq!(bounds(Transform::Unknown, P::Int, L::Int(3)), (None, None));
        assert_eq!(bounds(Transform::Hour, P::Date, L::Int(3)), (None, None));
        assert_eq!(
            bounds(Transform::Year, P::Date, L::Int(i32::MAX)),
            (None, None)
        );
    }
}
