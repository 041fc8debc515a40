//! `SHA1`, which DataFusion's `digest` does not have.

use std::sync::Arc;

use arrow::array::StringArray;
use datafusion::logical_expr::ScalarUDF;
use sha1::{Digest, Sha1};

use super::row_function::{Kind, RowFunction, returns_text, typed};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        RowFunction::new("sha1", &[Kind::Text], returns_text, |args, _| {
            let texts = typed::<StringArray>(&args[0])?;
            Ok(Arc::new(
                texts
                    .iter()
                    .map(|text| text.map(|text| hex(&Sha1::digest(text.as_bytes()))))
                    .collect::<StringArray>(),
            ))
        })
        .udf(),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
