//! What can be wrong with the configuration, said so that it can be mended.

use std::path::PathBuf;

/// A setting, a file or a variable that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{place}: {message}")]
    Syntax { place: String, message: String },
    #[error("{place}: unknown {what} `{name}`{}", suggestion(near))]
    Unknown {
        place: String,
        /// "setting", "section" or "variable".
        what: &'static str,
        name: String,
        near: Option<String>,
    },
    #[error("{place}: {name}: {problem}")]
    BadValue {
        place: String,
        name: String,
        problem: String,
    },
}

fn suggestion(near: &Option<String>) -> String {
    match near {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; `tarn config` lists them all".to_string(),
    }
}

/// The candidate that `name` most likely was meant to be, if any is near enough.
pub(super) fn nearest(name: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    let limit = (name.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|c| (edit_distance(&name.to_lowercase(), &c.to_lowercase()), c))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Levenshtein's distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("memory", "memory", 0),
            ("memroy", "memory", 2),
        ] {
            assert_eq!(edit_distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn nothing_near_is_no_suggestion() {
        let names = || ["cache.memory".to_string(), "cache.disk".to_string()];
        assert_eq!(
            nearest("cache.memroy", names()),
            Some("cache.memory".to_string())
        );
        assert_eq!(nearest("frobnicate", names()), None);
    }
}
