//! `PERIOD_ADD` and `PERIOD_DIFF`: months written as YYMM or YYYYMM.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::row_function::{Kind, RowFunction, returns_integer, typed};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    const PARAMETERS: &[Kind] = &[Kind::Integer, Kind::Integer];
    vec![
        RowFunction::new("period_diff", PARAMETERS, returns_integer, |args, _| {
            each(args, |left, right| {
                Ok(month_of(left)?.checked_sub(month_of(right)?))
            })
        })
        .udf(),
        RowFunction::new("period_add", PARAMETERS, returns_integer, |args, _| {
            each(args, |period, months| {
                Ok(month_of(period)?.checked_add(months).map(period_of))
            })
        })
        .udf(),
    ]
}

fn each(args: &[ArrayRef], compute: impl Fn(i64, i64) -> Result<Option<i64>>) -> Result<ArrayRef> {
    let (left, right) = (
        typed::<Int64Array>(&args[0])?,
        typed::<Int64Array>(&args[1])?,
    );
    let values = left.iter().zip(right).map(|pair| match pair {
        (Some(left), Some(right)) => compute(left, right),
        _ => Ok(None),
    });
    Ok(Arc::new(values.collect::<Result<Int64Array>>()?))
}

/// Months since the year 0. Years of two digits are from 1970 to 2069.
fn month_of(period: i64) -> Result<i64> {
    let (year, month) = (period / 100, period % 100);
    if period < 0 || !(1..=12).contains(&month) {
        return exec_err!("invalid period {period}: a period is a month as YYYYMM or YYMM");
    }
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    };
    Ok(year * 12 + month - 1)
}

fn period_of(month: i64) -> i64 {
    month.div_euclid(12) * 100 + month.rem_euclid(12) + 1
}

#[cfg(test)]
mod tests {
    use super::{month_of, period_of};

    #[test]
    fn periods_are_months() {
        assert_eq!(month_of(200_802).unwrap() - month_of(200_703).unwrap(), 11);
        assert_eq!(month_of(6_901).unwrap(), 2069 * 12);
        assert_eq!(month_of(7_001).unwrap(), 1970 * 12);
        assert_eq!(period_of(month_of(200_801).unwrap() + 2), 200_803);
        assert_eq!(period_of(month_of(200_801).unwrap() - 1), 200_712);
        assert!(month_of(200_800).is_err());
        assert!(month_of(200_813).is_err());
        assert!(month_of(-200_801).is_err());
    }
}
