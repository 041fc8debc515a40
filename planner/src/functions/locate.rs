//! `LOCATE(part, text [, from])`: where a part begins, in characters from 1; 0 where it is not.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::row_function::{Kind, RowFunction, returns_integer, typed};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    const PARAMETERS: &[Kind] = &[Kind::Text, Kind::Text, Kind::Integer];
    vec![
        RowFunction::new("locate", PARAMETERS, returns_integer, evaluate)
            .optional(1)
            .udf(),
    ]
}

fn evaluate(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let (parts, texts) = (
        typed::<StringArray>(&args[0])?,
        typed::<StringArray>(&args[1])?,
    );
    let from = args.get(2).map(typed::<Int64Array>).transpose()?;
    let places = (0..texts.len()).map(|row| {
        let from = match from {
            None => 1,
            Some(from) if from.is_null(row) => return None,
            Some(from) => from.value(row),
        };
        (parts.is_valid(row) && texts.is_valid(row))
            .then(|| locate(parts.value(row), texts.value(row), from))
    });
    Ok(Arc::new(places.collect::<Int64Array>()))
}

fn locate(part: &str, text: &str, from: i64) -> i64 {
    let Some(skip) = from
        .checked_sub(1)
        .and_then(|skip| usize::try_from(skip).ok())
    else {
        return 0;
    };
    let start = match text.char_indices().nth(skip) {
        Some((start, _)) => start,
        // Just after the last character an empty part is still found.
        None if text.chars().count() == skip => text.len(),
        None => return 0,
    };
    match text[start..].find(part) {
        Some(at) => text[..start + at].chars().count() as i64 + 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::locate;

    #[test]
    fn parts_are_found() {
        for (part, text, from, expected) in [
            ("bar", "foobarbar", 1, 4),
            ("xbar", "foobar", 1, 0),
            ("bar", "foobarbar", 5, 7),
            ("ü", "größe über", 1, 7),
            ("a", "aaa", 0, 0),
            ("a", "aaa", -1, 0),
            ("a", "aaa", 9, 0),
            ("", "abc", 1, 1),
        ] {
            assert_eq!(locate(part, text, from), expected, "{part} {text} {from}");
        }
    }
}
