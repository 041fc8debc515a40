//! Reading a statement word by word: what the hand-written parsers stand on.
//!
//! Many of the words (`WORKERS`, `ESTIMATE`, `CATALOGS`) are no keywords to sqlparser, so words are compared as text.

use datafusion::sql::sqlparser::ast::{Expr, ObjectName};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::chains::tame_expression;
use super::{DatabaseName, ObjectPath, ShowFilter};

/// Why a statement could not be read; turned into a [`ParseError`](super::ParseError) where the text is known.
pub(super) enum Failure {
    Syntax(ParserError),
    Invalid(String),
    /// Good SQL that is not done: becomes a statement, so that it is audited under its own name.
    Unsupported {
        kind: &'static str,
        detail: String,
    },
}

impl From<ParserError> for Failure {
    fn from(error: ParserError) -> Failure {
        Failure::Syntax(error)
    }
}

pub(super) type Parsed<T> = Result<T, Failure>;

/// A position in one statement's tokens.
pub(super) struct Cursor<'a> {
    pub(super) parser: Parser<'a>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(parser: Parser<'a>) -> Cursor<'a> {
        Cursor { parser }
    }

    /// Whether the n-th token from here is this word, unquoted.
    pub(super) fn is_word_at(&self, n: usize, expected: &str) -> bool {
        matches!(&self.parser.peek_nth_token_ref(n).token,
            Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
    }

    pub(super) fn is_word(&self, expected: &str) -> bool {
        self.is_word_at(0, expected)
    }

    /// Takes the word if it is next.
    pub(super) fn word(&mut self, expected: &str) -> bool {
        let found = self.is_word(expected);
        if found {
            self.parser.advance_token();
        }
        found
    }

    /// Takes the words if they are next, all or none.
    pub(super) fn words(&mut self, expected: &[&str]) -> bool {
        let found = expected
            .iter()
            .enumerate()
            .all(|(n, word)| self.is_word_at(n, word));
        if found {
            expected.iter().for_each(|_| self.parser.advance_token());
        }
        found
    }

    /// Takes the first of these words that is next.
    pub(super) fn one_of(&mut self, expected: &[&'static str]) -> Option<&'static str> {
        expected.iter().copied().find(|word| self.word(word))
    }

    pub(super) fn expect_word(&mut self, expected: &str) -> Parsed<()> {
        if self.word(expected) {
            Ok(())
        } else {
            self.expected(expected)
        }
    }

    /// The next token is not what should stand there.
    pub(super) fn expected<T>(&self, what: &str) -> Parsed<T> {
        Ok(self
            .parser
            .expected_ref(what, self.parser.peek_token_ref())?)
    }

    pub(super) fn take(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    pub(super) fn expect(&mut self, token: &Token) -> Parsed<()> {
        self.parser.expect_token(token)?;
        Ok(())
    }

    pub(super) fn is(&self, token: &Token) -> bool {
        &self.parser.peek_token_ref().token == token
    }

    pub(super) fn at_end(&self) -> bool {
        self.is(&Token::EOF)
    }

    pub(super) fn expect_end(&self) -> Parsed<()> {
        if self.at_end() {
            Ok(())
        } else {
            self.expected("the end of the statement")
        }
    }

    /// An identifier, quoted or not.
    pub(super) fn name(&mut self) -> Parsed<String> {
        Ok(self.parser.parse_identifier()?.value)
    }

    /// A string in single or double quotes.
    pub(super) fn string(&mut self) -> Parsed<String> {
        match &self.parser.peek_token_ref().token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                let text = text.clone();
                self.parser.advance_token();
                Ok(text)
            }
            _ => self.expected("a quoted string"),
        }
    }

    /// A number, or a word that is taken as it stands.
    pub(super) fn unsigned(&mut self) -> Parsed<u64> {
        if let Token::Number(digits, _) = &self.parser.peek_token_ref().token
            && let Ok(number) = digits.parse()
        {
            self.parser.advance_token();
            return Ok(number);
        }
        self.expected("a whole number")
    }

    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        let mut expression = self.parser.parse_expr()?;
        tame_expression(&mut expression)?;
        Ok(expression)
    }

    /// `[[catalog.]database.]table`
    pub(super) fn object_path(&mut self) -> Parsed<ObjectPath> {
        let name = self.parser.parse_object_name(false)?;
        object_path(&name)
    }

    /// `[catalog.]database`
    pub(super) fn database_name(&mut self) -> Parsed<DatabaseName> {
        let mut parts = name_parts(&self.parser.parse_object_name(false)?)?;
        match (parts.pop(), parts.pop(), parts.pop()) {
            (Some(database), catalog, None) => Ok(DatabaseName { catalog, database }),
            _ => Err(Failure::Invalid(
                "a database's name has at most two parts: catalog.database".to_owned(),
            )),
        }
    }

    /// `IF EXISTS`
    pub(super) fn if_exists(&mut self) -> bool {
        self.words(&["IF", "EXISTS"])
    }

    /// `IF NOT EXISTS`
    pub(super) fn if_not_exists(&mut self) -> bool {
        self.words(&["IF", "NOT", "EXISTS"])
    }

    /// `[LIKE 'pattern' | WHERE expression]`
    pub(super) fn filter(&mut self) -> Parsed<Option<ShowFilter>> {
        if self.word("LIKE") {
            return Ok(Some(ShowFilter::Like(self.string()?)));
        }
        if self.word("WHERE") {
            return Ok(Some(ShowFilter::Where(Box::new(self.expression()?))));
        }
        Ok(None)
    }

    /// `("key" = "value", …)`, with names, strings, numbers and bare words on either side.
    pub(super) fn properties(&mut self) -> Parsed<Vec<(String, String)>> {
        self.expect(&Token::LParen)?;
        let mut properties = Vec::new();
        while !self.take(&Token::RParen) {
            let mut key = self.property_text("a property's name")?;
            while self.take(&Token::Period) {
                key = format!("{key}.{}", self.property_text("a property's name")?);
            }
            self.expect(&Token::Eq)?;
            properties.push((key, self.property_text("a property's value")?));
            if !self.take(&Token::Comma) {
                self.expect(&Token::RParen)?;
                break;
            }
        }
        Ok(properties)
    }

    fn property_text(&mut self, what: &str) -> Parsed<String> {
        let text = match &self.parser.peek_token_ref().token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text.clone(),
            Token::Word(word) => word.value.clone(),
            Token::Number(digits, _) => digits.clone(),
            _ => return self.expected(what),
        };
        self.parser.advance_token();
        Ok(text)
    }
}

/// A parsed name as a path of at most three parts.
pub(super) fn object_path(name: &ObjectName) -> Parsed<ObjectPath> {
    let mut parts = name_parts(name)?;
    match (parts.pop(), parts.pop(), parts.pop(), parts.pop()) {
        (Some(table), database, catalog, None) => Ok(ObjectPath {
            catalog,
            database,
            table,
        }),
        _ => Err(Failure::Invalid(format!(
            "`{name}` has too many parts: a table is catalog.database.table"
        ))),
    }
}

fn name_parts(name: &ObjectName) -> Parsed<Vec<String>> {
    name.0
        .iter()
        .map(|part| {
            part.as_ident()
                .map(|ident| ident.value.clone())
                .ok_or_else(|| Failure::Invalid(format!("`{name}` is not a name")))
        })
        .collect()
}
