//! Text to tokens: conditional comments opened, places remembered, one run of tokens for each statement.
//!
//! ```text
//! SELECT /*!40001 SQL_NO_CACHE */ ?; -- note        SELECT          SQL_NO_CACHE    ?; -- note
//! ────────────── as sent ──────────────      ──►    ────── same length: places stay true ──────
//! ```
//! MySQL runs what stands in `/*!40100 … */` when the version is not above its own, and MariaDB what stands in
//! `/*M!100100 … */`: the first is blanked around, the second stays the comment it is.

use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::tokenizer::{
    Location, Token, TokenWithSpan, Tokenizer, Whitespace,
};

use super::join_hints::mark_join_hints;
use super::time_travel::mark_versions;
use super::{ParseError, Position};

/// The newest MySQL whose conditional comments are run (8.4.99 as MySQL writes versions).
const CONDITIONAL_COMMENT_VERSION: u32 = 80_499;
/// Longest extract of the text shown in an error, in characters (MySQL shows 80).
const NEAR_CHARACTERS: usize = 80;

/// A text and where its lines begin.
pub(super) struct Source<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Source<'a> {
        let line_starts = std::iter::once(0)
            .chain(
                text.bytes()
                    .enumerate()
                    .filter(|(_, b)| *b == b'\n')
                    .map(|(at, _)| at + 1),
            )
            .collect();
        Source { text, line_starts }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The byte offset of a location; the text's end for one that lies outside (the tokenizer's end of file is 0:0).
    pub(super) fn offset(&self, location: Location) -> usize {
        let line = match usize::try_from(location.line) {
            Ok(line) if line > 0 => line - 1,
            _ => return self.text.len(),
        };
        let Some(&start) = self.line_starts.get(line) else {
            return self.text.len();
        };
        let skip = usize::try_from(location.column)
            .unwrap_or(usize::MAX)
            .saturating_sub(1);
        self.text[start..]
            .char_indices()
            .nth(skip)
            .map_or(self.text.len(), |(at, _)| start + at)
    }

    /// A syntax error at a byte offset.
    pub(super) fn error_at(&self, offset: usize, reason: String) -> ParseError {
        let offset = offset.min(self.text.len());
        let line = self
            .line_starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1);
        let column = self.text[self.line_starts[line]..offset].chars().count() + 1;
        let near: String = self.text[offset..]
            .trim_end()
            .chars()
            .take(NEAR_CHARACTERS)
            .collect();
        ParseError::Syntax {
            position: Position {
                line: line as u64 + 1,
                column: column as u64,
            },
            near,
            reason,
        }
    }
}

/// The tokens of one statement, without the `;`.
pub(super) struct Run {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Byte range of the statement's own text in the source.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Nothing but comments.
    pub(super) only_comments: bool,
    /// How many `?`; they are numbered `$1`, `$2`, … in the tokens.
    pub(super) parameters: usize,
    /// Whether it reads tables as they were.
    pub(super) versions: bool,
}

/// Cuts a text into statements.
pub(super) fn lex(source: &Source<'_>, dialect: &dyn Dialect) -> Result<Vec<Run>, ParseError> {
    let opened = open_conditional_comments(source.text());
    let tokens = Tokenizer::new(dialect, &opened)
        .tokenize_with_location()
        .map_err(|error| source.error_at(source.offset(error.location), error.message))?;
    let mut runs = Vec::new();
    let mut current = Vec::new();
    for token in tokens {
        match token.token {
            Token::SemiColon => runs.extend(finish_run(source, std::mem::take(&mut current))),
            Token::EOF => {}
            _ => current.push(token),
        }
    }
    runs.extend(finish_run(source, current));
    Ok(runs)
}

fn finish_run(source: &Source<'_>, mut tokens: Vec<TokenWithSpan>) -> Option<Run> {
    let is_space = |token: &TokenWithSpan| {
        matches!(
            token.token,
            Token::Whitespace(Whitespace::Space | Whitespace::Newline | Whitespace::Tab)
        )
    };
    let first = tokens.iter().find(|token| !is_space(token))?;
    let last = tokens.iter().rfind(|token| !is_space(token))?;
    let (start, end) = (
        source.offset(first.span.start),
        source.offset(last.span.end),
    );
    let only_comments = tokens
        .iter()
        .all(|token| matches!(token.token, Token::Whitespace(_)));
    let mut parameters = 0;
    for token in &mut tokens {
        if let Token::Placeholder(text) = &mut token.token
            && text == "?"
        {
            parameters += 1;
            *text = format!("${parameters}");
        }
    }
    mark_join_hints(&mut tokens);
    let versions = mark_versions(&mut tokens);
    Some(Run {
        tokens,
        start,
        end,
        only_comments,
        parameters,
        versions,
    })
}

/// Blanks the brackets of conditional comments that are to be run, leaving every other character where it was.
fn open_conditional_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    let mut inside = false;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => at = end_of_quoted(bytes, at, quote),
            b'#' => at = end_of_line(bytes, at),
            b'-' if bytes[at..].starts_with(b"--")
                && bytes.get(at + 2).is_none_or(u8::is_ascii_whitespace) =>
            {
                at = end_of_line(bytes, at);
            }
            b'/' if bytes[at..].starts_with(b"/*!") => {
                let digits = bytes[at + 3..]
                    .iter()
                    .take(6)
                    .take_while(|b| b.is_ascii_digit())
                    .count();
                let version = text[at + 3..at + 3 + digits].parse::<u32>().unwrap_or(0);
                if version <= CONDITIONAL_COMMENT_VERSION {
                    out[at..at + 3 + digits].fill(b' ');
                    inside = true;
                    at += 3 + digits;
                } else {
                    at = end_of_comment(bytes, at);
                }
            }
            b'/' if bytes[at..].starts_with(b"/*") => at = end_of_comment(bytes, at),
            b'*' if inside && bytes[at..].starts_with(b"*/") => {
                out[at..at + 2].fill(b' ');
                inside = false;
                at += 2;
            }
            _ => at += 1,
        }
    }
    // Only whole ASCII characters were replaced, by ASCII.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn end_of_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_line(bytes: &[u8], start: usize) -> usize {
    bytes[start..]
        .iter()
        .position(|b| *b == b'\n')
        .map_or(bytes.len(), |at| start + at + 1)
}

fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    bytes[start + 2..]
        .windows(2)
        .position(|pair| pair == b"*/")
        .map_or(bytes.len(), |at| start + at + 4)
}

#[cfg(test)]
mod tests {
    use super::super::dialect::TarnDialect;
    use super::*;

    fn texts(sql: &str) -> Vec<&str> {
        let source = Source::new(sql);
        let runs = lex(&source, &TarnDialect::default()).unwrap();
        runs.iter().map(|run| &sql[run.start..run.end]).collect()
    }

    #[test]
    fn statements_are_cut_at_semicolons_that_are_not_quoted() {
        assert_eq!(
            texts("select ';' ; select `a;b`;;\n select 2"),
            ["select ';'", "select `a;b`", "select 2"]
        );
        assert_eq!(texts(" \n "), Vec::<&str>::new());
        assert_eq!(
            texts("select 1 -- a; b\n; select 'ä'"),
            ["select 1 -- a; b\n", "select 'ä'"]
        );
    }

    #[test]
    fn conditional_comments_are_run_by_version() {
        assert_eq!(
            open_conditional_comments("/*!40100 SET x */"),
            "         SET x   "
        );
        assert_eq!(open_conditional_comments("a /*! b */ c"), "a     b    c");
        for kept in [
            "/*M!100100 SET x */",
            "/*!100100 SET x */",
            "/* plain */",
            "'/*!40100 x */'",
            "# /*!1 x */",
        ] {
            assert_eq!(open_conditional_comments(kept), kept);
        }
        assert_eq!(
            open_conditional_comments("/*!40100 a /* b */"),
            "         a /* b */"
        );
    }

    #[test]
    fn parameters_are_numbered_in_the_order_of_the_text() {
        let source = Source::new("select ? from t where a = ? limit ?");
        let runs = lex(&source, &TarnDialect::default()).unwrap();
        assert_eq!(runs[0].parameters, 3);
        let placeholders: Vec<String> = runs[0]
            .tokens
            .iter()
            .filter_map(|token| match &token.token {
                Token::Placeholder(text) => Some(text.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(placeholders, ["$1", "$2", "$3"]);
    }

    #[test]
    fn an_unclosed_string_is_an_error_with_its_place() {
        let source = Source::new("select 1,\n  'abc");
        let Err(ParseError::Syntax { position, .. }) = lex(&source, &TarnDialect::default()) else {
            panic!("not refused")
        };
        assert_eq!(position, Position { line: 2, column: 3 });
    }
}
