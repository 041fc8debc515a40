//! Which columns of a group's relations are equal, and how selective that is.
//!
//! Columns that equalities connect, directly or by way of others, are a class: `a.x = b.y AND b.y = c.z` makes one of three.
//! Whatever the order of joins, a set of relations that has all members of a class equal needs one equality less than it has members.

use datafusion::logical_expr::Expr;

use super::relation_set::RelationSet;

/// A side of an equality: an expression over one relation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeySide {
    pub relation: usize,
    pub expr: Expr,
    /// Its distinct values.
    pub distinct: f64,
}

/// Expressions that are equal in the result, of one relation each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyClass {
    pub members: Vec<KeySide>,
    pub relations: RelationSet,
    /// Its two sides are of different types: it takes no others.
    closed: bool,
}

impl KeyClass {
    /// The members in a set of relations.
    pub(crate) fn member_in(&self, set: RelationSet) -> Option<&KeySide> {
        self.members.iter().find(|side| set.contains(side.relation))
    }
}

/// The classes of equalities. Equalities that would bring two expressions of one relation into a class stay apart, as
/// does one whose sides are of different types.
pub(crate) fn classes(equalities: Vec<(KeySide, KeySide, bool)>) -> Vec<KeyClass> {
    let mut classes: Vec<KeyClass> = Vec::new();
    for (left, right, same_type) in equalities {
        let apart = KeyClass {
            relations: RelationSet::of(left.relation) | RelationSet::of(right.relation),
            members: vec![left.clone(), right.clone()],
            closed: !same_type,
        };
        if !same_type {
            classes.push(apart);
            continue;
        }
        let find = |side: &KeySide| {
            classes.iter().position(|class| {
                !class.closed
                    && class
                        .members
                        .iter()
                        .any(|known| known.relation == side.relation && known.expr == side.expr)
            })
        };
        match (find(&left), find(&right)) {
            (None, None) => classes.push(apart),
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) if !classes[a].relations.meets(classes[b].relations) => {
                let other = classes.remove(a.max(b));
                let class = &mut classes[a.min(b)];
                class.relations |= other.relations;
                class.members.extend(other.members);
            }
            (Some(class), None) if !classes[class].relations.contains(right.relation) => {
                classes[class].relations |= RelationSet::of(right.relation);
                classes[class].members.push(right);
            }
            (None, Some(class)) if !classes[class].relations.contains(left.relation) => {
                classes[class].relations |= RelationSet::of(left.relation);
                classes[class].members.push(left);
            }
            _ => classes.push(apart),
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::col;

    fn side(relation: usize, column: &str) -> KeySide {
        KeySide {
            relation,
            expr: col(column),
            distinct: 10.0,
        }
    }

    fn members(class: &KeyClass) -> Vec<(usize, String)> {
        let mut members: Vec<_> = class
            .members
            .iter()
            .map(|side| (side.relation, side.expr.to_string()))
            .collect();
        members.sort();
        members
    }

    #[test]
    fn equalities_that_share_a_column_are_one_class() {
        let classes = classes(vec![
            (side(0, "x"), side(1, "x"), true),
            (side(2, "x"), side(3, "x"), true),
            (side(1, "x"), side(2, "x"), true),
            (side(0, "y"), side(3, "y"), true),
        ]);
        assert_eq!(classes.len(), 2);
        let all = [0, 1, 2, 3].map(|relation| (relation, "x".to_owned()));
        assert_eq!(members(&classes[0]), all);
        assert_eq!(classes[0].relations, RelationSet::below(4));
        assert_eq!(members(&classes[1]), [(0, "y".into()), (3, "y".into())]);
    }

    #[test]
    fn two_columns_of_one_relation_are_never_in_one_class() {
        // a.x = b.x AND a.y = b.x says more than a.x = b.x.
        let classes = classes(vec![
            (side(0, "x"), side(1, "x"), true),
            (side(0, "y"), side(1, "x"), true),
        ]);
        assert_eq!(classes.len(), 2);
    }

    #[test]
    fn an_equality_of_two_types_leads_to_no_other() {
        let classes = classes(vec![
            (side(0, "x"), side(1, "x"), false),
            (side(1, "x"), side(2, "x"), true),
        ]);
        assert_eq!(classes.len(), 2);
        assert_eq!(classes[0].relations.len(), 2);
    }
}
