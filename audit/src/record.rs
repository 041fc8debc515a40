use serde::{Deserialize, Serialize};

use crate::ScanReport;

/// One statement's life, written when it ends, whatever its outcome. One JSON line in the log.
///
/// Times of day are milliseconds since the Unix epoch, spans are milliseconds, sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    /// The statement's id, as shown by `SHOW PROCESSLIST`.
    pub query_id: String,
    /// The connection it came by.
    pub connection_id: u32,
    /// `mysql`, `flight_sql` or `embedded`.
    pub protocol: String,
    pub user: String,
    /// The client's address, empty for an embedded engine.
    pub client: String,
    /// The session's catalog and database when the statement began.
    pub catalog: String,
    pub database: String,
    /// `SELECT`, `INSERT`, `CREATE TABLE`, …; `INVALID` for text that did not parse.
    pub kind: String,
    /// The statement's text, cut at [`AuditRecord::MAX_STATEMENT_BYTES`].
    pub statement: String,
    pub start_ms: i64,
    pub end_ms: i64,
    /// Parse, pin, plan and optimise.
    pub planning_ms: u64,
    /// From the start of execution until the last row was handed to the client.
    pub execution_ms: u64,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<StatementError>,
    /// Rows and Arrow bytes returned to the client.
    pub rows_returned: u64,
    pub bytes_returned: u64,
    /// Rows written by an INSERT or a CREATE TABLE AS.
    pub rows_affected: u64,
    /// How often the statement was started anew after a worker was lost.
    pub retries: u32,
    /// How many workers took part; 0 when it ran in the coordinator's process.
    pub workers: u32,
    /// One report per scan of a table in the executed plan.
    pub scans: Vec<ScanReport>,
}

impl AuditRecord {
    /// Longer statements are cut here (at a character's boundary), so that one generated
    /// 100 MB `IN` list does not fill the log.
    pub const MAX_STATEMENT_BYTES: usize = 64 * 1024;

    /// `text`, cut at [`Self::MAX_STATEMENT_BYTES`].
    pub fn cut_statement(text: &str) -> String {
        if text.len() <= Self::MAX_STATEMENT_BYTES {
            return text.to_owned();
        }
        let mut end = Self::MAX_STATEMENT_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        format!("{}…", &text[..end])
    }
}

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The client has the whole answer.
    Ok,
    /// It failed; see [`AuditRecord::error`].
    Error,
    /// `KILL`, or the client asked to cancel.
    Killed,
    /// `query_timeout` passed.
    TimedOut,
    /// The client went away before the end.
    Disconnected,
}

/// The error that the client was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatementError {
    /// The name of the kind of error, e.g. `NoSuchTable`.
    pub kind: String,
    /// The MySQL error number.
    pub code: u16,
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of an object's fields.
    fn fields(value: &serde_json::Value) -> Vec<String> {
        let object = value.as_object().expect("an object");
        object.keys().cloned().collect()
    }

    #[test]
    fn every_field_is_documented() {
        let document = include_str!("../../docs/audit.md");
        let record = AuditRecord {
            query_id: String::new(),
            connection_id: 0,
            protocol: String::new(),
            user: String::new(),
            client: String::new(),
            catalog: String::new(),
            database: String::new(),
            kind: String::new(),
            statement: String::new(),
            start_ms: 0,
            end_ms: 0,
            planning_ms: 0,
            execution_ms: 0,
            outcome: Outcome::Error,
            error: Some(StatementError {
                kind: String::new(),
                code: 0,
                message: String::new(),
            }),
            rows_returned: 0,
            bytes_returned: 0,
            rows_affected: 0,
            retries: 0,
            workers: 0,
            scans: vec![ScanReport::default()],
        };
        let record = serde_json::to_value(&record).expect("plain data serialises");
        let (scan, error) = (&record["scans"][0], &record["error"]);
        for field in [fields(&record), fields(scan), fields(error)].concat() {
            assert!(document.contains(&format!("`{field}`")), "{field}");
        }
    }

    #[test]
    fn a_long_statement_is_cut_between_characters() {
        // 'é' is two bytes: the limit falls inside one when the text starts with a single byte.
        let text = format!("x{}", "é".repeat(AuditRecord::MAX_STATEMENT_BYTES));
        let cut = AuditRecord::cut_statement(&text);
        assert_eq!(
            cut.len(),
            AuditRecord::MAX_STATEMENT_BYTES - 1 + '…'.len_utf8()
        );
        assert!(cut.ends_with("é…"));
        assert_eq!(AuditRecord::cut_statement("SELECT 1"), "SELECT 1");
    }
}
