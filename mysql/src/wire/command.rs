//! The commands of the command phase.

use super::parser::{Malformed, Parser};

/// One command, parsed from the first packet of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    Query(&'a [u8]),
    FieldList {
        table: &'a [u8],
        wildcard: &'a [u8],
    },
    Statistics,
    ProcessInfo,
    ProcessKill(u32),
    Ping,
    /// The payload after the command byte: it is parsed as the handshake's is.
    ChangeUser(&'a [u8]),
    Prepare(&'a [u8]),
    Execute {
        statement: u32,
        cursor: CursorType,
        parameters: &'a [u8],
    },
    SendLongData {
        statement: u32,
        parameter: u16,
        data: &'a [u8],
    },
    CloseStatement(u32),
    ResetStatement(u32),
    SetMultiStatements(bool),
    Fetch {
        statement: u32,
        rows: u32,
    },
    ResetConnection,
    /// Anything else, by its number.
    Unknown(u8),
}

/// Where the rows of an executed statement go.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum CursorType {
    /// To the client, at once.
    None,
    /// Into a cursor, to be fetched in pieces.
    ReadOnly,
}

impl<'a> Command<'a> {
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut parser = Parser::new(payload);
        Ok(match parser.u8()? {
            0x01 => Self::Quit,
            0x02 => Self::InitDb(parser.rest()),
            0x03 => Self::Query(parser.rest()),
            0x04 => {
                let table = parser.nul_terminated();
                Self::FieldList {
                    table,
                    wildcard: parser.rest(),
                }
            }
            0x09 => Self::Statistics,
            0x0a => Self::ProcessInfo,
            0x0c => Self::ProcessKill(parser.u32()?),
            0x0e => Self::Ping,
            0x11 => Self::ChangeUser(parser.rest()),
            0x16 => Self::Prepare(parser.rest()),
            0x17 => {
                let statement = parser.u32()?;
                let cursor = match parser.u8()? {
                    0 => CursorType::None,
                    // A client that asks for an updatable or scrollable cursor gets the read-only
                    // one, as a MySQL server gives it.
                    _ => CursorType::ReadOnly,
                };
                parser.u32()?; // iterations: always 1
                Self::Execute {
                    statement,
                    cursor,
                    parameters: parser.rest(),
                }
            }
            0x18 => Self::SendLongData {
                statement: parser.u32()?,
                parameter: parser.u16()?,
                data: parser.rest(),
            },
            0x19 => Self::CloseStatement(parser.u32()?),
            0x1a => Self::ResetStatement(parser.u32()?),
            0x1b => match parser.u16()? {
                0 => Self::SetMultiStatements(true),
                1 => Self::SetMultiStatements(false),
                _ => Self::Unknown(0x1b),
            },
            0x1c => Self::Fetch {
                statement: parser.u32()?,
                rows: parser.u32()?,
            },
            0x1f => Self::ResetConnection,
            other => Self::Unknown(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let cases: [(&[u8], Command<'_>); 9] = [
            (b"\x01", Command::Quit),
            (b"\x03select 1", Command::Query(b"select 1")),
            (
                b"\x04t\0%",
                Command::FieldList {
                    table: b"t",
                    wildcard: b"%",
                },
            ),
            (b"\x0c\x07\x00\x00\x00", Command::ProcessKill(7)),
            (
                b"\x17\x02\x00\x00\x00\x01\x01\x00\x00\x00\x00",
                Command::Execute {
                    statement: 2,
                    cursor: CursorType::ReadOnly,
                    parameters: &[0],
                },
            ),
            (
                b"\x18\x02\x00\x00\x00\x01\x00ab",
                Command::SendLongData {
                    statement: 2,
                    parameter: 1,
                    data: b"ab",
                },
            ),
            (b"\x1b\x01\x00", Command::SetMultiStatements(false)),
            (
                b"\x1c\x02\x00\x00\x00\x64\x00\x00\x00",
                Command::Fetch {
                    statement: 2,
                    rows: 100,
                },
            ),
            (b"\x1d", Command::Unknown(0x1d)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Command::parse(bytes), Ok(expected), "{bytes:x?}");
        }
        for short in [&b""[..], b"\x0c\x01", b"\x17\x01\x00\x00\x00", b"\x1c\x01"] {
            assert!(Command::parse(short).is_err(), "{short:x?}");
        }
    }
}
