//! Orders that the search finds, against all orders there are.

use std::collections::HashMap;
use std::time::Instant;

use super::relation_set::RelationSet;
use super::search::{JoinGraph, JoinTree, Joined, MOST_PAIRS, cheapest};

/// Relations with rows, and edges with selectivities; the cost of a tree is the sum of the rows of its joins.
struct Rows {
    rows: Vec<f64>,
    edges: Vec<(usize, usize, f64)>,
}

impl Rows {
    fn of(&self, set: RelationSet) -> f64 {
        let mut rows: f64 = set.iter().map(|relation| self.rows[relation]).product();
        for (a, b, selectivity) in &self.edges {
            if set.contains(*a) && set.contains(*b) {
                rows *= selectivity;
            }
        }
        rows
    }

    /// The least cost by trying every tree without a cross join.
    fn least(&self, set: RelationSet, known: &mut HashMap<RelationSet, f64>) -> f64 {
        if set.len() == 1 {
            return 0.0;
        }
        if let Some(cost) = known.get(&set) {
            return *cost;
        }
        let mut least = f64::INFINITY;
        for left in set.subsets().filter(|left| *left != set) {
            let right = set - left;
            let linked = self.edges.iter().any(|(a, b, _)| {
                (left.contains(*a) && right.contains(*b))
                    || (left.contains(*b) && right.contains(*a))
            });
            if linked {
                let cost = self.least(left, known) + self.least(right, known) + self.of(set);
                least = least.min(cost);
            }
        }
        known.insert(set, least);
        least
    }
}

impl JoinGraph for Rows {
    fn relations(&self) -> usize {
        self.rows.len()
    }

    fn neighbours(&self, relation: usize) -> RelationSet {
        let mut all = RelationSet::EMPTY;
        for (a, b, _) in &self.edges {
            match relation {
                r if r == *a => all |= RelationSet::of(*b),
                r if r == *b => all |= RelationSet::of(*a),
                _ => {}
            }
        }
        all
    }

    fn leaf(&self, relation: usize) -> Joined {
        Joined {
            rows: self.rows[relation],
            bytes: self.rows[relation],
            cost: 0.0,
            swapped: false,
            linked: true,
        }
    }

    fn join(&self, left: &JoinTree, right: &JoinTree) -> Option<Joined> {
        let rows = self.of(left.set | right.set);
        Some(Joined {
            rows,
            bytes: rows,
            cost: left.joined.cost + right.joined.cost + rows,
            swapped: right.joined.rows < left.joined.rows,
            linked: left
                .set
                .iter()
                .any(|relation| self.neighbours(relation).meets(right.set)),
        })
    }
}

/// Numbers that look random and are the same each time.
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

fn random(seed: u64, relations: usize) -> Rows {
    let mut number = numbers(seed);
    let rows = (0..relations)
        .map(|_| (1 + number(100_000)) as f64)
        .collect();
    let mut edges = Vec::new();
    for b in 1..relations {
        // A tree, and some edges more.
        let a = number(b as u64) as usize;
        edges.push((a, b, 1.0 / (1 + number(10_000)) as f64));
        if number(3) == 0 {
            let a = number(b as u64) as usize;
            edges.push((a, b, 1.0 / (1 + number(1_000)) as f64));
        }
    }
    Rows { rows, edges }
}

fn star(relations: usize) -> Rows {
    Rows {
        rows: (0..relations)
            .map(|n| if n == 0 { 1e9 } else { 1e3 * n as f64 })
            .collect(),
        edges: (1..relations).map(|n| (0, n, 1e-4)).collect(),
    }
}

fn crosses(tree: &JoinTree) -> bool {
    tree.inputs
        .as_deref()
        .is_some_and(|(left, right)| !tree.joined.linked || crosses(left) || crosses(right))
}

fn leaves(tree: &JoinTree) -> usize {
    match tree.inputs.as_deref() {
        None => 1,
        Some((left, right)) => leaves(left) + leaves(right),
    }
}

#[test]
fn dynamic_programming_finds_the_cheapest_of_all_trees() {
    for seed in 0..300 {
        let graph = random(seed, 2 + (seed % 6) as usize);
        let all = RelationSet::below(graph.relations());
        let tree = cheapest(&graph, MOST_PAIRS).expect("an order");
        let least = graph.least(all, &mut HashMap::new());
        assert_eq!(tree.set, all);
        assert!(
            (tree.joined.cost - least).abs() <= least * 1e-9,
            "seed {seed}: {} instead of {least}",
            tree.joined.cost
        );
    }
}

#[test]
fn twelve_tables_are_within_the_bound_and_twenty_are_ordered_greedily() {
    // Where dynamic programming is within its bound a larger one changes nothing.
    let twelve = star(12);
    let within = cheapest(&twelve, MOST_PAIRS).expect("an order");
    let unbounded = cheapest(&twelve, usize::MAX).expect("an order");
    assert_eq!(within, unbounded);
    assert!(within.joined.cost <= cheapest(&twelve, 0).expect("an order").joined.cost);
    for relations in [20, 40, 64] {
        let tree = cheapest(&star(relations), MOST_PAIRS).expect("an order");
        assert_eq!(leaves(&tree), relations);
        assert!(!crosses(&tree));
    }
}

#[test]
fn greedy_orders_are_whole_and_never_cross_what_is_linked() {
    for seed in 0..100 {
        let graph = random(seed, 2 + (seed % 9) as usize);
        let tree = cheapest(&graph, 0).expect("an order");
        assert_eq!(leaves(&tree), graph.relations());
        assert!(!crosses(&tree), "seed {seed}");
    }
}

#[test]
fn parts_that_nothing_links_are_crossed_last() {
    // 0 - 1 and 2 - 3.
    let graph = Rows {
        rows: vec![1000.0, 1000.0, 10.0, 10.0],
        edges: vec![(0, 1, 1e-3), (2, 3, 1e-1)],
    };
    let tree = cheapest(&graph, MOST_PAIRS).expect("an order");
    let (left, right) = tree.inputs.as_deref().expect("two inputs");
    assert!(!tree.joined.linked && !crosses(left) && !crosses(right));
    assert_eq!(left.set.len() + right.set.len(), 4);
}

/// `cargo test -p tarn-planner --release time_of_the_search -- --ignored --nocapture`
#[test]
#[ignore = "prints times, by hand"]
fn time_of_the_search() {
    for (shape, graph) in [4, 8, 12, 20].into_iter().flat_map(|n| {
        [("star", star(n)), ("tree", random(1, n))]
            .map(|(shape, graph)| (format!("{shape} of {n}"), graph))
    }) {
        let start = Instant::now();
        cheapest(&graph, MOST_PAIRS).expect("an order");
        println!("{shape}: {:?}", start.elapsed());
    }
}
