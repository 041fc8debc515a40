//! `LIKE` of SHOW statements, matched on the coordinator without planning a query.

/// Whether `value` matches a SQL `LIKE` pattern: `%` any run, `_` one character, `\` escapes; case is ignored.
pub fn like_matches(pattern: &str, value: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().flat_map(char::to_lowercase).collect();
    let value: Vec<char> = value.chars().flat_map(char::to_lowercase).collect();
    // Greedy matching with one remembered `%`: on a mismatch that `%` takes one character more.
    let (mut p, mut v) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while v < value.len() {
        match pattern.get(p) {
            Some('%') => {
                retry = Some((p + 1, v));
                p += 1;
                continue;
            }
            Some('_') => {
                p += 1;
                v += 1;
                continue;
            }
            Some('\\') if p + 1 < pattern.len() && pattern[p + 1] == value[v] => {
                p += 2;
                v += 1;
                continue;
            }
            Some(&c) if c != '\\' && c == value[v] => {
                p += 1;
                v += 1;
                continue;
            }
            _ => {}
        }
        match retry {
            Some((after, from)) => {
                p = after;
                v = from + 1;
                retry = Some((after, from + 1));
            }
            None => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '%')
}

#[cfg(test)]
mod tests {
    use super::like_matches;

    #[test]
    fn patterns_match_as_mysql_says() {
        for (pattern, value, expected) in [
            ("%", "", true),
            ("sql_mode", "SQL_MODE", true),
            ("sql_mode", "sqlxmode", true),
            ("sql\\_mode", "sqlxmode", false),
            ("sql\\_mode", "sql_mode", true),
            ("a%c%e", "abcde", true),
            ("a%c%e", "abcd", false),
            ("%tion", "collation_connection", true),
            ("_", "", false),
            ("", "", true),
            ("", "x", false),
            ("ord%", "orders", true),
        ] {
            assert_eq!(
                like_matches(pattern, value),
                expected,
                "{value:?} LIKE {pattern:?}"
            );
        }
    }
}
