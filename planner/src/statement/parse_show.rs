//! `SHOW …` and `DESCRIBE …`.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::{Cursor, Parsed};
use super::{DatabaseName, ObjectPath, Show, ShowFilter, Statement};

/// After the word SHOW.
pub(super) fn parse_show(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let scope = cursor.one_of(&["GLOBAL", "SESSION", "LOCAL"]);
    let global = scope == Some("GLOBAL");
    if cursor.word("VARIABLES") {
        return shown(Show::Variables {
            global,
            filter: cursor.filter()?,
        });
    }
    if cursor.word("STATUS") {
        return shown(Show::Status {
            global,
            filter: cursor.filter()?,
        });
    }
    if scope.is_some() {
        return cursor.expected("VARIABLES or STATUS");
    }
    let _ = cursor.word("EXTENDED");
    let full = cursor.word("FULL");
    if cursor.word("TABLES") {
        let database = from_database(cursor)?;
        return shown(Show::Tables {
            database,
            full,
            filter: cursor.filter()?,
        });
    }
    if cursor.one_of(&["COLUMNS", "FIELDS"]).is_some() {
        let table = from_table(cursor)?;
        return shown(Show::Columns {
            table,
            full,
            filter: cursor.filter()?,
        });
    }
    if cursor.word("PROCESSLIST") {
        return shown(Show::Processlist { full });
    }
    if full {
        return cursor.expected("TABLES, COLUMNS or PROCESSLIST");
    }
    let show = match cursor.one_of(&[
        "CATALOGS",
        "DATABASES",
        "SCHEMAS",
        "WORKERS",
        "STATS",
        "PROFILE",
        "CREATE",
        "INDEX",
        "INDEXES",
        "KEYS",
        "TABLE",
        "WARNINGS",
        "ERRORS",
        "COUNT",
        "STORAGE",
        "ENGINES",
        "PLUGINS",
        "PRIVILEGES",
        "GRANTS",
        "CHARACTER",
        "CHARSET",
        "COLLATION",
        "FUNCTION",
        "FUNCTIONS",
        "PROCEDURE",
        "TRIGGERS",
        "EVENTS",
        "OPEN",
    ]) {
        Some("CATALOGS") => Show::Catalogs {
            filter: cursor.filter()?,
        },
        Some("DATABASES" | "SCHEMAS") => {
            let catalog = if cursor.one_of(&["FROM", "IN"]).is_some() {
                Some(cursor.name()?)
            } else {
                None
            };
            Show::Databases {
                catalog,
                filter: cursor.filter()?,
            }
        }
        Some("WORKERS") => Show::Workers,
        Some("STATS") => {
            if cursor.one_of(&["FOR", "FROM"]).is_none() {
                return cursor.expected("FOR and a table");
            }
            let table = cursor.object_path()?;
            Show::Stats {
                table,
                filter: cursor.filter()?,
            }
        }
        Some("PROFILE") => {
            let query_id = if cursor.word("FOR") {
                let _ = cursor.word("QUERY");
                Some(cursor.string()?)
            } else {
                None
            };
            Show::Profile { query_id }
        }
        Some("CREATE") => show_create(cursor)?,
        Some("INDEX" | "INDEXES" | "KEYS") => {
            let table = from_table(cursor)?;
            // There are no indexes to filter.
            if cursor.word("WHERE") {
                cursor.expression()?;
            }
            Show::Indexes { table }
        }
        Some("TABLE") => {
            cursor.expect_word("STATUS")?;
            let database = from_database(cursor)?;
            Show::TableStatus {
                database,
                filter: cursor.filter()?,
            }
        }
        Some("WARNINGS") => {
            skip_limit(cursor)?;
            Show::Warnings { count: false }
        }
        Some("ERRORS") => {
            skip_limit(cursor)?;
            Show::Errors { count: false }
        }
        Some("COUNT") => {
            cursor.expect(&Token::LParen)?;
            cursor.expect(&Token::Mul)?;
            cursor.expect(&Token::RParen)?;
            match cursor.one_of(&["WARNINGS", "ERRORS"]) {
                Some("WARNINGS") => Show::Warnings { count: true },
                Some(_) => Show::Errors { count: true },
                None => return cursor.expected("WARNINGS or ERRORS"),
            }
        }
        Some("STORAGE") => {
            cursor.expect_word("ENGINES")?;
            Show::Engines
        }
        Some("ENGINES") => Show::Engines,
        Some("PLUGINS") => Show::Plugins,
        Some("PRIVILEGES") => Show::Privileges,
        Some("GRANTS") => {
            let user = if cursor.word("FOR") {
                Some(account(cursor)?)
            } else {
                None
            };
            Show::Grants { user }
        }
        Some("CHARACTER") => {
            cursor.expect_word("SET")?;
            Show::CharacterSet {
                filter: cursor.filter()?,
            }
        }
        Some("CHARSET") => Show::CharacterSet {
            filter: cursor.filter()?,
        },
        Some("COLLATION") => Show::Collation {
            filter: cursor.filter()?,
        },
        Some("FUNCTION") => {
            cursor.expect_word("STATUS")?;
            Show::FunctionStatus {
                filter: cursor.filter()?,
            }
        }
        Some("FUNCTIONS") => Show::Functions {
            filter: cursor.filter()?,
        },
        Some("PROCEDURE") => {
            cursor.expect_word("STATUS")?;
            Show::ProcedureStatus {
                filter: cursor.filter()?,
            }
        }
        Some("TRIGGERS") => {
            let database = from_database(cursor)?;
            Show::Triggers {
                database,
                filter: cursor.filter()?,
            }
        }
        Some("EVENTS") => {
            let database = from_database(cursor)?;
            Show::Events {
                database,
                filter: cursor.filter()?,
            }
        }
        Some("OPEN") => {
            cursor.expect_word("TABLES")?;
            let database = from_database(cursor)?;
            Show::OpenTables {
                database,
                filter: cursor.filter()?,
            }
        }
        _ => return cursor.expected(
            "what to show, such as TABLES, COLUMNS, DATABASES, CATALOGS, WORKERS or PROCESSLIST",
        ),
    };
    shown(show)
}

/// After DESCRIBE, DESC or EXPLAIN that is not followed by a query.
pub(super) fn parse_describe(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let _ = cursor.word("TABLE");
    let table = cursor.object_path()?;
    let filter = if cursor.at_end() {
        None
    } else if let Ok(pattern) = cursor.string() {
        Some(ShowFilter::Like(pattern))
    } else {
        // A column's name is matched as it is, so its wildcards are escaped.
        Some(ShowFilter::Like(
            cursor
                .name()?
                .replace('\\', "\\\\")
                .replace('_', "\\_")
                .replace('%', "\\%"),
        ))
    };
    shown(Show::Columns {
        table,
        full: false,
        filter,
    })
}

fn shown(show: Show) -> Parsed<Statement> {
    Ok(Statement::Show(show))
}

fn show_create(cursor: &mut Cursor<'_>) -> Parsed<Show> {
    Ok(
        match cursor.one_of(&["TABLE", "VIEW", "DATABASE", "SCHEMA", "CATALOG"]) {
            Some("TABLE") => Show::CreateTable {
                table: cursor.object_path()?,
            },
            Some("VIEW") => Show::CreateView {
                view: cursor.object_path()?,
            },
            Some("DATABASE" | "SCHEMA") => {
                cursor.if_not_exists();
                Show::CreateDatabase {
                    database: cursor.database_name()?,
                }
            }
            Some("CATALOG") => Show::CreateCatalog {
                catalog: cursor.name()?,
            },
            _ => return cursor.expected("TABLE, VIEW, DATABASE or CATALOG"),
        },
    )
}

/// `[FROM|IN database]`
fn from_database(cursor: &mut Cursor<'_>) -> Parsed<Option<DatabaseName>> {
    if cursor.one_of(&["FROM", "IN"]).is_none() {
        return Ok(None);
    }
    cursor.database_name().map(Some)
}

/// `FROM|IN table [FROM|IN database]`: a database after the table wins over one before it.
fn from_table(cursor: &mut Cursor<'_>) -> Parsed<ObjectPath> {
    if cursor.one_of(&["FROM", "IN"]).is_none() {
        return cursor.expected("FROM and a table");
    }
    let table = cursor.object_path()?;
    Ok(match from_database(cursor)? {
        Some(name) => ObjectPath {
            catalog: name.catalog.or(table.catalog),
            database: Some(name.database),
            table: table.table,
        },
        None => table,
    })
}

/// `[LIMIT [offset,] rows]` of SHOW WARNINGS, of which there are none.
fn skip_limit(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if cursor.word("LIMIT") {
        cursor.unsigned()?;
        if cursor.take(&Token::Comma) {
            cursor.unsigned()?;
        }
    }
    Ok(())
}

/// `user`, `'user'@'host'` or `CURRENT_USER[()]`, as text.
fn account(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let mut account = String::new();
    while !cursor.at_end() {
        account.push_str(&match &cursor.parser.peek_token_ref().token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => text.clone(),
            Token::Word(word) => word.value.clone(),
            other => other.to_string(),
        });
        cursor.parser.advance_token();
    }
    Ok(account)
}
