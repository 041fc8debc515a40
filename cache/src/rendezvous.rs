//! Placement by highest random weight ("rendezvous") hashing.
//!
//! Every (key, node) pair has a score, and a key belongs to the node with the highest one. All who
//! know the nodes agree without talking to each other; a node that joins takes about 1/N of the keys,
//! evenly from the others, and a node that leaves gives its keys to the others without moving any
//! that were not its own (D. Thaler, C. V. Ravishankar, "Using Name-Based Mappings to Increase Hit
//! Rates", IEEE/ACM Transactions on Networking 6(1), 1998).

use twox_hash::XxHash64;

/// Node indices for `key`, best first. Depends only on the set of node names, not on their order.
pub fn rank(key: &str, nodes: &[String]) -> Vec<usize> {
    let mut scored: Vec<(u64, usize)> = nodes
        .iter()
        .enumerate()
        .map(|(i, node)| (score(key, node), i))
        .collect();
    scored.sort_unstable_by(|a, b| {
        // Equal scores are all but impossible; the name breaks them alike for everybody.
        b.0.cmp(&a.0).then_with(|| nodes[a.1].cmp(&nodes[b.1]))
    });
    scored.into_iter().map(|(_, i)| i).collect()
}

/// The score of a pair: the key hashed with a seed made from the node's name.
fn score(key: &str, node: &str) -> u64 {
    XxHash64::oneshot(XxHash64::oneshot(0, node.as_bytes()), key.as_bytes())
}

/// Assigns (key, weight) items to nodes by rendezvous, capping a node at `slack` times the mean weight.
///
/// Returns the node index of each item. Without the cap a few large files on one node would make it the
/// straggler of the query; with it an item whose node is full goes to the next node of its ranking, so
/// only the overflow loses its affinity. A `slack` of 1.0 is as even as the items allow, infinity is
/// plain rendezvous. The result does not depend on the order of `items` (equal keys and weights aside).
/// With no nodes at all the answer is empty.
pub fn assign(items: &[(String, u64)], nodes: &[String], slack: f64) -> Vec<usize> {
    if nodes.is_empty() {
        return Vec::new();
    }
    let total: u64 = items.iter().map(|(_, weight)| *weight).sum();
    let cap = slack.max(1.0) * total as f64 / nodes.len() as f64;

    // The heaviest first: what comes late is small enough to fit into what is left.
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|&a, &b| {
        let ((key_a, weight_a), (key_b, weight_b)) = (&items[a], &items[b]);
        weight_b.cmp(weight_a).then_with(|| key_a.cmp(key_b))
    });

    let mut load = vec![0u64; nodes.len()];
    let mut placed = vec![0usize; items.len()];
    for item in order {
        let (key, weight) = &items[item];
        let ranked = rank(key, nodes);
        let fits = |&&node: &&usize| load[node] == 0 || (load[node] + weight) as f64 <= cap;
        let node = ranked
            .iter()
            .find(fits)
            // Every node is at its cap: the least loaded takes it, by rank among equals.
            .or_else(|| ranked.iter().min_by_key(|&&node| load[node]))
            .copied()
            .unwrap_or(0);
        load[node] += weight;
        placed[item] = node;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("http://10.0.0.{i}:9050")).collect()
    }

    fn keys(n: usize) -> Vec<String> {
        (0..n)
            .map(|i| format!("s3://lake/t/data/{i:05}.parquet"))
            .collect()
    }

    #[test]
    fn a_rank_is_a_permutation_that_ignores_the_order_of_the_nodes() {
        let forward = nodes(5);
        let mut backward = forward.clone();
        backward.reverse();
        for key in keys(50) {
            let mut ranked = rank(&key, &forward);
            let names: Vec<_> = ranked.iter().map(|&i| &forward[i]).collect();
            let other: Vec<_> = rank(&key, &backward)
                .into_iter()
                .map(|i| &backward[i])
                .collect();
            assert_eq!(names, other);
            ranked.sort_unstable();
            assert_eq!(ranked, vec![0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn a_new_node_takes_its_share_and_moves_nothing_else() {
        let (before, after) = (nodes(3), nodes(4));
        let mut moved = 0;
        for key in keys(4000) {
            let (old, new) = (rank(&key, &before)[0], rank(&key, &after)[0]);
            if old != new {
                assert_eq!(new, 3, "a key may only move to the new node");
                moved += 1;
            }
        }
        // 1/4 of 4000 is 1000; five standard deviations are 137.
        assert!((863..=1137).contains(&moved), "{moved} of 4000 keys moved");
    }

    #[test]
    fn loads_stay_under_the_cap_and_most_items_keep_their_node() {
        let nodes = nodes(4);
        let items: Vec<_> = keys(400).into_iter().map(|k| (k, 10)).collect();
        let placed = assign(&items, &nodes, 1.1);
        let mut load = [0u64; 4];
        let mut at_home = 0;
        for ((key, weight), &node) in items.iter().zip(&placed) {
            load[node] += weight;
            at_home += usize::from(rank(key, &nodes)[0] == node);
        }
        assert!(load.iter().all(|&l| l <= 1100), "{load:?}");
        assert!(
            at_home >= 350,
            "{at_home} of 400 items are on their first node"
        );
    }

    #[test]
    fn the_cap_of_one_spreads_few_items_over_all_nodes() {
        let nodes = nodes(3);
        let items: Vec<_> = keys(3).into_iter().map(|k| (k, 7)).collect();
        let mut placed = assign(&items, &nodes, 1.0);
        placed.sort_unstable();
        assert_eq!(placed, vec![0, 1, 2]);
    }

    #[test]
    fn an_item_heavier_than_the_cap_is_still_placed() {
        let nodes = nodes(2);
        let items = vec![("big".to_string(), 1000), ("small".to_string(), 1)];
        let placed = assign(&items, &nodes, 1.2);
        assert_ne!(placed[0], placed[1]);
    }

    #[test]
    fn the_order_of_items_does_not_matter() {
        let nodes = nodes(3);
        let mut items: Vec<_> = keys(60)
            .into_iter()
            .zip((0..).map(|i| 1 + i % 13))
            .collect();
        let forward = assign(&items, &nodes, 1.05);
        items.reverse();
        let mut backward = assign(&items, &nodes, 1.05);
        backward.reverse();
        assert_eq!(forward, backward);
    }

    #[test]
    fn no_nodes_and_no_items_are_empty() {
        assert!(assign(&[("k".into(), 1)], &[], 1.0).is_empty());
        assert!(assign(&[], &nodes(2), 1.0).is_empty());
        assert!(rank("k", &[]).is_empty());
    }
}
