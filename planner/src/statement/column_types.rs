//! SQL column types and the Iceberg types they stand for, with fresh field ids.
//!
//! Types are read without ids first; ids are then given level by level, the table's columns before what is inside them,
//! which is how Iceberg numbers a new schema.

use std::sync::Arc;

use datafusion::sql::sqlparser::tokenizer::Token;
use iceberg::spec::{
    ListType, MapType, NestedField, NestedFieldRef, PrimitiveType, Schema, StructType, Type,
};

use super::cursor::{Cursor, Failure, Parsed};

/// Iceberg's largest decimal precision.
const MAX_PRECISION: u64 = 38;
/// Types may nest this deep.
const MAX_DEPTH: usize = 32;

/// A type without field ids.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ColumnType {
    Primitive(PrimitiveType),
    List(Box<ColumnType>),
    Map(Box<ColumnType>, Box<ColumnType>),
    Struct(Vec<Column>),
}

/// A column of a table or a field of a struct.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) column_type: ColumnType,
    pub(super) required: bool,
    pub(super) comment: Option<String>,
}

/// The schema of these columns.
pub(super) fn schema(columns: Vec<Column>) -> Parsed<Schema> {
    let mut next_id = 1;
    let fields = numbered(columns, &mut next_id)?;
    Schema::builder()
        .with_fields(fields)
        .build()
        .map_err(|error| {
            Failure::Invalid(format!(
                "the table's columns are not valid: {}",
                error.message()
            ))
        })
}

fn numbered(columns: Vec<Column>, next_id: &mut i32) -> Parsed<Vec<NestedFieldRef>> {
    for (index, column) in columns.iter().enumerate() {
        if columns[..index]
            .iter()
            .any(|earlier| earlier.name.to_lowercase() == column.name.to_lowercase())
        {
            return Err(Failure::Invalid(format!(
                "Duplicate column name '{}'",
                column.name
            )));
        }
    }
    let first_id = *next_id;
    *next_id += i32::try_from(columns.len())
        .map_err(|_| Failure::Invalid("too many columns".to_owned()))?;
    columns
        .into_iter()
        .zip(first_id..)
        .map(|(column, id)| {
            let mut field = NestedField::new(
                id,
                column.name,
                typed(column.column_type, next_id)?,
                column.required,
            );
            field.doc = column.comment;
            Ok(Arc::new(field))
        })
        .collect()
}

fn typed(column_type: ColumnType, next_id: &mut i32) -> Parsed<Type> {
    Ok(match column_type {
        ColumnType::Primitive(primitive) => Type::Primitive(primitive),
        ColumnType::List(element) => {
            let id = *next_id;
            *next_id += 1;
            Type::List(ListType::new(Arc::new(NestedField::list_element(
                id,
                typed(*element, next_id)?,
                false,
            ))))
        }
        ColumnType::Map(key, value) => {
            let id = *next_id;
            *next_id += 2;
            let key = NestedField::map_key_element(id, typed(*key, next_id)?);
            let value = NestedField::map_value_element(id + 1, typed(*value, next_id)?, false);
            Type::Map(MapType::new(Arc::new(key), Arc::new(value)))
        }
        ColumnType::Struct(fields) => Type::Struct(StructType::new(numbered(fields, next_id)?)),
    })
}

/// Reads a type.
pub(super) fn parse_type(cursor: &mut Cursor<'_>) -> Parsed<ColumnType> {
    let mut brackets = Brackets { open_closings: 0 };
    let column_type = brackets.parse(cursor, 0)?;
    if brackets.open_closings > 0 {
        return Err(Failure::Invalid("a type has one `>` too many".to_owned()));
    }
    Ok(column_type)
}

/// `>>` is one token, and closes two brackets: the second is owed here.
struct Brackets {
    open_closings: usize,
}

impl Brackets {
    fn close(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        if self.open_closings > 0 {
            self.open_closings -= 1;
            return Ok(());
        }
        if cursor.take(&Token::ShiftRight) {
            self.open_closings += 1;
            return Ok(());
        }
        cursor.expect(&Token::Gt)
    }

    fn parse(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Parsed<ColumnType> {
        if depth > MAX_DEPTH {
            return Err(Failure::Invalid(format!(
                "a type nests deeper than {MAX_DEPTH} levels"
            )));
        }
        let name = match &cursor.parser.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => return cursor.expected("a column's type"),
        };
        match name.as_str() {
            "ARRAY" | "LIST" => {
                cursor.parser.advance_token();
                cursor.expect(&Token::Lt)?;
                let element = self.parse(cursor, depth + 1)?;
                self.close(cursor)?;
                Ok(ColumnType::List(Box::new(element)))
            }
            "MAP" => {
                cursor.parser.advance_token();
                cursor.expect(&Token::Lt)?;
                let key = self.parse(cursor, depth + 1)?;
                cursor.expect(&Token::Comma)?;
                let value = self.parse(cursor, depth + 1)?;
                self.close(cursor)?;
                Ok(ColumnType::Map(Box::new(key), Box::new(value)))
            }
            "STRUCT" | "ROW" => {
                cursor.parser.advance_token();
                cursor.expect(&Token::Lt)?;
                let mut fields = Vec::new();
                loop {
                    let name = cursor.name()?;
                    cursor.take(&Token::Colon);
                    let column_type = self.parse(cursor, depth + 1)?;
                    let required = cursor.words(&["NOT", "NULL"]);
                    let comment = if cursor.word("COMMENT") {
                        Some(cursor.string()?)
                    } else {
                        None
                    };
                    fields.push(Column {
                        name,
                        column_type,
                        required,
                        comment,
                    });
                    if self.open_closings > 0 || !cursor.take(&Token::Comma) {
                        break;
                    }
                }
                self.close(cursor)?;
                Ok(ColumnType::Struct(fields))
            }
            _ => parse_primitive(cursor, &name).map(ColumnType::Primitive),
        }
    }
}

fn parse_primitive(cursor: &mut Cursor<'_>, name: &str) -> Parsed<PrimitiveType> {
    let unknown = cursor.expected::<PrimitiveType>("a column's type");
    cursor.parser.advance_token();
    let primitive = match name {
        "BOOLEAN" | "BOOL" => PrimitiveType::Boolean,
        "BIT" => match numbers(cursor)?.first() {
            None | Some(1) => PrimitiveType::Boolean,
            Some(_) => PrimitiveType::Long,
        },
        "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT2" | "INT1" => {
            // MySQL's way to write BOOLEAN.
            if name == "TINYINT" && numbers(cursor)?.first() == Some(&1) {
                return Ok(PrimitiveType::Boolean);
            }
            numbers(cursor)?;
            let _ = cursor.one_of(&["UNSIGNED", "SIGNED"]);
            PrimitiveType::Int
        }
        "INT" | "INTEGER" | "INT4" => {
            numbers(cursor)?;
            // The values of an unsigned integer need a wider type.
            match cursor.one_of(&["UNSIGNED", "SIGNED"]) {
                Some("UNSIGNED") => PrimitiveType::Long,
                _ => PrimitiveType::Int,
            }
        }
        "BIGINT" | "LONG" | "INT8" => {
            numbers(cursor)?;
            match cursor.one_of(&["UNSIGNED", "SIGNED"]) {
                Some("UNSIGNED") => PrimitiveType::Decimal {
                    precision: 20,
                    scale: 0,
                },
                _ => PrimitiveType::Long,
            }
        }
        "FLOAT" | "REAL" | "FLOAT4" => {
            // MySQL: FLOAT(p) with more than 24 bits is a double.
            let arguments = numbers(cursor)?;
            if arguments.len() == 1 && arguments[0] > 24 {
                PrimitiveType::Double
            } else {
                PrimitiveType::Float
            }
        }
        "DOUBLE" | "FLOAT8" => {
            let _ = cursor.word("PRECISION");
            numbers(cursor)?;
            PrimitiveType::Double
        }
        "DECIMAL" | "NUMERIC" | "DEC" => {
            let arguments = numbers(cursor)?;
            let precision = arguments.first().copied().unwrap_or(10);
            let scale = arguments.get(1).copied().unwrap_or(0);
            decimal(precision, scale)?
        }
        "DATE" => PrimitiveType::Date,
        "TIME" => {
            microseconds(cursor, "TIME")?;
            PrimitiveType::Time
        }
        "DATETIME" => {
            microseconds(cursor, "DATETIME")?;
            PrimitiveType::Timestamp
        }
        "TIMESTAMP" => {
            microseconds(cursor, "TIMESTAMP")?;
            if cursor.words(&["WITH", "TIME", "ZONE"])
                || cursor.words(&["WITH", "LOCAL", "TIME", "ZONE"])
            {
                PrimitiveType::Timestamptz
            } else {
                cursor.words(&["WITHOUT", "TIME", "ZONE"]);
                PrimitiveType::Timestamp
            }
        }
        "TIMESTAMP_NTZ" => PrimitiveType::Timestamp,
        "TIMESTAMPTZ" | "TIMESTAMP_LTZ" => {
            microseconds(cursor, "TIMESTAMPTZ")?;
            PrimitiveType::Timestamptz
        }
        "STRING" | "VARCHAR" | "TEXT" | "CHAR" | "CHARACTER" | "NCHAR" | "NVARCHAR"
        | "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" | "JSON" => {
            // Iceberg's strings have no length, so one that is written is not kept.
            let _ = cursor.word("VARYING");
            numbers(cursor)?;
            while cursor.words(&["CHARACTER", "SET"])
                || cursor.one_of(&["CHARSET", "COLLATE"]).is_some()
            {
                cursor.name()?;
            }
            PrimitiveType::String
        }
        "UUID" => PrimitiveType::Uuid,
        "FIXED" => match numbers(cursor)?.first() {
            Some(&length) if length > 0 => PrimitiveType::Fixed(length),
            _ => {
                return Err(Failure::Invalid(
                    "FIXED needs a length in bytes, as in FIXED(16)".to_owned(),
                ));
            }
        },
        "BINARY" => match numbers(cursor)?.first() {
            Some(&length) if length > 0 => PrimitiveType::Fixed(length),
            _ => PrimitiveType::Binary,
        },
        "VARBINARY" | "BLOB" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB" | "BYTES" => {
            numbers(cursor)?;
            PrimitiveType::Binary
        }
        "TIMESTAMP_NS" => PrimitiveType::TimestampNs,
        "TIMESTAMPTZ_NS" => PrimitiveType::TimestamptzNs,
        "VARIANT" | "GEOMETRY" | "GEOGRAPHY" => {
            return Err(Failure::Unsupported {
                kind: "CREATE TABLE",
                detail: format!("columns of type {name} are not written"),
            });
        }
        "ENUM" | "SET" | "YEAR" => {
            return Err(Failure::Unsupported {
                kind: "CREATE TABLE",
                detail: format!("the type {name} has no Iceberg type: use VARCHAR or INT"),
            });
        }
        _ => return unknown,
    };
    Ok(primitive)
}

fn decimal(precision: u64, scale: u64) -> Parsed<PrimitiveType> {
    if precision == 0 || precision > MAX_PRECISION {
        return Err(Failure::Invalid(format!(
            "DECIMAL({precision},{scale}): the precision is from 1 to {MAX_PRECISION}"
        )));
    }
    if scale > precision {
        return Err(Failure::Invalid(format!(
            "DECIMAL({precision},{scale}): the scale is at most the precision"
        )));
    }
    // Both are at most 38.
    Ok(PrimitiveType::Decimal {
        precision: precision as u32,
        scale: scale as u32,
    })
}

/// `(n)` of a time type: Iceberg keeps microseconds, so fewer digits are kept as six and more are refused.
fn microseconds(cursor: &mut Cursor<'_>, name: &str) -> Parsed<()> {
    match numbers(cursor)?.first() {
        Some(&digits) if digits > 6 => Err(Failure::Invalid(format!(
            "{name}({digits}): at most 6 fractional digits are kept"
        ))),
        _ => Ok(()),
    }
}

/// `[(n [, m])]`
fn numbers(cursor: &mut Cursor<'_>) -> Parsed<Vec<u64>> {
    let mut numbers = Vec::new();
    if cursor.take(&Token::LParen) {
        loop {
            numbers.push(cursor.unsigned()?);
            if !cursor.take(&Token::Comma) {
                break;
            }
        }
        cursor.expect(&Token::RParen)?;
    }
    Ok(numbers)
}
