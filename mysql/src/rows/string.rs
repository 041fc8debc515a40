//! Text, bytes, UUIDs, and what is shown as text because MySQL has no type for it.

use arrow::array::{
    Array, ArrayAccessor, ArrayRef, AsArray, FixedSizeBinaryArray, StringArray, StringViewArray,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};

use super::json::put_json_string;
use super::value::{ValueError, ValueWriter};
use crate::wire::lenenc;

type Written = Result<(), ValueError>;

const HEX: &[u8; 16] = b"0123456789abcdef";

fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(
        bytes
            .iter()
            .flat_map(|byte| [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
    );
}

pub(super) struct TextWriter<A>(pub A);

impl<'a, A: ArrayAccessor<Item = &'a str> + Send> ValueWriter for TextWriter<A> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        out.extend_from_slice(self.0.value(row).as_bytes());
        Ok(())
    }

    fn text_with_length(&self, row: usize, out: &mut Vec<u8>) -> Written {
        lenenc::put_bytes(out, self.0.value(row).as_bytes());
        Ok(())
    }

    fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        put_json_string(out, self.0.value(row));
        Ok(())
    }
}

/// Text that is JSON, which inside other JSON stands as it is.
pub(super) enum JsonTextWriter<'a> {
    Text(&'a StringArray),
    View(&'a StringViewArray),
}

impl<'a> JsonTextWriter<'a> {
    pub fn new(array: &'a ArrayRef) -> Self {
        match array.as_string_opt::<i32>() {
            Some(text) => Self::Text(text),
            None => Self::View(array.as_string_view()),
        }
    }
}

impl ValueWriter for JsonTextWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let text = match self {
            Self::Text(array) => array.value(row),
            Self::View(array) => array.value(row),
        };
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        self.text(row, out)
    }
}

pub(super) struct BytesWriter<A>(pub A);

impl<'a, A: ArrayAccessor<Item = &'a [u8]> + Send> ValueWriter for BytesWriter<A> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        out.extend_from_slice(self.0.value(row));
        Ok(())
    }

    fn text_with_length(&self, row: usize, out: &mut Vec<u8>) -> Written {
        lenenc::put_bytes(out, self.0.value(row));
        Ok(())
    }

    /// JSON has no bytes: two hexadecimal digits for each.
    fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        out.push(b'"');
        put_hex(out, self.0.value(row));
        out.push(b'"');
        Ok(())
    }
}

pub(super) struct UuidWriter<'a>(pub &'a FixedSizeBinaryArray);

impl ValueWriter for UuidWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let mut rest = self.0.value(row);
        for (index, length) in [4, 2, 2, 2, 6].into_iter().enumerate() {
            if index > 0 {
                out.push(b'-');
            }
            let (head, tail) = rest.split_at(length.min(rest.len()));
            put_hex(out, head);
            rest = tail;
        }
        Ok(())
    }
}

/// Intervals and durations, as Arrow shows them. They are rare, so they are all rendered at once.
pub(super) struct DisplayWriter(Vec<String>);

impl DisplayWriter {
    pub fn new(array: &ArrayRef) -> Result<Self, ValueError> {
        let options = FormatOptions::new().with_duration_format(DurationFormat::Pretty);
        let shown = |error: ArrowError| ValueError::Display(error.to_string());
        let formatter = ArrayFormatter::try_new(array.as_ref(), &options).map_err(shown)?;
        let texts = (0..array.len()).map(|row| formatter.value(row).try_to_string());
        texts.collect::<Result<_, _>>().map(Self).map_err(shown)
    }
}

impl ValueWriter for DisplayWriter {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        out.extend_from_slice(self.0[row].as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BinaryArray, DurationSecondArray, IntervalMonthDayNanoArray, StringArray, StringViewArray,
    };
    use arrow::datatypes::IntervalMonthDayNano;
    use std::sync::Arc;

    fn with_length(writer: &dyn ValueWriter) -> Vec<u8> {
        let mut out = vec![];
        writer.text_with_length(0, &mut out).unwrap();
        let mut binary = vec![];
        writer.binary(0, &mut binary).unwrap();
        assert_eq!(out, binary);
        out
    }

    #[test]
    fn text_and_bytes() {
        assert_eq!(
            with_length(&TextWriter(&StringArray::from(vec!["é"]))),
            b"\x02\xc3\xa9"
        );
        assert_eq!(
            with_length(&TextWriter(&StringViewArray::from(vec!["ab"]))),
            b"\x02ab"
        );
        assert_eq!(
            with_length(&BytesWriter(&BinaryArray::from(vec![&b"\0\xff"[..]]))),
            b"\x02\0\xff"
        );
        let long = "x".repeat(300);
        let bytes = with_length(&TextWriter(&StringArray::from(vec![long.as_str()])));
        assert_eq!(bytes[..4], [0xfc, 0x2c, 0x01, b'x']);
    }

    #[test]
    fn uuids() {
        let bytes: Vec<u8> = (0..16).collect();
        let array = FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).unwrap();
        let expected = b"\x2400010203-0405-0607-0809-0a0b0c0d0e0f";
        assert_eq!(with_length(&UuidWriter(&array)), expected);
    }

    #[test]
    fn durations_and_intervals() {
        let array: ArrayRef = Arc::new(DurationSecondArray::from(vec![90_061]));
        let text = with_length(&DisplayWriter::new(&array).unwrap());
        assert_eq!(text[1..], *b"1 days 1 hours 1 mins 1 secs");
        let interval = IntervalMonthDayNano::new(14, 3, 0);
        let array: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![interval]));
        let text = with_length(&DisplayWriter::new(&array).unwrap());
        assert_eq!(text[1..], *b"14 mons 3 days");
    }
}
