//! The few tables of MySQL's own schema that clients read.

use super::definition::Definition;
use crate::planning::StatementContext;
use crate::rows::{Cell, int, text};

pub(super) const MYSQL_TABLES: &[Definition] = &[
    Definition {
        name: "help_topic",
        columns: &[
            int("help_topic_id"),
            text("name"),
            int("help_category_id"),
            text("description"),
            text("example"),
            text("url"),
        ],
    },
    Definition {
        name: "proc",
        columns: &[text("db"), text("name"), text("type"), text("comment")],
    },
    Definition {
        name: "user",
        columns: &[
            text("Host"),
            text("User"),
            text("plugin"),
            text("account_locked"),
        ],
    },
];

pub(super) fn rows(context: &StatementContext, table: &str) -> Vec<Vec<Cell>> {
    match table {
        "user" => context
            .engine
            .users()
            .iter()
            .map(|user| {
                vec![
                    "%".into(),
                    user.name.as_str().into(),
                    "caching_sha2_password".into(),
                    "N".into(),
                ]
            })
            .collect(),
        // Tarn has no stored routines and no help topics.
        _ => Vec::new(),
    }
}
