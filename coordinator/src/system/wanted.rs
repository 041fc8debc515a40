//! What a query wants of a system table, so that browsing one database does not load all others.

use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// Databases, tables and columns that a scan asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    databases: Option<Vec<String>>,
    tables: Option<Vec<String>>,
    /// Lower-case names of the columns that are read; `None` for all.
    pub columns: Option<Vec<String>>,
}

/// Columns that name the database and the table of a row.
const DATABASE_COLUMNS: &[&str] = &["table_schema", "schema_name", "constraint_schema"];
const TABLE_COLUMNS: &[&str] = &["table_name"];

impl Wanted {
    /// What `filters` (joined by AND) leave of a table whose rows are about databases and tables.
    pub fn by_filters(filters: &[Expr]) -> Self {
        let mut wanted = Self::default();
        for filter in filters {
            if let Some((column, values)) = equality(filter) {
                if DATABASE_COLUMNS.contains(&column) {
                    narrow(&mut wanted.databases, values);
                } else if TABLE_COLUMNS.contains(&column) {
                    narrow(&mut wanted.tables, values);
                }
            }
        }
        wanted
    }

    /// One database only.
    pub fn one_database(database: &str) -> Self {
        Self {
            databases: Some(vec![database.to_owned()]),
            ..Self::default()
        }
    }

    /// Whether [`Wanted::by_filters`] understands this filter.
    pub fn understands(filter: &Expr) -> bool {
        equality(filter).is_some_and(|(column, _)| {
            DATABASE_COLUMNS.contains(&column) || TABLE_COLUMNS.contains(&column)
        })
    }

    /// The databases that are asked for by name, if they are.
    pub fn named_databases(&self) -> Option<&[String]> {
        self.databases.as_deref()
    }

    pub fn database(&self, name: &str) -> bool {
        self.databases
            .as_ref()
            .is_none_or(|names| names.iter().any(|wanted| wanted == name))
    }

    pub fn table(&self, name: &str) -> bool {
        self.tables
            .as_ref()
            .is_none_or(|names| names.iter().any(|wanted| wanted == name))
    }

    /// Whether any of these (lower-case) columns is read.
    pub fn reads_any(&self, names: &[&str]) -> bool {
        self.columns.as_ref().is_none_or(|columns| {
            columns
                .iter()
                .any(|column| names.contains(&column.as_str()))
        })
    }
}

fn narrow(names: &mut Option<Vec<String>>, values: Vec<String>) {
    match names {
        None => *names = Some(values),
        Some(names) => names.retain(|name| values.contains(name)),
    }
}

/// `column = 'value'` or `column IN ('value', …)`.
fn equality(filter: &Expr) -> Option<(&str, Vec<String>)> {
    match filter {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) => match (column(left), text(right)) {
            (Some(column), Some(value)) => Some((column, vec![value])),
            _ => Some((column(right)?, vec![text(left)?])),
        },
        Expr::InList(list) if !list.negated => {
            let values: Option<Vec<String>> = list.list.iter().map(text).collect();
            Some((column(&list.expr)?, values?))
        }
        _ => None,
    }
}

fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(column.name.as_str()),
        Expr::Cast(cast) => column(&cast.expr),
        _ => None,
    }
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
        Expr::Cast(cast) => text(&cast.expr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn equalities_on_database_and_table_narrow_what_is_loaded() {
        let filters = [
            col("table_schema").eq(lit("shop")),
            lit("orders").eq(col("table_name")),
            col("table_type").eq(lit("VIEW")),
        ];
        let wanted = Wanted::by_filters(&filters);
        assert!(wanted.database("shop") && !wanted.database("tpch"));
        assert!(wanted.table("orders") && !wanted.table("items"));
        assert!(Wanted::understands(&filters[0]) && !Wanted::understands(&filters[2]));
    }

    #[test]
    fn lists_and_contradictions_are_taken_together() {
        let wanted = Wanted::by_filters(&[
            col("table_schema").in_list(vec![lit("a"), lit("b")], false),
            col("table_schema").eq(lit("b")),
        ]);
        assert_eq!(wanted.named_databases(), Some(&["b".to_owned()][..]));
        let negated = col("table_schema").in_list(vec![lit("a")], true);
        assert_eq!(Wanted::by_filters(&[negated]), Wanted::default());
    }
}
