//! `FOR VERSION AS OF …` and its kin, read for sqlparser.
//!
//! sqlparser reads one form, `FOR SYSTEM_TIME AS OF <expression>`. So the others are written as it is before parsing,
//! token by token, and a version is told from a time by a mark before its expression:
//!
//! ```text
//!   FOR TIMESTAMP AS OF '2024-01-01'       FOR SYSTEM_TIME AS OF '2024-01-01'
//!   FOR VERSION AS OF 'release'       ──►  FOR SYSTEM_TIME AS OF ‹mark› 'release'  ──►  version('release')
//!   VERSION AS OF 17                       FOR SYSTEM_TIME AS OF ‹mark› 17
//! ```
//! Places stay those of the client's text, so errors and names of columns point there.

use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Query,
    Statement, TableFactor, TableFunctionArgs, TableVersion, Visit, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::ast_build::call;
use super::iceberg_scan::{
    WrittenScan, arguments_before, parse_scan_version, scan_and_version, written_scan,
};

/// Quotes that no text can have.
const MARK: char = '\u{1}';
/// The marks: before a version, and before the arguments of a scan.
const VERSION_MARK: &str = "VERSION";
const SCAN_MARK: &str = "SCAN";
/// The function that stands for a mark in a tree. Nobody can call it: a name with a blank is quoted.
const VERSION_CALL: &str = "version as of";

/// Words that sqlparser takes for the begin of a version as soon as versions are read at all; analysts have them as
/// names.
const OTHER_VERSIONS: [Keyword; 3] = [Keyword::AT, Keyword::BEFORE, Keyword::CHANGES];

/// Writes every version of a statement as sqlparser reads it; says whether there was any.
pub(super) fn mark_versions(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let places: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let word = |nth: Option<usize>, wanted: &str| {
        nth.and_then(|nth| places.get(nth))
            .is_some_and(|at| is_word(&tokens[*at].token, wanted))
    };
    let mut found: Vec<Found> = Vec::new();
    for nth in 0..places.len() {
        let kind = ["VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"]
            .into_iter()
            .find(|kind| word(Some(nth), kind));
        let Some(kind) = kind else { continue };
        if !word(Some(nth + 1), "AS") || !word(Some(nth + 2), "OF") {
            continue;
        }
        let after_for = word(nth.checked_sub(1), "FOR");
        // Without FOR it could be a column `version` that is called `of`.
        let bare = !kind.starts_with("SYSTEM")
            && places
                .get(nth + 3)
                .is_some_and(|at| begins_value(&tokens[*at].token));
        if after_for || bare {
            let first = if after_for { nth - 1 } else { nth };
            found.push(Found {
                kind: places[nth],
                after_for,
                is_version: kind.ends_with("VERSION"),
                of: places[nth + 2],
                // One inside another's arguments is left where it is: there it is refused.
                arguments: arguments_before(tokens, &places, first)
                    .filter(|from| found.last().is_none_or(|last| last.of < *from))
                    .map(|from| from..places[first - 1] + 1),
            });
        }
    }
    if found.is_empty() {
        return false;
    }
    let names: Vec<usize> = (0..places.len())
        .filter(|nth| !(word(Some(*nth), "AT") && word(Some(nth + 1), "TIME")))
        .map(|nth| places[nth])
        .collect();
    for at in names {
        if let Token::Word(name) = &mut tokens[at].token
            && name.quote_style.is_none()
            && OTHER_VERSIONS.contains(&name.keyword)
        {
            name.quote_style = Some('`');
            name.keyword = Keyword::NoKeyword;
        }
    }
    // From the end, so that places before stay.
    for found in found.into_iter().rev() {
        let span = tokens[found.of].span;
        let mark = |name: &str| {
            let word = Word {
                value: name.to_owned(),
                quote_style: Some(MARK),
                keyword: Keyword::NoKeyword,
            };
            TokenWithSpan::new(Token::Word(word), span)
        };
        let mut behind_of = Vec::new();
        if let Some(arguments) = &found.arguments {
            behind_of.push(mark(SCAN_MARK));
            behind_of.extend_from_slice(&tokens[arguments.clone()]);
        }
        if found.is_version {
            behind_of.push(mark(VERSION_MARK));
        }
        tokens.splice(found.of + 1..found.of + 1, behind_of);
        let span = tokens[found.kind].span;
        tokens[found.kind].token = Token::make_keyword("SYSTEM_TIME");
        if !found.after_for {
            let word = TokenWithSpan::new(Token::make_keyword("FOR"), span);
            tokens.insert(found.kind, word);
        }
        if let Some(arguments) = found.arguments {
            tokens.drain(arguments);
        }
    }
    true
}

/// A version among the tokens.
struct Found {
    /// Where the word is that says of which kind it is.
    kind: usize,
    /// Whether FOR stands before it.
    after_for: bool,
    /// A version, or else a time.
    is_version: bool,
    /// Where OF is.
    of: usize,
    /// The arguments of the scan that it belongs to, parentheses and all.
    arguments: Option<Range<usize>>,
}

fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn begins_value(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::Placeholder(_)
    ) || is_word(token, "TIMESTAMP")
        || matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.starts_with('@'))
}

/// The version behind a mark, if one is next.
pub(super) fn parse_marked(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let is_scan = match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style == Some(MARK) => word.value == SCAN_MARK,
        _ => return None,
    };
    parser.next_token();
    Some(if is_scan {
        parse_scan_version(parser, |parser| {
            parse_marked(parser).unwrap_or_else(|| parser.parse_expr())
        })
    } else {
        let version = parser.parse_prefix();
        version.map(|version| call(VERSION_CALL, vec![version]))
    })
}

/// What stands behind `AS OF`.
#[derive(Debug, Clone, PartialEq)]
pub enum WrittenVersion {
    /// A snapshot's id, or the name of a branch or tag.
    Version(Expr),
    /// A time.
    Time(Expr),
}

/// A table in FROM whose name or version only a catalog can make sense of.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenTable {
    /// The parts of its name.
    pub name: Vec<String>,
    pub version: Option<WrittenVersion>,
    /// The name is that of a common table expression.
    pub is_cte: bool,
    /// It is called as a function.
    pub is_function: bool,
    /// It is a call of `iceberg_scan`.
    pub scan: Option<WrittenScan>,
}

/// The scan and the version of a table in FROM, if it is one or has one.
fn scan_and_versions(
    name: &ObjectName,
    args: &Option<TableFunctionArgs>,
    version: &Option<TableVersion>,
) -> (Option<WrittenScan>, Option<WrittenVersion>) {
    let scan = args
        .as_ref()
        .and_then(|args| written_scan(name, &args.args));
    let Some(TableVersion::ForSystemTimeAsOf(value)) = version else {
        return (scan, None);
    };
    let (scan, value) = match scan_and_version(value) {
        Some((scan, value)) => (Some(scan), value),
        None => (scan, value),
    };
    let version = match marked_value(value) {
        Some(version) => WrittenVersion::Version(version.clone()),
        None => WrittenVersion::Time(value.clone()),
    };
    (scan, Some(version))
}

/// The tables of a query that `wanted` takes by their names, and those with a version, in the order of the text.
pub fn written_tables(
    statement: &Statement,
    wanted: impl Fn(&[String]) -> bool,
) -> Vec<WrittenTable> {
    let mut collector = Collector {
        wanted,
        found: Vec::new(),
        scopes: Vec::new(),
    };
    let _ = statement.visit(&mut collector);
    collector.found
}

/// Puts `names` in the place of the tables that [`written_tables`] found, by the same `wanted`; `None` leaves one as
/// it is.
pub fn rename_tables(
    statement: &mut Statement,
    wanted: impl Fn(&[String]) -> bool,
    names: Vec<Option<NewName>>,
) {
    let mut renamer = Renamer {
        wanted,
        names: names.into_iter(),
    };
    let _ = statement.visit(&mut renamer);
}

/// How a table is called from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct NewName {
    /// Its full name, each part as it stands.
    pub parts: Vec<String>,
    /// What the query calls it, if it gives it no name itself.
    pub alias: String,
}

fn parts(name: &ObjectName) -> Option<Vec<String>> {
    name.0
        .iter()
        .map(|part| part.as_ident().map(|ident| ident.value.clone()))
        .collect()
}

struct Collector<W> {
    wanted: W,
    found: Vec<WrittenTable>,
    scopes: Vec<Scope>,
}

/// The common table expressions of a query around the one that is looked at. Their own queries come before its body.
struct Scope {
    names: Vec<String>,
    recursive: bool,
    /// How many of their queries are behind.
    done: usize,
}

impl<W: Fn(&[String]) -> bool> Visitor for Collector<W> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let (names, recursive) = match &query.with {
            Some(with) => (
                with.cte_tables
                    .iter()
                    .map(|cte| cte.alias.name.value.to_lowercase())
                    .collect(),
                with.recursive,
            ),
            None => (Vec::new(), false),
        };
        self.scopes.push(Scope {
            names,
            recursive,
            done: 0,
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.scopes.pop();
        // It was the query of a common table expression, as long as the one around it has any left.
        if let Some(around) = self.scopes.last_mut()
            && around.done < around.names.len()
        {
            around.done += 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let TableFactor::Table {
            name,
            version,
            args,
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let (scan, written_version) = scan_and_versions(name, args, version);
        let Some(name) = parts(name) else {
            return ControlFlow::Continue(());
        };
        if version.is_none() && scan.is_none() && !(self.wanted)(&name) {
            return ControlFlow::Continue(());
        }
        let is_cte = name.len() == 1
            && self
                .scopes
                .iter()
                .any(|scope| scope.sees(&name[0].to_lowercase()));
        self.found.push(WrittenTable {
            name,
            version: written_version,
            is_cte,
            is_function: args.is_some(),
            scan,
        });
        ControlFlow::Continue(())
    }
}

impl Scope {
    /// Whether a query inside sees a common table expression of that name: one that was written before it, or itself.
    fn sees(&self, name: &str) -> bool {
        let before = match self.recursive {
            true => self.names.len().min(self.done + 1),
            false => self.done,
        };
        self.names.iter().take(before).any(|known| known == name)
    }
}

fn marked_value(expr: &Expr) -> Option<&Expr> {
    let Expr::Function(Function { name, args, .. }) = expr else {
        return None;
    };
    let is_mark = matches!(name.0.as_slice(), [part]
        if part.as_ident().is_some_and(|ident| ident.value == VERSION_CALL));
    match args {
        FunctionArguments::List(list) if is_mark => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] => Some(value),
            _ => None,
        },
        _ => None,
    }
}

struct Renamer<W> {
    wanted: W,
    names: std::vec::IntoIter<Option<NewName>>,
}

impl<W: Fn(&[String]) -> bool> VisitorMut for Renamer<W> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table {
            name,
            alias,
            version,
            args,
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let (scan, _) = scan_and_versions(name, args, version);
        let Some(written) = parts(name) else {
            return ControlFlow::Continue(());
        };
        if version.is_none() && scan.is_none() && !(self.wanted)(&written) {
            return ControlFlow::Continue(());
        }
        let Some(new) = self.names.next().flatten() else {
            return ControlFlow::Continue(());
        };
        let quoted = |text: String| Ident::with_quote('`', text);
        *version = None;
        if scan.is_some() {
            *args = None;
        }
        *name = ObjectName::from(new.parts.into_iter().map(quoted).collect::<Vec<_>>());
        alias.get_or_insert_with(|| datafusion::sql::sqlparser::ast::TableAlias {
            explicit: true,
            name: quoted(new.alias),
            columns: Vec::new(),
            at: None,
        });
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Statement as Parsed, parse_statement};

    fn query(sql: &str) -> Statement {
        match parse_statement(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
            .statement
        {
            Parsed::Query(query) => *query.ast,
            Parsed::Insert { source, .. } => *source.ast,
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// `name version` of each table with a version.
    fn versions(sql: &str) -> Vec<String> {
        written_tables(&query(sql), |_| false)
            .into_iter()
            .map(|table| {
                let version = match table.version {
                    Some(WrittenVersion::Version(value)) => format!("version {value}"),
                    Some(WrittenVersion::Time(value)) => format!("time {value}"),
                    None => "none".to_owned(),
                };
                let cte = if table.is_cte { " (cte)" } else { "" };
                format!("{} {version}{cte}", table.name.join("."))
            })
            .collect()
    }

    #[test]
    fn every_form_is_read() {
        for (sql, found) in [
            ("select * from t for version as of 17", "t version 17"),
            (
                "select * from a.t FOR VERSION AS OF 'rel' x",
                "a.t version 'rel'",
            ),
            (
                "select * from t for system_version as of \"b\" as x",
                "t version \"b\"",
            ),
            (
                "select * from t version as of 'b' where a = 1",
                "t version 'b'",
            ),
            ("select * from t version as of 17 x", "t version 17"),
            ("select * from t for version as of ?", "t version $1"),
            ("select * from t for version as of @v", "t version @v"),
            ("select * from t for version as of -3", "t version -3"),
            (
                "select * from t for timestamp as of '2024-01-01 10:00:00'",
                "t time '2024-01-01 10:00:00'",
            ),
            (
                "select * from t for system_time as of now()",
                "t time now()",
            ),
            (
                "select * from t for timestamp as of now() - interval 1 day x join u on x.a = u.a",
                "t time now() - INTERVAL 1 DAY",
            ),
            (
                "select * from t timestamp as of '2024-01-01' x",
                "t time '2024-01-01'",
            ),
            (
                "select * from t timestamp as of timestamp '2024-01-01 00:00:00'",
                "t time TIMESTAMP '2024-01-01 00:00:00'",
            ),
            (
                "insert into u select * from t for version as of 3",
                "t version 3",
            ),
        ] {
            assert_eq!(versions(sql), [found], "{sql}");
        }
    }

    #[test]
    fn each_table_has_its_own() {
        assert_eq!(
            versions(
                "with old as (select * from t for version as of 1) select (select max(a) from t for version as of 2) \
                 from t for timestamp as of '2024-01-01' x left join t for version as of 'b' y on x.a = y.a, old \
                 where x.a in (select a from t version as of 3)"
            ),
            [
                "t version 1",
                "t version 2",
                "t time '2024-01-01'",
                "t version 'b'",
                "t version 3"
            ]
        );
    }

    #[test]
    fn a_name_is_a_common_table_expressions_only_where_it_is_seen() {
        for (sql, found) in [
            // Inside, it still is the table.
            (
                "with t as (select * from t for version as of 1) select * from t",
                vec!["t version 1"],
            ),
            (
                "with t as (select 1 a) select * from T for version as of 1",
                vec!["T version 1 (cte)"],
            ),
            (
                "with a as (select 1), b as (select * from a for version as of 1) select * from b",
                vec!["a version 1 (cte)"],
            ),
            (
                "with b as (select * from a for version as of 1), a as (select 1) select * from b",
                vec!["a version 1"],
            ),
            (
                "with t as (select 1) select * from (select * from t for version as of 2) x",
                vec!["t version 2 (cte)"],
            ),
            (
                "with t as (select 1) select * from db.t for version as of 2",
                vec!["db.t version 2"],
            ),
            (
                "select * from (with t as (select 1) select * from t) x join t for version as of 2",
                vec!["t version 2"],
            ),
        ] {
            assert_eq!(versions(sql), found, "{sql}");
        }
    }

    #[test]
    fn words_stay_names() {
        for sql in [
            "select version as of from t",
            "select timestamp as of, version from t version",
            "select at.a, before.b from t at join t before on at.a = before.a",
            "select * from t at for update",
        ] {
            assert_eq!(versions(sql), Vec::<String>::new(), "{sql}");
        }
        let sql = "select at.a from t for version as of 1 at join u changes on at.a = changes.a \
                   where at.b at time zone 'UTC' > '2024-01-01'";
        assert_eq!(versions(sql), ["t version 1"], "{sql}");
    }

    #[test]
    fn renamed_tables_keep_the_names_that_columns_are_qualified_by() {
        let mut statement = query(
            "select t.a from t for version as of 1 join db.u x on t.a = x.a join t for version as of 2 as y on y.a = x.a",
        );
        let new = |name: &str| {
            Some(NewName {
                parts: vec!["lake".into(), "db".into(), name.into()],
                alias: "t".into(),
            })
        };
        rename_tables(&mut statement, |_| false, vec![new("t one"), new("t two")]);
        assert_eq!(
            statement.to_string(),
            "SELECT t.a FROM `lake`.`db`.`t one` AS `t` JOIN db.u x ON t.a = x.a JOIN `lake`.`db`.`t two` AS y ON y.a = x.a"
        );
    }
}
