//! Cuts what was typed into statements. A semicolon or `\G` inside quotes or a comment ends nothing.

use super::format::Format;

/// A statement, without what ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    /// `\G` asked for this format, whatever the shell's is.
    pub format: Option<Format>,
}

/// What [`split`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The statements that are complete.
    pub statements: Vec<Statement>,
    /// What comes after the last of them: a statement that goes on, comments, or blanks.
    pub rest: String,
}

impl Split {
    /// Whether more input is needed to finish a statement.
    pub fn is_open(&self) -> bool {
        !is_blank(&self.rest)
    }

    /// The statements, the rest being one too if there is anything in it: input has ended.
    pub fn finish(mut self) -> Vec<Statement> {
        if self.is_open() {
            self.statements.push(Statement {
                sql: self.rest.trim().to_string(),
                format: None,
            });
        }
        self.statements
    }
}

/// Cuts `text` at the semicolons and `\G`s that end statements.
pub fn split(text: &str) -> Split {
    let mut statements = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(token) = next(&text[at..]) {
        let end = at + token.length;
        let format = match token.kind {
            Kind::Semicolon => Some(None),
            Kind::Vertical => Some(Some(Format::Vertical)),
            Kind::Other | Kind::Comment => None,
        };
        if let Some(format) = format {
            let sql = text[start..at].trim();
            if !is_blank(sql) {
                statements.push(Statement {
                    sql: sql.to_string(),
                    format,
                });
            }
            start = end;
        }
        at = end;
    }
    Split {
        statements,
        rest: text[start..].to_string(),
    }
}

/// Nothing but blanks and complete comments.
fn is_blank(text: &str) -> bool {
    let mut at = 0;
    while let Some(token) = next(&text[at..]) {
        let piece = &text[at..at + token.length];
        match token.kind {
            // A comment that is not closed goes on.
            Kind::Comment
                if piece.starts_with("/*") && !(piece.len() >= 4 && piece.ends_with("*/")) =>
            {
                return false;
            }
            Kind::Comment => {}
            _ if piece.trim().is_empty() => {}
            _ => return false,
        }
        at += token.length;
    }
    true
}

enum Kind {
    Semicolon,
    Vertical,
    Comment,
    Other,
}

struct Token {
    kind: Kind,
    /// In bytes.
    length: usize,
}

fn next(text: &str) -> Option<Token> {
    let token = |kind, length| Some(Token { kind, length });
    let first = text.chars().next()?;
    match first {
        ';' => token(Kind::Semicolon, 1),
        '\\' if text.starts_with("\\G") => token(Kind::Vertical, 2),
        '\\' if text.starts_with("\\g") => token(Kind::Semicolon, 2),
        '\'' | '"' | '`' => token(Kind::Other, quoted(text, first)),
        '#' => token(Kind::Comment, line(text)),
        // As MySQL has it: `5--3` is a subtraction, a comment needs a blank.
        '-' if text.starts_with("--")
            && text[2..].chars().next().is_none_or(char::is_whitespace) =>
        {
            token(Kind::Comment, line(text))
        }
        '/' if text.starts_with("/*") => token(
            Kind::Comment,
            text[2..].find("*/").map_or(text.len(), |end| end + 4),
        ),
        other => token(Kind::Other, other.len_utf8()),
    }
}

fn line(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

/// Length of a quoted piece, its quotes included; all of the text if it is not closed.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote != '`' {
            chars.next();
        } else if c == quote {
            // A doubled quote is one inside the piece.
            if chars.peek().is_some_and(|(_, c)| *c == quote) {
                chars.next();
            } else {
                return at + quote.len_utf8();
            }
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> (Vec<String>, String) {
        let split = split(text);
        (
            split.statements.into_iter().map(|s| s.sql).collect(),
            split.rest,
        )
    }

    #[test]
    fn semicolons_end_statements_only_where_they_are_meant() {
        for (text, expected, rest) in [
            ("SELECT 1; SELECT 2;", vec!["SELECT 1", "SELECT 2"], ""),
            ("SELECT 1", vec![], "SELECT 1"),
            ("SELECT ';'; x", vec!["SELECT ';'"], " x"),
            ("SELECT 'it''s; so'; ", vec!["SELECT 'it''s; so'"], " "),
            (r"SELECT 'a\';b';", vec![r"SELECT 'a\';b'"], ""),
            (
                r#"SELECT "a\\";"b";"#,
                vec![r#"SELECT "a\\""#, r#""b""#],
                "",
            ),
            (r"SELECT `a\`;b;", vec![r"SELECT `a\`", "b"], ""),
            (
                "SELECT 1 -- no; end\n+ 1;",
                vec!["SELECT 1 -- no; end\n+ 1"],
                "",
            ),
            ("SELECT 5--3;", vec!["SELECT 5--3"], ""),
            ("# a;b\nSELECT 1;", vec!["# a;b\nSELECT 1"], ""),
            ("SELECT /* ; */ 1;", vec!["SELECT /* ; */ 1"], ""),
            (";;  ;", vec![], ""),
            ("SELECT '小;红';", vec!["SELECT '小;红'"], ""),
            ("SELECT 'open;", vec![], "SELECT 'open;"),
        ] {
            let expected: Vec<String> = expected.into_iter().map(String::from).collect();
            assert_eq!(statements(text), (expected, rest.to_string()), "{text}");
        }
    }

    #[test]
    fn backslash_g_asks_for_vertical() {
        let split = split("SELECT 1\\G SELECT 2;SELECT '\\G'\\g");
        let formats: Vec<(&str, Option<Format>)> = split
            .statements
            .iter()
            .map(|s| (s.sql.as_str(), s.format))
            .collect();
        assert_eq!(
            formats,
            [
                ("SELECT 1", Some(Format::Vertical)),
                ("SELECT 2", None),
                ("SELECT '\\G'", None)
            ]
        );
    }

    #[test]
    fn comments_alone_are_no_statement_and_open_ones_go_on() {
        assert!(!split("-- just a note\n").is_open());
        assert!(!split("/* note */ ").is_open());
        assert!(split("/* not closed").is_open());
        assert!(split("SELECT 1 -- not ended").is_open());
        assert_eq!(split("-- a\nSELECT 1 -- b").finish().len(), 1);
        assert!(split("  \n").finish().is_empty());
    }
}
