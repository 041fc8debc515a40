//! The patterns of COM_FIELD_LIST.

/// Whether a name matches a pattern of `%` (any text) and `_` (any character), without regard to case.
pub(crate) fn matches_wildcard(name: &str, pattern: &str) -> bool {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let (mut at, mut in_pattern) = (0, 0);
    // Where to go on if the text after the last % does not match here.
    let mut retry: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(in_pattern) {
            Some('%') => {
                retry = Some((at, in_pattern));
                in_pattern += 1;
            }
            Some(&character) if character == '_' || character == name[at] => {
                at += 1;
                in_pattern += 1;
            }
            _ => match retry {
                Some((from, percent)) => {
                    retry = Some((from + 1, percent));
                    at = from + 1;
                    in_pattern = percent + 1;
                }
                None => return false,
            },
        }
    }
    pattern[in_pattern..]
        .iter()
        .all(|character| *character == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        let cases = [
            ("order_id", "%", true),
            ("order_id", "ORDER%", true),
            ("order_id", "%id", true),
            ("order_id", "%d_r%", true),
            ("order_id", "order", false),
            ("", "%%", true),
            ("a", "_", true),
            ("ab", "_", false),
            ("aab", "%ab", true),
        ];
        for (name, pattern, expected) in cases {
            assert_eq!(
                matches_wildcard(name, pattern),
                expected,
                "{name} {pattern}"
            );
        }
    }
}
