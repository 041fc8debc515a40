//! What an expression may ask of the session that runs it.

use super::VariableScope;

/// The value of a system or user variable.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionValue {
    Null,
    Integer(i64),
    Float(f64),
    Text(String),
}

/// The session as expressions see it: variables, `DATABASE()`, `USER()` and their like become literals
/// before the query is planned, so that workers need know nothing of sessions.
pub trait SessionValues {
    /// A system variable by its lower-case name without the `@@`; `None` when there is no such variable.
    fn variable(&self, scope: VariableScope, name: &str) -> Option<SessionValue>;
    /// A user variable by its lower-case name without the `@`; `None` when it was never set (it then reads as NULL).
    fn user_variable(&self, name: &str) -> Option<SessionValue>;
    /// The current database, if one was chosen.
    fn database(&self) -> Option<String>;
    /// The current catalog.
    fn catalog(&self) -> String;
    /// `name@host`, as `USER()` shows it.
    fn user(&self) -> String;
    /// The number that `KILL` takes.
    fn connection_id(&self) -> u32;
    /// The server version as MySQL clients are told it.
    fn version(&self) -> String;
    /// Tarn's own version (`CURRENT_VERSION()`).
    fn engine_version(&self) -> String;
    /// How the tables of the query spell a column, by its name as it is written: asked for every name in the query, since MySQL
    /// finds columns in any case and DataFusion only in theirs. `None` where lower case is right, or two tables disagree.
    fn column_spelling(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
}
