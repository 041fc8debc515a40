//! The names of all functions, as `SHOW FUNCTIONS` lists them.

use std::collections::BTreeSet;

use datafusion::execution::SessionStateDefaults;

use super::register::scalar_functions;
use crate::statement::{ICEBERG_SCAN, rewritten_functions};

/// Every name that may be called in a query, with its kind.
pub fn function_names() -> Vec<(String, &'static str)> {
    let mut names = BTreeSet::new();
    for function in SessionStateDefaults::default_scalar_functions()
        .into_iter()
        .chain(scalar_functions())
    {
        add(&mut names, function.name(), function.aliases(), "scalar");
    }
    for function in SessionStateDefaults::default_aggregate_functions() {
        add(&mut names, function.name(), function.aliases(), "aggregate");
    }
    for function in SessionStateDefaults::default_window_functions() {
        add(&mut names, function.name(), function.aliases(), "window");
    }
    for (name, kind) in rewritten_functions() {
        add(&mut names, name, &[], kind);
    }
    add(&mut names, ICEBERG_SCAN, &[], "table");
    names.into_iter().collect()
}

fn add(
    names: &mut BTreeSet<(String, &'static str)>,
    name: &str,
    aliases: &[String],
    kind: &'static str,
) {
    names.insert((name.to_owned(), kind));
    names.extend(aliases.iter().map(|alias| (alias.clone(), kind)));
}

#[cfg(test)]
mod tests {
    use super::function_names;

    #[test]
    fn names_of_every_origin_are_listed_once() {
        let names = function_names();
        for expected in [
            ("upper", "scalar"),
            ("date_format", "scalar"),
            ("ucase", "scalar"),
            ("if", "scalar"),
            ("sum", "aggregate"),
            ("group_concat", "aggregate"),
            ("row_number", "window"),
        ] {
            let count = names
                .iter()
                .filter(|(name, kind)| (name.as_str(), *kind) == expected)
                .count();
            assert_eq!(count, 1, "{expected:?}");
        }
        assert!(names.iter().all(|(name, _)| name != "single_value"));
    }
}
