//! Which joins may change places.
//!
//! ```text
//!        Inner (a.x = b.x)                  relations   a, b, c
//!        ╱              ╲                   attached    s: a semi join's side, needs a
//!   Semi (a.y = s.y)   Inner (b.z = c.z)    predicates  a.x = b.x, b.z = c.z
//!    ╱     ╲            ╱     ╲
//!   a       s          b       c
//! ```
//!
//! A semi or anti join is a filter of the rows of its left side, so it may come before or after inner joins, as long as the relations
//! that its condition names are there. A left join only adds columns to rows of its left side, and may move in the same way; predicates
//! over what it adds come after it, and if one drops the rows that found no partner, the join is an inner one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};

use super::null_rejection::{is_null, rejects_null};
use super::relation_set::RelationSet;
use crate::hints::is_hinted_side;

/// Inner joins, and what hangs on them.
#[derive(Debug)]
pub(crate) struct JoinGroup {
    pub relations: Vec<Relation>,
    pub equalities: Vec<Equality>,
    pub predicates: Vec<Predicate>,
}

/// What is joined.
#[derive(Debug)]
pub(crate) struct Relation {
    pub plan: LogicalPlan,
    /// It is the right side of a join that is no inner join.
    pub attached: Option<Attached>,
}

/// How a relation hangs on others.
#[derive(Debug)]
pub(crate) struct Attached {
    /// The join as it was written, its left side being the one that is kept. Its inputs are placeholders.
    pub join: Join,
    /// The relations that must be there.
    pub requires: RelationSet,
}

/// Two sides of `=`, each over a relation of its own.
#[derive(Debug)]
pub(crate) struct Equality {
    pub left: (usize, Expr),
    pub right: (usize, Expr),
    pub same_type: bool,
}

/// A condition that is no [`Equality`].
#[derive(Debug)]
pub(crate) struct Predicate {
    pub expr: Expr,
    /// The relations that must be there.
    pub needs: RelationSet,
    /// The sides of an `=` with relations of their own each.
    pub sides: Option<[(Expr, RelationSet); 2]>,
}

/// Whether a plan is the root of a group, or a part of one.
pub(crate) fn is_group(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => is_movable(join),
        LogicalPlan::Filter(filter) => is_plain(&filter.predicate) && is_group(&filter.input),
        LogicalPlan::Projection(projection) => {
            projection
                .expr
                .iter()
                .all(|expr| matches!(expr, Expr::Column(_)))
                && is_group(&projection.input)
        }
        _ => false,
    }
}

fn is_movable(join: &Join) -> bool {
    let kind = match join.join_type {
        JoinType::Inner => join.null_equality == NullEquality::NullEqualsNothing,
        JoinType::LeftSemi | JoinType::LeftAnti => true,
        // Without a key it is unclear what it hangs on.
        JoinType::Left | JoinType::Right => !join.on.is_empty(),
        _ => false,
    };
    let mut conditions = join
        .on
        .iter()
        .flat_map(|(left, right)| [left, right])
        .chain(&join.filter);
    kind && conditions.all(is_plain)
}

/// The same for the same row, wherever it is evaluated.
fn is_plain(expr: &Expr) -> bool {
    let mut plain = !expr.is_volatile();
    // The closure never fails.
    let _ = expr.apply(|expr| {
        plain &= !matches!(
            expr,
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)
        );
        Ok(TreeNodeRecursion::Continue)
    });
    plain
}

/// A condition of an inner join or a filter, not yet looked at.
enum Condition {
    Pair(Expr, Expr),
    Other(Expr),
}

#[derive(Default)]
struct Collector {
    relations: Vec<(LogicalPlan, Option<Join>)>,
    conditions: Vec<Condition>,
}

impl JoinGroup {
    /// The group below a plan that [`is_group`]; `None` if it must stay as it is, because it has too many relations,
    /// columns that are called alike, or a hint, which is meant for the join as it is written.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Option<Self>> {
        let mut collector = Collector::default();
        collector.collect(plan);
        let relations = &collector.relations;
        if relations.len() > RelationSet::MOST
            || relations.iter().any(|(plan, _)| is_hinted_side(plan))
        {
            return Ok(None);
        }
        let Some(owners) = owners(collector.relations.iter().map(|(plan, _)| plan)) else {
            return Ok(None);
        };
        collector.make_inner(&owners);
        let mut group = Self {
            relations: Vec::with_capacity(collector.relations.len()),
            equalities: Vec::new(),
            predicates: Vec::new(),
        };
        for (number, (plan, join)) in collector.relations.into_iter().enumerate() {
            let attached = match join {
                None => None,
                Some(join) => {
                    let conditions = join
                        .on
                        .iter()
                        .flat_map(|(left, right)| [left, right])
                        .chain(&join.filter);
                    let mut requires = RelationSet::EMPTY;
                    for condition in conditions {
                        let Some(named) = group.needed(condition, &owners) else {
                            return Ok(None);
                        };
                        requires |= named;
                    }
                    let requires = requires - RelationSet::of(number);
                    if requires.is_empty() {
                        return Ok(None);
                    }
                    Some(Attached { join, requires })
                }
            };
            group.relations.push(Relation { plan, attached });
        }
        for condition in collector.conditions {
            if group.add(condition, &owners)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(group))
    }

    /// The relations that must be there before an expression can be evaluated: those that it names, and those that
    /// these hang on.
    fn needed(&self, expr: &Expr, owners: &HashMap<Column, usize>) -> Option<RelationSet> {
        let mut needed = RelationSet::EMPTY;
        for column in expr.column_refs() {
            let relation = *owners.get(column)?;
            needed |= RelationSet::of(relation);
            let attached = self
                .relations
                .get(relation)
                .and_then(|r| r.attached.as_ref());
            if let Some(attached) = attached {
                needed |= attached.requires;
            }
        }
        Some(needed)
    }

    fn add(&mut self, condition: Condition, owners: &HashMap<Column, usize>) -> Result<Option<()>> {
        let (left, right) = match condition {
            Condition::Pair(left, right) => (left, right),
            Condition::Other(Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Eq,
                right,
            })) => (*left, *right),
            Condition::Other(expr) => {
                let Some(needs) = self.needed(&expr, owners) else {
                    return Ok(None);
                };
                self.predicates.push(Predicate {
                    expr,
                    needs,
                    sides: None,
                });
                return Ok(Some(()));
            }
        };
        let (Some(of_left), Some(of_right)) =
            (self.needed(&left, owners), self.needed(&right, owners))
        else {
            return Ok(None);
        };
        if let (Some(a), Some(b)) = (of_left.single(), of_right.single())
            && a != b
        {
            let same_type = left.get_type(self.relations[a].plan.schema())?
                == right.get_type(self.relations[b].plan.schema())?;
            self.equalities.push(Equality {
                left: (a, left),
                right: (b, right),
                same_type,
            });
            return Ok(Some(()));
        }
        let apart = !of_left.is_empty() && !of_right.is_empty() && !of_left.meets(of_right);
        self.predicates.push(Predicate {
            expr: left.clone().eq(right.clone()),
            needs: of_left | of_right,
            sides: apart.then_some([(left, of_left), (right, of_right)]),
        });
        Ok(Some(()))
    }
}

impl Collector {
    fn collect(&mut self, plan: &LogicalPlan) {
        match plan {
            LogicalPlan::Join(join) if is_movable(join) => match join.join_type {
                JoinType::Inner => {
                    self.collect(&join.left);
                    self.collect(&join.right);
                    for (left, right) in &join.on {
                        self.conditions
                            .push(Condition::Pair(left.clone(), right.clone()));
                    }
                    self.add(join.filter.clone());
                }
                JoinType::Right => {
                    self.collect(&join.right);
                    let mut turned = join.clone();
                    turned.join_type = JoinType::Left;
                    turned.on = join
                        .on
                        .iter()
                        .map(|(left, right)| (right.clone(), left.clone()))
                        .collect();
                    self.relations
                        .push((join.left.as_ref().clone(), Some(turned)));
                }
                _ => {
                    self.collect(&join.left);
                    self.relations
                        .push((join.right.as_ref().clone(), Some(join.clone())));
                }
            },
            LogicalPlan::Filter(filter) if is_group(plan) => {
                self.collect(&filter.input);
                self.add(Some(filter.predicate.clone()));
            }
            LogicalPlan::Projection(projection) if is_group(plan) => {
                self.collect(&projection.input);
            }
            other => self.relations.push((other.clone(), None)),
        }
    }

    /// Turns left joins into inner ones where some condition drops the rows that they fill with nulls.
    fn make_inner(&mut self, owners: &HashMap<Column, usize>) {
        while let Some(number) = (0..self.relations.len()).find(|i| self.fills_in_vain(*i, owners))
        {
            let Some(join) = self.relations[number].1.take() else {
                return;
            };
            let pairs = join.on.into_iter();
            self.conditions
                .extend(pairs.map(|(left, right)| Condition::Pair(left, right)));
            self.add(join.filter);
        }
    }

    fn fills_in_vain(&self, number: usize, owners: &HashMap<Column, usize>) -> bool {
        let left = |join: &Join| {
            join.join_type == JoinType::Left
                && join.null_equality == NullEquality::NullEqualsNothing
        };
        let filled = |column: &Column| owners.get(column) == Some(&number);
        self.relations[number].1.as_ref().is_some_and(left)
            && self.conditions.iter().any(|condition| match condition {
                Condition::Pair(left, right) => is_null(left, &filled) || is_null(right, &filled),
                Condition::Other(expr) => rejects_null(expr, &filled),
            })
    }

    fn add(&mut self, condition: Option<Expr>) {
        let conjuncts = condition.into_iter().flat_map(split_conjunction_owned);
        self.conditions.extend(conjuncts.map(Condition::Other));
    }
}

/// The relation of each column; `None` if columns of two are called alike.
fn owners<'a>(relations: impl Iterator<Item = &'a LogicalPlan>) -> Option<HashMap<Column, usize>> {
    let mut owners = HashMap::new();
    let mut bare: HashSet<String> = HashSet::new();
    for (number, plan) in relations.enumerate() {
        for column in plan.schema().columns() {
            if column.relation.is_none() {
                bare.insert(column.name.clone());
            }
            if owners.insert(column, number).is_some() {
                return None;
            }
        }
    }
    // `x` beside `t.x` could mean either.
    let ambiguous = owners
        .keys()
        .any(|column| column.relation.is_some() && bare.contains(&column.name));
    (!ambiguous).then_some(owners)
}

/// A join without what it joins.
pub(crate) fn rejoined(join: &Join, left: LogicalPlan, right: LogicalPlan) -> Result<LogicalPlan> {
    Join::try_new(
        Arc::new(left),
        Arc::new(right),
        join.on.clone(),
        join.filter.clone(),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )
    .map(LogicalPlan::Join)
}
