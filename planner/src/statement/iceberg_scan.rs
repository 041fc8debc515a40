//! `iceberg_scan('location', 'option' => value, …)` in FROM: a table that no catalog holds.
//!
//! sqlparser reads a version before the arguments of a table function, and people write it behind them. So the arguments
//! move behind `AS OF` before parsing, with a mark before them:
//!
//! ```text
//!   iceberg_scan('…') FOR VERSION AS OF 17  ──►  iceberg_scan FOR SYSTEM_TIME AS OF ‹mark› ('…') 17
//! ```

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::ast_build::call;

/// The function's name.
pub const ICEBERG_SCAN: &str = "iceberg_scan";

/// What stands behind AS OF once the arguments have moved there. Nobody can call it: a name with a blank is quoted.
const SCAN_CALL: &str = "iceberg_scan as of";

/// The arguments of one call: those with a name and those without, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenScan {
    pub arguments: Vec<(Option<String>, Expr)>,
}

/// The call, if a table of that name and with those arguments is one.
pub(super) fn written_scan(name: &ObjectName, args: &[FunctionArg]) -> Option<WrittenScan> {
    if !is_scan(name) {
        return None;
    }
    let arguments = args.iter().map(|arg| match arg {
        FunctionArg::Named { name, arg, .. } => Some((Some(name.value.clone()), value(arg)?)),
        FunctionArg::ExprNamed { name, arg, .. } => Some((Some(name.to_string()), value(arg)?)),
        FunctionArg::Unnamed(arg) => Some((None, value(arg)?)),
    });
    // `*` is no value; without it the call lacks an argument, which is said when it is read.
    Some(WrittenScan {
        arguments: arguments.flatten().collect(),
    })
}

fn value(arg: &FunctionArgExpr) -> Option<Expr> {
    match arg {
        FunctionArgExpr::Expr(expr) => Some(expr.clone()),
        _ => None,
    }
}

fn is_scan(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [part]
        if part.as_ident().is_some_and(|ident| ident.value.eq_ignore_ascii_case(ICEBERG_SCAN)))
}

/// Where the arguments of a scan that end right before `places[nth]` begin: the place of their parenthesis in the tokens.
/// `places` are the tokens that are no white space.
pub(super) fn arguments_before(
    tokens: &[TokenWithSpan],
    places: &[usize],
    nth: usize,
) -> Option<usize> {
    let mut depth = 0_usize;
    for before in (0..nth).rev() {
        match &tokens[places[before]].token {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            let name = &tokens[*places.get(before.checked_sub(1)?)?].token;
            let named =
                matches!(name, Token::Word(word) if word.value.eq_ignore_ascii_case(ICEBERG_SCAN));
            return (named && before + 1 < nth).then_some(places[before]);
        }
    }
    None
}

/// What stands behind the mark: the arguments, then the version, which `version` reads.
pub(super) fn parse_scan_version(
    parser: &mut Parser,
    version: impl FnOnce(&mut Parser) -> Result<Expr, ParserError>,
) -> Result<Expr, ParserError> {
    let scan = parser.parse_function(ObjectName::from(vec![Ident::new(ICEBERG_SCAN)]))?;
    Ok(call(SCAN_CALL, vec![scan, version(parser)?]))
}

/// The scan and the version that [`parse_scan_version`] has read.
pub(super) fn scan_and_version(expr: &Expr) -> Option<(WrittenScan, &Expr)> {
    let [Expr::Function(scan), version] = arguments(expr, SCAN_CALL)?[..] else {
        return None;
    };
    let FunctionArguments::List(list) = &scan.args else {
        return None;
    };
    Some((written_scan(&scan.name, &list.args)?, version))
}

fn arguments<'a>(expr: &'a Expr, name: &str) -> Option<Vec<&'a Expr>> {
    let Expr::Function(Function {
        name: called, args, ..
    }) = expr
    else {
        return None;
    };
    let is_call = matches!(called.0.as_slice(), [part]
        if part.as_ident().is_some_and(|ident| ident.value == name));
    match args {
        FunctionArguments::List(list) if is_call => list
            .args
            .iter()
            .map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}
