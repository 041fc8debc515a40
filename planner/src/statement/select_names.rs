//! The names of a query's columns, read from its text.

use datafusion::sql::sqlparser::ast::{Expr, Query, SelectItem, SetExpr, Value};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::OutputNames;
use super::lexing::Source;

/// Words after SELECT that are not yet the first column.
const MODIFIERS: [&str; 11] = [
    "DISTINCT",
    "ALL",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_NO_CACHE",
    "SQL_CACHE",
    "SQL_CALC_FOUND_ROWS",
];

/// Words that end a select list, outside any bracket.
const ENDS: [&str; 15] = [
    "FROM",
    "WHERE",
    "INTO",
    "GROUP",
    "HAVING",
    "QUALIFY",
    "WINDOW",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "FOR",
];

/// The names MySQL gives the columns of `query`, whose tokens start at `tokens`.
pub(super) fn select_names(
    query: &Query,
    tokens: &[TokenWithSpan],
    source: &Source<'_>,
) -> OutputNames {
    match leftmost(&query.body) {
        SetExpr::Select(select) => {
            let texts = item_texts(tokens, source);
            let fits = texts.len() == select.projection.len();
            let names = select.projection.iter().enumerate().map(|(index, item)| {
                let text = texts
                    .get(index)
                    .filter(|_| fits)
                    .map(|text| (*text).to_owned());
                item_name(item, text)
            });
            OutputNames::new(names.collect())
        }
        SetExpr::Values(values) => {
            let width = values.rows.first().map_or(0, |row| row.content.len());
            OutputNames::new(
                (0..width)
                    .map(|column| Some(format!("column_{column}")))
                    .collect(),
            )
        }
        _ => OutputNames::new(vec![None]),
    }
}

fn leftmost(body: &SetExpr) -> &SetExpr {
    match body {
        SetExpr::Query(query) => leftmost(&query.body),
        SetExpr::SetOperation { left, .. } => leftmost(left),
        other => other,
    }
}

fn item_name(item: &SelectItem, text: Option<String>) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expr) => Some(match expr {
            Expr::Identifier(name) => name.value.clone(),
            Expr::CompoundIdentifier(parts)
                if !parts
                    .first()
                    .is_some_and(|part| part.value.starts_with('@')) =>
            {
                parts
                    .last()
                    .map_or_else(String::new, |part| part.value.clone())
            }
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
                _ => text.unwrap_or_else(|| expr.to_string()),
            },
            _ => text.unwrap_or_else(|| expr.to_string()),
        }),
        _ => None,
    }
}

/// The text of each item of the first select list that is not inside a WITH.
fn item_texts<'a>(tokens: &[TokenWithSpan], source: &Source<'a>) -> Vec<&'a str> {
    let tokens: Vec<&TokenWithSpan> = tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)))
        .collect();
    let base = tokens
        .iter()
        .take_while(|token| token.token == Token::LParen)
        .count();
    let mut depth = 0;
    let mut at = 0;
    // To the SELECT.
    while at < tokens.len() && !(depth == base && is_word(tokens[at], "SELECT")) {
        depth = deeper(depth, &tokens[at].token);
        at += 1;
    }
    at += 1;
    while at < tokens.len() && MODIFIERS.iter().any(|word| is_word(tokens[at], word)) {
        at += 1;
    }
    let mut items = Vec::new();
    let mut start = at;
    while at <= tokens.len() {
        let token = tokens.get(at);
        let closes =
            token.is_some_and(|token| depth == base && deeper(depth, &token.token) < depth);
        let ends = match token {
            None => true,
            Some(token) => {
                depth == base
                    && (closes
                        || ENDS.iter().any(|word| is_word(token, word))
                            && !is_distinct_from(&tokens, at))
            }
        };
        let cut = ends || token.is_some_and(|token| depth == base && token.token == Token::Comma);
        if cut {
            if start < at {
                let from = source.offset(tokens[start].span.start);
                let to = source.offset(tokens[at - 1].span.end);
                items.push(source.text()[from..to].trim());
            }
            start = at + 1;
        }
        if ends {
            break;
        }
        if let Some(token) = token {
            depth = deeper(depth, &token.token);
        }
        at += 1;
    }
    items
}

fn is_word(token: &TokenWithSpan, expected: &str) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

/// Whether the FROM at `at` belongs to `IS [NOT] DISTINCT FROM`.
fn is_distinct_from(tokens: &[&TokenWithSpan], at: usize) -> bool {
    at >= 2
        && is_word(tokens[at], "FROM")
        && is_word(tokens[at - 1], "DISTINCT")
        && (is_word(tokens[at - 2], "IS") || is_word(tokens[at - 2], "NOT"))
}

fn deeper(depth: usize, token: &Token) -> usize {
    match token {
        Token::LParen | Token::LBracket | Token::LBrace => depth + 1,
        Token::RParen | Token::RBracket | Token::RBrace => depth.saturating_sub(1),
        _ => depth,
    }
}
