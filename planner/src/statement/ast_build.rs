//! Small pieces of syntax tree, as the rewrites put them together.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, TimezoneInfo,
    UnaryOperator, Value,
};

/// `name(args, …)`
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args
                .into_iter()
                .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)))
                .collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

pub(super) fn text(text: impl Into<String>) -> Expr {
    Expr::value(Value::SingleQuotedString(text.into()))
}

pub(super) fn number(number: impl ToString) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

/// A number that may be negative.
pub(super) fn signed(number_text: &str) -> Expr {
    match number_text.strip_prefix('-') {
        Some(digits) => nested(Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: Box::new(number(digits)),
        }),
        None => number(number_text),
    }
}

pub(super) fn null() -> Expr {
    Expr::value(Value::Null)
}

pub(super) fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// `(left op right)`
pub(super) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    nested(Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    })
}

pub(super) fn is_null(expr: Expr) -> Expr {
    Expr::IsNull(Box::new(expr))
}

pub(super) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// `TIMESTAMP(6)`, MySQL's DATETIME and Iceberg's timestamp: microseconds without a zone.
pub(super) fn datetime_type() -> DataType {
    DataType::Timestamp(Some(6), TimezoneInfo::None)
}

/// `DOUBLE`
pub(super) fn double_type() -> DataType {
    DataType::Double(ExactNumberInfo::None)
}

/// `CASE [operand] WHEN … THEN … [ELSE …] END`
pub(super) fn case(
    operand: Option<Expr>,
    branches: Vec<(Expr, Expr)>,
    otherwise: Option<Expr>,
) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: operand.map(Box::new),
        conditions: branches
            .into_iter()
            .map(|(condition, result)| CaseWhen { condition, result })
            .collect(),
        else_result: otherwise.map(Box::new),
    }
}

/// The text of a string literal.
pub(super) fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => literal_text(inner),
        _ => None,
    }
}
