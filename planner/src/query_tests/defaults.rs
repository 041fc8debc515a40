//! Columns that a file was written before have their default value, at any depth.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, ListArray, MapArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields};
use iceberg::spec::{
    ListType, Literal, MapType, NestedField, PrimitiveType as P, StructType, Type,
};

use super::evolution::{Case, ints, optional, primitive, table, with_id};

fn with_default(id: i32, name: &str, default: i32) -> Arc<NestedField> {
    let field = NestedField::optional(id, name, Type::Primitive(P::Int));
    Arc::new(field.with_initial_default(Literal::int(default)))
}

fn structs(fields: Vec<(Field, ArrayRef)>, nulls: Option<NullBuffer>) -> StructArray {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = fields.into_iter().unzip();
    StructArray::new(Fields::from(fields), arrays, nulls)
}

#[tokio::test]
async fn a_column_that_a_file_lacks_has_its_default_value() {
    let required = NestedField::required(3, "r", Type::Primitive(P::Int));
    let case = Case::new(
        table(vec![
            primitive(1, "a", P::Int),
            with_default(2, "b", 7),
            required.with_initial_default(Literal::int(-1)).into(),
            primitive(4, "n", P::Int),
        ]),
        vec![(
            with_id(Field::new("a", DataType::Int32, true), 1),
            ints(&[1, 2]),
        )],
    );
    assert_eq!(
        case.answer("SELECT * FROM t ORDER BY a").await,
        "1,7,-1,; 2,7,-1,"
    );
    for (filter, rows) in [
        ("b = 7", "2"),
        ("b <> 7", "0"),
        ("b IS NULL", "0"),
        ("a < b AND r < 0", "2"),
        ("n IS NULL", "2"),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE {filter}");
        assert_eq!(case.answer(&sql).await, rows, "{filter}");
    }
}

#[tokio::test]
async fn a_null_that_was_written_stays_null() {
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let case = Case::new(
        table(vec![with_default(1, "a", 7)]),
        vec![(with_id(Field::new("a", DataType::Int32, true), 1), values)],
    );
    assert_eq!(case.answer("SELECT a FROM t ORDER BY a").await, "1; ");
}

#[tokio::test]
async fn fields_of_structs_have_their_defaults_wherever_the_struct_is() {
    // struct { b default 5, a }, where the file has only a.
    let fields = || StructType::new(vec![with_default(12, "b", 5), primitive(11, "a", P::Int)]);
    let a = || with_id(Field::new("a", DataType::Int32, true), 11);
    let plain = structs(
        vec![(a(), ints(&[1, 2]))],
        Some(NullBuffer::from(vec![true, false])),
    );
    let case = Case::new(
        table(vec![optional(1, "s", Type::Struct(fields()))]),
        vec![(
            with_id(Field::new("s", plain.data_type().clone(), true), 1),
            Arc::new(plain),
        )],
    );
    // A struct that is null has no fields.
    assert_eq!(
        case.answer("SELECT s.a, s.b, s IS NULL FROM t ORDER BY s.a")
            .await,
        "1,5,false; ,,true"
    );
    assert_eq!(
        case.answer("SELECT count(*) FROM t WHERE s.b = 5").await,
        "1"
    );
    assert_eq!(
        case.answer("SELECT count(*) FROM t WHERE s.b IS NULL")
            .await,
        "1"
    );
}

#[tokio::test]
async fn elements_of_lists_and_values_of_maps_are_matched_by_id_and_have_defaults() {
    let a = |name: &str| with_id(Field::new(name, DataType::Int32, true), 11);
    let gone = || with_id(Field::new("gone", DataType::Int32, true), 13);
    let fields = || StructType::new(vec![with_default(12, "b", 5), primitive(11, "a", P::Int)]);
    let items = || {
        structs(
            vec![(gone(), ints(&[8, 9])), (a("old"), ints(&[1, 2]))],
            None,
        )
    };
    let element = with_id(Field::new("element", items().data_type().clone(), true), 2);
    let list = ListArray::new(
        Arc::new(element),
        OffsetBuffer::from_lengths([2]),
        Arc::new(items()),
        None,
    );
    let key = with_id(Field::new("key", DataType::Int32, false), 4);
    let value = with_id(Field::new("value", items().data_type().clone(), true), 5);
    let entries = structs(
        vec![(key, ints(&[70, 80])), (value, Arc::new(items()))],
        None,
    );
    let map = MapArray::new(
        Arc::new(Field::new("key_value", entries.data_type().clone(), false)),
        OffsetBuffer::from_lengths([2]),
        entries,
        None,
        false,
    );
    let list_type = ListType::new(optional(2, "element", Type::Struct(fields())));
    let map_type = MapType::new(
        NestedField::map_key_element(4, Type::Primitive(P::Int)).into(),
        NestedField::map_value_element(5, Type::Struct(fields()), false).into(),
    );
    let of = |array: &ArrayRef, name: &str, id| {
        with_id(Field::new(name, array.data_type().clone(), true), id)
    };
    let (list, map): (ArrayRef, ArrayRef) = (Arc::new(list), Arc::new(map));
    let case = |id, column: Type, array: &ArrayRef| {
        Case::new(
            table(vec![optional(id, "c", column)]),
            vec![(of(array, "c", id), Arc::clone(array))],
        )
    };
    let lists = case(1, Type::List(list_type), &list);
    assert_eq!(
        lists
            .answer("SELECT c[1]['a'], c[2]['a'], c[1]['b'] FROM t")
            .await,
        "1,2,5"
    );
    let maps = case(3, Type::Map(map_type), &map);
    assert_eq!(
        maps.answer("SELECT map_extract(c, 80)[1]['a'], map_extract(c, 70)[1]['b'] FROM t")
            .await,
        "2,5"
    );
}
