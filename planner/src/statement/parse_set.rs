//! `SET …`: variables of several scopes, NAMES, CHARACTER SET, TRANSACTION, CATALOG.

use datafusion::sql::sqlparser::ast::{self, Expr, SelectItem, SetExpr, UnaryOperator, Value};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::{Cursor, Failure, Parsed};
use super::dialect::TarnDialect;
use super::parse::unsupported;
use super::{Assignment, OutputNames, Query, SessionValue, SetValue, Statement, VariableScope};

/// After the word SET.
pub(super) fn parse_set(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if cursor.is_word("CATALOG") && cursor.parser.peek_nth_token_ref(1).token != Token::Eq {
        cursor.parser.advance_token();
        return Ok(Statement::Use {
            catalog: Some(cursor.name()?),
            database: None,
        });
    }
    for (words, kind) in [
        (&["PASSWORD"] as &[&str], "SET PASSWORD"),
        (&["ROLE"], "SET ROLE"),
        (&["DEFAULT", "ROLE"], "SET DEFAULT ROLE"),
        (&["RESOURCE"], "SET RESOURCE GROUP"),
    ] {
        if cursor.words(words) {
            return Err(unsupported(kind));
        }
    }
    let mut assignments = vec![assignment(cursor)?];
    while cursor.take(&Token::Comma) {
        assignments.push(assignment(cursor)?);
    }
    Ok(Statement::Set(assignments))
}

fn assignment(cursor: &mut Cursor<'_>) -> Parsed<Assignment> {
    if cursor.word("NAMES") {
        let charset = charset(cursor)?;
        let collation = if cursor.word("COLLATE") {
            charset_name(cursor)?
        } else {
            None
        };
        return Ok(Assignment::Names { charset, collation });
    }
    if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
        return Ok(Assignment::CharacterSet {
            charset: charset(cursor)?,
        });
    }
    let mut scope = match cursor.one_of(&["GLOBAL", "SESSION", "LOCAL", "PERSIST"]) {
        Some("GLOBAL" | "PERSIST") => VariableScope::Global,
        Some(_) => VariableScope::Session,
        None => VariableScope::Default,
    };
    if cursor.word("TRANSACTION") {
        return transaction(cursor, scope);
    }
    let mut name = cursor.name()?.to_lowercase();
    if let Some(user_variable) = name.strip_prefix('@').filter(|rest| !rest.starts_with('@')) {
        // `@a` is one word; `@'a b'` is a word `@` and a string.
        let name = if user_variable.is_empty() {
            cursor.string()?.to_lowercase()
        } else {
            user_variable.to_owned()
        };
        assign(cursor)?;
        return Ok(Assignment::UserVariable {
            name,
            value: value(cursor)?,
        });
    }
    if let Some(system) = name.strip_prefix("@@") {
        name = system.to_owned();
        if let Some(named) = scope_of(&name)
            && cursor.take(&Token::Period)
        {
            scope = named;
            name = cursor.name()?.to_lowercase();
        }
    }
    // MySQL's structured variables, and DataFusion's options: `datafusion.execution.batch_size`.
    while cursor.take(&Token::Period) {
        name = format!("{name}.{}", cursor.name()?.to_lowercase());
    }
    assign(cursor)?;
    Ok(Assignment::Variable {
        scope,
        name,
        value: value(cursor)?,
    })
}

/// The scope that a word names, as in `@@session.x`.
pub(super) fn scope_of(word: &str) -> Option<VariableScope> {
    match word.to_lowercase().as_str() {
        "session" | "local" => Some(VariableScope::Session),
        "global" | "persist" => Some(VariableScope::Global),
        _ => None,
    }
}

fn assign(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if cursor.take(&Token::Eq) || cursor.take(&Token::Assignment) {
        Ok(())
    } else {
        cursor.expected("=")
    }
}

fn charset(cursor: &mut Cursor<'_>) -> Parsed<Option<String>> {
    cursor.take(&Token::Eq);
    charset_name(cursor)
}

fn charset_name(cursor: &mut Cursor<'_>) -> Parsed<Option<String>> {
    if cursor.word("DEFAULT") {
        return Ok(None);
    }
    cursor.name().map(|name| Some(name.to_lowercase()))
}

fn transaction(cursor: &mut Cursor<'_>, scope: VariableScope) -> Parsed<Assignment> {
    let (mut isolation, mut read_only) = (None, None);
    loop {
        if cursor.words(&["ISOLATION", "LEVEL"]) {
            isolation = Some(
                if cursor.words(&["READ", "UNCOMMITTED"]) {
                    "READ-UNCOMMITTED"
                } else if cursor.words(&["READ", "COMMITTED"]) {
                    "READ-COMMITTED"
                } else if cursor.words(&["REPEATABLE", "READ"]) {
                    "REPEATABLE-READ"
                } else if cursor.word("SERIALIZABLE") {
                    "SERIALIZABLE"
                } else {
                    return cursor.expected("an isolation level");
                }
                .to_owned(),
            );
        } else if cursor.words(&["READ", "ONLY"]) {
            read_only = Some(true);
        } else if cursor.words(&["READ", "WRITE"]) {
            read_only = Some(false);
        } else {
            return cursor.expected("ISOLATION LEVEL, READ ONLY or READ WRITE");
        }
        if !cursor.take(&Token::Comma) {
            return Ok(Assignment::Transaction {
                scope,
                isolation,
                read_only,
            });
        }
    }
}

fn value(cursor: &mut Cursor<'_>) -> Parsed<SetValue> {
    if cursor.word("DEFAULT") {
        return Ok(SetValue::Default);
    }
    // ON is no expression to sqlparser, and BINARY (`SET character_set_results = BINARY`) is an operator.
    if let Some(word) = cursor.one_of(&["ON", "ALL", "BINARY"]) {
        return Ok(SetValue::Value(SessionValue::Text(word.to_owned())));
    }
    let expression = cursor.expression()?;
    if let Some(value) = literal(&expression) {
        return Ok(SetValue::Value(value));
    }
    select_of(expression).map(SetValue::Expression)
}

fn literal(expression: &Expr) -> Option<SessionValue> {
    Some(match expression {
        Expr::Value(value) => match &value.value {
            Value::Null => SessionValue::Null,
            Value::Boolean(value) => SessionValue::Integer(i64::from(*value)),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                SessionValue::Text(text.clone())
            }
            Value::Number(digits, _) => match digits.parse() {
                Ok(number) => SessionValue::Integer(number),
                Err(_) => SessionValue::Float(digits.parse().ok()?),
            },
            _ => return None,
        },
        Expr::Identifier(word) if !word.value.starts_with('@') => {
            SessionValue::Text(word.value.clone())
        }
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match literal(expr)? {
            SessionValue::Integer(number) => SessionValue::Integer(number.checked_neg()?),
            SessionValue::Float(number) => SessionValue::Float(-number),
            _ => return None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Plus,
            expr,
        }
        | Expr::Nested(expr) => literal(expr)?,
        _ => return None,
    })
}

/// `SELECT <expression>`
fn select_of(expression: Expr) -> Parsed<Query> {
    let dialect = TarnDialect::default();
    let mut query = Parser::new(&dialect)
        .try_with_sql("SELECT 1")?
        .parse_query()?;
    match query.body.as_mut() {
        SetExpr::Select(select) => select.projection = vec![SelectItem::UnnamedExpr(expression)],
        _ => return Err(Failure::Invalid("SET takes an expression".to_owned())),
    }
    let names = OutputNames::new(vec![Some("value".to_owned())]);
    Ok(Query {
        ast: Box::new(ast::Statement::Query(query)),
        names,
        parameters: 0,
    })
}
