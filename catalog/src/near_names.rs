//! Suggestions for a name that does not exist.

/// The most suggestions an error carries.
const MAX_SUGGESTIONS: usize = 3;

/// The names closest to `wanted` by edit distance, nearest first; none if nothing is close.
///
/// A name is close when no more than a third of its letters (at least one) must be changed, letter case aside, or
/// when one name contains the other.
pub fn near_names<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let folded = wanted.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let other = name.to_lowercase();
            let distance = edit_distance(&folded, &other);
            let allowed = (folded.chars().count().max(other.chars().count()) / 3).max(1);
            let contains = folded.len() >= 3
                && other.len() >= 3
                && (other.contains(&folded) || folded.contains(&other));
            (distance <= allowed || contains).then_some((distance, name))
        })
        .collect();
    near.sort();
    near.into_iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, name)| name.to_string())
        .collect()
}

/// Damerau-Levenshtein distance in its restricted form: insert, delete, replace, or swap two neighbours.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_previous: Vec<usize> = vec![0; right.len() + 1];
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut current = vec![i + 1; right.len() + 1];
        for (j, r) in right.iter().enumerate() {
            let replace = previous[j] + usize::from(l != r);
            let mut best = replace.min(previous[j + 1] + 1).min(current[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                best = best.min(before_previous[j - 1] + 1);
            }
            current[j + 1] = best;
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("orders", "orders", 0),
            ("ordres", "orders", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("größe", "grösse", 2),
        ] {
            assert_eq!(edit_distance(left, right), expected, "{left} {right}");
            assert_eq!(edit_distance(right, left), expected, "{right} {left}");
        }
    }

    #[test]
    fn nearest_first_and_nothing_far() {
        let tables = ["lineitem", "orders", "order_lines", "customer", "part"];
        assert_eq!(near_names("ordrs", tables), vec!["orders"]);
        assert_eq!(near_names("LINEITEMS", tables), vec!["lineitem"]);
        assert_eq!(near_names("order", tables), vec!["orders", "order_lines"]);
        assert!(near_names("xyzzy", tables).is_empty());
    }
}
