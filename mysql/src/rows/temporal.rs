//! Dates, points in time and times of day.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{
    Date32Type, Date64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampSecondType,
};

use super::digits::{put_2, put_padded};
use super::value::{ValueError, ValueWriter};

type Written = Result<(), ValueError>;

pub(super) const SECONDS_A_DAY: i64 = 86_400;

/// A day of the proleptic Gregorian calendar that MySQL's types can carry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Day {
    year: u16,
    month: u8,
    day: u8,
}

impl Day {
    /// The day that is `days` after 1970-01-01.
    ///
    /// Counted in years that begin on 1 March, so that the leap day is the last of its year: each era
    /// of 400 years has 146,097 days.
    pub(super) fn from_epoch_days(days: i64) -> Result<Self, ValueError> {
        // Days from 0000-03-01.
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // From March on, months are 30.6 days long, rounded: 0 is March.
        let month_from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = 400 * era + year_of_era + i64::from(month <= 2);
        match u16::try_from(year) {
            Ok(year) if year <= 9999 => Ok(Self {
                year,
                month: month as u8,
                day: day as u8,
            }),
            _ => Err(ValueError::YearOutOfRange { year }),
        }
    }

    pub(super) fn put_text(&self, out: &mut Vec<u8>) {
        put_padded(out, u32::from(self.year), 4);
        out.push(b'-');
        put_2(out, u32::from(self.month));
        out.push(b'-');
        put_2(out, u32::from(self.day));
    }

    fn put_binary(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.year.to_le_bytes());
        out.extend_from_slice(&[self.month, self.day]);
    }
}

/// Hours, minutes and seconds of a number of seconds within a day.
fn clock(second_of_day: u32) -> (u32, u32, u32) {
    (
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    )
}

pub(super) fn put_clock_text(
    out: &mut Vec<u8>,
    second_of_day: u32,
    microsecond: u32,
    decimals: u8,
) {
    let (hour, minute, second) = clock(second_of_day);
    put_2(out, hour);
    out.push(b':');
    put_2(out, minute);
    out.push(b':');
    put_2(out, second);
    if decimals > 0 {
        out.push(b'.');
        let unit = 10u32.pow(6 - u32::from(decimals));
        put_padded(out, microsecond / unit, usize::from(decimals));
    }
}

fn put_clock_binary(out: &mut Vec<u8>, second_of_day: u32) {
    let (hour, minute, second) = clock(second_of_day);
    out.extend_from_slice(&[hour as u8, minute as u8, second as u8]);
}

/// Ticks per second of a unit.
fn ticks_a_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Decimals of a second that MySQL shows for a unit; it has no more than 6.
pub(super) fn decimals(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
    }
}

/// Whole seconds, rounded down, and the microseconds above them.
fn split_seconds(ticks: i64, ticks_a_second: i64) -> (i64, u32) {
    let seconds = ticks.div_euclid(ticks_a_second);
    let fraction = ticks.rem_euclid(ticks_a_second);
    let microsecond = match ticks_a_second {
        1_000_000_000 => fraction / 1_000,
        _ => fraction * (1_000_000 / ticks_a_second),
    };
    (seconds, microsecond as u32)
}

/// Date32 and Date64 as DATE.
pub(super) enum DateWriter<'a> {
    Days(&'a PrimitiveArray<Date32Type>),
    Milliseconds(&'a PrimitiveArray<Date64Type>),
}

impl<'a> DateWriter<'a> {
    pub fn days(array: &'a PrimitiveArray<Date32Type>) -> Self {
        Self::Days(array)
    }

    pub fn milliseconds(array: &'a PrimitiveArray<Date64Type>) -> Self {
        Self::Milliseconds(array)
    }

    fn day(&self, row: usize) -> Result<Day, ValueError> {
        Day::from_epoch_days(match self {
            Self::Days(array) => i64::from(array.value(row)),
            Self::Milliseconds(array) => array.value(row).div_euclid(SECONDS_A_DAY * 1000),
        })
    }
}

impl ValueWriter for DateWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        self.day(row)?.put_text(out);
        Ok(())
    }

    fn binary(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let day = self.day(row)?;
        out.push(4);
        day.put_binary(out);
        Ok(())
    }
}

/// Timestamps as DATETIME, and those with a time zone as TIMESTAMP in UTC.
pub(super) struct TimestampWriter<'a> {
    ticks: &'a ScalarBuffer<i64>,
    ticks_a_second: i64,
    decimals: u8,
}

impl<'a> TimestampWriter<'a> {
    pub fn new(array: &'a ArrayRef, unit: TimeUnit) -> Result<Self, ValueError> {
        let ticks = match unit {
            TimeUnit::Second => array
                .as_primitive_opt::<TimestampSecondType>()
                .map(PrimitiveArray::values),
            TimeUnit::Millisecond => array
                .as_primitive_opt::<TimestampMillisecondType>()
                .map(PrimitiveArray::values),
            TimeUnit::Microsecond => array
                .as_primitive_opt::<TimestampMicrosecondType>()
                .map(PrimitiveArray::values),
            // These are written as text.
            TimeUnit::Nanosecond => None,
        }
        .ok_or_else(|| ValueError::NoMysqlType(array.data_type().to_string()))?;
        Ok(Self {
            ticks,
            ticks_a_second: ticks_a_second(unit),
            decimals: decimals(unit),
        })
    }

    fn parts(&self, row: usize) -> Result<(Day, u32, u32), ValueError> {
        let (seconds, microsecond) = split_seconds(self.ticks[row], self.ticks_a_second);
        let day = Day::from_epoch_days(seconds.div_euclid(SECONDS_A_DAY))?;
        Ok((day, seconds.rem_euclid(SECONDS_A_DAY) as u32, microsecond))
    }
}

impl ValueWriter for TimestampWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let (day, second, microsecond) = self.parts(row)?;
        day.put_text(out);
        out.push(b' ');
        put_clock_text(out, second, microsecond, self.decimals);
        Ok(())
    }

    fn binary(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let (day, second, microsecond) = self.parts(row)?;
        // The shortest of the three lengths that holds the value.
        let length = match (second, microsecond) {
            (0, 0) => 4,
            (_, 0) => 7,
            _ => 11,
        };
        out.push(length);
        day.put_binary(out);
        if length >= 7 {
            put_clock_binary(out, second);
        }
        if length == 11 {
            out.extend_from_slice(&microsecond.to_le_bytes());
        }
        Ok(())
    }
}

/// Times of day as TIME.
pub(super) struct TimeWriter<'a> {
    ticks: Ticks<'a>,
    ticks_a_second: i64,
    decimals: u8,
}

enum Ticks<'a> {
    Narrow(&'a ScalarBuffer<i32>),
    Wide(&'a ScalarBuffer<i64>),
}

impl<'a> TimeWriter<'a> {
    pub fn new(array: &'a ArrayRef, unit: TimeUnit) -> Result<Self, ValueError> {
        let narrow = |values| Ticks::Narrow(values);
        let ticks = match unit {
            TimeUnit::Second => array
                .as_primitive_opt::<Time32SecondType>()
                .map(|times| narrow(times.values())),
            TimeUnit::Millisecond => array
                .as_primitive_opt::<Time32MillisecondType>()
                .map(|times| narrow(times.values())),
            TimeUnit::Microsecond => array
                .as_primitive_opt::<Time64MicrosecondType>()
                .map(|times| Ticks::Wide(times.values())),
            TimeUnit::Nanosecond => array
                .as_primitive_opt::<Time64NanosecondType>()
                .map(|times| Ticks::Wide(times.values())),
        }
        .ok_or_else(|| ValueError::NoMysqlType(array.data_type().to_string()))?;
        Ok(Self {
            ticks,
            ticks_a_second: ticks_a_second(unit),
            decimals: decimals(unit),
        })
    }

    fn parts(&self, row: usize) -> (u32, u32) {
        let ticks = match self.ticks {
            Ticks::Narrow(ticks) => i64::from(ticks[row]),
            Ticks::Wide(ticks) => ticks[row],
        };
        let (seconds, microsecond) = split_seconds(ticks, self.ticks_a_second);
        (seconds.rem_euclid(SECONDS_A_DAY) as u32, microsecond)
    }
}

impl ValueWriter for TimeWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let (second, microsecond) = self.parts(row);
        put_clock_text(out, second, microsecond, self.decimals);
        Ok(())
    }

    fn binary(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let (second, microsecond) = self.parts(row);
        let length = match (second, microsecond) {
            (0, 0) => 0,
            (_, 0) => 8,
            _ => 12,
        };
        out.push(length);
        if length >= 8 {
            out.extend_from_slice(&[0, 0, 0, 0, 0]); // not negative, no days
            put_clock_binary(out, second);
        }
        if length == 12 {
            out.extend_from_slice(&microsecond.to_le_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        Date32Array, Date64Array, Time32SecondArray, Time64MicrosecondArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampSecondArray,
    };
    use std::sync::Arc;

    fn text(writer: &dyn ValueWriter) -> String {
        let mut out = vec![];
        writer.text(0, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn binary(writer: &dyn ValueWriter) -> Vec<u8> {
        let mut out = vec![];
        writer.binary(0, &mut out).unwrap();
        out
    }

    /// Day numbers from Python's `date.toordinal() - date(1970,1,1).toordinal()`.
    #[test]
    fn dates() {
        let cases = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (-719_162, "0001-01-01"),
            (-719_528, "0000-01-01"),
            (2_932_896, "9999-12-31"),
            (11_016, "2000-02-29"),
            (-25_508, "1900-03-01"),
            (14_899, "2010-10-17"),
        ];
        for (days, expected) in cases {
            let array = Date32Array::from(vec![days]);
            assert_eq!(text(&DateWriter::days(&array)), expected);
            let array = Date64Array::from(vec![i64::from(days) * 86_400_000]);
            assert_eq!(text(&DateWriter::milliseconds(&array)), expected);
        }
        let array = Date32Array::from(vec![14_899]);
        assert_eq!(
            binary(&DateWriter::days(&array)),
            [4, 0xda, 0x07, 0x0a, 0x11]
        );
    }

    #[test]
    fn a_year_that_mysql_does_not_have_is_an_error_and_no_wrong_date() {
        for (days, year) in [(2_932_897, 10_000), (-719_529, -1), (i32::MAX, 5_881_580)] {
            let array = Date32Array::from(vec![days]);
            let writer = DateWriter::days(&array);
            let expected = Err(ValueError::YearOutOfRange { year });
            assert_eq!(writer.text(0, &mut vec![]), expected);
            assert_eq!(writer.binary(0, &mut vec![]), expected);
        }
        let extremes: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MIN, i64::MAX]));
        let writer = TimestampWriter::new(&extremes, TimeUnit::Second).unwrap();
        assert!(writer.text(0, &mut vec![]).is_err());
        assert!(writer.text(1, &mut vec![]).is_err());
    }

    #[test]
    fn timestamps_of_each_unit() {
        let seconds = 1_287_343_650; // 2010-10-17 19:27:30
        let cases: [(ArrayRef, TimeUnit, &str); 4] = [
            (
                Arc::new(TimestampSecondArray::from(vec![seconds])),
                TimeUnit::Second,
                "2010-10-17 19:27:30",
            ),
            (
                Arc::new(TimestampMillisecondArray::from(vec![seconds * 1_000 + 7])),
                TimeUnit::Millisecond,
                "2010-10-17 19:27:30.007",
            ),
            (
                Arc::new(TimestampMicrosecondArray::from(vec![
                    seconds * 1_000_000 + 1,
                ])),
                TimeUnit::Microsecond,
                "2010-10-17 19:27:30.000001",
            ),
            (
                Arc::new(TimestampMicrosecondArray::from(vec![-1]).with_timezone("UTC")),
                TimeUnit::Microsecond,
                "1969-12-31 23:59:59.999999",
            ),
        ];
        for (array, unit, expected) in &cases {
            assert_eq!(
                text(&TimestampWriter::new(array, *unit).unwrap()),
                *expected
            );
        }
        let writer = TimestampWriter::new(&cases[2].0, TimeUnit::Microsecond).unwrap();
        assert_eq!(
            binary(&writer),
            [
                0x0b, 0xda, 0x07, 0x0a, 0x11, 0x13, 0x1b, 0x1e, 0x01, 0, 0, 0
            ]
        );
        let writer = TimestampWriter::new(&cases[0].0, TimeUnit::Second).unwrap();
        assert_eq!(
            binary(&writer),
            [7, 0xda, 0x07, 0x0a, 0x11, 0x13, 0x1b, 0x1e]
        );
        let midnight: ArrayRef = Arc::new(TimestampSecondArray::from(vec![14_899 * 86_400]));
        let writer = TimestampWriter::new(&midnight, TimeUnit::Second).unwrap();
        assert_eq!(binary(&writer), [4, 0xda, 0x07, 0x0a, 0x11]);
    }

    #[test]
    fn times_of_day() {
        let array: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![70_050_000_001]));
        let writer = TimeWriter::new(&array, TimeUnit::Microsecond).unwrap();
        assert_eq!(text(&writer), "19:27:30.000001");
        assert_eq!(
            binary(&writer),
            [12, 0, 0, 0, 0, 0, 0x13, 0x1b, 0x1e, 1, 0, 0, 0]
        );
        let array: ArrayRef = Arc::new(Time32SecondArray::from(vec![0]));
        let writer = TimeWriter::new(&array, TimeUnit::Second).unwrap();
        assert_eq!(text(&writer), "00:00:00");
        assert_eq!(binary(&writer), [0]);
    }
}
