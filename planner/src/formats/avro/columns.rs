//! Records to arrays, a value at a time.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, ListArray,
    MapArray, NullArray, PrimitiveArray, StringArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, DecimalType, Field, Fields,
    Float32Type, Float64Type, Int32Type, Int64Type, Time32MillisecondType, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};

use super::cursor::{Cursor, damaged};
use super::schema::{Logical, Node};
use crate::formats::FileFormat;
use crate::formats::column_plan::{ShapePlan, StructPlan};
use crate::formats::error::FormatError;

type Result<T, E = FormatError> = std::result::Result<T, E>;

/// Collects the values of one column of a batch.
#[derive(Debug)]
pub(super) struct Column {
    /// Which branch is null, if the type is a union with it.
    null_branch: Option<usize>,
    /// One for each value, if there can be nulls.
    valid: Vec<bool>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Null(usize),
    Boolean(Vec<bool>),
    Int(Vec<i32>, Logical),
    Long(Vec<i64>, Logical),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Lengths, Vec<u8>),
    Text(Lengths, Vec<u8>),
    Enum(Lengths, Vec<u8>, Vec<String>),
    Fixed(usize, Vec<u8>),
    /// A uuid as text.
    Uuid(Vec<u8>),
    /// Of that many bytes, or of its own length.
    Decimal {
        values: Vec<i128>,
        size: Option<usize>,
        precision: u8,
        scale: i8,
    },
    Record(Record, usize),
    List(Lengths, Box<Column>, usize),
    Map {
        lengths: Lengths,
        key: Box<Column>,
        value: Box<Column>,
        item_bytes: usize,
    },
}

/// Where values begin and end; the first offset is left out.
type Lengths = Vec<i32>;

/// Some fields of a record are pushed, and the others stepped over.
#[derive(Debug)]
pub(super) struct Record {
    steps: Vec<Step>,
    columns: Vec<Column>,
}

#[derive(Debug)]
enum Step {
    Push(usize),
    Skip(Node),
}

impl Record {
    pub(super) fn new(plan: &StructPlan, nodes: &[Node]) -> Result<Self> {
        let mut steps: Vec<Step> = nodes.iter().cloned().map(Step::Skip).collect();
        let mut columns = Vec::with_capacity(plan.reads.len());
        for read in &plan.reads {
            let node = nodes
                .get(read.position)
                .ok_or_else(|| damaged("a column is not there"))?;
            steps[read.position] = Step::Push(columns.len());
            columns.push(Column::new(&read.shape, node)?);
        }
        Ok(Self { steps, columns })
    }

    pub(super) fn push(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        for step in &self.steps {
            match step {
                Step::Push(column) => self.columns[*column].push(cursor)?,
                Step::Skip(node) => skip(node, cursor)?,
            }
        }
        Ok(())
    }

    /// The arrays of what was pushed, in the order of the plan's reads.
    pub(super) fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.columns.iter_mut().map(Column::finish).collect()
    }
}

impl Column {
    fn new(plan: &ShapePlan, node: &Node) -> Result<Self> {
        let unsupported = || FormatError::unsupported(FileFormat::Avro, "a union of several types");
        let (null_branch, node) = match node {
            Node::Union(branches) => match branches.as_slice() {
                [Node::Null, node] => (Some(0), node),
                [node, Node::Null] => (Some(1), node),
                _ => return Err(unsupported()),
            },
            node => (None, node),
        };
        let decimal = |logical: &Logical, size: Option<usize>| match logical {
            Logical::Decimal { precision, scale } => Some(Values::Decimal {
                values: vec![],
                size,
                precision: *precision,
                scale: *scale,
            }),
            _ => None,
        };
        let values = match (plan, node) {
            (ShapePlan::Struct(plan), Node::Record(nodes)) => {
                Values::Record(Record::new(plan, nodes)?, 0)
            }
            (ShapePlan::List(plan), Node::Array(item)) => {
                Values::List(vec![], Box::new(Self::new(plan, item)?), item.least_bytes())
            }
            (ShapePlan::Map(key, value), Node::Map(node)) => Values::Map {
                lengths: vec![],
                key: Box::new(Self::new(key, &Node::String(Logical::None))?),
                value: Box::new(Self::new(value, node)?),
                item_bytes: node.least_bytes() + 1,
            },
            (ShapePlan::Map(key, value), Node::Array(item)) => match item.as_ref() {
                Node::Record(nodes) => {
                    let [key_node, value_node] = nodes.as_slice() else {
                        return Err(damaged("a map's entries are not keys and values"));
                    };
                    Values::Map {
                        lengths: vec![],
                        key: Box::new(Self::new(key, key_node)?),
                        value: Box::new(Self::new(value, value_node)?),
                        item_bytes: item.least_bytes(),
                    }
                }
                _ => return Err(damaged("a map's entries are not records")),
            },
            (ShapePlan::Leaf(_), node) => match node {
                Node::Null => Values::Null(0),
                Node::Boolean => Values::Boolean(vec![]),
                Node::Int(logical) => Values::Int(vec![], *logical),
                Node::Long(logical) => Values::Long(vec![], *logical),
                Node::Float => Values::Float(vec![]),
                Node::Double => Values::Double(vec![]),
                Node::Bytes(logical) => {
                    decimal(logical, None).unwrap_or(Values::Bytes(vec![], vec![]))
                }
                Node::String(Logical::Uuid) => Values::Uuid(vec![]),
                Node::String(_) => Values::Text(vec![], vec![]),
                Node::Fixed(size, logical) => {
                    decimal(logical, Some(*size)).unwrap_or(Values::Fixed(*size, vec![]))
                }
                Node::Enum(symbols) => Values::Enum(vec![], vec![], symbols.clone()),
                Node::Union(_) => return Err(unsupported()),
                _ => return Err(damaged("a column is not of the type that was planned")),
            },
            _ => return Err(damaged("a column is not of the type that was planned")),
        };
        Ok(Self {
            null_branch,
            valid: vec![],
            values,
        })
    }

    fn push(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        if let Some(null) = self.null_branch {
            let branch = cursor.length()?;
            if branch > 1 {
                return Err(damaged(format!(
                    "a union of two types has a branch {branch}"
                )));
            }
            if branch == null {
                self.push_null();
                return Ok(());
            }
            self.valid.push(true);
        }
        match &mut self.values {
            Values::Null(count) => *count += 1,
            Values::Boolean(values) => values.push(cursor.boolean()?),
            Values::Int(values, _) => values.push(cursor.int()?),
            Values::Long(values, _) => values.push(cursor.long()?),
            Values::Float(values) => values.push(f32::from_le_bytes(cursor.array()?)),
            Values::Double(values) => values.push(f64::from_le_bytes(cursor.array()?)),
            Values::Bytes(lengths, bytes) | Values::Text(lengths, bytes) => {
                bytes.extend_from_slice(cursor.bytes()?);
                lengths.push(offset(bytes.len())?);
            }
            Values::Enum(lengths, bytes, symbols) => {
                let index = cursor.length()?;
                let symbol = symbols
                    .get(index)
                    .ok_or_else(|| damaged(format!("an enum has no symbol {index}")))?;
                bytes.extend_from_slice(symbol.as_bytes());
                lengths.push(offset(bytes.len())?);
            }
            Values::Fixed(size, bytes) => bytes.extend_from_slice(cursor.take(*size)?),
            Values::Uuid(bytes) => {
                let uuid = std::str::from_utf8(cursor.bytes()?)
                    .ok()
                    .and_then(|text| uuid::Uuid::parse_str(text).ok())
                    .ok_or_else(|| damaged("a uuid is not one"))?;
                bytes.extend_from_slice(uuid.as_bytes());
            }
            Values::Decimal {
                values,
                size,
                precision,
                scale,
            } => {
                let digits = match size {
                    Some(size) => cursor.take(*size)?,
                    None => cursor.bytes()?,
                };
                values.push(decimal(digits, *precision, *scale)?);
            }
            Values::Record(record, count) => {
                record.push(cursor)?;
                *count += 1;
            }
            Values::List(lengths, element, item_bytes) => {
                let mut end = lengths.last().copied().unwrap_or(0);
                while let Some(items) = cursor.items(*item_bytes)? {
                    for _ in 0..items.count {
                        element.push(cursor)?;
                    }
                    end = advance(end, items.count)?;
                }
                lengths.push(end);
            }
            Values::Map {
                lengths,
                key,
                value,
                item_bytes,
                ..
            } => {
                let mut end = lengths.last().copied().unwrap_or(0);
                while let Some(items) = cursor.items(*item_bytes)? {
                    for _ in 0..items.count {
                        key.push(cursor)?;
                        value.push(cursor)?;
                    }
                    end = advance(end, items.count)?;
                }
                lengths.push(end);
            }
        }
        Ok(())
    }

    /// A null, with something in its place.
    fn push_null(&mut self) {
        self.valid.push(false);
        match &mut self.values {
            Values::Null(count) => *count += 1,
            Values::Boolean(values) => values.push(false),
            Values::Int(values, _) => values.push(0),
            Values::Long(values, _) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Double(values) => values.push(0.0),
            Values::Bytes(lengths, _)
            | Values::Text(lengths, _)
            | Values::Enum(lengths, ..)
            | Values::List(lengths, ..)
            | Values::Map { lengths, .. } => {
                lengths.push(lengths.last().copied().unwrap_or(0));
            }
            Values::Fixed(size, bytes) => bytes.resize(bytes.len() + *size, 0),
            Values::Uuid(bytes) => bytes.resize(bytes.len() + 16, 0),
            Values::Decimal { values, .. } => values.push(0),
            Values::Record(record, count) => {
                for column in &mut record.columns {
                    column.push_under_null();
                }
                *count += 1;
            }
        }
    }

    /// Something in the place of a field whose record is null.
    fn push_under_null(&mut self) {
        let optional = self.null_branch.is_some();
        self.push_null();
        if !optional {
            self.valid.pop();
        }
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let valid = std::mem::take(&mut self.valid);
        let nulls = self
            .null_branch
            .map(|_| NullBuffer::from(valid))
            .filter(|nulls| nulls.null_count() > 0);
        Ok(match &mut self.values {
            Values::Null(count) => Arc::new(NullArray::new(std::mem::take(count))),
            Values::Boolean(values) => {
                Arc::new(BooleanArray::new(std::mem::take(values).into(), nulls))
            }
            Values::Int(values, logical) => match logical {
                Logical::Date => primitive::<Date32Type>(values, nulls),
                Logical::TimeMillis => primitive::<Time32MillisecondType>(values, nulls),
                _ => primitive::<Int32Type>(values, nulls),
            },
            Values::Long(values, logical) => match logical {
                Logical::TimeMicros => primitive::<Time64MicrosecondType>(values, nulls),
                Logical::TimestampMillis => primitive::<TimestampMillisecondType>(values, nulls),
                Logical::TimestampMicros => primitive::<TimestampMicrosecondType>(values, nulls),
                Logical::TimestampNanos => primitive::<TimestampNanosecondType>(values, nulls),
                _ => primitive::<Int64Type>(values, nulls),
            },
            Values::Float(values) => primitive::<Float32Type>(values, nulls),
            Values::Double(values) => primitive::<Float64Type>(values, nulls),
            Values::Bytes(lengths, bytes) => Arc::new(BinaryArray::try_new(
                offsets(lengths),
                std::mem::take(bytes).into(),
                nulls,
            )?),
            Values::Text(lengths, bytes) | Values::Enum(lengths, bytes, _) => Arc::new(
                StringArray::try_new(offsets(lengths), std::mem::take(bytes).into(), nulls)
                    .map_err(|e| damaged(format!("a string is not UTF-8: {e}")))?,
            ),
            Values::Fixed(size, bytes) => {
                let width =
                    i32::try_from(*size).map_err(|_| damaged("a fixed type is too long"))?;
                fixed(width, bytes, nulls)?
            }
            Values::Uuid(bytes) => fixed(16, bytes, nulls)?,
            Values::Decimal {
                values,
                precision,
                scale,
                ..
            } => Arc::new(
                Decimal128Array::new(std::mem::take(values).into(), nulls)
                    .with_precision_and_scale(*precision, *scale)?,
            ),
            Values::Record(record, count) => {
                let count = std::mem::take(count);
                let columns = record.finish()?;
                if columns.is_empty() {
                    return Ok(Arc::new(StructArray::new_empty_fields(count, nulls)));
                }
                let fields: Fields = columns
                    .iter()
                    .enumerate()
                    .map(|(i, column)| Field::new(i.to_string(), column.data_type().clone(), true))
                    .collect();
                Arc::new(StructArray::try_new(fields, columns, nulls)?)
            }
            Values::List(lengths, element, _) => {
                let values = element.finish()?;
                let field = Arc::new(Field::new("element", values.data_type().clone(), true));
                Arc::new(ListArray::try_new(field, offsets(lengths), values, nulls)?)
            }
            Values::Map {
                lengths,
                key,
                value,
                ..
            } => {
                let (keys, values) = (key.finish()?, value.finish()?);
                if keys.null_count() > 0 {
                    return Err(damaged("a map has a null key"));
                }
                let fields = Fields::from(vec![
                    Field::new("key", keys.data_type().clone(), false),
                    Field::new("value", values.data_type().clone(), true),
                ]);
                let entries = Field::new("entries", DataType::Struct(fields.clone()), false);
                let pairs = StructArray::try_new(fields, vec![keys, values], None)?;
                Arc::new(MapArray::try_new(
                    Arc::new(entries),
                    offsets(lengths),
                    pairs,
                    nulls,
                    false,
                )?)
            }
        })
    }
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(
        std::mem::take(values).into(),
        nulls,
    ))
}

fn fixed(width: i32, bytes: &mut Vec<u8>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    Ok(Arc::new(FixedSizeBinaryArray::try_new(
        width,
        std::mem::take(bytes).into(),
        nulls,
    )?))
}

fn offsets(lengths: &mut Lengths) -> OffsetBuffer<i32> {
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    offsets.push(0);
    offsets.append(lengths);
    // They only ever grow.
    OffsetBuffer::new(offsets.into())
}

fn offset(length: usize) -> Result<i32> {
    i32::try_from(length).map_err(|_| damaged("some consecutive rows hold more than 2 GiB"))
}

fn advance(end: i32, count: usize) -> Result<i32> {
    usize::try_from(end)
        .ok()
        .and_then(|end| end.checked_add(count))
        .ok_or_else(|| damaged("some consecutive rows hold too many items"))
        .and_then(offset)
}

/// A number in two's complement, the highest byte first.
fn decimal(bytes: &[u8], precision: u8, scale: i8) -> Result<i128> {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let sign = if negative { 0xff } else { 0 };
    let (extension, digits) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut wide = [sign; 16];
    wide[16 - digits.len()..].copy_from_slice(digits);
    let value = i128::from_be_bytes(wide);
    if extension.iter().any(|byte| *byte != sign)
        || (value < 0) != negative
        || Decimal128Type::validate_decimal_precision(value, precision, scale).is_err()
    {
        return Err(damaged(format!(
            "a decimal({precision}, {scale}) has more digits"
        )));
    }
    Ok(value)
}

/// Steps over a value.
pub(super) fn skip(node: &Node, cursor: &mut Cursor<'_>) -> Result<()> {
    match node {
        Node::Null => {}
        Node::Boolean => {
            cursor.byte()?;
        }
        Node::Int(_) | Node::Long(_) | Node::Enum(_) => {
            cursor.long()?;
        }
        Node::Float => {
            cursor.take(4)?;
        }
        Node::Double => {
            cursor.take(8)?;
        }
        Node::Bytes(_) | Node::String(_) => {
            cursor.bytes()?;
        }
        Node::Fixed(size, _) => {
            cursor.take(*size)?;
        }
        Node::Record(fields) => {
            for field in fields {
                skip(field, cursor)?;
            }
        }
        Node::Array(item) => {
            while let Some(items) = cursor.items(item.least_bytes())? {
                match items.bytes {
                    Some(bytes) => {
                        cursor.take(bytes)?;
                    }
                    None => {
                        for _ in 0..items.count {
                            skip(item, cursor)?;
                        }
                    }
                }
            }
        }
        Node::Map(value) => {
            while let Some(items) = cursor.items(value.least_bytes() + 1)? {
                match items.bytes {
                    Some(bytes) => {
                        cursor.take(bytes)?;
                    }
                    None => {
                        for _ in 0..items.count {
                            cursor.bytes()?;
                            skip(value, cursor)?;
                        }
                    }
                }
            }
        }
        Node::Union(branches) => {
            let branch = cursor.length()?;
            let node = branches
                .get(branch)
                .ok_or_else(|| damaged(format!("a union has no branch {branch}")))?;
            skip(node, cursor)?;
        }
    }
    Ok(())
}
