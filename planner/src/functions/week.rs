//! MySQL's weeks: which day they begin with, whether they count from 0 or 1, and which is the first of a year.
//!
//! | mode | first day | range | week 1 is the first with |
//! |---|---|---|---|
//! | 0 | Sunday | 0–53 | a Sunday in this year |
//! | 1 | Monday | 0–53 | 4 or more days in this year |
//! | 2 | Sunday | 1–53 | a Sunday in this year |
//! | 3 | Monday | 1–53 | 4 or more days in this year (ISO 8601) |
//! | 4 | Sunday | 0–53 | 4 or more days in this year |
//! | 5 | Monday | 0–53 | a Monday in this year |
//! | 6 | Sunday | 1–53 | 4 or more days in this year |
//! | 7 | Monday | 1–53 | a Monday in this year |

use chrono::{Datelike, Days, NaiveDate};

/// The week's number and the year it belongs to.
pub(super) fn week(date: NaiveDate, mode: i64) -> (u32, i32) {
    let mode = mode.rem_euclid(8);
    let counts_from_one = matches!(mode, 2 | 3 | 6 | 7);
    let year = date.year();
    let start = first_week(year, mode);
    if date < start {
        return if counts_from_one {
            (number(date, first_week(year - 1, mode)), year - 1)
        } else {
            (0, year)
        };
    }
    if counts_from_one && date >= first_week(year + 1, mode) {
        return (1, year + 1);
    }
    (number(date, start), year)
}

fn number(date: NaiveDate, start: NaiveDate) -> u32 {
    // The start is not after the date, and less than 54 weeks before.
    u32::try_from(date.signed_duration_since(start).num_days() / 7 + 1).unwrap_or(0)
}

/// The first day of week 1.
fn first_week(year: i32, mode: i64) -> NaiveDate {
    let monday_first = mode % 2 == 1;
    let four_days = matches!(mode, 1 | 3 | 4 | 6);
    let anchor =
        NaiveDate::from_ymd_opt(year, 1, if four_days { 4 } else { 7 }).unwrap_or(NaiveDate::MIN);
    // The week that holds 4 January has 4 days in the year; the one that holds 7 January begins in the year.
    let weekday = anchor.weekday();
    let into_week = if monday_first {
        weekday.num_days_from_monday()
    } else {
        weekday.num_days_from_sunday()
    };
    anchor
        .checked_sub_days(Days::new(u64::from(into_week)))
        .unwrap_or(anchor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i32, month: u32, day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(year, month, day).unwrap()
    }

    #[test]
    fn the_manuals_examples() {
        // 2008 began on a Tuesday.
        assert_eq!(week(date(2008, 2, 20), 0).0, 7);
        assert_eq!(week(date(2008, 2, 20), 1).0, 8);
        assert_eq!(week(date(2008, 12, 31), 1).0, 53);
        assert_eq!(week(date(2000, 1, 1), 0).0, 0);
        assert_eq!(week(date(2000, 1, 1), 2), (52, 1999));
        assert_eq!(week(date(1987, 1, 1), 2), (52, 1986));
    }

    #[test]
    fn mode_three_is_iso_8601() {
        let mut day = date(1999, 12, 20);
        while day < date(2030, 1, 20) {
            let iso = day.iso_week();
            assert_eq!(week(day, 3), (iso.week(), iso.year()), "{day}");
            day = day.succ_opt().unwrap();
        }
    }

    #[test]
    fn the_eight_modes_around_a_new_year() {
        // Friday 1 January 2021; Sunday 3 January; Monday 4 January.
        let expected = [
            (0, 1, 1),
            (0, 0, 1),
            (52, 1, 1),
            (53, 53, 1),
            (0, 1, 1),
            (0, 0, 1),
            (53, 1, 1),
            (52, 52, 1),
        ];
        for (mode, (friday, sunday, monday)) in (0..).zip(expected) {
            assert_eq!(week(date(2021, 1, 1), mode).0, friday, "mode {mode}");
            assert_eq!(week(date(2021, 1, 3), mode).0, sunday, "mode {mode}");
            assert_eq!(week(date(2021, 1, 4), mode).0, monday, "mode {mode}");
        }
    }
}
