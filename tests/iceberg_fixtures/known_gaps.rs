//! Queries that do not pass yet. Whoever makes one pass takes it from here: the test fails until then.

use super::run::Kind;

/// Queries that fail for one reason.
pub struct Gap {
    /// For whoever reads this.
    #[allow(dead_code)]
    reason: &'static str,
    kind: Kind,
    /// Ids; one that ends with `*` stands for all that begin so.
    ids: &'static [&'static str],
}

impl Gap {
    /// Whether queries of this gap may fail like that.
    pub fn excuses(&self, kind: Kind) -> bool {
        self.kind == kind
    }
}

/// The gap that a query falls into.
pub fn known_gap(id: &str) -> Option<&'static Gap> {
    let is_of = |pattern: &&&str| match pattern.strip_suffix('*') {
        Some(prefix) => id.starts_with(prefix),
        None => id == **pattern,
    };
    KNOWN_GAPS
        .iter()
        .find(|gap| gap.ids.iter().any(|pattern| is_of(&pattern)))
}

const KNOWN_GAPS: &[Gap] = &[];
