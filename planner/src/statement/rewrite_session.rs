//! What an expression asks of its session becomes a literal, so that a plan means the same on every worker.

use datafusion::sql::sqlparser::ast::{DataType, Expr, FunctionArguments, Value};

use super::ast_build::{cast, null, signed, text};
use super::parse_set::scope_of;
use super::{RewriteError, SessionValue, SessionValues, VariableScope};

/// Replaces `expr` if it is a variable or a function about the session.
pub(super) fn rewrite_session_value(
    expr: &mut Expr,
    session: &dyn SessionValues,
) -> Result<bool, RewriteError> {
    let replacement = match expr {
        // Written without brackets it is a name to sqlparser.
        Expr::Identifier(name)
            if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("current_user") =>
        {
            Some(text(session.user()))
        }
        Expr::Identifier(name) => match variable(&name.value) {
            None => placeholder(&name.value),
            Some(Variable::User(name)) => {
                Some(session.user_variable(&name).map_or_else(null, literal))
            }
            Some(Variable::System(name)) => Some(system(session, VariableScope::Default, &name)?),
        },
        Expr::CompoundIdentifier(parts) => {
            match parts.first().and_then(|part| variable(&part.value)) {
                Some(Variable::System(first)) => {
                    let rest: Vec<String> = parts[1..]
                        .iter()
                        .map(|part| part.value.to_lowercase())
                        .collect();
                    Some(match scope_of(&first) {
                        Some(scope) => system(session, scope, &rest.join("."))?,
                        None => system(
                            session,
                            VariableScope::Default,
                            &format!("{first}.{}", rest.join(".")),
                        )?,
                    })
                }
                _ => None,
            }
        }
        Expr::Function(function) if function.over.is_none() && has_no_arguments(&function.args) => {
            function
                .name
                .0
                .last()
                .and_then(|part| part.as_ident())
                .filter(|_| function.name.0.len() == 1)
                .and_then(|name| session_function(&name.value, session))
        }
        _ => None,
    };
    match replacement {
        Some(replacement) => {
            *expr = replacement;
            Ok(true)
        }
        None => Ok(false),
    }
}

enum Variable {
    System(String),
    User(String),
}

fn variable(name: &str) -> Option<Variable> {
    let rest = name.strip_prefix('@')?;
    Some(match rest.strip_prefix('@') {
        Some(system) => Variable::System(system.to_lowercase()),
        None => Variable::User(rest.to_lowercase()),
    })
}

/// `$1`, which the dialect reads as a name.
fn placeholder(name: &str) -> Option<Expr> {
    let digits = name.strip_prefix('$')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| Expr::value(Value::Placeholder(name.to_owned())))
}

fn system(
    session: &dyn SessionValues,
    scope: VariableScope,
    name: &str,
) -> Result<Expr, RewriteError> {
    session
        .variable(scope, name)
        .map(literal)
        .ok_or_else(|| RewriteError::UnknownVariable(name.to_owned()))
}

fn literal(value: SessionValue) -> Expr {
    match value {
        SessionValue::Null => null(),
        SessionValue::Integer(number) => signed(&number.to_string()),
        SessionValue::Float(number) if number.is_finite() => {
            cast(signed(&number.to_string()), DataType::DoublePrecision)
        }
        SessionValue::Float(_) => null(),
        SessionValue::Text(value) => text(value),
    }
}

fn has_no_arguments(args: &FunctionArguments) -> bool {
    match args {
        FunctionArguments::None => true,
        FunctionArguments::List(list) => list.args.is_empty() && list.clauses.is_empty(),
        FunctionArguments::Subquery(_) => false,
    }
}

fn session_function(name: &str, session: &dyn SessionValues) -> Option<Expr> {
    Some(match name.to_lowercase().as_str() {
        "database" | "schema" | "current_database" | "current_schema" => {
            // A NULL without a type would make `table_schema = DATABASE()` an error.
            session
                .database()
                .map_or_else(|| cast(null(), DataType::Varchar(None)), text)
        }
        "catalog" | "current_catalog" => text(session.catalog()),
        "user" | "current_user" | "session_user" | "system_user" => text(session.user()),
        "current_role" => text("NONE"),
        "connection_id" => signed(&session.connection_id().to_string()),
        "version" => text(session.version()),
        "current_version" => text(session.engine_version()),
        // No table has generated keys, and no result is counted after the fact.
        "last_insert_id" | "found_rows" => signed("0"),
        "row_count" => signed("-1"),
        _ => return None,
    })
}
