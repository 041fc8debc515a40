//! The statements there are. Each variant holds all that executing it needs; nothing is parsed twice.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use datafusion::sql::sqlparser::ast;
use iceberg::spec::Schema;
use tarn_catalog::{OrderField, PartitionField, RefChange};

use super::{OutputNames, Show};

/// A statement with the part of the client's text it came from.
#[derive(Debug, Clone)]
pub struct ParsedStatement {
    pub statement: Statement,
    /// As the client wrote it, without the `;` and the white space around it.
    pub text: String,
}

/// One statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// SELECT, WITH, VALUES, TABLE.
    Query(Query),
    /// EXPLAIN and its forms. The inner statement is a `Query` or an `Insert`.
    Explain {
        mode: ExplainMode,
        statement: Box<Statement>,
    },
    CreateCatalog {
        name: String,
        properties: BTreeMap<String, String>,
        if_not_exists: bool,
    },
    DropCatalog {
        name: String,
        if_exists: bool,
    },
    CreateDatabase {
        name: DatabaseName,
        properties: HashMap<String, String>,
        if_not_exists: bool,
    },
    DropDatabase {
        name: DatabaseName,
        if_exists: bool,
        cascade: bool,
    },
    CreateTable(Box<CreateTable>),
    DropTable {
        names: Vec<ObjectPath>,
        if_exists: bool,
        purge: bool,
    },
    /// There are no views yet: with IF EXISTS nothing is to do, without it the view does not exist.
    DropView {
        names: Vec<ObjectPath>,
        if_exists: bool,
    },
    /// `ALTER TABLE … CREATE | REPLACE | DROP TAG | BRANCH`.
    ChangeRef {
        table: ObjectPath,
        change: RefChange,
    },
    /// `CALL [catalog.]system.procedure(…)`; the procedure's name is lower-case.
    Call {
        catalog: Option<String>,
        procedure: String,
        arguments: Vec<CallArgument>,
    },
    /// `ANALYZE TABLE`.
    Analyze(Analyze),
    /// `columns` is empty when the statement names none.
    Insert {
        table: ObjectPath,
        columns: Vec<String>,
        source: Query,
    },
    /// `USE db`, `USE catalog.db`, `SET CATALOG c`; at least one is there.
    Use {
        catalog: Option<String>,
        database: Option<String>,
    },
    /// SET with its assignments in order.
    Set(Vec<Assignment>),
    Show(Show),
    /// `KILL [CONNECTION|QUERY] id`; with `query_only` the connection stays.
    Kill {
        target: KillTarget,
        query_only: bool,
    },
    Transaction(TransactionStatement),
    /// Accepted and without effect: LOCK TABLES, FLUSH, a comment alone, …
    Noop {
        kind: &'static str,
    },
    /// Well formed SQL that this version does not do (MySQL 1235); `detail` says what, in a sentence.
    Unsupported {
        kind: &'static str,
        detail: String,
    },
}

impl Statement {
    /// The statement's name for audit, metrics and messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Statement::Query(_) => "SELECT",
            Statement::Explain { mode, .. } => match mode {
                ExplainMode::Plan => "EXPLAIN",
                ExplainMode::Verbose => "EXPLAIN VERBOSE",
                ExplainMode::Analyze { .. } => "EXPLAIN ANALYZE",
                ExplainMode::Estimate => "EXPLAIN ESTIMATE",
            },
            Statement::CreateCatalog { .. } => "CREATE CATALOG",
            Statement::DropCatalog { .. } => "DROP CATALOG",
            Statement::CreateDatabase { .. } => "CREATE DATABASE",
            Statement::DropDatabase { .. } => "DROP DATABASE",
            Statement::CreateTable(create) if create.query.is_some() => "CREATE TABLE AS",
            Statement::CreateTable(_) => "CREATE TABLE",
            Statement::DropTable { .. } => "DROP TABLE",
            Statement::DropView { .. } => "DROP VIEW",
            Statement::ChangeRef { .. } => "ALTER TABLE",
            Statement::Call { .. } => "CALL",
            Statement::Analyze(_) => "ANALYZE TABLE",
            Statement::Insert { .. } => "INSERT",
            Statement::Use { .. } => "USE",
            Statement::Set(_) => "SET",
            Statement::Show(show) => show.kind(),
            Statement::Kill { .. } => "KILL",
            Statement::Transaction(TransactionStatement::Begin) => "BEGIN",
            Statement::Transaction(TransactionStatement::Commit) => "COMMIT",
            Statement::Transaction(TransactionStatement::Rollback) => "ROLLBACK",
            Statement::Noop { kind } => kind,
            Statement::Unsupported { kind, .. } => kind,
        }
    }

    /// How many `?` the statement holds.
    pub fn parameter_count(&self) -> usize {
        match self {
            Statement::Query(query) | Statement::Insert { source: query, .. } => query.parameters,
            Statement::Explain { statement, .. } => statement.parameter_count(),
            Statement::CreateTable(create) => {
                create.query.as_ref().map_or(0, |query| query.parameters)
            }
            _ => 0,
        }
    }
}

/// A query as parsed: before it is planned it goes through [`rewrite_query`](super::rewrite_query).
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Always `ast::Statement::Query`. The n-th `?` of the text is `$n` here, which DataFusion knows.
    pub ast: Box<ast::Statement>,
    /// The names the client must see for the result's columns; apply them to the result's schema.
    pub names: OutputNames,
    /// How many `?` it holds.
    pub parameters: usize,
}

/// What EXPLAIN shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainMode {
    /// The distributed plan.
    Plan,
    /// With the logical plan and the physical details.
    Verbose,
    /// Runs it, and shows the metrics of every stage and task.
    Analyze { verbose: bool },
    /// Files, rows and bytes per scanned table after pruning, from metadata alone.
    Estimate,
}

/// `[catalog.]database`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DatabaseName {
    pub catalog: Option<String>,
    pub database: String,
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(catalog) = &self.catalog {
            write!(f, "{catalog}.")?;
        }
        f.write_str(&self.database)
    }
}

/// `[[catalog.]database.]table`, as written: the session fills in what is missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectPath {
    pub catalog: Option<String>,
    pub database: Option<String>,
    pub table: String,
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.catalog, &self.database].into_iter().flatten() {
            write!(f, "{part}.")?;
        }
        f.write_str(&self.table)
    }
}

/// `CREATE TABLE`.
#[derive(Debug, Clone)]
pub struct CreateTable {
    pub name: ObjectPath,
    /// With fresh field ids from 1; `None` for CREATE TABLE AS, whose columns are the query's.
    pub columns: Option<Schema>,
    pub partition: Vec<PartitionField>,
    /// The sort order of its files.
    pub order: Vec<OrderField>,
    /// Iceberg table properties, with the key `comment` for COMMENT.
    pub properties: HashMap<String, String>,
    pub location: Option<String>,
    /// From the property `format-version`; 2 unless said otherwise.
    pub format_version: u8,
    pub if_not_exists: bool,
    pub query: Option<Query>,
}

/// `ANALYZE TABLE table[, …] [(column, …)] [SAMPLE n PERCENT]`
#[derive(Debug, Clone, PartialEq)]
pub struct Analyze {
    pub tables: Vec<ObjectPath>,
    /// Of the one table; none is all of them.
    pub columns: Vec<String>,
    /// Of the rows, above 0 and up to 100.
    pub sample_percent: Option<f64>,
}

/// An argument of a procedure.
#[derive(Debug, Clone, PartialEq)]
pub struct CallArgument {
    /// Lower-case; `None` for one that is told by its place.
    pub name: Option<String>,
    pub value: CallValue,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CallValue {
    Text(String),
    Number(i64),
}

/// Where a variable is looked up or set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableScope {
    /// Neither was written: the session's value, which for MySQL falls back to the global one.
    Default,
    Session,
    Global,
}

/// One assignment of a SET statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Assignment {
    /// `SET [GLOBAL|SESSION|@@session.|@@]name = value`; the name is lower-case.
    Variable {
        scope: VariableScope,
        name: String,
        value: SetValue,
    },
    /// `SET @name = value`; the name is lower-case.
    UserVariable { name: String, value: SetValue },
    /// `SET NAMES charset [COLLATE collation]`; `None` for `DEFAULT`.
    Names {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// `SET CHARACTER SET charset`
    CharacterSet { charset: Option<String> },
    /// `SET [GLOBAL|SESSION] TRANSACTION …`: queries read one snapshot anyway.
    Transaction {
        scope: VariableScope,
        isolation: Option<String>,
        read_only: Option<bool>,
    },
}

/// The right side of an assignment.
#[derive(Debug, Clone, PartialEq)]
pub enum SetValue {
    Default,
    /// A literal or a bare word (`ON`, `OFF`, `utf8mb4`), which MySQL takes as text.
    Value(super::SessionValue),
    /// Anything else, as `SELECT <expression>`: rewrite it with the session's values and run it for its one value.
    Expression(Query),
}

/// What KILL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KillTarget {
    /// The id `CONNECTION_ID()` and PROCESSLIST show.
    Connection(u64),
    /// A query id, quoted.
    Query(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatement {
    Begin,
    Commit,
    Rollback,
}
