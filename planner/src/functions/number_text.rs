//! Numbers as text and back: `FORMAT`, `HEX`, `UNHEX`, `CONV`, `CRC32`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, Float64Array, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF};

use super::row_function::{Kind, RowFunction, returns_integer, returns_text, typed};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        RowFunction::new(
            "format",
            &[Kind::Any, Kind::Integer],
            returns_text,
            format_numbers,
        )
        .udf(),
        RowFunction::new("hex", &[Kind::Any], returns_text, hex).udf(),
        RowFunction::new("unhex", &[Kind::Text], returns_binary, |args, _| {
            let texts = typed::<StringArray>(&args[0])?;
            let bytes: Vec<Option<Vec<u8>>> =
                texts.iter().map(|text| text.and_then(unhex)).collect();
            Ok(Arc::new(
                bytes
                    .iter()
                    .map(|bytes| bytes.as_deref())
                    .collect::<BinaryArray>(),
            ))
        })
        .udf(),
        RowFunction::new(
            "conv",
            &[Kind::Text, Kind::Integer, Kind::Integer],
            returns_text,
            |args, _| {
                let texts = typed::<StringArray>(&args[0])?;
                let (from, to) = (
                    typed::<Int64Array>(&args[1])?,
                    typed::<Int64Array>(&args[2])?,
                );
                let converted = texts
                    .iter()
                    .zip(from)
                    .zip(to)
                    .map(|((text, from), to)| conv(text?, from?, to?));
                Ok(Arc::new(converted.collect::<StringArray>()))
            },
        )
        .udf(),
        RowFunction::new("crc32", &[Kind::Text], returns_integer, |args, _| {
            let texts = typed::<StringArray>(&args[0])?;
            Ok(Arc::new(
                texts
                    .iter()
                    .map(|text| text.map(|text| crc32(text.as_bytes()).into()))
                    .collect::<Int64Array>(),
            ))
        })
        .udf(),
    ]
}

fn returns_binary(_: &ReturnFieldArgs<'_>) -> Result<DataType> {
    Ok(DataType::Binary)
}

/// `FORMAT(x, d)`: rounded to d decimals, with commas between thousands.
fn format_numbers(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let decimals = typed::<Int64Array>(&args[1])?;
    let digits = |row: usize| usize::try_from(decimals.value(row).clamp(0, 30)).unwrap_or(0);
    let rows = args[0].len();
    let texts: StringArray = match args[0].data_type() {
        // Exact numbers keep their digits; text counts as a real number.
        DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View => {
            let values = cast(&args[0], &DataType::Float64)?;
            let values = typed::<Float64Array>(&values)?;
            let row = |row: usize| {
                let value =
                    (values.is_valid(row) && decimals.is_valid(row)).then(|| values.value(row))?;
                value
                    .is_finite()
                    .then(|| with_commas(&format!("{value:.*}", digits(row))))
            };
            (0..rows).map(row).collect()
        }
        _ => {
            let values = cast(&args[0], &DataType::Utf8)?;
            let values = typed::<StringArray>(&values)?;
            let row = |row: usize| {
                (values.is_valid(row) && decimals.is_valid(row))
                    .then(|| with_commas(&rounded(values.value(row), digits(row))))
            };
            (0..rows).map(row).collect()
        }
    };
    Ok(Arc::new(texts))
}

/// A plain decimal number rounded half away from zero.
fn rounded(number: &str, decimals: usize) -> String {
    let (sign, digits) = number
        .strip_prefix('-')
        .map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut kept: Vec<u8> = whole
        .bytes()
        .chain(
            fraction
                .bytes()
                .chain(std::iter::repeat(b'0'))
                .take(decimals),
        )
        .collect();
    if fraction
        .as_bytes()
        .get(decimals)
        .is_some_and(|next| *next >= b'5')
    {
        let mut at = kept.len();
        loop {
            if at == 0 {
                kept.insert(0, b'1');
                break;
            }
            at -= 1;
            if kept[at] == b'9' {
                kept[at] = b'0';
            } else {
                kept[at] += 1;
                break;
            }
        }
    }
    let text: String = kept.iter().map(|byte| char::from(*byte)).collect();
    let (whole, fraction) = text.split_at(text.len() - decimals);
    let sign = if text.bytes().all(|digit| digit == b'0') {
        ""
    } else {
        sign
    };
    if decimals == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

fn with_commas(number: &str) -> String {
    let (sign, digits) = number
        .strip_prefix('-')
        .map_or(("", number), |digits| ("-", digits));
    let whole = digits.split('.').next().unwrap_or(digits);
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(&digits[whole.len()..]);
    out
}

/// `HEX`: of a number its value in base 16, of a text or bytes each byte as two digits.
fn hex(args: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let array = &args[0];
    let texts: StringArray = match array.data_type() {
        data_type
            if data_type.is_integer() || data_type.is_floating() || data_type.is_decimal() =>
        {
            let numbers = cast(array, &DataType::Int64)?;
            // A negative number shows its 64 bits.
            typed::<Int64Array>(&numbers)?
                .iter()
                .map(|number| number.map(|number| format!("{number:X}")))
                .collect()
        }
        DataType::Null => StringArray::new_null(array.len()),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(array, &DataType::Utf8)?;
            typed::<StringArray>(&texts)?
                .iter()
                .map(|text| text.map(|text| hex_of(text.as_bytes())))
                .collect()
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => {
            let bytes = cast(array, &DataType::Binary)?;
            typed::<BinaryArray>(&bytes)?
                .iter()
                .map(|bytes| bytes.map(hex_of))
                .collect()
        }
        other => return exec_err!("HEX takes a number, a text or bytes, not {other}"),
    };
    Ok(Arc::new(texts))
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let padded = if text.len() % 2 == 1 {
        format!("0{text}")
    } else {
        text.to_owned()
    };
    padded
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()
        })
        .collect()
}

/// `CONV(n, from, to)` over 64 bits; a negative base reads or writes signed numbers.
fn conv(text: &str, from: i64, to: i64) -> Option<String> {
    let base = |base: i64| {
        u32::try_from(base.unsigned_abs())
            .ok()
            .filter(|base| (2..=36).contains(base))
    };
    let (from_base, to_base) = (base(from)?, base(to)?);
    let text = text.trim();
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |digits| (true, digits));
    let value = digits
        .chars()
        .map_while(|digit| digit.to_digit(from_base))
        .fold(0_u64, |value, digit| {
            value
                .saturating_mul(u64::from(from_base))
                .saturating_add(u64::from(digit))
        });
    let bits = if negative {
        value.wrapping_neg()
    } else {
        value
    };
    let as_signed = bits as i64;
    Some(if to < 0 && as_signed < 0 {
        format!("-{}", in_base(as_signed.unsigned_abs(), to_base))
    } else {
        in_base(bits, to_base)
    })
}

fn in_base(mut value: u64, base: u32) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(value % u64::from(base)).unwrap_or(0);
        digits.push(
            char::from_digit(digit, base)
                .unwrap_or('0')
                .to_ascii_uppercase(),
        );
        value /= u64::from(base);
        if value == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

/// The CRC-32 of ISO 3309 (polynomial 0x04C11DB7, reflected).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted() {
        for (number, decimals, expected) in [
            ("12332.123456", 4, "12,332.1235"),
            ("12332.1", 4, "12,332.1000"),
            ("12332.2", 0, "12,332"),
            ("999999.995", 2, "1,000,000.00"),
            ("-1234567.5", 0, "-1,234,568"),
            ("-0.001", 2, "0.00"),
            ("0", 2, "0.00"),
            ("123", 0, "123"),
        ] {
            assert_eq!(with_commas(&rounded(number, decimals)), expected);
        }
    }

    #[test]
    fn bases_are_converted() {
        assert_eq!(conv("a", 16, 2).as_deref(), Some("1010"));
        assert_eq!(conv("6E", 18, 8).as_deref(), Some("172"));
        assert_eq!(conv("-17", 10, -18).as_deref(), Some("-H"));
        assert_eq!(conv("-1", 10, 16).as_deref(), Some("FFFFFFFFFFFFFFFF"));
        assert_eq!(conv("1", 1, 10), None);
    }

    #[test]
    fn bytes_are_written_and_read_in_hexadecimal() {
        assert_eq!(hex_of("MariaDB".as_bytes()), "4D617269614442");
        assert_eq!(
            unhex("4D617269614442").as_deref(),
            Some("MariaDB".as_bytes())
        );
        assert_eq!(unhex("F"), Some(vec![15]));
        assert_eq!(unhex("GG"), None);
    }

    #[test]
    fn checksums_are_the_manuals() {
        assert_eq!(crc32(b"MySQL"), 3_259_397_556);
        assert_eq!(crc32(b"mysql"), 2_501_908_538);
    }
}
