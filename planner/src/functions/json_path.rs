//! Paths into JSON, as MySQL writes them: `$.a."b c"[0]`, `$[last]`, `$[1 to 3]`, `$.*`, `$[*]`.

use serde_json::Value;

/// A path, parsed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath {
    legs: Vec<Leg>,
}

#[derive(Debug, Clone, PartialEq)]
enum Leg {
    Member(String),
    AllMembers,
    Cells(Position, Position),
    AllCells,
}

/// A place in an array, from its beginning or its end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Position {
    First(usize),
    Last(usize),
}

impl Position {
    /// The index in an array of that length; none before its beginning.
    fn of(self, length: usize) -> Option<usize> {
        match self {
            Position::First(index) => Some(index),
            Position::Last(back) => length.checked_sub(back + 1),
        }
    }
}

impl JsonPath {
    /// None if the text is no path.
    pub(super) fn parse(text: &str) -> Option<JsonPath> {
        let mut rest = text.trim().strip_prefix('$')?;
        let mut legs = Vec::new();
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                return Some(JsonPath { legs });
            }
            let (leg, after) = match rest.strip_prefix('.') {
                Some(member) => member_leg(member.trim_start())?,
                None => cell_leg(rest.strip_prefix('[')?)?,
            };
            legs.push(leg);
            rest = after;
        }
    }

    /// Whether it can find more than one value.
    pub(super) fn is_many(&self) -> bool {
        self.legs.iter().any(|leg| match leg {
            Leg::AllMembers | Leg::AllCells => true,
            Leg::Cells(from, to) => from != to,
            Leg::Member(_) => false,
        })
    }

    /// What is there, in the order of the document.
    pub(super) fn find<'a>(&self, document: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![document];
        for leg in &self.legs {
            found = found.into_iter().flat_map(|value| leg.of(value)).collect();
        }
        found
    }
}

impl Leg {
    fn of<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Leg::Member(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (Leg::AllMembers, Value::Object(members)) => super::json::ordered(members)
                .into_iter()
                .map(|(_, value)| value)
                .collect(),
            (Leg::AllCells, Value::Array(cells)) => cells.iter().collect(),
            (Leg::Cells(from, to), Value::Array(cells)) => {
                let (Some(from), Some(to)) = (from.of(cells.len()), to.of(cells.len())) else {
                    return Vec::new();
                };
                cells
                    .iter()
                    .skip(from)
                    .take((to + 1).saturating_sub(from))
                    .collect()
            }
            // What is no array is taken for one of one value.
            (Leg::Cells(from, to), other) => match (from.of(1), to.of(1)) {
                (Some(0), Some(_)) => vec![other],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

fn member_leg(text: &str) -> Option<(Leg, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((Leg::AllMembers, rest));
    }
    if text.starts_with('"') {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = stream.next()?.ok()?;
        return Some((Leg::Member(name), &text[stream.byte_offset()..]));
    }
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')))
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then(|| (Leg::Member(name.to_owned()), rest))
}

/// What stands in brackets.
fn cell_leg(text: &str) -> Option<(Leg, &str)> {
    let (inside, rest) = text.split_once(']')?;
    let inside = inside.trim();
    if inside == "*" {
        return Some((Leg::AllCells, rest));
    }
    let (from, to) = match inside.split_once(" to ") {
        Some((from, to)) => (position(from)?, position(to)?),
        None => (position(inside)?, position(inside)?),
    };
    Some((Leg::Cells(from, to), rest))
}

fn position(text: &str) -> Option<Position> {
    let text = text.trim();
    match text.strip_prefix("last") {
        Some(back) => match back.trim() {
            "" => Some(Position::Last(0)),
            back => Some(Position::Last(back.strip_prefix('-')?.trim().parse().ok()?)),
        },
        None => Some(Position::First(text.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_what_they_name() {
        let document = json!({"a": {"b c": [1, 2, 3]}, "d": 7, "größe": [[8], 9]});
        for (path, found) in [
            ("$", vec![document.clone()]),
            ("$.a.\"b c\"[0]", vec![json!(1)]),
            (" $ . a . \"b c\" [ last ] ", vec![json!(3)]),
            ("$.a.\"b c\"[last-1]", vec![json!(2)]),
            ("$.a.\"b c\"[last-3]", vec![]),
            ("$.a.\"b c\"[1 to last]", vec![json!(2), json!(3)]),
            ("$.a.\"b c\"[*]", vec![json!(1), json!(2), json!(3)]),
            ("$.d[0]", vec![json!(7)]),
            ("$.d[1]", vec![]),
            ("$.größe[0][0]", vec![json!(8)]),
            ("$.missing.x", vec![]),
            (
                "$.*[0]",
                vec![document["a"].clone(), json!([8]), json!(7)][..].to_vec(),
            ),
        ] {
            let mut given: Vec<Value> = JsonPath::parse(path)
                .unwrap()
                .find(&document)
                .into_iter()
                .cloned()
                .collect();
            let mut found = found;
            given.sort_by_key(Value::to_string);
            found.sort_by_key(Value::to_string);
            assert_eq!(given, found, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in [
            "", "a", "$a", "$.", "$.a b", "$[", "$[x]", "$[1", "$..a", "$.\"a",
        ] {
            assert_eq!(JsonPath::parse(text), None, "{text}");
        }
    }
}
