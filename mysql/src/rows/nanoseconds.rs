//! Timestamps of nanoseconds, as text: MySQL's own types end at microseconds, and cutting digits off would make two
//! different values one.

use arrow::array::PrimitiveArray;
use arrow::datatypes::TimestampNanosecondType;

use super::digits::put_padded;
use super::temporal::{Day, SECONDS_A_DAY, put_clock_text};
use super::value::{ValueError, ValueWriter};

const NANOS_A_SECOND: i64 = 1_000_000_000;

/// `2020-02-29 12:34:56.123456789`, in UTC if they have a zone.
pub(super) struct NanosecondWriter<'a>(pub &'a PrimitiveArray<TimestampNanosecondType>);

/// Characters of a value.
pub(super) const NANOSECOND_CHARACTERS: u32 = 29;

impl ValueWriter for NanosecondWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let ticks = self.0.value(row);
        let seconds = ticks.div_euclid(NANOS_A_SECOND);
        Day::from_epoch_days(seconds.div_euclid(SECONDS_A_DAY))?.put_text(out);
        out.push(b' ');
        put_clock_text(out, seconds.rem_euclid(SECONDS_A_DAY) as u32, 0, 0);
        out.push(b'.');
        put_padded(out, ticks.rem_euclid(NANOS_A_SECOND) as u32, 9);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_digit_is_lost_at_the_limits_of_64_bits() {
        for (ticks, expected) in [
            (0, "1970-01-01 00:00:00.000000000"),
            (-1, "1969-12-31 23:59:59.999999999"),
            (i64::MAX, "2262-04-11 23:47:16.854775807"),
            (i64::MIN, "1677-09-21 00:12:43.145224192"),
        ] {
            let array = PrimitiveArray::from(vec![ticks]);
            let mut out = vec![];
            NanosecondWriter(&array)
                .text(0, &mut out)
                .expect("it is written");
            assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
            assert_eq!(expected.len(), NANOSECOND_CHARACTERS as usize);
        }
    }
}
