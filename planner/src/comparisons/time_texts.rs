//! Dates and times as texts, as MySQL reads and writes them.
//!
//! They may be short: `'2026-3-7'`, `'2026-03-07 23:00'`, `'2026-03-07 9'`. Arrow reads a date with ten characters and a time with
//! its seconds, so a literal that becomes a date or a time is written in full. And a blank is between a date and its time, where
//! Arrow writes a `T`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::functions::string::expr_fn::replace;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;

use super::plan_expressions::change_expressions;

/// Goes over a plan whose types were made alike.
#[derive(Debug)]
pub(crate) struct TimeTexts;

impl AnalyzerRule for TimeTexts {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_expressions(plan, |expr, schema| match expr {
            Expr::Cast(cast) if writes_time(&cast, schema) => {
                Ok(Transformed::yes(with_blank(cast)))
            }
            expr => Ok(with_full_time(expr)),
        })
    }

    fn name(&self) -> &str {
        "time_texts"
    }
}

fn writes_time(cast: &Cast, schema: &DFSchema) -> bool {
    cast.field.data_type().is_string()
        && matches!(cast.expr.get_type(schema), Ok(DataType::Timestamp(..)))
}

/// `YYYY-MM-DD HH:MM:SS`. There is no other T in what Arrow writes.
fn with_blank(written: Cast) -> Expr {
    let to = written.field.data_type().clone();
    let written = Expr::Cast(Cast::new(written.expr, DataType::Utf8));
    let blank = replace(written, lit("T"), lit(" "));
    match to {
        DataType::Utf8 => blank,
        to => Expr::Cast(Cast::new(Box::new(blank), to)),
    }
}

fn with_full_time(mut expr: Expr) -> Transformed<Expr> {
    if let Expr::Cast(Cast { expr: text, field }) | Expr::TryCast(TryCast { expr: text, field }) =
        &mut expr
        && let DataType::Timestamp(..) | DataType::Date32 = field.data_type()
        && let Expr::Literal(
            ScalarValue::Utf8(Some(short))
            | ScalarValue::LargeUtf8(Some(short))
            | ScalarValue::Utf8View(Some(short)),
            _,
        ) = text.as_ref()
        && let Some(full) = time_in_full(short)
        && full != *short
    {
        **text = lit(full);
        return Transformed::yes(expr);
    }
    Transformed::no(expr)
}

/// The text of a date, with or without a time, with all its digits: `2026-3-7 9:05` is `2026-03-07 09:05:00`. `None` for
/// what is neither.
pub fn time_in_full(text: &str) -> Option<String> {
    let (date, time) = match text.trim().split_once([' ', 'T']) {
        Some((date, time)) => (date, Some(time.trim_start())),
        None => (text.trim(), None),
    };
    let mut parts = date.split('-');
    let year = parts.next().filter(|year| year.len() == 4)?;
    let (month, day) = (parts.next()?, parts.next()?);
    if parts.next().is_some() || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let date = format!("{year}-{}-{}", two_digits(month)?, two_digits(day)?);
    let Some(time) = time else {
        return Some(date);
    };
    let is_clock = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.');
    let (clock, zone) = time.split_at(time.bytes().take_while(is_clock).count());
    let mut parts = clock.splitn(3, ':');
    let hour = two_digits(parts.next()?)?;
    let minute = two_digits(parts.next().unwrap_or("0"))?;
    let (second, fraction) = match parts.next() {
        Some(second) => match second.split_once('.') {
            Some((second, "")) => (second, String::new()),
            Some((second, fraction)) => (second, format!(".{fraction}")),
            None => (second, String::new()),
        },
        None => ("0", String::new()),
    };
    let second = two_digits(second)?;
    Some(format!("{date} {hour}:{minute}:{second}{fraction}{zone}"))
}

fn two_digits(number: &str) -> Option<String> {
    let fits = (1..=2).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| format!("{number:0>2}"))
}

#[cfg(test)]
mod tests {
    use super::time_in_full;

    #[test]
    fn short_forms_are_written_time_in_full() {
        for (short, full) in [
            ("2026-3-7", "2026-03-07"),
            ("2026-03-07 23:00", "2026-03-07 23:00:00"),
            ("2026-03-07T23:00", "2026-03-07 23:00:00"),
            ("2026-03-07 9", "2026-03-07 09:00:00"),
            (" 2026-03-07  9:5:1.25 ", "2026-03-07 09:05:01.25"),
            ("2026-03-07 23:00:00.", "2026-03-07 23:00:00"),
            ("2026-03-07 23:00Z", "2026-03-07 23:00:00Z"),
            ("2026-03-07 23:00+02:00", "2026-03-07 23:00:00+02:00"),
            ("2026-03-07 23:00:00", "2026-03-07 23:00:00"),
        ] {
            assert_eq!(time_in_full(short).as_deref(), Some(full), "{short}");
        }
    }

    #[test]
    fn what_is_no_time_stays_as_it_is() {
        for text in [
            "",
            "far",
            "26-03-07",
            "2026-03",
            "2026-03-07-1",
            "2026-033-07",
            "2026-03-07 ",
            "20260307",
            "2026-03-07 :00",
            "2026-03-07 23:000",
            "+226-03-07",
            "2026-03-07 x",
        ] {
            // A blank behind a date is no time; the date alone remains.
            let expected = (text.trim() == "2026-03-07").then(|| "2026-03-07".to_owned());
            assert_eq!(time_in_full(text), expected, "{text}");
        }
    }
}
