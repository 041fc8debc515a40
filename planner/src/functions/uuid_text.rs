//! UUIDs as the text that clients see, where a query asks for text: `CAST(u AS CHAR)`, `CONCAT(u, '-')`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{Expr, ScalarUDF};
use uuid::Uuid;

use super::row_function::{Kind, RowFunction};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![udf()]
}

fn udf() -> Arc<ScalarUDF> {
    RowFunction::new(
        "uuid_text",
        &[Kind::Any],
        |_| Ok(DataType::Utf8),
        |args, _| text(&args[0]),
    )
    .udf()
}

/// The text of a UUID.
pub(crate) fn uuid_text(expr: Expr) -> Expr {
    udf().call(vec![expr])
}

fn text(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(uuids) = array.as_fixed_size_binary_opt() else {
        return exec_err!("uuid_text cannot take {}", array.data_type());
    };
    let texts = uuids.iter().map(|bytes| {
        let uuid = bytes.and_then(|bytes| Uuid::from_slice(bytes).ok());
        uuid.map(|uuid| uuid.hyphenated().to_string())
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}
