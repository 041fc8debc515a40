//! The order in which a query for the first rows of an order opens files.
//!
//! ```text
//!   ORDER BY x DESC LIMIT 10          A ├──────────────┤ 100    read first: it has the largest
//!                                     B       ├───┤ 60          ruled out once ten rows above 60 are known
//! ```
//!
//! A file whose best value is better than the last row of the answer has to be read in any case, so files go by their
//! best value.

use std::cmp::Ordering;

use arrow::datatypes::Schema;
use datafusion::common::ColumnStatistics;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;

/// Puts the files that have the first rows of the order first, as far as their bounds tell; those without bounds last.
pub(crate) fn in_order_of(
    mut files: Vec<PartitionedFile>,
    order: &PhysicalSortExpr,
    schema: &Schema,
) -> Vec<PartitionedFile> {
    let column = order.expr.downcast_ref::<Column>();
    let Some(index) = column.and_then(|column| schema.index_of(column.name()).ok()) else {
        return files;
    };
    let descending = order.options.descending;
    let best = |file: &PartitionedFile| {
        let column = file
            .statistics
            .as_ref()?
            .column_statistics
            .get(index)?
            .clone();
        let has_first_nulls = order.options.nulls_first && has_nulls(&column);
        let value = match descending {
            true => column.max_value,
            false => column.min_value,
        };
        Some((has_first_nulls, value.get_value()?.clone()))
    };
    files.sort_by_cached_key(|file| Best {
        of: best(file),
        descending,
    });
    files
}

fn has_nulls(column: &ColumnStatistics) -> bool {
    column.null_count.get_value().is_none_or(|nulls| *nulls > 0)
}

/// Whether a file has nulls that come first, and its best value.
struct Best<V> {
    of: Option<(bool, V)>,
    descending: bool,
}

impl<V: PartialOrd> Ord for Best<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.of, &other.of) {
            (Some((nulls, value)), Some((other_nulls, other_value))) => {
                let values = value.partial_cmp(other_value).unwrap_or(Ordering::Equal);
                other_nulls.cmp(nulls).then(match self.descending {
                    true => values.reverse(),
                    false => values,
                })
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }
}

impl<V: PartialOrd> PartialOrd for Best<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: PartialOrd> PartialEq for Best<V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<V: PartialOrd> Eq for Best<V> {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::compute::SortOptions;
    use arrow::datatypes::{DataType, Field};
    use datafusion::common::Statistics;
    use datafusion::common::stats::Precision;
    use datafusion::scalar::ScalarValue;

    use super::*;

    fn file(name: &str, bounds: Option<(i64, i64)>, nulls: usize) -> PartitionedFile {
        let mut file = PartitionedFile::new(name, 1);
        if let Some((min, max)) = bounds {
            let value = |value| Precision::Exact(ScalarValue::Int64(Some(value)));
            file.statistics = Some(Arc::new(Statistics {
                num_rows: Precision::Exact(10),
                total_byte_size: Precision::Absent,
                column_statistics: vec![ColumnStatistics {
                    min_value: value(min),
                    max_value: value(max),
                    null_count: Precision::Exact(nulls),
                    ..ColumnStatistics::new_unknown()
                }],
            }));
        }
        file
    }

    #[test]
    fn files_go_by_their_best_value() {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        let files = vec![
            file("unknown", None, 0),
            file("b", Some((50, 60)), 0),
            file("a", Some((0, 100)), 3),
            file("c", Some((10, 20)), 0),
        ];
        let names = |descending, nulls_first| {
            let order = PhysicalSortExpr {
                expr: Arc::new(Column::new("x", 0)),
                options: SortOptions::new(descending, nulls_first),
            };
            in_order_of(files.clone(), &order, &schema)
                .iter()
                .map(|file| file.object_meta.location.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(true, false), ["a", "b", "c", "unknown"]);
        assert_eq!(names(false, false), ["a", "c", "b", "unknown"]);
        assert_eq!(names(false, true), ["a", "c", "b", "unknown"]);
        let files_without = [1, 3].map(|i| files[i].clone()).to_vec();
        let order = PhysicalSortExpr {
            expr: Arc::new(Column::new("x", 0)),
            options: SortOptions::new(true, false),
        };
        let first = &in_order_of(files_without, &order, &schema)[0];
        assert_eq!(first.object_meta.location.as_ref(), "b");
    }
}
