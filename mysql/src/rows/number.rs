//! Booleans, integers, floating point numbers and decimals.

use arrow::array::{ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow::datatypes::{Decimal256Type, Float16Type, Float32Type, Float64Type};

use super::digits::put_integer;
use super::value::{ValueError, ValueWriter};

type Written = Result<(), ValueError>;

pub(super) struct BoolWriter<'a>(pub &'a BooleanArray);

impl ValueWriter for BoolWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        out.push(if self.0.value(row) { b'1' } else { b'0' });
        Ok(())
    }

    fn binary(&self, row: usize, out: &mut Vec<u8>) -> Written {
        out.push(u8::from(self.0.value(row)));
        Ok(())
    }

    fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        out.extend_from_slice(if self.0.value(row) { b"true" } else { b"false" });
        Ok(())
    }
}

pub(super) struct IntegerWriter<'a, T: ArrowPrimitiveType>(pub &'a PrimitiveArray<T>);

/// Integers whose little-endian bytes are their binary encoding.
pub(super) trait LittleEndian: Copy {
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! little_endian {
    ($($integer:ty),*) => {$(
        impl LittleEndian for $integer {
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
little_endian!(i8, i16, i32, i64, u8, u16, u32, u64);

impl<T> ValueWriter for IntegerWriter<'_, T>
where
    T: ArrowPrimitiveType,
    T::Native: itoa::Integer + LittleEndian,
{
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        put_integer(out, self.0.value(row));
        Ok(())
    }

    fn binary(&self, row: usize, out: &mut Vec<u8>) -> Written {
        self.0.value(row).put(out);
        Ok(())
    }

    fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        self.text(row, out)
    }
}

/// Writes the shortest text that reads back as the same number. What is no number is written as
/// `NaN`, `Infinity` and `-Infinity`: MySQL has no such values, and these are the words that Python,
/// Java, JavaScript and Go read back.
pub(super) struct FloatWriter<'a, T: ArrowPrimitiveType>(pub &'a PrimitiveArray<T>);

fn put_float<F: ryu::Float>(out: &mut Vec<u8>, value: F, finite: bool, nan: bool, negative: bool) {
    if finite {
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format_finite(value);
        out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
    } else {
        out.extend_from_slice(match (nan, negative) {
            (true, _) => b"NaN",
            (false, false) => b"Infinity",
            (false, true) => b"-Infinity",
        });
    }
}

/// JSON has no word for what is no number.
fn put_json_float(
    out: &mut Vec<u8>,
    finite: bool,
    text: impl FnOnce(&mut Vec<u8>) -> Written,
) -> Written {
    if finite {
        return text(out);
    }
    out.push(b'"');
    text(out)?;
    out.push(b'"');
    Ok(())
}

macro_rules! float_writer {
    ($arrow:ty, $native:ty, $convert:expr) => {
        impl ValueWriter for FloatWriter<'_, $arrow> {
            fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
                let value: $native = $convert(self.0.value(row));
                let negative = value.is_sign_negative();
                put_float(out, value, value.is_finite(), value.is_nan(), negative);
                Ok(())
            }

            fn binary(&self, row: usize, out: &mut Vec<u8>) -> Written {
                let value: $native = $convert(self.0.value(row));
                out.extend_from_slice(&value.to_le_bytes());
                Ok(())
            }

            fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
                let value: $native = $convert(self.0.value(row));
                put_json_float(out, value.is_finite(), |out| self.text(row, out))
            }
        }
    };
}
float_writer!(Float16Type, f32, f32::from);
float_writer!(Float32Type, f32, std::convert::identity);
float_writer!(Float64Type, f64, std::convert::identity);

/// Exact decimals of up to 38 digits.
pub(super) struct DecimalWriter<'a, T: ArrowPrimitiveType> {
    array: &'a PrimitiveArray<T>,
    scale: i8,
}

impl<'a, T: ArrowPrimitiveType> DecimalWriter<'a, T> {
    pub fn new(array: &'a PrimitiveArray<T>, scale: i8) -> Self {
        Self { array, scale }
    }
}

impl<T> ValueWriter for DecimalWriter<'_, T>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i128>,
{
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let value: i128 = self.array.value(row).into();
        if value < 0 {
            out.push(b'-');
        }
        let start = out.len();
        let magnitude = value.unsigned_abs();
        match u64::try_from(magnitude) {
            Ok(small) => put_integer(out, small),
            Err(_) => put_integer(out, magnitude),
        }
        place_point(out, start, self.scale);
        Ok(())
    }

    fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        self.text(row, out)
    }
}

/// Exact decimals of up to 76 digits.
pub(super) struct WideDecimalWriter<'a> {
    array: &'a PrimitiveArray<Decimal256Type>,
    scale: i8,
}

impl<'a> WideDecimalWriter<'a> {
    pub fn new(array: &'a PrimitiveArray<Decimal256Type>, scale: i8) -> Self {
        Self { array, scale }
    }
}

impl ValueWriter for WideDecimalWriter<'_> {
    fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let digits = self.array.value(row).to_string();
        let magnitude = digits.strip_prefix('-').unwrap_or(&digits);
        if magnitude.len() < digits.len() {
            out.push(b'-');
        }
        let start = out.len();
        out.extend_from_slice(magnitude.as_bytes());
        place_point(out, start, self.scale);
        Ok(())
    }

    fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        self.text(row, out)
    }
}

/// Turns the digits from `start` on, which count units of 10^-scale, into a decimal number.
fn place_point(out: &mut Vec<u8>, start: usize, scale: i8) {
    let Ok(scale) = usize::try_from(scale) else {
        // A negative scale: the digits count tens, hundreds, ….
        if out[start..] != *b"0" {
            out.resize(out.len() + usize::from(scale.unsigned_abs()), b'0');
        }
        return;
    };
    if scale == 0 {
        return;
    }
    let digits = out.len() - start;
    if digits <= scale {
        // 5 with scale 3 is 0.005.
        let zeros = scale + 1 - digits;
        out.splice(start..start, std::iter::repeat_n(b'0', zeros));
    }
    out.insert(out.len() - scale, b'.');
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        Decimal32Array, Decimal128Array, Decimal256Array, Float32Array, Float64Array, Int8Array,
        Int64Array, UInt64Array,
    };
    use arrow::datatypes::i256;

    fn text(writer: &dyn ValueWriter, row: usize) -> String {
        let mut out = vec![];
        writer.text(row, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn binary(writer: &dyn ValueWriter, row: usize) -> Vec<u8> {
        let mut out = vec![];
        writer.binary(row, &mut out).unwrap();
        out
    }

    #[test]
    fn integers() {
        let array = Int64Array::from(vec![i64::MIN, 1]);
        let writer = IntegerWriter(&array);
        assert_eq!(text(&writer, 0), "-9223372036854775808");
        assert_eq!(binary(&writer, 1), [1, 0, 0, 0, 0, 0, 0, 0]);
        let array = Int8Array::from(vec![-1]);
        assert_eq!(binary(&IntegerWriter(&array), 0), [0xff]);
        let array = UInt64Array::from(vec![u64::MAX]);
        assert_eq!(text(&IntegerWriter(&array), 0), "18446744073709551615");
    }

    #[test]
    fn floats_are_the_shortest_text_that_reads_back() {
        let values = [
            (0.1, "0.1"),
            (1.0, "1"),
            (-0.0, "-0"),
            (1e300, "1e300"),
            (1.5e-7, "1.5e-7"),
            (f64::MAX, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        let array = Float64Array::from(values.map(|(value, _)| value).to_vec());
        for (row, (_, expected)) in values.iter().enumerate() {
            assert_eq!(text(&FloatWriter(&array), row), *expected);
        }
        let array = Float64Array::from(vec![10.2]);
        let expected = [0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x24, 0x40];
        assert_eq!(binary(&FloatWriter(&array), 0), expected);
        let array = Float32Array::from(vec![0.1, 10.2]);
        assert_eq!(text(&FloatWriter(&array), 0), "0.1");
        assert_eq!(binary(&FloatWriter(&array), 1), [0x33, 0x33, 0x23, 0x41]);
    }

    #[test]
    fn decimals_are_exact() {
        let cases: [(i128, i8, &str); 9] = [
            (12_345, 2, "123.45"),
            (-5, 3, "-0.005"),
            (0, 2, "0.00"),
            (-100, 2, "-1.00"),
            (7, 0, "7"),
            (12, -3, "12000"),
            (0, -3, "0"),
            (
                99_999_999_999_999_999_999_999_999_999_999_999_999,
                38,
                "0.99999999999999999999999999999999999999",
            ),
            (
                -99_999_999_999_999_999_999_999_999_999_999_999_999,
                0,
                "-99999999999999999999999999999999999999",
            ),
        ];
        for (value, scale, expected) in cases {
            let array = Decimal128Array::from(vec![value]);
            assert_eq!(text(&DecimalWriter::new(&array, scale), 0), expected);
            let wide = Decimal256Array::from(vec![i256::from_i128(value)]);
            assert_eq!(text(&WideDecimalWriter::new(&wide, scale), 0), expected);
        }
        let array = Decimal32Array::from(vec![-1_005]);
        assert_eq!(text(&DecimalWriter::new(&array, 3), 0), "-1.005");
        assert_eq!(binary(&DecimalWriter::new(&array, 3), 0), b"\x06-1.005");
    }
}
