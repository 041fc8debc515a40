//! Variants as their JSON text.

use arrow::array::{ArrayRef, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use parquet_variant_compute::{VariantArray, unshred_variant};
use parquet_variant_json::VariantToJson;

/// The JSON text of each value of `variants`, an array of the shape that Parquet gives to variants, shredded or not. A
/// JSON `null` is a text, and no null.
pub(super) fn variant_text(variants: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let variants = unshred_variant(&VariantArray::try_new(variants)?)?;
    let texts = (0..variants.len())
        .map(|row| match variants.is_null(row) {
            true => Ok(None),
            false => variants.try_value(row)?.to_json_string().map(Some),
        })
        .collect::<Result<StringArray, _>>()?;
    Ok(cast(&texts, target)?)
}
