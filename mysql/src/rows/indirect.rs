//! Arrays that point at their values: dictionaries and runs.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Int16Type, Int32Type, Int64Type};

use super::value::{ValueError, ValueWriter, value_writer};

type Written = Result<(), ValueError>;

/// The field of the values that `field`'s array points at: what is known of one is true of the other.
fn value_field(field: &Field, value_type: &DataType) -> Field {
    Field::new(field.name(), value_type.clone(), true).with_metadata(field.metadata().clone())
}

/// Where each row's value is, and the writer of the values.
struct Indirect<'a> {
    positions: Vec<usize>,
    values: Box<dyn ValueWriter + 'a>,
}

pub(super) struct DictionaryWriter<'a>(Indirect<'a>);

impl<'a> DictionaryWriter<'a> {
    pub fn new(field: &Field, array: &'a ArrayRef) -> Result<Self, ValueError> {
        let dictionary = array.as_any_dictionary();
        let values = dictionary.values();
        // Without values every row is NULL, and no position is ever looked at.
        let positions = if values.is_empty() {
            vec![]
        } else {
            dictionary.normalized_keys()
        };
        let values = value_writer(&value_field(field, values.data_type()), values)?;
        Ok(Self(Indirect { positions, values }))
    }
}

pub(super) struct RunWriter<'a>(Indirect<'a>);

impl<'a> RunWriter<'a> {
    pub fn new(field: &Field, array: &'a ArrayRef) -> Result<Self, ValueError> {
        let rows: Vec<i64> = (0..array.len() as i64).collect();
        let unknown = || ValueError::NoMysqlType(array.data_type().to_string());
        let (positions, values) = if let Some(runs) = array.as_run_opt::<Int16Type>() {
            (runs.get_physical_indices(&rows), runs.values())
        } else if let Some(runs) = array.as_run_opt::<Int32Type>() {
            (runs.get_physical_indices(&rows), runs.values())
        } else if let Some(runs) = array.as_run_opt::<Int64Type>() {
            (runs.get_physical_indices(&rows), runs.values())
        } else {
            return Err(unknown());
        };
        let positions = positions.map_err(|_| unknown())?;
        let values = value_writer(&value_field(field, values.data_type()), values)?;
        Ok(Self(Indirect { positions, values }))
    }
}

macro_rules! delegate {
    ($writer:ident) => {
        impl ValueWriter for $writer<'_> {
            fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
                self.0.values.text(self.0.positions[row], out)
            }

            fn text_with_length(&self, row: usize, out: &mut Vec<u8>) -> Written {
                self.0.values.text_with_length(self.0.positions[row], out)
            }

            fn binary(&self, row: usize, out: &mut Vec<u8>) -> Written {
                self.0.values.binary(self.0.positions[row], out)
            }

            fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
                self.0.values.json(self.0.positions[row], out)
            }
        }
    };
}
delegate!(DictionaryWriter);
delegate!(RunWriter);
