//! Secrets in the text of a statement, before it is kept.

use std::borrow::Cow;

use tarn_catalog::shown_value;

/// The text as it may be kept in the process list and the audit log: the secrets masked among a catalog's properties
/// and the options of `iceberg_scan`.
///
/// It works on the text and not on what was parsed, so that a statement with a syntax error keeps its secrets too.
///
/// ```
/// # use tarn_planner::statement::masked;
/// assert_eq!(
///     masked("CREATE CATALOG c PROPERTIES ('uri' = 'http://h', 'token' = 'abc')"),
///     "CREATE CATALOG c PROPERTIES ('uri' = 'http://h', 'token' = '******')"
/// );
/// ```
pub fn masked(text: &str) -> Cow<'_, str> {
    if !mentions(text, b"catalog") && !mentions(text, b"iceberg_scan") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut copied = 0;
    let mut key = None;
    for literal in literals(text) {
        let content = &text[literal.start + 1..literal.end];
        // What is no value may be a location, and that may have a password.
        let value = match literal.is_value {
            true => shown_value(key.take().unwrap_or(""), content),
            false => {
                key = Some(content);
                shown_value("", content)
            }
        };
        if value != content {
            shown.push_str(&text[copied..literal.start + 1]);
            shown.push_str(value);
            copied = literal.end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

fn mentions(text: &str, word: &[u8]) -> bool {
    text.as_bytes()
        .windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word))
}

/// A quoted text: the places of its quotes, and whether it follows an equals sign or an arrow (`=>`).
struct Literal {
    start: usize,
    end: usize,
    is_value: bool,
}

/// The quoted texts of a statement. One that is not closed ends with the text.
fn literals(text: &str) -> Vec<Literal> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut is_value = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => {
                let start = at;
                at += 1;
                while at < bytes.len() {
                    match bytes[at] {
                        b'\\' if quote != b'`' => at += 2,
                        byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
                        byte if byte == quote => break,
                        _ => at += 1,
                    }
                }
                let end = at.min(bytes.len());
                found.push(Literal {
                    start,
                    end,
                    is_value,
                });
                is_value = false;
                at = end + 1;
            }
            b'=' => {
                is_value = true;
                at += 1;
            }
            b'>' if is_value && bytes[at - 1] == b'=' => at += 1,
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => {
                is_value = false;
                at += 1;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_whatever_the_quotes_and_the_syntax() {
        for (text, shown) in [
            (
                "create catalog c properties (\"s3.secret-access-key\"=\"a\\\"b\", 'x'='y')",
                "create catalog c properties (\"s3.secret-access-key\"=\"******\", 'x'='y')",
            ),
            (
                "CREATE CATALOG c PROPERTIS ('password' = 'it''s'",
                "CREATE CATALOG c PROPERTIS ('password' = '******'",
            ),
            (
                "CREATE CATALOG c PROPERTIES ('token' = 'never closed",
                "CREATE CATALOG c PROPERTIES ('token' = '******",
            ),
            (
                "CREATE CATALOG c PROPERTIES ('uri' = 'http://me:pass@host/')",
                "CREATE CATALOG c PROPERTIES ('uri' = '******')",
            ),
            (
                "SELECT * FROM iceberg_scan('s3://b/t', 's3.secret-access-key' => 'hush', `s3.session-token`=>\"t\")",
                "SELECT * FROM iceberg_scan('s3://b/t', 's3.secret-access-key' => '******', `s3.session-token`=>\"******\")",
            ),
            (
                "SELECT * FROM ICEBERG_SCAN('https://me:pass@host/t')",
                "SELECT * FROM ICEBERG_SCAN('******')",
            ),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn other_statements_are_kept_as_they_are() {
        for text in [
            "SELECT 'token' = 'abc'",
            "SHOW CATALOGS",
            "CREATE CATALOG c PROPERTIES ('uri' = 'http://ä', 'type' = 'rest')",
            "CREATE CATALOG '\\",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}
