//! The columns of a file as a tree, with the field ids that its writer or the table's name mapping gave them.

use std::sync::Arc;

use iceberg::spec::{MappedField, NameMapping};

use super::error::FormatError;

/// One field of a file, at any depth.
#[derive(Debug, Clone)]
pub(crate) struct FileField {
    pub(crate) name: String,
    pub(crate) id: Option<i32>,
    /// What the format's reader knows the field by.
    pub(crate) number: usize,
    pub(crate) shape: FileShape,
}

#[derive(Debug, Clone)]
pub(crate) enum FileShape {
    Leaf,
    Struct(Vec<FileField>),
    List(Box<FileField>),
    Map(Box<FileField>, Box<FileField>),
}

/// Gives a file's fields the ids of the table's name mapping if the file itself has none (the specification's "Column
/// projection" and "Name mapping").
pub(crate) fn identify(
    fields: &mut [FileField],
    mapping: Option<&NameMapping>,
) -> Result<(), FormatError> {
    if fields.is_empty() || fields.iter().any(|field| field.id.is_some()) {
        return Ok(());
    }
    let mapping = mapping.ok_or(FormatError::NoFieldIds)?;
    for field in fields {
        let mapped = by_name(field, mapping.fields());
        map_field(field, mapped);
    }
    Ok(())
}

fn by_name<'a>(
    field: &FileField,
    mapping: impl IntoIterator<Item = &'a MappedField>,
) -> Option<&'a MappedField> {
    mapping
        .into_iter()
        .find(|mapped| mapped.names().contains(&field.name))
}

fn map_field(field: &mut FileField, mapped: Option<&MappedField>) {
    field.id = mapped.and_then(MappedField::field_id);
    let inside: &[Arc<MappedField>] = mapped.map(MappedField::fields).unwrap_or(&[]);
    let inside = |field: &FileField| by_name(field, inside.iter().map(Arc::as_ref));
    let map_as = |field: &mut FileField, name: &str| {
        field.name = name.to_string();
        let mapped = inside(field);
        map_field(field, mapped);
    };
    match &mut field.shape {
        FileShape::Leaf => {}
        FileShape::Struct(children) => {
            for child in children {
                let mapped = inside(child);
                map_field(child, mapped);
            }
        }
        FileShape::List(element) => map_as(element, "element"),
        FileShape::Map(key, value) => {
            map_as(key, "key");
            map_as(value, "value");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, id: Option<i32>, shape: FileShape) -> FileField {
        FileField {
            name: name.to_string(),
            id,
            number: 0,
            shape,
        }
    }

    #[test]
    fn a_name_mapping_reaches_all_depths() {
        let mapping: NameMapping = serde_json::from_str(
            r#"[{"field-id": 1, "names": ["id", "ID"]},
                {"field-id": 2, "names": ["l"], "fields": [
                    {"field-id": 3, "names": ["element"], "fields": [{"field-id": 4, "names": ["x"]}]}]}]"#,
        )
        .expect("a mapping");
        let x = field("x", None, FileShape::Leaf);
        let item = field("item", None, FileShape::Struct(vec![x]));
        let mut fields = vec![
            field("ID", None, FileShape::Leaf),
            field("l", None, FileShape::List(Box::new(item))),
            field("other", None, FileShape::Leaf),
        ];
        identify(&mut fields, Some(&mapping)).expect("it maps");
        assert_eq!(
            fields.iter().map(|f| f.id).collect::<Vec<_>>(),
            [Some(1), Some(2), None]
        );
        let FileShape::List(element) = &fields[1].shape else {
            panic!("a list");
        };
        assert_eq!(element.id, Some(3));
        let FileShape::Struct(children) = &element.shape else {
            panic!("a struct");
        };
        assert_eq!(children[0].id, Some(4));
        // Ids of the file's own are kept, and without either the file is refused.
        let mut own = vec![field("id", Some(9), FileShape::Leaf)];
        identify(&mut own, Some(&mapping)).expect("it has ids");
        assert_eq!(own[0].id, Some(9));
        let mut none = vec![field("id", None, FileShape::Leaf)];
        assert!(matches!(
            identify(&mut none, None),
            Err(FormatError::NoFieldIds)
        ));
    }
}
