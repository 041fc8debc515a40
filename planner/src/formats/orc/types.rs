//! The types of a file, and the Iceberg attributes on them (Iceberg specification, Appendix A, "ORC").

use super::messages::{StringPair, Type};
use super::stream::damaged;
use crate::formats::error::FormatError;
use crate::formats::file_fields::{FileField, FileShape};

/// Field ids are kept under this attribute.
const ID_ATTRIBUTE: &str = "iceberg.id";

/// No writer nests deeper; a file that claims to would overflow the stack.
const MAX_DEPTH: usize = 100;

/// What the values of one column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    String,
    Binary,
    /// Without a zone: written as seconds in the writer's.
    Timestamp,
    /// An instant.
    TimestampInstant,
    List,
    Map,
    Struct,
    Union,
    Decimal {
        precision: u8,
        scale: i8,
    },
    Date,
    Unknown(i32),
}

impl Kind {
    fn of(of: &Type) -> Result<Self, FormatError> {
        Ok(match of.kind.unwrap_or_default() {
            0 => Kind::Boolean,
            1 => Kind::Byte,
            2 => Kind::Short,
            3 => Kind::Int,
            4 => Kind::Long,
            5 => Kind::Float,
            6 => Kind::Double,
            7 | 16 | 17 => Kind::String,
            8 => Kind::Binary,
            9 => Kind::Timestamp,
            10 => Kind::List,
            11 => Kind::Map,
            12 => Kind::Struct,
            13 => Kind::Union,
            14 => {
                // Hive 0.11 wrote neither; these are its limits.
                let (precision, scale) = (of.precision.unwrap_or(38), of.scale.unwrap_or(10));
                match (u8::try_from(precision), i8::try_from(scale)) {
                    (Ok(precision @ 1..=38), Ok(scale))
                        if i64::from(scale) <= i64::from(precision) =>
                    {
                        Kind::Decimal { precision, scale }
                    }
                    _ => {
                        return Err(damaged(format!(
                            "a column is decimal({precision}, {scale})"
                        )));
                    }
                }
            }
            15 => Kind::Date,
            18 => Kind::TimestampInstant,
            other => Kind::Unknown(other),
        })
    }
}

/// The columns of a file, and the kind of each by its number.
#[derive(Debug)]
pub(super) struct Types {
    pub(super) fields: Vec<FileField>,
    pub(super) kinds: Vec<Kind>,
}

impl Types {
    /// The types of a footer: a tree, written with each type before its children.
    pub(super) fn new(types: &[Type]) -> Result<Self, FormatError> {
        let kinds = types.iter().map(Kind::of).collect::<Result<Vec<_>, _>>()?;
        let mut tree = Tree {
            types,
            kinds: &kinds,
            next: 0,
        };
        let root = tree.field("the root", 0)?;
        let FileShape::Struct(fields) = root.shape else {
            return Err(FormatError::unsupported(
                crate::formats::FileFormat::Orc,
                "a root that is not a struct",
            ));
        };
        Ok(Self { fields, kinds })
    }
}

struct Tree<'a> {
    types: &'a [Type],
    kinds: &'a [Kind],
    next: usize,
}

impl Tree<'_> {
    fn field(&mut self, name: &str, depth: usize) -> Result<FileField, FormatError> {
        let number = self.next;
        let (Some(of), Some(kind)) = (self.types.get(number), self.kinds.get(number)) else {
            return Err(damaged("its types are not a tree"));
        };
        if depth > MAX_DEPTH {
            return Err(damaged(format!("its types nest deeper than {MAX_DEPTH}")));
        }
        self.next += 1;
        let child = |tree: &mut Self, index: usize, name: &str| {
            // Each type is written before its children and after its elder siblings' whole trees.
            if of.subtypes.get(index).map(|n| *n as usize) != Some(tree.next) {
                return Err(damaged("its types are not a tree"));
            }
            tree.field(name, depth + 1)
        };
        let shape = match (kind, of.subtypes.len()) {
            (Kind::Struct, count) => {
                if of.field_names.len() != count {
                    return Err(damaged(format!(
                        "column '{name}' has {count} fields and {} names",
                        of.field_names.len()
                    )));
                }
                let fields = of.field_names.iter().enumerate();
                FileShape::Struct(
                    fields
                        .map(|(index, name)| child(self, index, name))
                        .collect::<Result<_, _>>()?,
                )
            }
            (Kind::List, 1) => FileShape::List(Box::new(child(self, 0, "element")?)),
            (Kind::Map, 2) => FileShape::Map(
                Box::new(child(self, 0, "key")?),
                Box::new(child(self, 1, "value")?),
            ),
            (Kind::Union, count) => {
                // It is read by nobody, but what comes after it is counted from its end.
                for index in 0..count {
                    child(self, index, "variant")?;
                }
                FileShape::Leaf
            }
            (Kind::List | Kind::Map, count) => {
                return Err(damaged(format!(
                    "column '{name}' is a {kind:?} of {count} types"
                )));
            }
            (_, 0) => FileShape::Leaf,
            (_, count) => {
                return Err(damaged(format!(
                    "column '{name}' is a {kind:?} of {count} types"
                )));
            }
        };
        Ok(FileField {
            name: name.to_string(),
            id: field_id(name, &of.attributes)?,
            number,
            shape,
        })
    }
}

fn field_id(name: &str, attributes: &[StringPair]) -> Result<Option<i32>, FormatError> {
    let found = attributes
        .iter()
        .find(|pair| pair.key.as_deref() == Some(ID_ATTRIBUTE));
    let Some(text) = found.map(|pair| pair.value.as_deref().unwrap_or_default()) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(id) => Ok(Some(id)),
        Err(_) => Err(damaged(format!(
            "column '{name}' has the attribute {ID_ATTRIBUTE}='{text}', which is no field id"
        ))),
    }
}
