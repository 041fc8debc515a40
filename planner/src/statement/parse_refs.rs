//! Branches and tags, in Spark's words, and `CALL`.
//!
//! ```text
//! ALTER TABLE t CREATE [OR REPLACE] {TAG | BRANCH} [IF NOT EXISTS] name [AS OF VERSION id] [RETAIN n DAYS]
//!               [WITH SNAPSHOT RETENTION [n SNAPSHOTS] [n DAYS]]
//! ALTER TABLE t REPLACE {TAG | BRANCH} name …
//! ALTER TABLE t DROP {TAG | BRANCH} [IF EXISTS] name
//! CALL [catalog.]system.procedure([name =>] value, …)
//! ```

use datafusion::sql::sqlparser::tokenizer::Token;
use tarn_catalog::{RefChange, RefCreation, RefKind, RefRetention};

use super::cursor::{Cursor, Failure, Parsed};
use super::parse::unsupported;
use super::{CallArgument, CallValue, Statement};

/// What follows `ALTER TABLE`.
pub(super) fn parse_alter_table(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let table = cursor.object_path()?;
    let change = if cursor.word("CREATE") {
        let replace = cursor.words(&["OR", "REPLACE"]);
        let Some(kind) = kind(cursor) else {
            return Err(unsupported("ALTER TABLE"));
        };
        let creation = match (replace, cursor.if_not_exists()) {
            (true, true) => {
                return Err(Failure::Invalid(
                    "OR REPLACE and IF NOT EXISTS exclude each other".to_owned(),
                ));
            }
            (true, false) => RefCreation::CreateOrReplace,
            (false, true) => RefCreation::IfNotExists,
            (false, false) => RefCreation::Create,
        };
        create(cursor, kind, creation)?
    } else if cursor.word("REPLACE") {
        let Some(kind) = kind(cursor) else {
            return Err(unsupported("ALTER TABLE"));
        };
        create(cursor, kind, RefCreation::Replace)?
    } else if cursor.is_word("DROP")
        && (cursor.is_word_at(1, "TAG") || cursor.is_word_at(1, "BRANCH"))
        // A column may be called `tag`.
        && !at_end(cursor, 2)
    {
        cursor.word("DROP");
        let Some(kind) = kind(cursor) else {
            return Err(unsupported("ALTER TABLE"));
        };
        RefChange::Drop {
            kind,
            if_exists: cursor.if_exists(),
            name: name(cursor)?,
        }
    } else {
        return Err(unsupported("ALTER TABLE"));
    };
    Ok(Statement::ChangeRef { table, change })
}

fn at_end(cursor: &Cursor<'_>, nth: usize) -> bool {
    cursor.parser.peek_nth_token_ref(nth).token == Token::EOF
}

fn kind(cursor: &mut Cursor<'_>) -> Option<RefKind> {
    cursor.one_of(&["TAG", "BRANCH"]).map(|word| match word {
        "TAG" => RefKind::Tag,
        _ => RefKind::Branch,
    })
}

/// A name of a branch or tag, quoted as a name or as a text: many are no SQL names.
fn name(cursor: &mut Cursor<'_>) -> Parsed<String> {
    match cursor.parser.peek_token_ref().token {
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => cursor.string(),
        _ => cursor.name(),
    }
}

fn create(cursor: &mut Cursor<'_>, kind: RefKind, creation: RefCreation) -> Parsed<RefChange> {
    let name = name(cursor)?;
    let creation = match creation {
        RefCreation::Create if cursor.if_not_exists() => RefCreation::IfNotExists,
        creation => creation,
    };
    let mut snapshot = None;
    let mut retention = RefRetention::default();
    if cursor.words(&["AS", "OF", "VERSION"]) {
        snapshot = Some(snapshot_id(cursor)?);
    }
    if cursor.word("RETAIN") {
        retention.max_ref_age_ms = Some(age(cursor)?);
    }
    if kind == RefKind::Branch && cursor.words(&["WITH", "SNAPSHOT", "RETENTION"]) {
        if cursor.is_word_at(1, "SNAPSHOTS") {
            let count = cursor.unsigned()?;
            cursor.expect_word("SNAPSHOTS")?;
            retention.min_snapshots_to_keep = Some(
                i32::try_from(count)
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or_else(|| Failure::Invalid(format!("{count} snapshots cannot be kept")))?,
            );
        }
        if retention.min_snapshots_to_keep.is_none() || !cursor.at_end() {
            retention.max_snapshot_age_ms = Some(age(cursor)?);
        }
    }
    Ok(RefChange::Create {
        kind,
        name,
        snapshot,
        creation,
        retention,
    })
}

fn snapshot_id(cursor: &mut Cursor<'_>) -> Parsed<i64> {
    let id = cursor.unsigned()?;
    i64::try_from(id).map_err(|_| Failure::Invalid(format!("{id} is no snapshot's id")))
}

/// `7 DAYS`, in milliseconds.
fn age(cursor: &mut Cursor<'_>) -> Parsed<i64> {
    let count = cursor.unsigned()?;
    let unit = cursor.one_of(&["DAYS", "DAY", "HOURS", "HOUR", "MINUTES", "MINUTE"]);
    let millis: i64 = match unit {
        Some("DAYS" | "DAY") => 86_400_000,
        Some("HOURS" | "HOUR") => 3_600_000,
        Some(_) => 60_000,
        None => return cursor.expected("DAYS, HOURS or MINUTES"),
    };
    i64::try_from(count)
        .ok()
        .and_then(|count| count.checked_mul(millis))
        .filter(|age| *age > 0)
        .ok_or_else(|| Failure::Invalid(format!("a time of {count} is out of range")))
}

/// What follows `CALL`.
pub(super) fn parse_call(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    let path = cursor.object_path()?;
    let is_system = path
        .database
        .as_deref()
        .is_some_and(|database| database.eq_ignore_ascii_case("system"));
    if !is_system {
        return Err(Failure::Unsupported {
            kind: "CALL",
            detail: format!(
                "there is no procedure '{path}': procedures are called as [catalog.]system.name(…)"
            ),
        });
    }
    let mut arguments = Vec::new();
    cursor.expect(&Token::LParen)?;
    while !cursor.take(&Token::RParen) {
        let name = match cursor.parser.peek_nth_token_ref(1).token {
            Token::RArrow => {
                let name = cursor.name()?.to_lowercase();
                cursor.expect(&Token::RArrow)?;
                Some(name)
            }
            _ => None,
        };
        let value = call_value(cursor)?;
        arguments.push(CallArgument { name, value });
        if !cursor.take(&Token::Comma) {
            cursor.expect(&Token::RParen)?;
            break;
        }
    }
    Ok(Statement::Call {
        catalog: path.catalog,
        procedure: path.table.to_lowercase(),
        arguments,
    })
}

fn call_value(cursor: &mut Cursor<'_>) -> Parsed<CallValue> {
    let negative = cursor.take(&Token::Minus);
    if negative || matches!(cursor.parser.peek_token_ref().token, Token::Number(..)) {
        let number = cursor.unsigned()?;
        let number = i64::try_from(number)
            .map_err(|_| Failure::Invalid(format!("{number} is out of range")))?;
        return Ok(CallValue::Number(if negative { -number } else { number }));
    }
    cursor.word("TIMESTAMP");
    Ok(CallValue::Text(cursor.string()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Statement, parse_statement};

    fn parsed(sql: &str) -> Statement {
        parse_statement(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
            .statement
    }

    #[test]
    fn references_are_created_and_dropped() {
        let create = |kind, name: &str, snapshot, creation, retention| RefChange::Create {
            kind,
            name: name.to_owned(),
            snapshot,
            creation,
            retention,
        };
        let none = RefRetention::default();
        for (sql, path, wanted) in [
            (
                "ALTER TABLE t CREATE TAG v1",
                "t",
                create(RefKind::Tag, "v1", None, RefCreation::Create, none),
            ),
            (
                "alter table c.db.t create or replace branch `a b` as of version 17 retain 2 days",
                "c.db.t",
                create(
                    RefKind::Branch,
                    "a b",
                    Some(17),
                    RefCreation::CreateOrReplace,
                    RefRetention {
                        max_ref_age_ms: Some(172_800_000),
                        ..none
                    },
                ),
            ),
            (
                "ALTER TABLE t CREATE BRANCH IF NOT EXISTS 'x/y' WITH SNAPSHOT RETENTION 3 SNAPSHOTS 12 HOURS",
                "t",
                create(
                    RefKind::Branch,
                    "x/y",
                    None,
                    RefCreation::IfNotExists,
                    RefRetention {
                        min_snapshots_to_keep: Some(3),
                        max_snapshot_age_ms: Some(43_200_000),
                        ..none
                    },
                ),
            ),
            (
                "ALTER TABLE t REPLACE TAG v1 AS OF VERSION 5 RETAIN 30 MINUTES",
                "t",
                create(
                    RefKind::Tag,
                    "v1",
                    Some(5),
                    RefCreation::Replace,
                    RefRetention {
                        max_ref_age_ms: Some(1_800_000),
                        ..none
                    },
                ),
            ),
            (
                "ALTER TABLE t CREATE BRANCH b WITH SNAPSHOT RETENTION 2 SNAPSHOTS",
                "t",
                create(
                    RefKind::Branch,
                    "b",
                    None,
                    RefCreation::Create,
                    RefRetention {
                        min_snapshots_to_keep: Some(2),
                        ..none
                    },
                ),
            ),
            (
                "ALTER TABLE t DROP BRANCH IF EXISTS b",
                "t",
                RefChange::Drop {
                    kind: RefKind::Branch,
                    name: "b".to_owned(),
                    if_exists: true,
                },
            ),
        ] {
            match parsed(sql) {
                Statement::ChangeRef { table, change } => {
                    assert_eq!(
                        (table.to_string().as_str(), change),
                        (path, wanted),
                        "{sql}"
                    );
                }
                other => panic!("{sql}: {other:?}"),
            }
        }
    }

    #[test]
    fn other_alterations_are_refused_by_name() {
        for sql in [
            "ALTER TABLE t ADD COLUMN a INT",
            "ALTER TABLE t DROP COLUMN a",
            "ALTER TABLE t DROP tag",
            "ALTER TABLE t CREATE INDEX i",
        ] {
            assert!(
                matches!(
                    parsed(sql),
                    Statement::Unsupported {
                        kind: "ALTER TABLE",
                        ..
                    }
                ),
                "{sql}"
            );
        }
        for sql in [
            "ALTER TABLE t CREATE TAG",
            "ALTER TABLE t CREATE TAG v1 AS OF VERSION x",
            "ALTER TABLE t CREATE TAG v1 RETAIN 3 WEEKS",
            "ALTER TABLE t CREATE TAG v1 RETAIN 0 DAYS",
            "ALTER TABLE t CREATE TAG v1 WITH SNAPSHOT RETENTION 3 SNAPSHOTS",
            "ALTER TABLE t CREATE OR REPLACE TAG IF NOT EXISTS v1",
            "ALTER TABLE t CREATE TAG v1 AS OF VERSION 99999999999999999999",
        ] {
            assert!(parse_statement(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn procedures_are_called_by_position_or_by_name() {
        match parsed("CALL lake.system.rollback_to_snapshot('db.t', 17)") {
            Statement::Call {
                catalog,
                procedure,
                arguments,
            } => {
                assert_eq!(catalog.as_deref(), Some("lake"));
                assert_eq!(procedure, "rollback_to_snapshot");
                let values: Vec<_> = arguments
                    .into_iter()
                    .map(|argument| argument.value)
                    .collect();
                assert_eq!(
                    values,
                    [CallValue::Text("db.t".into()), CallValue::Number(17)]
                );
            }
            other => panic!("{other:?}"),
        }
        match parsed(
            "call system.Rollback_To_Timestamp(timestamp => TIMESTAMP '2024-01-01 00:00:00', Table => 't')",
        ) {
            Statement::Call {
                catalog: None,
                procedure,
                arguments,
            } => {
                assert_eq!(procedure, "rollback_to_timestamp");
                let names: Vec<_> = arguments
                    .iter()
                    .map(|argument| argument.name.as_deref())
                    .collect();
                assert_eq!(names, [Some("timestamp"), Some("table")]);
                assert_eq!(
                    arguments[0].value,
                    CallValue::Text("2024-01-01 00:00:00".into())
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            parsed("CALL f(1)"),
            Statement::Unsupported { kind: "CALL", .. }
        ));
        for sql in [
            "CALL system.f",
            "CALL system.f(a + 1)",
            "CALL system.f('t' 1)",
        ] {
            assert!(parse_statement(sql).is_err(), "{sql}");
        }
    }
}
