//! What is known of a table's columns, for `SHOW STATS`.

use arrow::util::display::array_value_to_string;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use iceberg::spec::ManifestContentType;
use tarn_catalog::ColumnSketch;

use super::iceberg_table::IcebergTable;
use super::scan_plan::ScanPlan;

/// What is known of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStats {
    pub column: String,
    /// Rows of the table, without those that are deleted as far as that is known.
    pub rows: u64,
    pub nulls: Option<u64>,
    pub distinct: Option<u64>,
    /// The least and greatest value, as text.
    pub min: Option<String>,
    pub max: Option<String>,
    /// Its size in the data files, if they tell.
    pub bytes: Option<u64>,
    pub source: DistinctSource,
}

/// Where the number of distinct values is from.
#[derive(Debug, Clone, PartialEq)]
pub enum DistinctSource {
    /// A statistics file.
    Sketch(ColumnSketch),
    /// The column's bounds, type or size.
    Derived,
    Unknown,
}

impl IcebergTable {
    /// What is known of each column, from metadata alone.
    pub async fn column_stats(&self, state: &dyn Session) -> Result<Vec<ColumnStats>> {
        let plan = ScanPlan {
            table: self,
            projection: None,
            filters: &[],
            limit: None,
        };
        let manifests = self.manifests(ManifestContentType::Data);
        let (statistics, kept) = plan.statistics(manifests, state).await?;
        let rows = statistics
            .num_rows
            .get_value()
            .map_or(0, |rows| *rows as u64);
        let layout = self.layout();
        let mut columns = Vec::with_capacity(layout.columns().len());
        for ((column, field), known) in layout
            .columns()
            .iter()
            .zip(layout.schema.fields())
            .zip(&statistics.column_statistics)
        {
            let mut bytes = None;
            for files in &kept {
                for place in files.indices() {
                    let sizes = files.manifest.entries[place].data_file().column_sizes();
                    if let Some(size) = sizes.get(&column.field_id) {
                        *bytes.get_or_insert(0) += size;
                    }
                }
            }
            let sketch = self.distinct().get(column.field_id);
            let derived = crate::join_order::distinct_values(known, field.data_type(), rows);
            columns.push(ColumnStats {
                column: field.name().clone(),
                rows,
                nulls: known.null_count.get_value().map(|nulls| *nulls as u64),
                distinct: match sketch {
                    Some(sketch) => Some(sketch.distinct),
                    None => derived,
                },
                min: text(&known.min_value),
                max: text(&known.max_value),
                bytes,
                source: match (sketch, derived) {
                    (Some(sketch), _) => DistinctSource::Sketch(sketch.sketch.clone()),
                    (None, Some(_)) => DistinctSource::Derived,
                    (None, None) => DistinctSource::Unknown,
                },
            });
        }
        Ok(columns)
    }
}

fn text(value: &Precision<ScalarValue>) -> Option<String> {
    let array = value.get_value()?.to_array().ok()?;
    array_value_to_string(&array, 0).ok()
}
