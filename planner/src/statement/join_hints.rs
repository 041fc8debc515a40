//! Hints for how a join is distributed.
//!
//! ```text
//!   FROM a JOIN [BROADCAST] b x ON …    ──►   SELECT /*+ BROADCAST(`x`) */ … FROM a JOIN b x ON …
//! ```
//! StarRocks' hint stands between JOIN and the table; sqlparser knows comments behind SELECT only, so the one is written
//! as the other, token by token. A comment's hint names tables as the query does; such a table is put into brackets that
//! are called by the hint, for [`HintedRelations`](crate::hints::HintedRelations) to find.

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectNamePart, Select, TableAlias, TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

use super::RewriteError;
use crate::hints::JoinHint;

/// Quotes that no text can have.
pub(crate) const HINT_QUOTE: char = '\u{2}';

/// Writes each `JOIN [HINT] t` as a comment behind its SELECT.
pub(super) fn mark_join_hints(tokens: &mut Vec<TokenWithSpan>) {
    let places: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let token = |nth: usize| places.get(nth).map(|at| &tokens[*at].token);
    // The SELECT of each bracket that is open.
    let mut selects: Vec<Option<usize>> = vec![None];
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    for (nth, place) in places.iter().enumerate() {
        match token(nth) {
            Some(Token::LParen) => selects.push(selects.last().copied().flatten()),
            Some(Token::RParen) if selects.len() > 1 => {
                selects.pop();
            }
            Some(Token::Word(word)) if word.keyword == Keyword::SELECT => {
                if let Some(select) = selects.last_mut() {
                    *select = Some(*place);
                }
            }
            Some(Token::Word(word)) if word.keyword == Keyword::JOIN => {
                let (Some(Token::LBracket), Some(Token::Word(hint)), Some(Token::RBracket)) =
                    (token(nth + 1), token(nth + 2), token(nth + 3))
                else {
                    continue;
                };
                if let (Some(_), Some(name), Some(Some(select))) = (
                    JoinHint::named(&hint.value),
                    name_of_relation(&token, nth + 4),
                    selects.last(),
                ) {
                    found.push((*select, nth + 1, format!("+ {}(`{name}`) ", hint.value)));
                }
            }
            _ => {}
        }
    }
    for (_, bracket, _) in &found {
        for at in &places[*bracket..bracket + 3] {
            tokens[*at].token = Token::Whitespace(Whitespace::Space);
        }
    }
    // From the end, so that places before stay.
    found.sort_by_key(|(select, ..)| std::cmp::Reverse(*select));
    for (select, _, hint) in found {
        let span = tokens[select].span;
        let comment = Token::Whitespace(Whitespace::MultiLineComment(hint));
        tokens.insert(select + 1, TokenWithSpan::new(comment, span));
    }
}

/// What the relation that begins there is called in its query.
fn name_of_relation<'a>(
    token: &impl Fn(usize) -> Option<&'a Token>,
    mut nth: usize,
) -> Option<String> {
    let mut name = None;
    if matches!(token(nth), Some(Token::LParen)) {
        let mut open = 0;
        loop {
            match token(nth)? {
                Token::LParen => open += 1,
                Token::RParen => open -= 1,
                _ => {}
            }
            nth += 1;
            if open == 0 {
                break;
            }
        }
    } else {
        loop {
            let Token::Word(word) = token(nth)? else {
                return None;
            };
            name = Some(word.value.clone());
            nth += 1;
            if !matches!(token(nth), Some(Token::Period)) {
                break;
            }
            nth += 1;
        }
    }
    let explicit = matches!(token(nth), Some(Token::Word(word)) if word.keyword == Keyword::AS);
    match token(nth + usize::from(explicit)) {
        Some(Token::Word(alias))
            if explicit || alias.quote_style.is_some() || alias.keyword == Keyword::NoKeyword =>
        {
            Some(alias.value.clone())
        }
        _ => name,
    }
}

/// Puts the tables that a SELECT's hints name into brackets that are called by the hint.
pub(super) fn apply_hints(select: &mut Select) -> Result<(), RewriteError> {
    let hints: Vec<(JoinHint, String)> = std::mem::take(&mut select.optimizer_hints)
        .into_iter()
        .filter(|hint| hint.prefix.is_empty())
        .flat_map(|hint| parse_hints(&hint.text))
        .collect();
    for (hint, name) in hints {
        let relations: usize = select.from.iter().map(|from| 1 + from.joins.len()).sum();
        if relations < 2 {
            return Err(RewriteError::Hint(format!(
                "hint {hint}: '{name}' is joined with nothing"
            )));
        }
        let found = select.from.iter_mut().find_map(|from| find(from, &name));
        let Some(factor) = found else {
            return Err(RewriteError::Hint(format!(
                "hint {hint}: there is no table '{name}' in its SELECT"
            )));
        };
        let relation = std::mem::replace(factor, nothing());
        *factor = TableFactor::NestedJoin {
            table_with_joins: Box::new(TableWithJoins {
                relation,
                joins: Vec::new(),
            }),
            alias: Some(TableAlias {
                explicit: true,
                name: Ident {
                    value: hint.to_string().to_lowercase(),
                    quote_style: Some(HINT_QUOTE),
                    span: Span::empty(),
                },
                columns: Vec::new(),
                at: None,
            }),
        };
    }
    Ok(())
}

/// Stands for a relation while it is moved.
fn nothing() -> TableFactor {
    TableFactor::NestedJoin {
        table_with_joins: Box::new(TableWithJoins {
            relation: TableFactor::UNNEST {
                alias: None,
                array_exprs: Vec::new(),
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            },
            joins: Vec::new(),
        }),
        alias: None,
    }
}

/// The hints of a comment that are about joins, each with a table; others are for other engines.
fn parse_hints(text: &str) -> Vec<(JoinHint, String)> {
    let mut hints = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('(') {
        let Some((arguments, after)) = after.split_once(')') else {
            break;
        };
        let word = before
            .trim_end()
            .rsplit(|c: char| c.is_whitespace() || c == ',')
            .next();
        if let Some(hint) = word.and_then(JoinHint::named) {
            let names = arguments.split([',', ' ', '\n', '\t']);
            hints.extend(
                names
                    .map(|name| name.trim_matches(['`', '"']))
                    .filter(|name| !name.is_empty())
                    .map(|name| (hint, name.to_owned())),
            );
        }
        rest = after;
    }
    hints
}

fn find<'a>(from: &'a mut TableWithJoins, name: &str) -> Option<&'a mut TableFactor> {
    std::iter::once(&mut from.relation)
        .chain(from.joins.iter_mut().map(|join| &mut join.relation))
        .find_map(|factor| find_in(factor, name))
}

/// Whether a relation is called by its hint.
pub(super) fn is_hinted(alias: &TableAlias) -> bool {
    alias.name.quote_style == Some(HINT_QUOTE)
}

fn find_in<'a>(factor: &'a mut TableFactor, name: &str) -> Option<&'a mut TableFactor> {
    let called = match &*factor {
        TableFactor::Table {
            alias: None, name, ..
        } => name.0.last().and_then(ObjectNamePart::as_ident).cloned(),
        TableFactor::NestedJoin { alias: None, .. } => None,
        TableFactor::NestedJoin {
            alias: Some(alias), ..
        } if is_hinted(alias) => None,
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_ref().map(|alias| alias.name.clone()),
        _ => None,
    };
    if called.is_some_and(|called| called.value.eq_ignore_ascii_case(name)) {
        return Some(factor);
    }
    match factor {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => find(table_with_joins, name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_of_comments_are_about_tables() {
        assert_eq!(
            parse_hints(" BROADCAST(a, `b`) SET_VAR(query_timeout = 1), shuffle(c) "),
            [
                (JoinHint::Broadcast, "a".to_owned()),
                (JoinHint::Broadcast, "b".to_owned()),
                (JoinHint::Shuffle, "c".to_owned()),
            ]
        );
        assert_eq!(parse_hints("nothing of the kind"), []);
        assert_eq!(parse_hints("BROADCAST(a"), []);
    }
}
