//! Text to statements: one look at the first words says which parser goes on.

use std::collections::{BTreeMap, HashMap};

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token};

use super::chains::tame_query;
use super::cursor::{Cursor, Failure, Parsed, object_path};
use super::dialect::TarnDialect;
use super::lexing::{Run, Source, lex};
use super::parse_analyze::parse_analyze;
use super::parse_create_table::parse_create_table;
use super::parse_refs::{parse_alter_table, parse_call};
use super::parse_set::parse_set;
use super::parse_show::{parse_describe, parse_show};
use super::select_names::select_names;
use super::{
    ExplainMode, KillTarget, ParseError, ParsedStatement, Query, Show, Statement,
    TransactionStatement,
};

/// Expressions and queries may nest this deep; DataFusion's planner recurses over what is parsed.
const RECURSION_LIMIT: usize = 100;

/// Parses every statement of a text; one that holds only white space gives none, one that holds only comments a `Noop`.
///
/// ```
/// # use tarn_planner::statement::parse_statements;
/// let statements = parse_statements("USE shop; SELECT count(*) FROM orders;").unwrap();
/// assert_eq!(statements[0].statement.kind(), "USE");
/// assert_eq!(statements[1].text, "SELECT count(*) FROM orders");
/// ```
pub fn parse_statements(sql: &str) -> Result<Vec<ParsedStatement>, ParseError> {
    let source = Source::new(sql);
    lex(&source, &TarnDialect::default())?
        .into_iter()
        .map(|run| parse_run(&source, run))
        .collect()
}

/// Parses a text that must hold exactly one statement.
pub fn parse_statement(sql: &str) -> Result<ParsedStatement, ParseError> {
    let mut statements = parse_statements(sql)?;
    match (statements.pop(), statements.len()) {
        (None, _) => Err(ParseError::Empty),
        (Some(statement), 0) => Ok(statement),
        (Some(_), others) => Err(ParseError::Several(others + 1)),
    }
}

fn parse_run(source: &Source<'_>, run: Run) -> Result<ParsedStatement, ParseError> {
    let text = source.text()[run.start..run.end].trim_end().to_owned();
    if run.only_comments {
        return Ok(ParsedStatement {
            statement: Statement::Noop { kind: "COMMENT" },
            text,
        });
    }
    let dialect = TarnDialect {
        versions: run.versions,
    };
    let parser = Parser::new(&dialect).with_recursion_limit(RECURSION_LIMIT);
    let mut cursor = Cursor::new(parser.with_tokens_with_locations(run.tokens.clone()));
    let context = Context { source, run: &run };
    let statement = match parse_one(&mut cursor, &context) {
        Ok(statement) => statement,
        Err(Failure::Unsupported { kind, detail }) => Statement::Unsupported { kind, detail },
        Err(Failure::Invalid(message)) => return Err(ParseError::Invalid(message)),
        Err(Failure::Syntax(error)) => return Err(syntax_error(source, &run, error)),
    };
    Ok(ParsedStatement { statement, text })
}

/// What a query's parser needs besides the tokens: the text, for the names of its columns.
pub(super) struct Context<'a> {
    source: &'a Source<'a>,
    run: &'a Run,
}

/// sqlparser writes the place into its message, as `… at Line: 1, Column: 7`.
fn syntax_error(source: &Source<'_>, run: &Run, error: ParserError) -> ParseError {
    let message = match error {
        ParserError::RecursionLimitExceeded => return ParseError::TooDeep,
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    let (reason, place) = match message.rsplit_once(" at Line: ") {
        Some((reason, place)) => {
            let location = place.split_once(", Column: ").and_then(|(line, column)| {
                Some(Location::new(
                    line.trim().parse().ok()?,
                    column.trim().parse().ok()?,
                ))
            });
            (reason, location)
        }
        None => (message.as_str(), None),
    };
    let offset = place
        .map_or(run.end, |location| source.offset(location))
        .min(run.end);
    let reason = reason
        .replacen("Expected: ", "expected ", 1)
        .replacen(", found: ", ", found ", 1);
    source.error_at(
        offset,
        reason.replace("found EOF", "found the end of the statement"),
    )
}

fn parse_one(cursor: &mut Cursor<'_>, context: &Context<'_>) -> Parsed<Statement> {
    let statement = statement(cursor, context)?;
    cursor.expect_end()?;
    Ok(statement)
}

fn statement(cursor: &mut Cursor<'_>, context: &Context<'_>) -> Parsed<Statement> {
    if at_query(cursor) {
        return Ok(Statement::Query(parse_query(cursor, context)?));
    }
    if cursor.words(&["ALTER", "TABLE"]) {
        return parse_alter_table(cursor);
    }
    let first = cursor.one_of(&[
        "SHOW", "SET", "USE", "EXPLAIN", "DESCRIBE", "DESC", "CREATE", "DROP", "INSERT", "KILL",
        "BEGIN", "START", "COMMIT", "ROLLBACK", "LOCK", "UNLOCK", "ADMIN", "FLUSH", "ANALYZE",
        "DO", "CALL",
    ]);
    match first {
        Some("SHOW") => parse_show(cursor),
        Some("SET") => parse_set(cursor),
        Some("USE") => {
            cursor.word("CATALOG");
            let name = cursor.database_name()?;
            Ok(Statement::Use {
                catalog: name.catalog,
                database: Some(name.database),
            })
        }
        Some("EXPLAIN" | "DESCRIBE" | "DESC") => parse_explain(cursor, context),
        Some("CREATE") => parse_create(cursor, context),
        Some("DROP") => parse_drop(cursor),
        Some("INSERT") => parse_insert(cursor, context),
        Some("KILL") => parse_kill(cursor),
        Some("CALL") => parse_call(cursor),
        Some(word @ ("BEGIN" | "START" | "COMMIT" | "ROLLBACK")) => parse_transaction(cursor, word),
        Some("LOCK") => ignored(cursor, "LOCK TABLES"),
        Some("UNLOCK") => ignored(cursor, "UNLOCK TABLES"),
        Some("FLUSH") => ignored(cursor, "FLUSH"),
        Some("ANALYZE") => parse_analyze(cursor),
        Some("DO") => ignored(cursor, "DO"),
        Some("ADMIN") => {
            cursor.expect_word("SHOW")?;
            cursor.expect_word("FRONTEND")?;
            cursor.expect_word("CONFIG")?;
            Ok(Statement::Show(Show::FrontendConfig {
                filter: cursor.filter()?,
            }))
        }
        _ => unsupported_or_unknown(cursor),
    }
}

/// Statements that are good SQL elsewhere get a name and a reason, not a syntax error.
fn unsupported_or_unknown(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    const KINDS: [(&[&str], &str); 26] = [
        (&["UPDATE"], "UPDATE"),
        (&["DELETE"], "DELETE"),
        (&["MERGE"], "MERGE"),
        (&["REPLACE"], "REPLACE"),
        (&["TRUNCATE"], "TRUNCATE TABLE"),
        (&["RENAME"], "RENAME TABLE"),
        (&["ALTER", "DATABASE"], "ALTER DATABASE"),
        (&["ALTER", "CATALOG"], "ALTER CATALOG"),
        (&["ALTER"], "ALTER"),
        (&["SAVEPOINT"], "SAVEPOINT"),
        (&["RELEASE"], "RELEASE SAVEPOINT"),
        (&["OPTIMIZE"], "OPTIMIZE TABLE"),
        (&["CHECK"], "CHECK TABLE"),
        (&["REPAIR"], "REPAIR TABLE"),
        (&["GRANT"], "GRANT"),
        (&["REVOKE"], "REVOKE"),
        (&["PREPARE"], "PREPARE"),
        (&["EXECUTE"], "EXECUTE"),
        (&["DEALLOCATE"], "DEALLOCATE PREPARE"),
        (&["LOAD"], "LOAD DATA"),
        (&["COPY"], "COPY"),
        (&["HANDLER"], "HANDLER"),
        (&["CACHE"], "CACHE"),
        (&["REFRESH"], "REFRESH"),
        (&["RESET"], "RESET"),
        (&["HELP"], "HELP"),
    ];
    match KINDS.iter().find(|(words, _)| cursor.words(words)) {
        Some((_, kind)) => Err(unsupported(kind)),
        None => cursor.expected("a statement"),
    }
}

pub(super) fn unsupported(kind: &'static str) -> Failure {
    Failure::Unsupported {
        kind,
        detail: format!("{kind} is not supported"),
    }
}

/// Accepted whatever follows, since there is nothing to do.
fn ignored(cursor: &mut Cursor<'_>, kind: &'static str) -> Parsed<Statement> {
    while !cursor.at_end() {
        cursor.parser.advance_token();
    }
    Ok(Statement::Noop { kind })
}

fn at_query(cursor: &Cursor<'_>) -> bool {
    ["SELECT", "WITH", "VALUES", "TABLE"]
        .iter()
        .any(|word| cursor.is_word(word))
        || cursor.is(&Token::LParen)
}

/// A query up to the end of the statement.
pub(super) fn parse_query(cursor: &mut Cursor<'_>, context: &Context<'_>) -> Parsed<Query> {
    let first_token = cursor.parser.peek_token_ref().span.start;
    let mut query = cursor.parser.parse_query()?;
    tame_query(&mut query)?;
    let tokens = &context.run.tokens;
    let start = tokens
        .iter()
        .position(|token| token.span.start == first_token)
        .unwrap_or(0);
    let names = select_names(&query, &tokens[start..], context.source);
    Ok(Query {
        ast: Box::new(ast::Statement::Query(query)),
        names,
        parameters: context.run.parameters,
    })
}

fn parse_explain(cursor: &mut Cursor<'_>, context: &Context<'_>) -> Parsed<Statement> {
    if cursor.is_word("FORMAT") && cursor.parser.peek_nth_token_ref(1).token == Token::Eq {
        cursor.parser.advance_token();
        cursor.parser.advance_token();
        let format = cursor.name()?;
        if !["TRADITIONAL", "TREE"].contains(&format.to_uppercase().as_str()) {
            return Err(Failure::Unsupported {
                kind: "EXPLAIN",
                detail: format!("EXPLAIN FORMAT={format}: plans are printed as text only"),
            });
        }
    }
    let mode = if cursor.word("ANALYZE") {
        ExplainMode::Analyze {
            verbose: cursor.word("VERBOSE"),
        }
    } else if cursor.word("VERBOSE") || cursor.word("COSTS") {
        ExplainMode::Verbose
    } else if cursor.word("ESTIMATE") {
        ExplainMode::Estimate
    } else {
        let _ = cursor.one_of(&["EXTENDED", "PARTITIONS", "LOGICAL", "PLAN"]);
        ExplainMode::Plan
    };
    let statement = if at_query(cursor) {
        Statement::Query(parse_query(cursor, context)?)
    } else if cursor.word("INSERT") {
        parse_insert(cursor, context)?
    } else if ["UPDATE", "DELETE", "REPLACE", "MERGE", "CREATE", "FOR"]
        .iter()
        .any(|word| cursor.is_word(word))
    {
        return Err(Failure::Unsupported {
            kind: "EXPLAIN",
            detail: "EXPLAIN is supported for queries and INSERT".to_owned(),
        });
    } else if mode == ExplainMode::Plan {
        return parse_describe(cursor);
    } else {
        return cursor.expected("a query");
    };
    Ok(Statement::Explain {
        mode,
        statement: Box::new(statement),
    })
}

fn parse_create(cursor: &mut Cursor<'_>, context: &Context<'_>) -> Parsed<Statement> {
    if cursor.word("EXTERNAL") && !cursor.is_word("CATALOG") && !cursor.is_word("TABLE") {
        return cursor.expected("CATALOG or TABLE");
    }
    if cursor.word("CATALOG") {
        let if_not_exists = cursor.if_not_exists();
        let name = cursor.name()?;
        if cursor.word("COMMENT") {
            cursor.string()?;
        }
        let properties = if cursor.word("PROPERTIES") || cursor.word("WITH") {
            cursor.properties()?
        } else {
            Vec::new()
        };
        return Ok(Statement::CreateCatalog {
            name,
            properties: properties.into_iter().collect::<BTreeMap<_, _>>(),
            if_not_exists,
        });
    }
    if cursor.word("DATABASE") || cursor.word("SCHEMA") {
        let if_not_exists = cursor.if_not_exists();
        let name = cursor.database_name()?;
        let properties = database_options(cursor)?;
        return Ok(Statement::CreateDatabase {
            name,
            properties,
            if_not_exists,
        });
    }
    if cursor.words(&["OR", "REPLACE", "TABLE"]) {
        return Err(Failure::Unsupported {
            kind: "CREATE TABLE",
            detail: "CREATE OR REPLACE TABLE is not supported: drop the table first".to_owned(),
        });
    }
    if cursor.word("TEMPORARY") {
        return Err(Failure::Unsupported {
            kind: "CREATE TABLE",
            detail: "temporary tables are not supported: create a table and drop it".to_owned(),
        });
    }
    if cursor.word("TABLE") {
        return parse_create_table(cursor, context);
    }
    let _ = cursor.words(&["OR", "REPLACE"]);
    for (words, kind) in [
        (&["VIEW"] as &[&str], "CREATE VIEW"),
        (&["MATERIALIZED", "VIEW"], "CREATE MATERIALIZED VIEW"),
        (&["INDEX"], "CREATE INDEX"),
        (&["UNIQUE", "INDEX"], "CREATE INDEX"),
        (&["USER"], "CREATE USER"),
        (&["ROLE"], "CREATE ROLE"),
        (&["FUNCTION"], "CREATE FUNCTION"),
        (&["PROCEDURE"], "CREATE PROCEDURE"),
        (&["TRIGGER"], "CREATE TRIGGER"),
        (&["EVENT"], "CREATE EVENT"),
        (&["RESOURCE"], "CREATE RESOURCE"),
    ] {
        if cursor.words(words) {
            return Err(unsupported(kind));
        }
    }
    cursor.expected("CATALOG, DATABASE, SCHEMA or TABLE")
}

/// `CREATE DATABASE`'s tail: MySQL's character set and collation are accepted and mean nothing.
fn database_options(cursor: &mut Cursor<'_>) -> Parsed<HashMap<String, String>> {
    let mut properties = HashMap::new();
    loop {
        let _ = cursor.word("DEFAULT");
        if cursor.words(&["CHARACTER", "SET"])
            || cursor
                .one_of(&["CHARSET", "COLLATE", "ENCRYPTION"])
                .is_some()
        {
            cursor.take(&Token::Eq);
            cursor.name()?;
        } else if cursor.word("COMMENT") {
            cursor.take(&Token::Eq);
            properties.insert("comment".to_owned(), cursor.string()?);
        } else if cursor.word("LOCATION") {
            properties.insert("location".to_owned(), cursor.string()?);
        } else if cursor.word("PROPERTIES") || cursor.word("DBPROPERTIES") || cursor.word("WITH") {
            let _ = cursor.word("DBPROPERTIES");
            properties.extend(cursor.properties()?);
        } else {
            return Ok(properties);
        }
    }
}

fn parse_drop(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if cursor.word("CATALOG") {
        let if_exists = cursor.if_exists();
        return Ok(Statement::DropCatalog {
            name: cursor.name()?,
            if_exists,
        });
    }
    if cursor.word("DATABASE") || cursor.word("SCHEMA") {
        let if_exists = cursor.if_exists();
        let name = cursor.database_name()?;
        let cascade = cursor.one_of(&["CASCADE", "FORCE"]).is_some();
        let _ = cursor.word("RESTRICT");
        return Ok(Statement::DropDatabase {
            name,
            if_exists,
            cascade,
        });
    }
    let temporary = cursor.word("TEMPORARY");
    if cursor.word("TABLE") || cursor.word("TABLES") {
        let if_exists = cursor.if_exists();
        let names = object_paths(cursor)?;
        if temporary && !if_exists {
            return Err(Failure::Unsupported {
                kind: "DROP TABLE",
                detail: "temporary tables are not supported".to_owned(),
            });
        }
        let mut purge = false;
        while let Some(word) = cursor.one_of(&["PURGE", "CASCADE", "RESTRICT", "FORCE"]) {
            purge |= word == "PURGE" || word == "FORCE";
        }
        return Ok(Statement::DropTable {
            names,
            if_exists,
            purge,
        });
    }
    if cursor.word("VIEW") || cursor.words(&["MATERIALIZED", "VIEW"]) {
        let if_exists = cursor.if_exists();
        let names = object_paths(cursor)?;
        let _ = cursor.one_of(&["CASCADE", "RESTRICT"]);
        return Ok(Statement::DropView { names, if_exists });
    }
    for (word, kind) in [
        ("INDEX", "DROP INDEX"),
        ("USER", "DROP USER"),
        ("ROLE", "DROP ROLE"),
        ("FUNCTION", "DROP FUNCTION"),
        ("PROCEDURE", "DROP PROCEDURE"),
        ("TRIGGER", "DROP TRIGGER"),
        ("PREPARE", "DROP PREPARE"),
    ] {
        if cursor.word(word) {
            return Err(unsupported(kind));
        }
    }
    cursor.expected("CATALOG, DATABASE, SCHEMA, TABLE or VIEW")
}

fn object_paths(cursor: &mut Cursor<'_>) -> Parsed<Vec<super::ObjectPath>> {
    let mut names = vec![cursor.object_path()?];
    while cursor.take(&Token::Comma) {
        names.push(cursor.object_path()?);
    }
    Ok(names)
}

fn parse_insert(cursor: &mut Cursor<'_>, context: &Context<'_>) -> Parsed<Statement> {
    let refused = |detail: &str| Failure::Unsupported {
        kind: "INSERT",
        detail: detail.to_owned(),
    };
    let _ = cursor.one_of(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]);
    if cursor.word("IGNORE") {
        return Err(refused("INSERT IGNORE is not supported"));
    }
    if cursor.word("OVERWRITE") {
        return Err(refused("INSERT OVERWRITE is not supported"));
    }
    let _ = cursor.word("INTO");
    // A table may be called `table`; the keyword is only one before a name.
    if cursor.is_word("TABLE")
        && matches!(cursor.parser.peek_nth_token_ref(1).token, Token::Word(_))
    {
        cursor.parser.advance_token();
    }
    let table = object_path(&cursor.parser.parse_object_name(false)?)?;
    if cursor.is_word("PARTITION") {
        return Err(refused(
            "INSERT … PARTITION is not supported: rows find their partitions by their values",
        ));
    }
    let mut columns = Vec::new();
    if cursor.is(&Token::LParen)
        && !["SELECT", "WITH", "VALUES"]
            .iter()
            .any(|word| cursor.is_word_at(1, word))
    {
        cursor.expect(&Token::LParen)?;
        while !cursor.take(&Token::RParen) {
            columns.push(cursor.name()?);
            if !cursor.take(&Token::Comma) {
                cursor.expect(&Token::RParen)?;
                break;
            }
        }
    }
    if cursor.is_word("SET") {
        return Err(refused(
            "INSERT … SET is not supported: use INSERT … VALUES",
        ));
    }
    if cursor.words(&["DEFAULT", "VALUES"]) {
        return Err(refused("INSERT … DEFAULT VALUES is not supported"));
    }
    if !at_query(cursor) && !cursor.is_word("VALUE") {
        return cursor.expected("VALUES or a query");
    }
    let source = parse_query(cursor, context)?;
    if cursor.is_word("ON") {
        return Err(refused("INSERT … ON DUPLICATE KEY UPDATE is not supported"));
    }
    Ok(Statement::Insert {
        table,
        columns,
        source,
    })
}

fn parse_kill(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let query_only = cursor.one_of(&["QUERY", "CONNECTION"]) == Some("QUERY");
    let target = if matches!(
        cursor.parser.peek_token_ref().token,
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)
    ) {
        let text = cursor.string()?;
        match text.parse() {
            Ok(id) => KillTarget::Connection(id),
            Err(_) => KillTarget::Query(text),
        }
    } else {
        KillTarget::Connection(cursor.unsigned()?)
    };
    let query_only = query_only || matches!(target, KillTarget::Query(_));
    Ok(Statement::Kill { target, query_only })
}

fn parse_transaction(cursor: &mut Cursor<'_>, first: &str) -> Parsed<Statement> {
    let statement = match first {
        "START" => {
            cursor.expect_word("TRANSACTION")?;
            while cursor.words(&["WITH", "CONSISTENT", "SNAPSHOT"])
                || cursor.words(&["READ", "ONLY"])
                || cursor.words(&["READ", "WRITE"])
            {
                cursor.take(&Token::Comma);
            }
            TransactionStatement::Begin
        }
        "BEGIN" => TransactionStatement::Begin,
        "COMMIT" => TransactionStatement::Commit,
        _ => TransactionStatement::Rollback,
    };
    let _ = cursor.one_of(&["WORK", "TRANSACTION"]);
    if cursor.word("TO") {
        return Err(unsupported("ROLLBACK TO SAVEPOINT"));
    }
    let _ = cursor.words(&["AND", "NO", "CHAIN"]) || cursor.words(&["AND", "CHAIN"]);
    let _ = cursor.words(&["NO", "RELEASE"]) || cursor.word("RELEASE");
    Ok(Statement::Transaction(statement))
}
