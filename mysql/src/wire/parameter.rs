//! Parameters of COM_STMT_EXECUTE, in the binary encoding.

use super::parser::{Malformed, Parser};
use thiserror::Error;

/// The type that a client has bound to a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParameterType {
    pub number: u8,
    pub unsigned: bool,
}

/// A parameter's value as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ParameterValue {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    /// A decimal number, as text.
    Decimal(Vec<u8>),
    Text(Vec<u8>),
    Blob(Vec<u8>),
    Date(Date),
    DateTime(Date, Clock),
    Time {
        negative: bool,
        days: u32,
        clock: Clock,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Clock {
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ParameterError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the statement was executed before types were bound to its parameters")]
    NoTypes,
    #[error("parameters of type {0} are not known")]
    UnknownType(u8),
}

/// Parses the parameters of one execution.
///
/// `types` are those of the execution before and are replaced if this one brings its own. A parameter
/// in `long_data` was sent ahead, so nothing of it is in `payload`.
pub(crate) fn parse_parameters(
    payload: &[u8],
    count: usize,
    types: &mut Vec<ParameterType>,
    long_data: &mut [Option<Vec<u8>>],
) -> Result<Vec<ParameterValue>, ParameterError> {
    if count == 0 {
        return Ok(vec![]);
    }
    let mut parser = Parser::new(payload);
    let nulls = parser.bytes(count.div_ceil(8))?;
    if parser.u8()? == 1 {
        // `count` is the server's own number; the payload must be long enough for it.
        let bound = parser.bytes(2 * count)?;
        *types = bound
            .chunks_exact(2)
            .map(|pair| ParameterType {
                number: pair[0],
                unsigned: pair[1] & 0x80 != 0,
            })
            .collect();
    } else if types.len() != count {
        return Err(ParameterError::NoTypes);
    }
    let mut values = Vec::with_capacity(count);
    for (index, bound) in types.iter().enumerate() {
        let value = if let Some(data) = long_data.get_mut(index).and_then(Option::take) {
            if is_blob(bound.number) {
                ParameterValue::Blob(data)
            } else {
                ParameterValue::Text(data)
            }
        } else if nulls[index / 8] & (1 << (index % 8)) != 0 {
            ParameterValue::Null
        } else {
            parse_value(&mut parser, *bound)?
        };
        values.push(value);
    }
    Ok(values)
}

fn is_blob(number: u8) -> bool {
    matches!(number, 249..=252)
}

fn parse_value(
    parser: &mut Parser<'_>,
    bound: ParameterType,
) -> Result<ParameterValue, ParameterError> {
    let integer = |signed: i64, unsigned: u64| {
        if bound.unsigned {
            ParameterValue::UInt(unsigned)
        } else {
            ParameterValue::Int(signed)
        }
    };
    Ok(match bound.number {
        1 => {
            let value = parser.u8()?;
            integer(i64::from(value as i8), u64::from(value))
        }
        2 | 13 => {
            let value = parser.u16()?;
            integer(i64::from(value as i16), u64::from(value))
        }
        3 | 9 => {
            let value = parser.u32()?;
            integer(i64::from(value as i32), u64::from(value))
        }
        8 => {
            let value = parser.u64()?;
            integer(value as i64, value)
        }
        4 => ParameterValue::Float(f32::from_bits(parser.u32()?)),
        5 => ParameterValue::Double(f64::from_bits(parser.u64()?)),
        6 => ParameterValue::Null,
        0 | 246 => ParameterValue::Decimal(parser.lenenc_bytes()?.to_vec()),
        7 | 10 | 12 | 14 => parse_date_time(parser, matches!(bound.number, 10 | 14))?,
        11 => parse_time(parser)?,
        15 | 245 | 247 | 248 | 253 | 254 => ParameterValue::Text(parser.lenenc_bytes()?.to_vec()),
        16 | 249..=252 | 255 => ParameterValue::Blob(parser.lenenc_bytes()?.to_vec()),
        other => return Err(ParameterError::UnknownType(other)),
    })
}

fn parse_date_time(parser: &mut Parser<'_>, is_date: bool) -> Result<ParameterValue, Malformed> {
    let length = parser.u8()?;
    let mut date = Date::default();
    let mut clock = Clock::default();
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(Malformed("a date of a length that dates do not have"));
    }
    if length >= 4 {
        date = Date {
            year: parser.u16()?,
            month: parser.u8()?,
            day: parser.u8()?,
        };
    }
    if length >= 7 {
        clock.hour = parser.u8()?;
        clock.minute = parser.u8()?;
        clock.second = parser.u8()?;
    }
    if length == 11 {
        clock.microsecond = parser.u32()?;
    }
    // A client may bind DATETIME and send a date alone; it stays a point in time.
    Ok(if is_date && clock == Clock::default() {
        ParameterValue::Date(date)
    } else {
        ParameterValue::DateTime(date, clock)
    })
}

fn parse_time(parser: &mut Parser<'_>) -> Result<ParameterValue, Malformed> {
    let length = parser.u8()?;
    if !matches!(length, 0 | 8 | 12) {
        return Err(Malformed("a time of a length that times do not have"));
    }
    let (mut negative, mut days, mut clock) = (false, 0, Clock::default());
    if length >= 8 {
        negative = parser.u8()? != 0;
        days = parser.u32()?;
        clock.hour = parser.u8()?;
        clock.minute = parser.u8()?;
        clock.second = parser.u8()?;
    }
    if length == 12 {
        clock.microsecond = parser.u32()?;
    }
    Ok(ParameterValue::Time {
        negative,
        days,
        clock,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    fn parse_one(
        number: u8,
        unsigned: bool,
        value: &[u8],
    ) -> Result<ParameterValue, ParameterError> {
        let mut payload = vec![0, 1, number, if unsigned { 0x80 } else { 0 }];
        payload.extend_from_slice(value);
        parse_parameters(&payload, 1, &mut vec![], &mut [None]).map(|mut values| values.remove(0))
    }

    #[test]
    fn each_type_by_its_documented_bytes() {
        let date = Date {
            year: 2010,
            month: 10,
            day: 17,
        };
        let clock = |microsecond| Clock {
            hour: 19,
            minute: 27,
            second: 30,
            microsecond,
        };
        let cases: Vec<(u8, bool, &[u8], ParameterValue)> = vec![
            (1, false, &[0xff], ParameterValue::Int(-1)),
            (1, true, &[0xff], ParameterValue::UInt(255)),
            (2, false, &[0x00, 0x80], ParameterValue::Int(-32_768)),
            (3, false, &[1, 0, 0, 0], ParameterValue::Int(1)),
            (8, true, &[0xff; 8], ParameterValue::UInt(u64::MAX)),
            (
                4,
                false,
                &[0x33, 0x33, 0x23, 0x41],
                ParameterValue::Float(10.2),
            ),
            (
                5,
                false,
                &[0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x24, 0x40],
                ParameterValue::Double(10.2),
            ),
            (6, false, &[], ParameterValue::Null),
            (
                246,
                false,
                b"\x051.250",
                ParameterValue::Decimal(b"1.250".to_vec()),
            ),
            (253, false, b"\x02hi", ParameterValue::Text(b"hi".to_vec())),
            (
                252,
                false,
                b"\x02\xff\x00",
                ParameterValue::Blob(vec![0xff, 0]),
            ),
            (
                10,
                false,
                &[4, 0xda, 0x07, 0x0a, 0x11],
                ParameterValue::Date(date),
            ),
            (
                12,
                false,
                &[
                    0x0b, 0xda, 0x07, 0x0a, 0x11, 0x13, 0x1b, 0x1e, 0x01, 0, 0, 0,
                ],
                ParameterValue::DateTime(date, clock(1)),
            ),
            (
                12,
                false,
                &[4, 0xda, 0x07, 0x0a, 0x11],
                ParameterValue::DateTime(date, Clock::default()),
            ),
            (
                7,
                false,
                &[7, 0xda, 0x07, 0x0a, 0x11, 0x13, 0x1b, 0x1e],
                ParameterValue::DateTime(date, clock(0)),
            ),
            (
                11,
                false,
                &[0x0c, 1, 0x78, 0, 0, 0, 0x13, 0x1b, 0x1e, 1, 0, 0, 0],
                ParameterValue::Time {
                    negative: true,
                    days: 120,
                    clock: clock(1),
                },
            ),
            (
                11,
                false,
                &[0],
                ParameterValue::Time {
                    negative: false,
                    days: 0,
                    clock: Clock::default(),
                },
            ),
        ];
        for (number, unsigned, bytes, expected) in cases {
            assert_eq!(parse_one(number, unsigned, bytes), Ok(expected), "{number}");
        }
    }

    #[test]
    fn nulls_long_data_and_types_of_the_execution_before() {
        let mut types = vec![];
        let mut long_data = vec![None, None, Some(b"long".to_vec())];
        // The first is NULL, the second an INT, the third was sent ahead.
        let payload = [0b001, 1, 3, 0, 3, 0, 252, 0, 7, 0, 0, 0];
        assert_eq!(
            parse_parameters(&payload, 3, &mut types, &mut long_data),
            Ok(vec![
                ParameterValue::Null,
                ParameterValue::Int(7),
                ParameterValue::Blob(b"long".to_vec())
            ])
        );
        // Without types: as before. Long data holds for one execution.
        let again = [0b101, 0, 8, 0, 0, 0];
        assert_eq!(
            parse_parameters(&again, 3, &mut types, &mut long_data),
            Ok(vec![
                ParameterValue::Null,
                ParameterValue::Int(8),
                ParameterValue::Null
            ])
        );
        assert_eq!(
            parse_parameters(&[0, 0, 1], 1, &mut vec![], &mut [None]),
            Err(ParameterError::NoTypes)
        );
        assert_eq!(
            parse_one(200, false, &[]),
            Err(ParameterError::UnknownType(200))
        );
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut rng = rand::rngs::StdRng::seed_from_u64(1);
        for _ in 0..200_000 {
            let length = rng.random_range(0..40);
            let mut payload: Vec<u8> = (0..length).map(|_| rng.random()).collect();
            let count = rng.random_range(0..5);
            if payload.len() > 1 && rng.random() {
                payload[1] = 1;
            }
            let mut long_data = vec![None; count];
            let _ = parse_parameters(&payload, count, &mut vec![], &mut long_data);
            let _ = crate::wire::command::Command::parse(&payload);
            let offered = crate::wire::capabilities::Capabilities::OFFERED;
            let _ = crate::wire::handshake::FirstAnswer::parse(&payload, offered);
            let _ = crate::wire::handshake::Login::parse_change_user(&payload, offered);
        }
    }
}
