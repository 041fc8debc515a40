//! Names of table metadata files: `<location>/metadata/<version>-<uuid>.metadata.json`.

use uuid::Uuid;

/// Where the first metadata file of a table goes.
pub(crate) fn first_metadata_location(table_location: &str, suffix: &str) -> String {
    location(table_location, 0, suffix)
}

/// Where the metadata file after `current` goes. The name of `current` may be of any style.
pub(crate) fn next_metadata_location(table_location: &str, current: &str, suffix: &str) -> String {
    location(
        table_location,
        version(current).map_or(0, |version| version + 1),
        suffix,
    )
}

fn location(table_location: &str, version: u64, suffix: &str) -> String {
    format!(
        "{}/metadata/{version:05}-{}{suffix}",
        table_location.trim_end_matches('/'),
        Uuid::new_v4()
    )
}

/// `00012-<uuid>.metadata.json` is 12, and so is Hadoop's `v12.metadata.json`.
pub(crate) fn version(location: &str) -> Option<u64> {
    let name = location.rsplit('/').next()?;
    let digits: String = name
        .strip_prefix('v')
        .unwrap_or(name)
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_up_whatever_the_name() {
        for (current, next) in [
            (
                "file:///t/metadata/00012-0190.metadata.json",
                "file:///t/metadata/00013-",
            ),
            (
                "file:///t/metadata/v7.gz.metadata.json",
                "file:///t/metadata/00008-",
            ),
            ("file:///t/metadata/odd.json", "file:///t/metadata/00000-"),
        ] {
            let location = next_metadata_location("file:///t/", current, ".metadata.json");
            assert!(
                location.starts_with(next) && location.ends_with(".metadata.json"),
                "{location}"
            );
        }
    }
}
