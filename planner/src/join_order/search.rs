//! The search for a cheap order.
//!
//! Dynamic programming over connected subgraphs: each pair of connected sets that an edge links is looked at once, as in
//! Moerkotte and Neumann, "Analysis of Two Existing and One New Dynamic Programming Algorithm" (DPccp, 2006), so trees are
//! bushy. There can be very many such pairs, for a star of 20 tables five million; after [`MOST_PAIRS`] the search gives up,
//! and relations are joined greedily, the pair with the smallest result first. Parts that nothing links are put
//! together last.

use std::collections::HashMap;

use super::relation_set::RelationSet;

/// Pairs that one search looks at: a clique of 10 tables has 28,501, a star of 13 has 24,576, a chain of 40 has 10,660.
pub(crate) const MOST_PAIRS: usize = 30_000;

/// What the search is to know of the joins.
pub(crate) trait JoinGraph {
    fn relations(&self) -> usize;
    /// Those that a predicate links with the relation.
    fn neighbours(&self, relation: usize) -> RelationSet;
    /// What joining two trees gives; `None` if they must not be joined yet.
    fn join(&self, left: &JoinTree, right: &JoinTree) -> Option<Joined>;
    /// A tree of one relation.
    fn leaf(&self, relation: usize) -> Joined;
}

/// Size and cost of a tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Joined {
    /// Rows that come out.
    pub rows: f64,
    /// Their size in bytes.
    pub bytes: f64,
    /// Of everything below, in bytes that are touched or moved.
    pub cost: f64,
    /// The second tree comes first: it is the side that is built.
    pub swapped: bool,
    /// A predicate links the two. Otherwise this is a cross join.
    pub linked: bool,
}

/// An order of joins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JoinTree {
    pub set: RelationSet,
    pub joined: Joined,
    pub inputs: Option<Box<(JoinTree, JoinTree)>>,
}

/// An entry of the table that dynamic programming fills: trees are put together from it at the end.
struct Best {
    joined: Joined,
    inputs: Option<(RelationSet, RelationSet)>,
}

/// The cheapest order that the search finds.
pub(crate) fn cheapest(graph: &dyn JoinGraph, most_pairs: usize) -> Option<JoinTree> {
    let mut parts = Vec::new();
    let mut left = RelationSet::below(graph.relations());
    while let Some(first) = left.iter().next() {
        let part = connected(graph, first);
        left = left - part;
        match Enumeration::new(graph, part, most_pairs).run() {
            Some(tree) => parts.push(tree),
            None => parts.extend(greedy(graph, leaves(graph, part), false)),
        }
    }
    greedy(graph, parts, true).pop()
}

/// The relations that predicates link with one, directly or not.
fn connected(graph: &dyn JoinGraph, first: usize) -> RelationSet {
    let mut part = RelationSet::of(first);
    let mut todo = vec![first];
    while let Some(relation) = todo.pop() {
        let new = graph.neighbours(relation) - part;
        part |= new;
        todo.extend(new.iter());
    }
    part
}

fn leaves(graph: &dyn JoinGraph, part: RelationSet) -> Vec<JoinTree> {
    part.iter()
        .map(|relation| JoinTree {
            set: RelationSet::of(relation),
            joined: graph.leaf(relation),
            inputs: None,
        })
        .collect()
}

/// Joins the pair with the smallest result until one tree is left, or no pair may be joined. Pairs that nothing links
/// are joined only if `crossing`, and then only if no others are left.
fn greedy(graph: &dyn JoinGraph, mut trees: Vec<JoinTree>, crossing: bool) -> Vec<JoinTree> {
    while trees.len() > 1 {
        let best_of = |linked: bool| {
            let mut best: Option<(usize, usize, Joined)> = None;
            for right in 1..trees.len() {
                for left in 0..right {
                    let joined = graph.join(&trees[left], &trees[right]);
                    let Some(joined) = joined.filter(|joined| joined.linked == linked) else {
                        continue;
                    };
                    let is_better = best.as_ref().is_none_or(|(_, _, known)| {
                        (joined.bytes, joined.cost) < (known.bytes, known.cost)
                    });
                    if is_better {
                        best = Some((left, right, joined));
                    }
                }
            }
            best
        };
        let Some((left, right, joined)) =
            best_of(true).or_else(|| crossing.then(|| best_of(false)).flatten())
        else {
            break;
        };
        let second = trees.remove(right);
        let first = trees.remove(left);
        trees.push(tree(first, second, joined));
    }
    trees
}

fn tree(first: JoinTree, second: JoinTree, joined: Joined) -> JoinTree {
    JoinTree {
        set: first.set | second.set,
        joined,
        inputs: Some(Box::new(match joined.swapped {
            true => (second, first),
            false => (first, second),
        })),
    }
}

/// Dynamic programming over the connected subgraphs of one part.
struct Enumeration<'a> {
    graph: &'a dyn JoinGraph,
    part: RelationSet,
    best: HashMap<RelationSet, Best>,
    pairs_left: usize,
}

/// The search has looked at as many pairs as it may.
struct Exhausted;

impl<'a> Enumeration<'a> {
    fn new(graph: &'a dyn JoinGraph, part: RelationSet, most_pairs: usize) -> Self {
        let best = part
            .iter()
            .map(|relation| {
                let leaf = Best {
                    joined: graph.leaf(relation),
                    inputs: None,
                };
                (RelationSet::of(relation), leaf)
            })
            .collect();
        Self {
            graph,
            part,
            best,
            pairs_left: most_pairs,
        }
    }

    fn run(mut self) -> Option<JoinTree> {
        for first in self.part.iter().rev() {
            let start = RelationSet::of(first);
            let below = RelationSet::below(first + 1);
            self.complements(start).ok()?;
            self.grow(start, below).ok()?;
        }
        self.tree(self.part)
    }

    fn neighbours(&self, set: RelationSet) -> RelationSet {
        let all = set.iter().fold(RelationSet::EMPTY, |all, relation| {
            all | self.graph.neighbours(relation)
        });
        (all & self.part) - set
    }

    /// All connected sets that hold `set` and nothing of `excluded` beside it.
    fn grow(&mut self, set: RelationSet, excluded: RelationSet) -> Result<(), Exhausted> {
        let neighbours = self.neighbours(set) - excluded;
        for more in neighbours.subsets() {
            self.complements(set | more)?;
        }
        for more in neighbours.subsets() {
            self.grow(set | more, excluded | neighbours)?;
        }
        Ok(())
    }

    /// All connected sets that are linked with `set`, each pair once.
    fn complements(&mut self, set: RelationSet) -> Result<(), Exhausted> {
        let first = set.iter().next().unwrap_or_default();
        let excluded = RelationSet::below(first + 1) | set;
        let neighbours = self.neighbours(set) - excluded;
        for start in neighbours.iter().rev() {
            let start_set = RelationSet::of(start);
            self.pair(set, start_set)?;
            let lower = RelationSet::below(start + 1) & neighbours;
            self.grow_complement(set, start_set, excluded | lower)?;
        }
        Ok(())
    }

    fn grow_complement(
        &mut self,
        set: RelationSet,
        complement: RelationSet,
        excluded: RelationSet,
    ) -> Result<(), Exhausted> {
        let neighbours = self.neighbours(complement) - excluded - set;
        for more in neighbours.subsets() {
            self.pair(set, complement | more)?;
        }
        for more in neighbours.subsets() {
            self.grow_complement(set, complement | more, excluded | neighbours)?;
        }
        Ok(())
    }

    fn pair(&mut self, left: RelationSet, right: RelationSet) -> Result<(), Exhausted> {
        self.pairs_left = self.pairs_left.checked_sub(1).ok_or(Exhausted)?;
        // Parts that must not be joined yet have no entry.
        let (Some(a), Some(b)) = (self.best.get(&left), self.best.get(&right)) else {
            return Ok(());
        };
        let shallow = |set, best: &Best| JoinTree {
            set,
            joined: best.joined,
            inputs: None,
        };
        let joined = self.graph.join(&shallow(left, a), &shallow(right, b));
        let Some(joined) = joined.filter(|joined| joined.linked) else {
            return Ok(());
        };
        let set = left | right;
        let is_better = self
            .best
            .get(&set)
            .is_none_or(|known| joined.cost < known.joined.cost);
        if is_better {
            self.best.insert(
                set,
                Best {
                    joined,
                    inputs: Some((left, right)),
                },
            );
        }
        Ok(())
    }

    fn tree(&self, set: RelationSet) -> Option<JoinTree> {
        let best = self.best.get(&set)?;
        Some(match best.inputs {
            None => JoinTree {
                set,
                joined: best.joined,
                inputs: None,
            },
            Some((left, right)) => tree(self.tree(left)?, self.tree(right)?, best.joined),
        })
    }
}
