//! `ANALYZE TABLE`.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::{Cursor, Failure, Parsed};
use super::{Analyze, Statement};

/// What follows `ANALYZE`.
pub(super) fn parse_analyze(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let _ = cursor.one_of(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
    cursor.expect_word("TABLE")?;
    let mut tables = vec![cursor.object_path()?];
    while cursor.take(&Token::Comma) {
        tables.push(cursor.object_path()?);
    }
    for (word, what) in [
        ("UPDATE", "ANALYZE TABLE … UPDATE HISTOGRAM"),
        ("DROP", "ANALYZE TABLE … DROP HISTOGRAM"),
    ] {
        if cursor.is_word(word) {
            return Err(Failure::Unsupported {
                kind: "ANALYZE TABLE",
                detail: format!(
                    "{what} is not supported: distinct values are counted, histograms are not kept"
                ),
            });
        }
    }
    let mut columns = Vec::new();
    if cursor.take(&Token::LParen) {
        if tables.len() > 1 {
            return Err(Failure::Invalid(
                "ANALYZE TABLE takes columns of one table only".to_owned(),
            ));
        }
        columns.push(cursor.name()?);
        while cursor.take(&Token::Comma) {
            columns.push(cursor.name()?);
        }
        cursor.expect(&Token::RParen)?;
    }
    let sample_percent = match cursor.word("SAMPLE") {
        true => {
            let percent = percent(cursor)?;
            cursor.expect_word("PERCENT")?;
            Some(percent)
        }
        false => None,
    };
    Ok(Statement::Analyze(Analyze {
        tables,
        columns,
        sample_percent,
    }))
}

fn percent(cursor: &mut Cursor<'_>) -> Parsed<f64> {
    let Token::Number(digits, _) = &cursor.parser.peek_token_ref().token else {
        return cursor.expected("a number");
    };
    let number = digits.parse::<f64>().unwrap_or(f64::NAN);
    if !(number > 0.0 && number <= 100.0) {
        return Err(Failure::Invalid(format!(
            "a sample of {digits} percent cannot be taken"
        )));
    }
    cursor.parser.advance_token();
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse_statement;

    fn analyze(sql: &str) -> Analyze {
        let parsed = parse_statement(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        match parsed.statement {
            Statement::Analyze(analyze) => analyze,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn tables_columns_and_samples_are_read() {
        let whole = analyze("ANALYZE LOCAL TABLE c.d.t, u");
        let names: Vec<String> = whole.tables.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["c.d.t", "u"]);
        assert_eq!((whole.columns.len(), whole.sample_percent), (0, None));
        let part = analyze("analyze table t (a, `B c`) sample 2.5 percent");
        assert_eq!(part.columns, ["a", "B c"]);
        assert_eq!(part.sample_percent, Some(2.5));
        assert_eq!(
            analyze("ANALYZE TABLE t SAMPLE 100 PERCENT").sample_percent,
            Some(100.0)
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for sql in [
            "ANALYZE t",
            "ANALYZE TABLE",
            "ANALYZE TABLE t ()",
            "ANALYZE TABLE t (a",
            "ANALYZE TABLE t, u (a)",
            "ANALYZE TABLE t SAMPLE 0 PERCENT",
            "ANALYZE TABLE t SAMPLE 101 PERCENT",
            "ANALYZE TABLE t SAMPLE few PERCENT",
            "ANALYZE TABLE t SAMPLE 10",
            "ANALYZE TABLE t t",
        ] {
            assert!(parse_statement(sql).is_err(), "{sql}");
        }
        assert!(matches!(
            parse_statement("ANALYZE TABLE t UPDATE HISTOGRAM ON a").map(|parsed| parsed.statement),
            Ok(Statement::Unsupported { .. })
        ));
    }
}
