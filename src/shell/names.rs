//! The names that Tab completes, learnt from the engine in the background.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::client::{Client, ClientError, collect};

use super::cells::texts;

/// Catalogs, databases, tables and columns, as far as they are known. Cheap to clone; all clones see the same.
#[derive(Debug, Clone, Default)]
pub struct Names(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    catalogs: BTreeSet<String>,
    databases: BTreeSet<String>,
    /// Columns by table, tables by database.
    tables: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl Names {
    fn known(&self) -> MutexGuard<'_, Known> {
        // A completion that panicked half-way left nothing worse than a missing name.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Asks the engine. Names that cannot be had now are kept as they were.
    pub async fn learn(&self, client: &dyn Client) {
        if let Ok(rows) = rows(client, "SHOW CATALOGS").await {
            self.known().catalogs = rows
                .into_iter()
                .filter_map(|row| row.into_iter().next())
                .collect();
        }
        if let Ok(rows) = rows(client, "SHOW DATABASES").await {
            self.known().databases = rows
                .into_iter()
                .filter_map(|row| row.into_iter().next())
                .collect();
        }
        let sql = "SELECT table_schema, table_name, column_name FROM information_schema.columns";
        if let Ok(rows) = rows(client, sql).await {
            let mut tables: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
            for row in rows {
                if let [database, table, column] = &row[..] {
                    let columns = tables
                        .entry(database.clone())
                        .or_default()
                        .entry(table.clone())
                        .or_default();
                    columns.insert(column.clone());
                }
            }
            self.known().tables = tables;
        }
    }

    /// Names that may follow `qualifier.`: tables of a database, columns of a table, databases of a catalog.
    pub fn after(&self, qualifier: &str) -> BTreeSet<String> {
        let known = self.known();
        let mut found = BTreeSet::new();
        if known.catalogs.contains(qualifier) {
            found.extend(known.databases.iter().cloned());
        }
        if let Some(tables) = known.tables.get(qualifier) {
            found.extend(tables.keys().cloned());
        }
        for tables in known.tables.values() {
            if let Some(columns) = tables.get(qualifier) {
                found.extend(columns.iter().cloned());
            }
        }
        found
    }

    /// Every name that can stand alone. Columns only of the tables that `statement` names.
    pub fn plain(&self, statement: &str) -> BTreeSet<String> {
        let words: BTreeSet<&str> = statement
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|w| !w.is_empty())
            .collect();
        let known = self.known();
        let mut found: BTreeSet<String> = known
            .catalogs
            .iter()
            .chain(&known.databases)
            .cloned()
            .collect();
        for (table, columns) in known.tables.values().flatten() {
            found.insert(table.clone());
            if words.contains(table.as_str()) {
                found.extend(columns.iter().cloned());
            }
        }
        found
    }
}

async fn rows(client: &dyn Client, sql: &str) -> Result<Vec<Vec<String>>, ClientError> {
    let mut rows = Vec::new();
    for batch in collect(client, sql).await? {
        let columns = texts(&batch).map_err(|e| ClientError(e.to_string()))?;
        for row in 0..batch.num_rows() {
            rows.push(
                columns
                    .iter()
                    .map(|column| column[row].clone().unwrap_or_default())
                    .collect(),
            );
        }
    }
    Ok(rows)
}

#[cfg(test)]
pub(super) fn example() -> Names {
    let names = Names::default();
    {
        let mut known = names.known();
        known.catalogs = ["lake".to_string()].into();
        known.databases = ["redbi", "tpch"].map(String::from).into();
        let columns = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<BTreeSet<_>>();
        known.tables.insert(
            "tpch".to_string(),
            [
                (
                    "orders".to_string(),
                    columns(&["o_orderkey", "o_orderdate"]),
                ),
                ("part".to_string(), columns(&["p_name"])),
            ]
            .into(),
        );
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_dot() {
        let names = example();
        let after = |q: &str| names.after(q).into_iter().collect::<Vec<_>>();
        assert_eq!(after("lake"), ["redbi", "tpch"]);
        assert_eq!(after("tpch"), ["orders", "part"]);
        assert_eq!(after("orders"), ["o_orderdate", "o_orderkey"]);
        assert!(after("nothing").is_empty());
    }

    #[test]
    fn columns_are_offered_of_tables_that_the_statement_names() {
        let names = example();
        assert!(names.plain("SELECT o_ FROM orders").contains("o_orderkey"));
        assert!(!names.plain("SELECT o_ FROM part").contains("o_orderkey"));
        assert!(names.plain("").contains("tpch"));
    }
}
