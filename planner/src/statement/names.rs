//! The names a client sees for a result's columns.
//!
//! MySQL names a column by its alias, or else by the expression's own text: `SELECT 1+1, Count(*)` has the columns `1+1` and
//! `Count(*)`. DataFusion names them by its plan (`Int64(1) + Int64(1)`), in lower case, and refuses two of the same name.
//! So the names are taken from the text while parsing and put over the result's schema at the end.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};

/// Names for the columns of a result; `None` stands for the columns of a `*`, which keep theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputNames {
    items: Vec<Option<String>>,
}

impl OutputNames {
    /// One entry for each item of the select list; `None` for a wildcard.
    pub fn new(items: Vec<Option<String>>) -> OutputNames {
        OutputNames { items }
    }

    /// `schema` with the client's names. Items before the first wildcard are counted from the left, those after the last
    /// from the right; types, nullability and metadata stay, so batches can take the new schema as they are.
    pub fn apply(&self, schema: &Schema) -> SchemaRef {
        let width = schema.fields().len();
        let left = self.items.iter().take_while(|name| name.is_some()).count();
        let no_wildcard = left == self.items.len();
        if (no_wildcard && left != width) || left > width {
            return Arc::new(schema.clone());
        }
        let right = if no_wildcard {
            0
        } else {
            self.items
                .iter()
                .rev()
                .take_while(|name| name.is_some())
                .count()
        };
        if left + right > width {
            return Arc::new(schema.clone());
        }
        let fields: Vec<Arc<Field>> = schema
            .fields()
            .iter()
            .enumerate()
            .map(|(index, field)| {
                let item = if index < left {
                    self.items.get(index)
                } else if width - index <= right {
                    self.items.get(self.items.len() - (width - index))
                } else {
                    None
                };
                match item {
                    Some(Some(name)) if name != field.name() => {
                        Arc::new(field.as_ref().clone().with_name(name))
                    }
                    _ => Arc::clone(field),
                }
            })
            .collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;

    fn schema(names: &[&str]) -> Schema {
        Schema::new(
            names
                .iter()
                .map(|name| Field::new(*name, DataType::Int64, true))
                .collect::<Vec<_>>(),
        )
    }

    fn applied(items: &[Option<&str>], columns: &[&str]) -> Vec<String> {
        let names = OutputNames::new(items.iter().map(|item| item.map(str::to_owned)).collect());
        names
            .apply(&schema(columns))
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    #[test]
    fn names_replace_columns_one_for_one() {
        assert_eq!(
            applied(&[Some("1+1"), Some("Count(*)")], &["a", "b"]),
            ["1+1", "Count(*)"]
        );
    }

    #[test]
    fn columns_of_a_wildcard_keep_their_names() {
        assert_eq!(
            applied(&[Some("X"), None, Some("Y")], &["x", "a", "b", "y"]),
            ["X", "a", "b", "Y"]
        );
        assert_eq!(applied(&[None], &["a", "b"]), ["a", "b"]);
        assert_eq!(
            applied(&[None, Some("M"), None], &["a", "m", "b"]),
            ["a", "m", "b"]
        );
    }

    #[test]
    fn a_list_that_does_not_fit_changes_nothing() {
        assert_eq!(applied(&[Some("X")], &["a", "b"]), ["a", "b"]);
        assert_eq!(applied(&[], &["a"]), ["a"]);
    }
}
