//! The SQL dialect: MySQL's lexical rules and spellings, with the constructs that DataFusion plans beside them.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DateTimeField, Expr, Ident, Interval, Statement,
};
use datafusion::sql::sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::time_travel::parse_marked;

const MYSQL: MySqlDialect = MySqlDialect {};

/// MySQL's units made of several fields, as in `INTERVAL '1:30' MINUTE_SECOND`.
const COMPOUND_UNITS: [&str; 11] = [
    "YEAR_MONTH",
    "DAY_HOUR",
    "DAY_MINUTE",
    "DAY_SECOND",
    "DAY_MICROSECOND",
    "HOUR_MINUTE",
    "HOUR_SECOND",
    "HOUR_MICROSECOND",
    "MINUTE_SECOND",
    "MINUTE_MICROSECOND",
    "SECOND_MICROSECOND",
];

/// Words that never begin an expression and are no names unless quoted.
const RESERVED: [Keyword; 28] = [
    Keyword::FROM,
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ORDER,
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::LIMIT,
    Keyword::AND,
    Keyword::OR,
    Keyword::XOR,
    Keyword::ON,
    Keyword::USING,
    Keyword::JOIN,
    Keyword::INNER,
    Keyword::CROSS,
    Keyword::AS,
    Keyword::BY,
    Keyword::WHEN,
    Keyword::THEN,
    Keyword::ELSE,
    Keyword::IN,
    Keyword::IS,
    Keyword::LIKE,
    Keyword::BETWEEN,
    Keyword::ASC,
    Keyword::DESC,
];

/// Tarn's dialect.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TarnDialect {
    /// Tables may have versions. With it a few names would need quotes, so only statements that have any are read so.
    pub(crate) versions: bool,
}

impl Dialect for TarnDialect {
    // sqlparser asks in many places whether the dialect is MySQL's: it is.
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        MYSQL.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        MYSQL.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        MYSQL.is_delimited_identifier_start(ch)
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }

    fn supports_string_literal_concatenation(&self) -> bool {
        true
    }

    fn ignores_wildcard_escapes(&self) -> bool {
        true
    }

    fn supports_numeric_prefix(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn is_table_factor_alias(
        &self,
        explicit: bool,
        keyword: &Keyword,
        parser: &mut Parser,
    ) -> bool {
        MYSQL.is_table_factor_alias(explicit, keyword, parser)
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        true
    }

    fn supports_table_hints(&self) -> bool {
        true
    }

    fn supports_table_versioning(&self) -> bool {
        self.versions
    }

    fn requires_single_line_comment_whitespace(&self) -> bool {
        true
    }

    fn supports_select_modifiers(&self) -> bool {
        true
    }

    fn supports_data_type_signed_suffix(&self) -> bool {
        true
    }

    fn supports_cross_join_constraint(&self) -> bool {
        true
    }

    fn supports_double_ampersand_operator(&self) -> bool {
        true
    }

    fn supports_binary_kw_as_cast(&self) -> bool {
        true
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    // What follows is not MySQL's: DataFusion plans it, and analysts use it.

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn supports_within_after_array_aggregation(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn support_map_literal_syntax(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn parse_statement(&self, _parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        None
    }

    /// Three things before sqlparser's own: a version is told from a time, a reserved word is no expression (sqlparser would take the FROM of `SELECT a, FROM t` for
    /// a column, and find fault later), and `INTERVAL <any expression> unit` is read as MySQL has it. An interval that does not end
    /// in a unit (`INTERVAL '1 day'`) is left to sqlparser.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if self.versions
            && let Some(version) = parse_marked(parser)
        {
            return Some(version);
        }
        match &parser.peek_token_ref().token {
            Token::Word(word) if word.keyword == Keyword::INTERVAL => {
                parser.maybe_parse(parse_mysql_interval).transpose()
            }
            Token::Word(word) if word.quote_style.is_none() && RESERVED.contains(&word.keyword) => {
                Some(parser.expected_ref("an expression", parser.peek_token_ref()))
            }
            _ => None,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            // MySQL's operators on JSON take a column and a path, before all others.
            Token::Arrow | Token::LongArrow => Some(Ok(self.prec_value(Precedence::DoubleColon))),
            Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::MOD => {
                Some(Ok(self.prec_value(Precedence::MulDivModOp)))
            }
            _ => None,
        }
    }

    /// `a DIV b` and `a MOD b`, which bind like `/`.
    fn parse_infix(
        &self,
        parser: &mut Parser,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let op = match parser.parse_one_of_keywords(&[Keyword::DIV, Keyword::MOD])? {
            Keyword::DIV => BinaryOperator::MyIntegerDivide,
            _ => BinaryOperator::Modulo,
        };
        let precedence = precedence.max(self.prec_value(Precedence::MulDivModOp));
        Some(
            parser
                .parse_subexpr(precedence)
                .map(|right| Expr::BinaryOp {
                    left: Box::new(left.clone()),
                    op,
                    right: Box::new(right),
                }),
        )
    }
}

fn parse_mysql_interval(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.next_token();
    let value = Box::new(parser.parse_expr()?);
    let unit = parser.next_token();
    let leading_field = match &unit.token {
        Token::Word(word) if word.quote_style.is_none() => {
            let name = word.value.to_ascii_uppercase();
            if COMPOUND_UNITS.contains(&name.as_str()) {
                DateTimeField::Custom(Ident::new(name))
            } else {
                match name.as_str() {
                    "YEAR" | "YEARS" => DateTimeField::Year,
                    "QUARTER" | "QUARTERS" => DateTimeField::Quarter,
                    "MONTH" | "MONTHS" => DateTimeField::Month,
                    "WEEK" | "WEEKS" => DateTimeField::Week(None),
                    "DAY" | "DAYS" => DateTimeField::Day,
                    "HOUR" | "HOURS" => DateTimeField::Hour,
                    "MINUTE" | "MINUTES" => DateTimeField::Minute,
                    "SECOND" | "SECONDS" => DateTimeField::Second,
                    "MILLISECOND" | "MILLISECONDS" => DateTimeField::Millisecond,
                    "MICROSECOND" | "MICROSECONDS" => DateTimeField::Microsecond,
                    _ => return parser.expected("an interval's unit", unit),
                }
            }
        }
        _ => return parser.expected("an interval's unit", unit),
    };
    Ok(Expr::Interval(Interval {
        value,
        leading_field: Some(leading_field),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}
