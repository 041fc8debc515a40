//! What joins of a group's relations cost.
//!
//! Rows of a set of relations do not depend on the order in which they are joined: rows of each, times the selectivity of the
//! predicates among them. A class of equal columns divides by the distinct values of all its members but the one that has least, as if
//! the values of the smaller were all among those of the larger.
//!
//! The cost of a join is in bytes: what it builds (twice: it is hashed and kept), probes and gives out, and what moves between
//! workers, which is either the smaller side to all of them or both sides once.

use std::cell::RefCell;
use std::collections::HashMap;

use datafusion::common::JoinType;
use datafusion::logical_expr::Expr;

use super::estimate::PlanEstimate;
use super::group::{Attached, JoinGroup};
use super::keys::{KeyClass, KeySide, classes};
use super::relation_set::RelationSet;
use super::search::{JoinGraph, JoinTree, Joined};
use super::selectivity::selectivity;

/// Workers that a broadcast is taken to go to; how many there will be when the query runs is not known to its plan.
const WORKERS: f64 = 3.0;
/// What a row costs beside its columns, in bytes.
const ROW: f64 = 8.0;
/// The part of a semi join's rows that its further condition keeps, and of an anti join's rows at least.
const FURTHER_CONDITION: f64 = 0.5;
const LEAST_ANTI: f64 = 0.05;

/// The relations of a group and how they are linked.
pub(crate) struct GroupCosts {
    relations: Vec<RelationCosts>,
    pub classes: Vec<KeyClass>,
    /// Of two relations that several classes link: by how much their keys together are less selective than if they
    /// had nothing to do with each other. Greatest first.
    corrections: Vec<(usize, usize, f64)>,
    predicates: Vec<PredicateCosts>,
    neighbours: Vec<RelationSet>,
    known_rows: RefCell<HashMap<RelationSet, f64>>,
}

struct RelationCosts {
    rows: f64,
    width: f64,
    attached: Option<AttachedCosts>,
}

struct AttachedCosts {
    requires: RelationSet,
    /// Rows after by rows before.
    factor: f64,
    adds_columns: bool,
}

struct PredicateCosts {
    needs: RelationSet,
    sides: Option<[RelationSet; 2]>,
    selectivity: f64,
}

impl GroupCosts {
    /// Of a group whose relations have those estimates.
    pub(crate) fn new(group: &JoinGroup, estimates: &[PlanEstimate]) -> Self {
        let side = |(relation, expr): &(usize, Expr)| KeySide {
            relation: *relation,
            expr: expr.clone(),
            distinct: distinct(expr, &estimates[*relation]),
        };
        let equalities = group
            .equalities
            .iter()
            .map(|equality| {
                (
                    side(&equality.left),
                    side(&equality.right),
                    equality.same_type,
                )
            })
            .collect();
        let mut classes = classes(equalities);
        for class in &mut classes {
            fit_to_rows(class, estimates);
        }
        let relations: Vec<RelationCosts> = group
            .relations
            .iter()
            .zip(estimates)
            .enumerate()
            .map(|(number, (relation, estimate))| RelationCosts {
                rows: estimate.rows,
                width: estimate.width(),
                attached: relation
                    .attached
                    .as_ref()
                    .map(|attached| attached_costs(attached, number, estimates)),
            })
            .collect();
        let predicates = group
            .predicates
            .iter()
            .map(|predicate| PredicateCosts {
                needs: predicate.needs,
                sides: predicate
                    .sides
                    .as_ref()
                    .map(|[(_, left), (_, right)]| [*left, *right]),
                selectivity: selectivity(&predicate.expr, &together(predicate.needs, estimates)),
            })
            .collect();
        let mut costs = Self {
            corrections: corrections(&classes, estimates),
            neighbours: vec![RelationSet::EMPTY; relations.len()],
            relations,
            classes,
            predicates,
            known_rows: RefCell::default(),
        };
        costs.link();
        costs
    }

    fn link(&mut self) {
        let sets = self
            .classes
            .iter()
            .map(|class| class.relations)
            .chain(self.predicates.iter().map(|predicate| predicate.needs))
            .chain(
                self.relations
                    .iter()
                    .enumerate()
                    .filter_map(|(number, relation)| {
                        let attached = relation.attached.as_ref()?;
                        Some(attached.requires | RelationSet::of(number))
                    }),
            );
        for set in sets.collect::<Vec<_>>() {
            for relation in set.iter() {
                self.neighbours[relation] |= set - RelationSet::of(relation);
            }
        }
    }

    /// Rows that the relations of a set give when they are joined.
    pub(crate) fn rows(&self, set: RelationSet) -> f64 {
        if let Some(rows) = self.known_rows.borrow().get(&set) {
            return *rows;
        }
        let rows = self.rows_of(set);
        self.known_rows.borrow_mut().insert(set, rows);
        rows
    }

    fn rows_of(&self, set: RelationSet) -> f64 {
        let mut rows = 1.0;
        for number in set.iter() {
            let relation = &self.relations[number];
            rows *= match &relation.attached {
                None => relation.rows,
                Some(_) if set.len() == 1 => relation.rows,
                Some(attached) => attached.factor,
            };
        }
        for class in &self.classes {
            let mut all = 1.0;
            let mut least = f64::INFINITY;
            for side in &class.members {
                if set.contains(side.relation) {
                    all *= side.distinct;
                    least = least.min(side.distinct);
                }
            }
            if least.is_finite() {
                rows *= least / all;
            }
        }
        let mut linked: Vec<RelationSet> = Vec::new();
        for (a, b, factor) in &self.corrections {
            let pair = RelationSet::of(*a) | RelationSet::of(*b);
            // Of three relations with the same keys, two pairs say all.
            if !set.covers(pair) || linked.iter().any(|known| known.covers(pair)) {
                continue;
            }
            let (joined, apart): (Vec<_>, Vec<_>) =
                linked.into_iter().partition(|known| known.meets(pair));
            linked = apart;
            linked.push(joined.into_iter().fold(pair, |all, known| all | known));
            rows *= factor;
        }
        for predicate in &self.predicates {
            if predicate.needs.len() > 1 && set.covers(predicate.needs) {
                rows *= predicate.selectivity;
            }
        }
        rows
    }

    fn width(&self, set: RelationSet) -> f64 {
        let of_relation = |number: usize| {
            let relation = &self.relations[number];
            match &relation.attached {
                Some(attached) if !attached.adds_columns && set.len() > 1 => 0.0,
                _ => relation.width,
            }
        };
        ROW + set.iter().map(of_relation).sum::<f64>()
    }

    fn attached(&self, set: RelationSet) -> Option<&AttachedCosts> {
        self.relations[set.single()?].attached.as_ref()
    }

    /// Whether an equality, or just some predicate, links two sets.
    fn link_of(&self, left: RelationSet, right: RelationSet) -> Link {
        let both = left | right;
        let by_class = self
            .classes
            .iter()
            .any(|class| class.relations.meets(left) && class.relations.meets(right));
        let mut link = if by_class { Link::Equality } else { Link::None };
        for predicate in &self.predicates {
            let is_new = both.covers(predicate.needs)
                && !left.covers(predicate.needs)
                && !right.covers(predicate.needs);
            if !is_new {
                continue;
            }
            let is_key = predicate.sides.is_some_and(|[a, b]| {
                (left.covers(a) && right.covers(b)) || (left.covers(b) && right.covers(a))
            });
            link = link.max(if is_key { Link::Equality } else { Link::Other });
        }
        link
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    None,
    Other,
    Equality,
}

impl JoinGraph for GroupCosts {
    fn relations(&self) -> usize {
        self.relations.len()
    }

    fn neighbours(&self, relation: usize) -> RelationSet {
        self.neighbours[relation]
    }

    fn leaf(&self, relation: usize) -> Joined {
        let set = RelationSet::of(relation);
        let rows = self.rows(set);
        Joined {
            rows,
            bytes: rows * self.width(set),
            cost: 0.0,
            swapped: false,
            linked: true,
        }
    }

    fn join(&self, left: &JoinTree, right: &JoinTree) -> Option<Joined> {
        let (link, swapped) = match (self.attached(left.set), self.attached(right.set)) {
            (Some(_), Some(_)) => return None,
            (Some(attached), None) if right.set.covers(attached.requires) => (Link::Equality, true),
            (None, Some(attached)) if left.set.covers(attached.requires) => (Link::Equality, false),
            (None, None) => (
                self.link_of(left.set, right.set),
                right.joined.bytes < left.joined.bytes,
            ),
            _ => return None,
        };
        let set = left.set | right.set;
        let rows = self.rows(set);
        let bytes = rows * self.width(set);
        let built = left.joined.bytes.min(right.joined.bytes);
        let probed = left.joined.bytes.max(right.joined.bytes);
        let moved = (built * WORKERS).min(built + probed);
        // Without an equality each row is held against each.
        let compared = match link {
            Link::Equality => 0.0,
            _ => left.joined.rows * right.joined.rows * ROW,
        };
        Some(Joined {
            rows,
            bytes,
            cost: left.joined.cost
                + right.joined.cost
                + 2.0 * built
                + probed
                + bytes
                + moved
                + compared,
            swapped,
            linked: link != Link::None,
        })
    }
}

fn distinct(expr: &Expr, estimate: &PlanEstimate) -> f64 {
    estimate.distinct_of(expr).unwrap_or(estimate.rows).max(1.0)
}

/// Of the member with most distinct values, only those that its rows can have count, but no fewer than the others
/// have: a filter on a dimension is taken to pick what the facts have.
fn fit_to_rows(class: &mut KeyClass, estimates: &[PlanEstimate]) {
    let mut counts: Vec<f64> = class.members.iter().map(|side| side.distinct).collect();
    counts.sort_by(f64::total_cmp);
    let Some(second) = counts.iter().rev().nth(1).copied() else {
        return;
    };
    for side in &mut class.members {
        if side.distinct > second {
            let rows = estimates[side.relation].rows.max(1.0);
            side.distinct = side.distinct.min(rows).max(second);
        }
    }
}

/// Several keys between two relations are rarely independent: `(partkey, suppkey)` of a line item is one of the part's
/// suppliers. Together they have no more values than the side with fewer rows.
fn corrections(classes: &[KeyClass], estimates: &[PlanEstimate]) -> Vec<(usize, usize, f64)> {
    let mut corrections = Vec::new();
    for b in 1..estimates.len() {
        for a in 0..b {
            let pair = RelationSet::of(a) | RelationSet::of(b);
            let mut keys = 0;
            let (mut single, mut all) = (1.0_f64, 1.0_f64);
            let (mut of_a, mut of_b) = (1.0_f64, 1.0_f64);
            for class in classes.iter().filter(|class| class.relations.covers(pair)) {
                let of = |relation| {
                    class
                        .member_in(RelationSet::of(relation))
                        .map_or(1.0, |side| side.distinct)
                };
                keys += 1;
                of_a *= of(a);
                of_b *= of(b);
                let larger = of(a).max(of(b));
                single = single.max(larger);
                all *= larger;
            }
            if keys < 2 {
                continue;
            }
            let together = of_a
                .min(estimates[a].rows_unfiltered())
                .min(of_b.min(estimates[b].rows_unfiltered()));
            let factor = all / single.max(together);
            if factor > 1.0 {
                corrections.push((a, b, factor));
            }
        }
    }
    corrections.sort_by(|(.., a), (.., b)| b.total_cmp(a));
    corrections
}

fn together(set: RelationSet, estimates: &[PlanEstimate]) -> PlanEstimate {
    set.iter().fold(PlanEstimate::default(), |all, relation| {
        let rows = all.rows.max(estimates[relation].rows);
        all.beside(&estimates[relation], rows)
    })
}

fn attached_costs(attached: &Attached, number: usize, estimates: &[PlanEstimate]) -> AttachedCosts {
    let join = &attached.join;
    let left = together(attached.requires, estimates);
    let right = &estimates[number];
    // Of the values of each key on the left, the part that is there on the right.
    let mut found = 1.0_f64;
    let mut matches = right.rows.max(1.0);
    for (left_key, right_key) in &join.on {
        let of_left = distinct(left_key, &left);
        let of_right = distinct(right_key, right).min(right.rows.max(1.0));
        found = found.min(of_right / of_left.max(of_right));
        matches /= of_left.max(of_right);
    }
    let further = match join.filter {
        Some(_) => FURTHER_CONDITION,
        None => 1.0,
    };
    let factor = match join.join_type {
        JoinType::LeftSemi => found * further,
        JoinType::LeftAnti => (1.0 - found * further).max(LEAST_ANTI),
        _ => (matches * further).max(1.0),
    };
    AttachedCosts {
        requires: attached.requires,
        factor,
        adds_columns: join.join_type == JoinType::Left,
    }
}
