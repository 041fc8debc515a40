//! `SHOW …` (and `DESCRIBE`, which MySQL defines as `SHOW COLUMNS`).

use datafusion::sql::sqlparser::ast::Expr;

use super::{DatabaseName, ObjectPath};

/// What narrows the rows of a SHOW statement.
#[derive(Debug, Clone, PartialEq)]
pub enum ShowFilter {
    /// `LIKE 'pattern'`, over the first column; see [`like_matches`](super::like_matches).
    Like(String),
    /// `WHERE expression`, over the statement's own result columns.
    Where(Box<Expr>),
}

/// A SHOW statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    /// `SHOW CATALOGS [LIKE]`
    Catalogs { filter: Option<ShowFilter> },
    /// `SHOW DATABASES|SCHEMAS [FROM catalog] [LIKE|WHERE]`
    Databases {
        catalog: Option<String>,
        filter: Option<ShowFilter>,
    },
    /// `SHOW [FULL] TABLES [FROM database] [LIKE|WHERE]`
    Tables {
        database: Option<DatabaseName>,
        full: bool,
        filter: Option<ShowFilter>,
    },
    /// `SHOW TABLE STATUS [FROM database] [LIKE|WHERE]`
    TableStatus {
        database: Option<DatabaseName>,
        filter: Option<ShowFilter>,
    },
    /// `SHOW [FULL] COLUMNS|FIELDS FROM table [FROM database] [LIKE|WHERE]`, `DESCRIBE table [column]`
    Columns {
        table: ObjectPath,
        full: bool,
        filter: Option<ShowFilter>,
    },
    /// `SHOW INDEX|INDEXES|KEYS FROM table [FROM database]`
    Indexes { table: ObjectPath },
    /// `SHOW CREATE TABLE table`
    CreateTable { table: ObjectPath },
    /// `SHOW CREATE VIEW view`
    CreateView { view: ObjectPath },
    /// `SHOW CREATE DATABASE|SCHEMA database`
    CreateDatabase { database: DatabaseName },
    /// `SHOW CREATE CATALOG catalog`
    CreateCatalog { catalog: String },
    /// `SHOW [FULL] PROCESSLIST`
    Processlist { full: bool },
    /// `SHOW [GLOBAL|SESSION] VARIABLES [LIKE|WHERE]`
    Variables {
        global: bool,
        filter: Option<ShowFilter>,
    },
    /// `SHOW [GLOBAL|SESSION] STATUS [LIKE|WHERE]`
    Status {
        global: bool,
        filter: Option<ShowFilter>,
    },
    /// `SHOW STATS FOR table [LIKE|WHERE]`
    Stats {
        table: ObjectPath,
        filter: Option<ShowFilter>,
    },
    /// `SHOW WORKERS`
    Workers,
    /// `SHOW PROFILE [FOR 'query id']`: without an id, the session's last query.
    Profile { query_id: Option<String> },
    /// `SHOW WARNINGS`, also `SHOW COUNT(*) WARNINGS`
    Warnings { count: bool },
    /// `SHOW ERRORS`, also `SHOW COUNT(*) ERRORS`
    Errors { count: bool },
    /// `SHOW [STORAGE] ENGINES`
    Engines,
    /// `SHOW PLUGINS`
    Plugins,
    /// `SHOW PRIVILEGES`
    Privileges,
    /// `SHOW GRANTS [FOR user]`
    Grants { user: Option<String> },
    /// `SHOW CHARACTER SET|CHARSET [LIKE|WHERE]`
    CharacterSet { filter: Option<ShowFilter> },
    /// `SHOW COLLATION [LIKE|WHERE]`
    Collation { filter: Option<ShowFilter> },
    /// `SHOW FUNCTION STATUS [LIKE|WHERE]`: stored functions, of which there are none.
    FunctionStatus { filter: Option<ShowFilter> },
    /// `SHOW FUNCTIONS [LIKE|WHERE]`: what may be called in a query.
    Functions { filter: Option<ShowFilter> },
    /// `SHOW PROCEDURE STATUS [LIKE|WHERE]`
    ProcedureStatus { filter: Option<ShowFilter> },
    /// `SHOW TRIGGERS [FROM database] [LIKE|WHERE]`
    Triggers {
        database: Option<DatabaseName>,
        filter: Option<ShowFilter>,
    },
    /// `SHOW EVENTS [FROM database] [LIKE|WHERE]`
    Events {
        database: Option<DatabaseName>,
        filter: Option<ShowFilter>,
    },
    /// `SHOW OPEN TABLES [FROM database] [LIKE|WHERE]`
    OpenTables {
        database: Option<DatabaseName>,
        filter: Option<ShowFilter>,
    },
    /// `ADMIN SHOW FRONTEND CONFIG [LIKE]` (StarRocks): key, value, … of the settings
    FrontendConfig { filter: Option<ShowFilter> },
}

impl Show {
    /// The statement's name for audit and messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Show::Catalogs { .. } => "SHOW CATALOGS",
            Show::Databases { .. } => "SHOW DATABASES",
            Show::Tables { .. } => "SHOW TABLES",
            Show::TableStatus { .. } => "SHOW TABLE STATUS",
            Show::Columns { .. } => "SHOW COLUMNS",
            Show::Indexes { .. } => "SHOW INDEX",
            Show::CreateTable { .. } => "SHOW CREATE TABLE",
            Show::CreateView { .. } => "SHOW CREATE VIEW",
            Show::CreateDatabase { .. } => "SHOW CREATE DATABASE",
            Show::CreateCatalog { .. } => "SHOW CREATE CATALOG",
            Show::Processlist { .. } => "SHOW PROCESSLIST",
            Show::Variables { .. } => "SHOW VARIABLES",
            Show::Status { .. } => "SHOW STATUS",
            Show::Stats { .. } => "SHOW STATS",
            Show::Workers => "SHOW WORKERS",
            Show::Profile { .. } => "SHOW PROFILE",
            Show::Warnings { .. } => "SHOW WARNINGS",
            Show::Errors { .. } => "SHOW ERRORS",
            Show::Engines => "SHOW ENGINES",
            Show::Plugins => "SHOW PLUGINS",
            Show::Privileges => "SHOW PRIVILEGES",
            Show::Grants { .. } => "SHOW GRANTS",
            Show::CharacterSet { .. } => "SHOW CHARACTER SET",
            Show::Collation { .. } => "SHOW COLLATION",
            Show::FunctionStatus { .. } => "SHOW FUNCTION STATUS",
            Show::Functions { .. } => "SHOW FUNCTIONS",
            Show::ProcedureStatus { .. } => "SHOW PROCEDURE STATUS",
            Show::Triggers { .. } => "SHOW TRIGGERS",
            Show::Events { .. } => "SHOW EVENTS",
            Show::OpenTables { .. } => "SHOW OPEN TABLES",
            Show::FrontendConfig { .. } => "ADMIN SHOW FRONTEND CONFIG",
        }
    }
}
