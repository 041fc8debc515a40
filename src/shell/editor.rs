//! What the line editor asks of us: completion, and whether a statement is complete.

use rustyline::completion::{Completer, Pair};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Highlighter, Hinter};

use super::meta;
use super::names::Names;
use super::split::split;

/// Completed in the case that was begun.
const KEYWORDS: &[&str] = &[
    "ALL",
    "ALTER",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CATALOG",
    "CATALOGS",
    "COLUMNS",
    "COUNT",
    "CREATE",
    "CROSS",
    "DATABASE",
    "DATABASES",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "ESTIMATE",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "KILL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PROCESSLIST",
    "PROFILE",
    "PROPERTIES",
    "QUERY",
    "RIGHT",
    "SELECT",
    "SET",
    "SHOW",
    "TABLE",
    "TABLES",
    "THEN",
    "TRUE",
    "UNION",
    "USE",
    "USING",
    "VALUES",
    "VARIABLES",
    "VERBOSE",
    "WHEN",
    "WHERE",
    "WITH",
    "WORKERS",
];

/// The shell's half of the line editor.
#[derive(Helper, Highlighter, Hinter)]
pub struct Editor {
    pub names: Names,
}

impl Completer for Editor {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, candidates) = complete(&self.names, line, at);
        let pairs = candidates
            .into_iter()
            .map(|text| Pair {
                display: text.clone(),
                replacement: text,
            })
            .collect();
        Ok((start, pairs))
    }
}

impl Validator for Editor {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        if meta::parse(input).is_some() || !split(input).is_open() {
            Ok(ValidationResult::Valid(None))
        } else {
            Ok(ValidationResult::Incomplete)
        }
    }
}

/// Where the word at the cursor begins, and what it can become.
fn complete(names: &Names, line: &str, at: usize) -> (usize, Vec<String>) {
    let before = &line[..at];
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '\\';
    let start = before.rfind(|c: char| !is_word(c)).map_or(0, |i| {
        i + before[i..].chars().next().map_or(1, char::len_utf8)
    });
    let word = &before[start..];
    let mut found: Vec<String> = match before[..start].strip_suffix('.') {
        Some(rest) => {
            let begin = rest.rfind(|c: char| !is_word(c)).map_or(0, |i| {
                i + rest[i..].chars().next().map_or(1, char::len_utf8)
            });
            names.after(&rest[begin..]).into_iter().collect()
        }
        None if word.is_empty() => return (start, Vec::new()),
        None => {
            let lower = word.chars().any(char::is_lowercase);
            let keywords = KEYWORDS.iter().map(|k| {
                if lower {
                    k.to_lowercase()
                } else {
                    k.to_string()
                }
            });
            names.plain(line).into_iter().chain(keywords).collect()
        }
    };
    let wanted = word.to_lowercase();
    found.retain(|name| name.to_lowercase().starts_with(&wanted));
    found.sort();
    found.dedup();
    (start, found)
}

#[cfg(test)]
mod tests {
    use super::super::names::example;
    use super::*;

    fn completions(line: &str) -> Vec<String> {
        complete(&example(), line, line.len()).1
    }

    #[test]
    fn keywords_take_the_case_that_was_begun() {
        assert_eq!(completions("SEL"), ["SELECT"]);
        assert_eq!(completions("sel"), ["select"]);
    }

    #[test]
    fn names_and_what_follows_a_dot() {
        assert_eq!(completions("SELECT * FROM tpch.o"), ["orders"]);
        assert_eq!(completions("SELECT * FROM lake.t"), ["tpch"]);
        assert_eq!(completions("SELECT * FROM re"), ["redbi"]);
        let line = "SELECT o_order FROM orders";
        assert_eq!(
            complete(&example(), line, 14),
            (7, vec!["o_orderdate".to_string(), "o_orderkey".to_string()])
        );
    }

    #[test]
    fn nothing_is_offered_for_nothing() {
        assert!(completions("SELECT ").is_empty());
        assert!(completions("小").is_empty());
    }
}
