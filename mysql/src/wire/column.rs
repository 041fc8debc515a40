//! Column definitions: what a client is told about each column of a result.

use super::lenenc;

/// MySQL column types, by their number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ColumnType {
    Tiny = 1,
    Short = 2,
    Long = 3,
    Float = 4,
    Double = 5,
    Null = 6,
    Timestamp = 7,
    LongLong = 8,
    Date = 10,
    Time = 11,
    DateTime = 12,
    Json = 245,
    NewDecimal = 246,
    Blob = 252,
    VarString = 253,
    String = 254,
}

/// Column flags.
pub(crate) mod flags {
    pub const NOT_NULL: u16 = 1;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const BINARY: u16 = 128;
}

/// `utf8mb4_general_ci`: what all text is sent as.
pub(crate) const UTF8MB4: u16 = 45;
/// The character set of everything that is not text.
pub(crate) const BINARY: u16 = 63;
/// Decimals of a value whose number of decimals varies.
pub(crate) const DECIMALS_VARY: u8 = 31;

/// One column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnDefinition {
    pub schema: String,
    pub table: String,
    pub name: String,
    pub charset: u16,
    /// The most bytes that a value's text takes, as far as is known.
    pub length: u32,
    pub column_type: ColumnType,
    pub flags: u16,
    pub decimals: u8,
}

impl ColumnDefinition {
    /// What stands for a parameter of a prepared statement.
    pub fn parameter() -> Self {
        Self {
            schema: String::new(),
            table: String::new(),
            name: "?".into(),
            charset: BINARY,
            length: 0,
            column_type: ColumnType::VarString,
            flags: flags::BINARY,
            decimals: 0,
        }
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        lenenc::put_bytes(out, b"def");
        lenenc::put_bytes(out, self.schema.as_bytes());
        lenenc::put_bytes(out, self.table.as_bytes());
        lenenc::put_bytes(out, self.table.as_bytes());
        lenenc::put_bytes(out, self.name.as_bytes());
        lenenc::put_bytes(out, self.name.as_bytes());
        out.push(0x0c); // the bytes that follow
        out.extend_from_slice(&self.charset.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.push(self.column_type as u8);
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.push(self.decimals);
        out.extend_from_slice(&[0, 0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_byte_by_byte() {
        let column = ColumnDefinition {
            schema: "s".into(),
            table: "t".into(),
            name: "id".into(),
            charset: BINARY,
            length: 20,
            column_type: ColumnType::LongLong,
            flags: flags::NOT_NULL | flags::BINARY,
            decimals: 0,
        };
        let mut out = vec![];
        column.put(&mut out);
        assert_eq!(
            out,
            b"\x03def\x01s\x01t\x01t\x02id\x02id\x0c\x3f\x00\x14\x00\x00\x00\x08\x81\x00\x00\x00\x00"
        );
    }
}
