//! MySQL's spelling of system tables' columns.
//!
//! Unquoted names in SQL are lower-case by the time they are resolved, so system tables have
//! lower-case columns; MySQL clients read the result of a `*` by upper-case names. The upper-case
//! name travels in the field's metadata and is put on at the end.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};

use crate::rows::Column;

const SHOWN_NAME: &str = "tarn.shown_name";

/// The schema of a system table: lower-case names that remember their spelling.
pub(super) fn queried_schema(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(
        columns
            .iter()
            .map(|column| {
                let lower = column.name.to_ascii_lowercase();
                let field = Field::new(&lower, column.kind.data_type(), true);
                if lower == column.name {
                    return field;
                }
                field.with_metadata(HashMap::from([(
                    SHOWN_NAME.to_owned(),
                    column.name.to_owned(),
                )]))
            })
            .collect::<Vec<_>>(),
    ))
}

/// `schema` with the remembered spelling, where a column still has its own name.
pub(crate) fn shown_names(schema: &Schema) -> Schema {
    let fields: Vec<Arc<Field>> = schema
        .fields()
        .iter()
        .map(|field| match field.metadata().get(SHOWN_NAME) {
            Some(shown) if shown.eq_ignore_ascii_case(field.name()) => {
                Arc::new(field.as_ref().clone().with_name(shown))
            }
            _ => Arc::clone(field),
        })
        .collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{text, uint};

    #[test]
    fn a_star_shows_mysqls_spelling_and_an_alias_stays() {
        let schema = queried_schema(&[text("TABLE_NAME"), uint("rows")]);
        assert_eq!(schema.field(0).name(), "table_name");
        assert_eq!(shown_names(&schema).field(0).name(), "TABLE_NAME");
        assert_eq!(shown_names(&schema).field(1).name(), "rows");
        let aliased = Schema::new(vec![schema.field(0).clone().with_name("t")]);
        assert_eq!(shown_names(&aliased).field(0).name(), "t");
    }
}
