//! How many distinct values columns have, by a table's statistics files.

use std::collections::HashMap;

use tarn_catalog::{ColumnSketch, PinnedTable};

use crate::functions::sketched_values;

/// A sketch's estimate may be off by this: four standard errors of one with 4,096 entries.
const ERROR: f64 = 1.0625;

/// Distinct values by field id.
#[derive(Debug, Default)]
pub(crate) struct DistinctValues {
    columns: HashMap<i32, Known>,
}

/// What a statistics file says of a column.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// In the pinned snapshot, by what has been added since the sketch was made.
    pub distinct: u64,
    pub sketch: ColumnSketch,
}

impl DistinctValues {
    /// Of the pinned snapshot. What is corrupt or cannot be is left out, and logged.
    pub(crate) async fn of(table: &PinnedTable) -> Self {
        let mut columns = HashMap::new();
        let rows_now = table.snapshot().and_then(|snapshot| {
            let properties = &snapshot.summary().additional_properties;
            properties.get("total-records")?.trim().parse().ok()
        });
        for sketch in table.column_sketches() {
            let counted = match sketch.distinct {
                Some(distinct) => Ok(distinct),
                None => read(table, &sketch).await,
            };
            match counted.and_then(|counted| believed(counted, sketch.rows)) {
                Ok(counted) => {
                    let distinct = aged(counted, sketch.rows, rows_now);
                    columns.insert(sketch.field_id, Known { distinct, sketch });
                }
                Err(reason) => tracing::warn!(
                    table = %table.name(),
                    file = sketch.file,
                    field_id = sketch.field_id,
                    "a statistics file is not believed: {reason}"
                ),
            }
        }
        Self { columns }
    }

    /// Of the column with that id.
    pub(crate) fn get(&self, field_id: i32) -> Option<&Known> {
        self.columns.get(&field_id)
    }
}

async fn read(table: &PinnedTable, sketch: &ColumnSketch) -> Result<u64, String> {
    let bytes = table
        .theta_sketch(&sketch.file, sketch.field_id)
        .await
        .map_err(|error| error.to_string())?;
    sketched_values(&bytes).map_err(|error| error.to_string())
}

/// The count, if it can be one of so many rows.
fn believed(distinct: u64, rows: Option<u64>) -> Result<u64, String> {
    match rows {
        // Of a column of nulls, or without rows: nothing is learned, and nothing is wrong.
        Some(0) => Ok(0),
        Some(rows) if distinct as f64 > rows as f64 * ERROR => Err(format!(
            "it tells of {distinct} distinct values in {rows} rows"
        )),
        Some(rows) => Ok(distinct.min(rows)),
        None => Ok(distinct),
    }
    .and_then(|distinct| match distinct {
        0 => Err("it tells of 0 distinct values".to_owned()),
        distinct => Ok(distinct),
    })
}

/// The count after the table has grown or shrunk: of a column whose values are all different each new row has another, of a
/// column of few values hardly any has.
fn aged(distinct: u64, rows_then: Option<u64>, rows_now: Option<u64>) -> u64 {
    let (Some(then), Some(now)) = (rows_then.filter(|rows| *rows > 0), rows_now) else {
        return distinct;
    };
    let unique = (distinct as f64 / then as f64).min(1.0);
    let growth = now as f64 / then as f64 - 1.0;
    let aged = distinct as f64 * (1.0 + growth.max(0.0) * unique);
    (aged.round() as u64).min(now).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_cannot_be_are_not_believed() {
        assert_eq!(believed(10, Some(100)), Ok(10));
        assert_eq!(believed(10, None), Ok(10));
        // Within the error of a sketch.
        assert_eq!(believed(103, Some(100)), Ok(100));
        assert!(believed(200, Some(100)).is_err());
        assert!(believed(0, Some(100)).is_err());
        assert!(believed(u64::MAX, Some(100)).is_err());
    }

    #[test]
    fn old_counts_grow_as_their_columns_do() {
        // Keys: as many as rows.
        assert_eq!(aged(100, Some(100), Some(300)), 300);
        // Kinds: 5 in 1000 rows. Another 1000 rows bring next to none.
        assert_eq!(aged(5, Some(1000), Some(2000)), 5);
        assert_eq!(aged(500, Some(1000), Some(2000)), 750);
        // The table shrank.
        assert_eq!(aged(500, Some(1000), Some(100)), 100);
        assert_eq!(aged(500, None, Some(100)), 500);
        assert_eq!(aged(500, Some(1000), None), 500);
    }
}
