//! How many dimensions a query may shuffle.

use std::collections::BTreeMap;

use tarn_planner::{Distribution, JoinDistribution};

use crate::error::{Error, ErrorKind, Result};

/// An error if more joins of one chain are shuffled than `most`. It names them, and what helps.
pub(crate) fn shuffles_allowed(joins: &[JoinDistribution], most: usize) -> Result<()> {
    let mut by_chain: BTreeMap<usize, Vec<&JoinDistribution>> = BTreeMap::new();
    for join in joins {
        // What stays within one task costs the others nothing.
        if join.distribution == Distribution::Shuffle && join.moved_bytes != Some(0) {
            by_chain.entry(join.group).or_default().push(join);
        }
    }
    let Some(joins) = by_chain.into_values().find(|joins| joins.len() > most) else {
        return Ok(());
    };
    let named: Vec<String> = joins
        .iter()
        .map(|join| format!("{} with {} on {}", join.left, join.right, join.on))
        .collect();
    Err(Error::new(
        ErrorKind::TooManyShuffles,
        format!(
            "{} joins would shuffle both their sides, and max_shuffled_dimensions allows {most}: {}. Partition the tables by \
             buckets of these keys, filter them until they can be broadcast, or SET max_shuffled_dimensions to more",
            joins.len(),
            named.join("; ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(distribution: Distribution, group: usize, right: &str) -> JoinDistribution {
        JoinDistribution {
            distribution,
            left: "events".into(),
            right: right.into(),
            on: format!("id@0 = {right}_id@1"),
            reason: String::new(),
            moved_bytes: None,
            group,
        }
    }

    #[test]
    fn only_shuffles_of_one_chain_count() {
        use Distribution::*;
        let joins = [
            join(Shuffle, 1, "users"),
            join(Broadcast, 1, "days"),
            join(Colocate, 1, "items"),
            join(BucketShuffle, 1, "shops"),
            join(Shuffle, 2, "cities"),
            join(Shuffle, 2, "states"),
        ];
        assert!(shuffles_allowed(&joins, 2).is_ok());
        let error = shuffles_allowed(&joins, 1).expect_err("two are too many");
        assert_eq!(error.kind, ErrorKind::TooManyShuffles);
        let text = error.to_string();
        assert!(
            text.contains("cities_id") && text.contains("states_id") && !text.contains("users_id"),
            "{text}"
        );
    }
}
