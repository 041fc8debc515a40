//! MySQL's functions whose name, arguments or treatment of NULL differ from DataFusion's and that can be written with
//! DataFusion's. Those that need code of their own are in [`functions`](crate::functions).

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, ObjectName, OrderByExpr, OrderByOptions,
    Value,
};

use super::RewriteError;
use super::ast_build::{
    binary, call, case, cast, datetime_type, double_type, is_null, literal_text, nested, null,
    number, signed, text,
};
use super::rewrite_expressions::{substring_from_end, unit_name, whole_number};
use super::rewrite_truth::{conditions_as_numbers, number_as_condition};
use super::rewrite_windows::window;

/// The names of functions that exist by being rewritten, and their kinds.
pub(crate) fn rewritten_functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let scalar = SCALAR.iter().map(|name| (*name, "scalar"));
    let aggregate = AGGREGATE.iter().map(|name| (*name, "aggregate"));
    scalar.chain(aggregate)
}

const SCALAR: &[&str] = &[
    "adddate",
    "bin",
    "ceiling",
    "char",
    "curdate",
    "current_timestamp",
    "curtime",
    "dayofmonth",
    "elt",
    "field",
    "from_base64",
    "if",
    "isnull",
    "lcase",
    "localtime",
    "localtimestamp",
    "mid",
    "mod",
    "oct",
    "ord",
    "sha",
    "sha2",
    "sign",
    "space",
    "strcmp",
    "subdate",
    "sysdate",
    "timestampadd",
    "to_base64",
    "truncate",
    "ucase",
    "utc_date",
    "utc_time",
    "utc_timestamp",
];

const AGGREGATE: &[&str] = &[
    "any_value",
    "approx_count_distinct",
    "group_concat",
    "max_by",
    "min_by",
    "ndv",
    "percentile_approx",
    "std",
    "variance",
];

/// Rewrites one function call whose arguments are done.
pub(super) fn rewrite_function(expr: &mut Expr) -> Result<(), RewriteError> {
    let Expr::Function(function) = expr else {
        return Ok(());
    };
    let name = match function.name.0.as_slice() {
        [part] => part.as_ident().map(|name| name.value.to_lowercase()),
        _ => None,
    };
    let Some(name) = name else { return Ok(()) };
    window(function);
    match name.as_str() {
        "group_concat" => return group_concat(function),
        "sum" | "avg" => conditions_as_numbers(function),
        "count" => distinct_rows(function),
        "max_by" | "min_by" => return value_by(function, &name),
        _ => {}
    }
    if let Some(renamed) = renamed(&name) {
        function.name = ObjectName::from(vec![Ident::new(renamed)]);
    }
    if let Some(replacement) =
        plain_arguments(function).and_then(|args| written(&name, args).transpose())
    {
        *expr = replacement?;
    }
    Ok(())
}

/// Another name for the same function, whatever its arguments, DISTINCT, FILTER or OVER.
fn renamed(name: &str) -> Option<&'static str> {
    Some(match name {
        "lcase" => "lower",
        "ucase" => "upper",
        "ceiling" => "ceil",
        "truncate" => "trunc",
        "ord" => "ascii",
        "char" => "chr",
        "length" | "octet_length" => "octet_length",
        "ndv" | "approx_count_distinct" => "approx_distinct",
        "percentile_approx" => "approx_percentile_cont",
        // MySQL's are of the population, DataFusion's of a sample.
        "std" | "stddev" => "stddev_pop",
        "variance" => "var_pop",
        "any_value" => "first_value",
        "sha" => "sha1",
        "dayofmonth" => "day",
        "current_timestamp" | "localtime" | "localtimestamp" | "sysdate" => "now",
        _ => return None,
    })
}

/// The arguments of a call that has nothing but expressions in its brackets, or no brackets.
fn plain_arguments(function: &Function) -> Option<Vec<Expr>> {
    if function.filter.is_some() || function.over.is_some() || !function.within_group.is_empty() {
        return None;
    }
    match &function.args {
        FunctionArguments::None => Some(Vec::new()),
        FunctionArguments::List(list)
            if list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
        {
            list.args
                .iter()
                .map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                    _ => None,
                })
                .collect()
        }
        _ => None,
    }
}

/// The call written otherwise; `None` where it stays.
fn written(name: &str, args: Vec<Expr>) -> Result<Option<Expr>, RewriteError> {
    let wrong_count = || RewriteError::ParameterCount(name.to_uppercase());
    let mut args = args;
    let count = args.len();
    let result = match name {
        "if" => {
            let [mut condition, yes, no] = take(args).ok_or_else(wrong_count)?;
            number_as_condition(&mut condition);
            case(None, vec![(condition, yes)], Some(no))
        }
        "isnull" => {
            let [value] = take(args).ok_or_else(wrong_count)?;
            nested(is_null(value))
        }
        "concat" => concat(args).ok_or_else(wrong_count)?,
        // The engine's greatest and least pass over NULL, MySQL's are NULL.
        "greatest" | "least" if count > 0 => {
            let nulls = args
                .iter()
                .cloned()
                .map(is_null)
                .reduce(|left, right| binary(left, BinaryOperator::Or, right));
            case(
                None,
                vec![(nulls.ok_or_else(wrong_count)?, null())],
                Some(call(name, args)),
            )
        }
        "field" if count > 1 => {
            let subject = args.remove(0);
            let branches = args
                .into_iter()
                .zip(1..)
                .map(|(value, place)| (value, number(place)))
                .collect();
            case(Some(subject), branches, Some(number(0)))
        }
        "elt" if count > 1 => {
            let index = args.remove(0);
            let branches = args
                .into_iter()
                .zip(1..)
                .map(|(value, place)| (number(place), value))
                .collect();
            case(Some(index), branches, None)
        }
        "strcmp" => {
            let [left, right] = take(args).ok_or_else(wrong_count)?;
            let compared = |op| binary(left.clone(), op, right.clone());
            let branches = vec![
                (compared(BinaryOperator::Eq), number(0)),
                (compared(BinaryOperator::Lt), signed("-1")),
                (compared(BinaryOperator::Gt), number(1)),
            ];
            case(None, branches, None)
        }
        "space" => {
            let [count] = take(args).ok_or_else(wrong_count)?;
            call("repeat", vec![text(" "), count])
        }
        "mid" | "substring" | "substr" if count == 2 || count == 3 => {
            let length = args.get(2).cloned();
            match substring_from_end(&args[0], &args[1], length.as_ref()) {
                Some(rewritten) => rewritten,
                None => call("substr", args),
            }
        }
        "mod" => {
            let [left, right] = take(args).ok_or_else(wrong_count)?;
            binary(nested(left), BinaryOperator::Modulo, nested(right))
        }
        // MySQL writes numbers as text where text is asked for; of a CASE the type is not known here.
        "upper" | "ucase" | "lower" | "lcase" if matches!(args.as_slice(), [Expr::Case { .. }]) => {
            let [value] = take(args).ok_or_else(wrong_count)?;
            let function = if name.starts_with('u') {
                "upper"
            } else {
                "lower"
            };
            call(function, vec![cast(value, DataType::Varchar(None))])
        }
        "sign" => {
            let [value] = take(args).ok_or_else(wrong_count)?;
            cast(call("signum", vec![value]), DataType::BigInt(None))
        }
        // MySQL's LOG with one argument is the natural logarithm. What has none is NULL.
        "log" | "ln" | "log2" | "log10" if count == 1 => {
            let [value] = take(args).ok_or_else(wrong_count)?;
            let function = if name == "log" { "ln" } else { name };
            let none = binary(nested(value.clone()), BinaryOperator::LtEq, number(0));
            case(
                None,
                vec![(none, null())],
                Some(call(function, vec![value])),
            )
        }
        "sqrt" => {
            let [value] = take(args).ok_or_else(wrong_count)?;
            let none = binary(nested(value.clone()), BinaryOperator::Lt, number(0));
            case(None, vec![(none, null())], Some(call(name, vec![value])))
        }
        // The engine's is of single precision for whole numbers.
        "atan" | "atan2" if count == 2 => {
            let args = args.into_iter().map(|arg| cast(arg, double_type()));
            call("atan2", args.collect())
        }
        // The engine counts a negative length from the other end.
        "left" | "right" if count == 2 && !matches!(whole_number(&args[1]), Some(0..)) => {
            let [value, length] = take(args).ok_or_else(wrong_count)?;
            let negative = binary(nested(length.clone()), BinaryOperator::Lt, number(0));
            let length = case(None, vec![(negative, number(0))], Some(length));
            call(name, vec![value, length])
        }
        "sha2" => {
            let [value, bits] = take(args).ok_or_else(wrong_count)?;
            let algorithm = match whole_number(&bits) {
                Some(0 | 256) => "sha256",
                Some(224) => "sha224",
                Some(384) => "sha384",
                Some(512) => "sha512",
                _ => {
                    return Err(RewriteError::Unsupported(
                        "SHA2 with this length".to_owned(),
                    ));
                }
            };
            call(
                "encode",
                vec![call("digest", vec![value, text(algorithm)]), text("hex")],
            )
        }
        "to_base64" => {
            let [value] = take(args).ok_or_else(wrong_count)?;
            call("encode", vec![value, text("base64")])
        }
        "bin" | "oct" => {
            let [value] = take(args).ok_or_else(wrong_count)?;
            let base = if name == "bin" { 2 } else { 8 };
            call("conv", vec![value, number(10), number(base)])
        }
        "from_base64" => {
            let [value] = take(args).ok_or_else(wrong_count)?;
            call("decode", vec![value, text("base64")])
        }
        "rand" if count == 1 => call("rand", Vec::new()),
        // MySQL's current time has no fraction unless asked for one, and no zone.
        "now" | "current_timestamp" | "localtime" | "localtimestamp" | "sysdate"
        | "utc_timestamp"
            if count <= 1 =>
        {
            let now = cast(call("now", Vec::new()), datetime_type());
            match args.first().and_then(whole_number) {
                Some(digits) if digits > 3 => now,
                Some(digits) if digits > 0 => call("date_trunc", vec![text("millisecond"), now]),
                _ => call("date_trunc", vec![text("second"), now]),
            }
        }
        "curdate" | "utc_date" if count == 0 => call("current_date", Vec::new()),
        "curtime" | "utc_time" if count <= 1 => {
            call("time", vec![cast(call("now", Vec::new()), datetime_type())])
        }
        "unix_timestamp" if count == 0 => call(
            "unix_timestamp",
            vec![cast(call("now", Vec::new()), datetime_type())],
        ),
        "from_unixtime" if count == 2 => {
            let [seconds, format] = take(args).ok_or_else(wrong_count)?;
            call(
                "date_format",
                vec![call("from_unixtime", vec![seconds]), format],
            )
        }
        "timestamp" if count == 1 => call("timestamp", args),
        "timestampdiff" => {
            let [unit, start, end] = take(args).ok_or_else(wrong_count)?;
            call("timestampdiff", vec![unit_argument(unit)?, start, end])
        }
        "timestampadd" => {
            let [unit, count, start] = take(args).ok_or_else(wrong_count)?;
            call("date_add", vec![start, count, unit_argument(unit)?])
        }
        "date_add" | "adddate" | "date_sub" | "subdate" if count == 2 => {
            let [start, amount] = take(args).ok_or_else(wrong_count)?;
            let function = if name.ends_with("sub") || name.starts_with("sub") {
                "date_sub"
            } else {
                "date_add"
            };
            match amount {
                Expr::Interval(interval) => {
                    match interval.leading_field.as_ref().and_then(unit_name) {
                        Some(unit) => call(function, vec![start, *interval.value, text(unit)]),
                        None => {
                            return Err(RewriteError::Unsupported(format!(
                                "an interval without a unit in {}",
                                name.to_uppercase()
                            )));
                        }
                    }
                }
                days => call(function, vec![start, days, text("DAY")]),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn take<const N: usize>(args: Vec<Expr>) -> Option<[Expr; N]> {
    args.try_into().ok()
}

/// A unit written as a bare word (`TIMESTAMPDIFF(DAY, …)`), as `SQL_TSI_DAY`, or as text.
fn unit_argument(unit: Expr) -> Result<Expr, RewriteError> {
    let word = match &unit {
        Expr::Identifier(name) => name.value.to_uppercase(),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.to_uppercase(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    let word = word.trim_start_matches("SQL_TSI_").to_owned();
    if word.is_empty() {
        return Err(RewriteError::Unsupported(format!("the unit {unit}")));
    }
    Ok(text(word))
}

/// CONCAT is NULL when any part is; the engine's `concat` passes over NULL, its `||` does not.
fn concat(args: Vec<Expr>) -> Option<Expr> {
    args.into_iter()
        .map(|arg| match literal_text(&arg) {
            Some(_) => arg,
            None => cast(arg, DataType::Varchar(None)),
        })
        .reduce(|left, right| binary(left, BinaryOperator::StringConcat, right))
}

/// `COUNT(DISTINCT a, b)` counts the rows that differ, of those in which no part is NULL.
fn distinct_rows(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    if list.duplicate_treatment != Some(DuplicateTreatment::Distinct) || list.args.len() < 2 {
        return;
    }
    let parts: Option<Vec<Expr>> = list
        .args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        })
        .collect();
    let Some(parts) = parts else { return };
    let whole = parts
        .iter()
        .map(|part| Expr::IsNotNull(Box::new(nested(part.clone()))))
        .reduce(|left, right| binary(left, BinaryOperator::And, right));
    let Some(whole) = whole else { return };
    let row = case(None, vec![(whole, call("struct", parts))], None);
    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(row))];
}

/// `MAX_BY(x, y)` is the x of the row with the greatest y, and `MIN_BY` that of the least; rows without a y do not count.
fn value_by(function: &mut Function, name: &str) -> Result<(), RewriteError> {
    let wrong_count = || RewriteError::ParameterCount(name.to_uppercase());
    let FunctionArguments::List(list) = &mut function.args else {
        return Err(wrong_count());
    };
    if function.over.is_some() || list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return Err(RewriteError::Unsupported(format!(
            "{} with DISTINCT, ORDER BY or OVER",
            name.to_uppercase()
        )));
    }
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(by)),
    ] = list.args.as_slice()
    else {
        return Err(wrong_count());
    };
    let (value, by) = (value.clone(), by.clone());
    let known = Expr::IsNotNull(Box::new(nested(by.clone())));
    function.filter = Some(Box::new(match function.filter.take() {
        Some(filter) => binary(nested(*filter), BinaryOperator::And, known),
        None => known,
    }));
    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))];
    list.clauses = vec![FunctionArgumentClause::OrderBy(vec![OrderByExpr {
        expr: by,
        options: OrderByOptions {
            asc: Some(name == "min_by"),
            nulls_first: None,
        },
        with_fill: None,
    }])];
    function.name = ObjectName::from(vec![Ident::new("first_value")]);
    Ok(())
}

/// `GROUP_CONCAT([DISTINCT] a, b [ORDER BY …] [SEPARATOR ','])` is `string_agg(a || b, ',' ORDER BY …)`.
fn group_concat(function: &mut Function) -> Result<(), RewriteError> {
    let FunctionArguments::List(list) = &mut function.args else {
        return Err(RewriteError::ParameterCount("GROUP_CONCAT".to_owned()));
    };
    let mut separator = text(",");
    let mut clauses = Vec::new();
    for clause in list.clauses.drain(..) {
        match clause {
            FunctionArgumentClause::Separator(value) => separator = Expr::Value(value),
            FunctionArgumentClause::OrderBy(order) => {
                clauses.push(FunctionArgumentClause::OrderBy(order))
            }
            other => {
                return Err(RewriteError::Unsupported(format!(
                    "GROUP_CONCAT with {other}"
                )));
            }
        }
    }
    let parts = list
        .args
        .drain(..)
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
            other => Err(RewriteError::Unsupported(format!(
                "GROUP_CONCAT of {other}"
            ))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let alone = match parts.as_slice() {
        [part] => Some(part.clone()),
        _ => None,
    };
    let joined =
        concat(parts).ok_or_else(|| RewriteError::ParameterCount("GROUP_CONCAT".to_owned()))?;
    // Of DISTINCT values only the value itself gives an order, and the engine knows it by its text.
    if let (Some(alone), true) = (alone, list.duplicate_treatment.is_some()) {
        for clause in &mut clauses {
            if let FunctionArgumentClause::OrderBy(order) = clause {
                order
                    .iter_mut()
                    .filter(|by| by.expr == alone)
                    .for_each(|by| by.expr = joined.clone());
            }
        }
    }
    let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    list.args = vec![argument(joined), argument(separator)];
    list.clauses = clauses;
    function.name = ObjectName::from(vec![Ident::new("string_agg")]);
    Ok(())
}
