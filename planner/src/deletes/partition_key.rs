//! Partitions as keys of maps.

use iceberg::spec::{Literal, PrimitiveLiteral, Struct};

/// A partition: the spec that it is of, and its values.
///
/// Two manifests may spell the values of one partition in different types, when its column was promoted between them;
/// here they are equal. Zeros of different signs are different partitions, as they are to writers, and all NaNs are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PartitionKey {
    spec_id: i32,
    values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Value {
    Null,
    Integer(i64),
    /// Bits of a double.
    Float(u64),
    Plain(Literal),
}

impl PartitionKey {
    pub(crate) fn new(spec_id: i32, partition: &Struct) -> Self {
        Self {
            spec_id,
            values: partition.iter().map(value).collect(),
        }
    }
}

fn value(literal: Option<&Literal>) -> Value {
    let float = |v: f64| Value::Float(if v.is_nan() { f64::NAN } else { v }.to_bits());
    match literal {
        None => Value::Null,
        Some(Literal::Primitive(PrimitiveLiteral::Int(v))) => Value::Integer(i64::from(*v)),
        Some(Literal::Primitive(PrimitiveLiteral::Long(v))) => Value::Integer(*v),
        Some(Literal::Primitive(PrimitiveLiteral::Float(v))) => float(f64::from(v.0)),
        Some(Literal::Primitive(PrimitiveLiteral::Double(v))) => float(v.0),
        Some(other) => Value::Plain(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(spec_id: i32, value: Option<Literal>) -> PartitionKey {
        PartitionKey::new(spec_id, &Struct::from_iter([value]))
    }

    #[test]
    fn promoted_values_are_equal_and_others_are_not() {
        let same = [
            (Some(Literal::int(5)), Some(Literal::long(5))),
            (Some(Literal::float(0.5)), Some(Literal::double(0.5))),
            (
                Some(Literal::double(f64::NAN)),
                Some(Literal::double(-f64::NAN)),
            ),
            (None, None),
            (Some(Literal::string("a")), Some(Literal::string("a"))),
        ];
        for (a, b) in same {
            assert_eq!(key(1, a), key(1, b));
        }
        let different = [
            (Some(Literal::int(5)), Some(Literal::long(6))),
            (Some(Literal::double(0.0)), Some(Literal::double(-0.0))),
            (None, Some(Literal::int(0))),
            (None, Some(Literal::string(""))),
        ];
        for (a, b) in different {
            assert_ne!(key(1, a), key(1, b));
        }
        assert_ne!(key(1, Some(Literal::int(5))), key(2, Some(Literal::int(5))));
    }
}
