//! Timestamps: seconds since the start of 2015 and nanoseconds, each in a stream of its own.

use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::formats::error::FormatError;
use crate::formats::orc::run_length::IntegerRuns;
use crate::formats::orc::stream::damaged;

/// 2015-01-01 00:00:00 UTC.
const ORC_EPOCH: i64 = 1_420_070_400;

const NANOS_A_SECOND: i64 = 1_000_000_000;
const MICROS_A_SECOND: i64 = 1_000_000;

pub(in crate::formats::orc) struct TimestampReader {
    seconds: IntegerRuns,
    nanos: IntegerRuns,
    /// Seconds from 1970 to the start of 2015, in UTC or in the zone.
    epoch: i64,
    /// The writer's zone if the values are what its clock said, and not instants.
    zone: Option<Tz>,
    unit: TimeUnit,
}

impl TimestampReader {
    /// `zone` is the writer's, for timestamps without a zone.
    pub(in crate::formats::orc) fn new(
        seconds: IntegerRuns,
        nanos: IntegerRuns,
        zone: Option<Tz>,
        target: &DataType,
    ) -> Self {
        // UTC's clock says what instants are.
        let zone = zone.filter(|zone| !matches!(zone, Tz::UTC | Tz::GMT | Tz::Etc__UTC));
        let epoch = match zone {
            Some(zone) => ORC_EPOCH - offset(zone, ORC_EPOCH).unwrap_or(0),
            None => ORC_EPOCH,
        };
        let unit = match target {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => TimeUnit::Nanosecond,
            _ => TimeUnit::Microsecond,
        };
        Self {
            seconds,
            nanos,
            epoch,
            zone,
            unit,
        }
    }

    pub(super) fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// The next value in the unit. What is finer than that is cut off, as the reference implementation does.
    pub(in crate::formats::orc) fn next(&mut self) -> Result<i64, FormatError> {
        let (seconds, nanos) = (self.seconds.next()?, nanoseconds(self.nanos.next()?)?);
        let out_of_range = || {
            damaged(format!(
                "a timestamp is {seconds} seconds off 2015, which is out of range"
            ))
        };
        let mut since_1970 = seconds.checked_add(self.epoch).ok_or_else(out_of_range)?;
        // Before 1970 writers round seconds towards 1970 (ORC-763), unless less than a millisecond is left.
        if since_1970 < 0 && nanos > 999_999 {
            since_1970 -= 1;
        }
        if let Some(zone) = self.zone {
            since_1970 += offset(zone, since_1970).ok_or_else(out_of_range)?;
        }
        let value = match self.unit {
            TimeUnit::Nanosecond => since_1970
                .checked_mul(NANOS_A_SECOND)
                .and_then(|value| value.checked_add(nanos)),
            _ => since_1970
                .checked_mul(MICROS_A_SECOND)
                .and_then(|value| value.checked_add(nanos.div_euclid(1_000))),
        };
        value.ok_or_else(out_of_range)
    }
}

/// How far the zone's clock is ahead of UTC at that instant.
fn offset(zone: Tz, seconds: i64) -> Option<i64> {
    let instant = DateTime::from_timestamp(seconds, 0)?.naive_utc();
    let offset = zone.offset_from_utc_datetime(&instant).fix();
    Some(i64::from(offset.local_minus_utc()))
}

/// The last three bits are how many zeros were cut off, less one. Arrow's writer has negative ones before 1970.
fn nanoseconds(written: i64) -> Result<i64, FormatError> {
    let (digits, zeros) = (written >> 3, written as u32 & 7);
    let factor = if zeros == 0 { 1 } else { 10i64.pow(zeros + 1) };
    digits
        .checked_mul(factor)
        .filter(|nanos| (-NANOS_A_SECOND..NANOS_A_SECOND).contains(nanos))
        .ok_or_else(|| damaged(format!("a timestamp has {digits}e{zeros} nanoseconds")))
}
