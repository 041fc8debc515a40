//! Storage properties from two places.

use std::collections::BTreeMap;

/// Credentials of one store, of which a set must come from one place.
const CREDENTIALS: [&[&str]; 3] = [
    &[
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
        "s3.profile-name",
        "client.access-key-id",
        "client.secret-access-key",
        "client.session-token",
        "client.profile-name",
    ],
    &[
        "gcs.oauth2.token",
        "gcs.oauth2.token-expires-at",
        "gcs.credentials-json",
        "gcs.credentials-path",
        "gcs.no-auth",
    ],
    &[
        "adls.account-key",
        "adls.sas-token",
        "adls.sas-token.*",
        "adls.sas-token-expires-at-ms.*",
        "adls.connection-string",
        "adls.connection-string.*",
        "adls.token",
        "adls.tenant-id",
        "adls.client-id",
        "adls.client-secret",
        "adls.auth.shared-key.account.name",
        "adls.auth.shared-key.account.key",
    ],
];

/// What is left of `properties` beside `over`, which goes before them: no key that `over` has, and no credential of a
/// store that it has another credential of.
pub(crate) fn without_overridden(
    mut properties: BTreeMap<String, String>,
    over: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let has_own = |set: &[&str]| over.keys().any(|key| is_one_of(set, key));
    let hidden: Vec<&[&str]> = CREDENTIALS.into_iter().filter(|set| has_own(set)).collect();
    properties
        .retain(|key, _| !over.contains_key(key) && !hidden.iter().any(|set| is_one_of(set, key)));
    properties
}

/// `base`, with `over` going before it.
pub(crate) fn overlaid(
    base: &BTreeMap<String, String>,
    over: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut all = without_overridden(base.clone(), over);
    all.extend(over.clone());
    all
}

/// Some names end in the name of an account.
fn is_one_of(set: &[&str], key: &str) -> bool {
    set.iter().any(|known| match known.strip_suffix('*') {
        Some(prefix) => key.starts_with(prefix),
        None => *known == key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    }

    #[test]
    fn credentials_come_from_one_place() {
        let base = properties(&[
            ("s3.region", "eu-1"),
            ("s3.endpoint", "http://a"),
            ("s3.access-key-id", "base"),
            ("s3.session-token", "base"),
        ]);
        let own = properties(&[
            ("s3.endpoint", "http://b"),
            ("s3.access-key-id", "own"),
            ("s3.secret-access-key", "own"),
        ]);
        assert_eq!(
            overlaid(&base, &own),
            properties(&[
                ("s3.region", "eu-1"),
                ("s3.endpoint", "http://b"),
                ("s3.access-key-id", "own"),
                ("s3.secret-access-key", "own"),
            ])
        );
        assert_eq!(overlaid(&base, &properties(&[])), base);
    }
}
