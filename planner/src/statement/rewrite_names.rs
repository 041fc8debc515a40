//! Names in any case. MySQL finds columns and aliases whatever their case, quoted or not; DataFusion lowers what is not quoted
//! and takes the rest as it stands. So columns and aliases are written in lower case, or as their table spells them; the client
//! sees its own spelling again through [`OutputNames`](super::OutputNames). Tables keep their case, as on MySQL under Linux, but
//! for the schemas every client writes in capitals.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Select, SelectItem,
    TableAlias, TableFactor,
};

use super::join_hints::is_hinted;

/// Schemas whose tables and columns are named in lower case here.
const SYSTEM_SCHEMAS: [&str; 5] = [
    "information_schema",
    "mysql",
    "performance_schema",
    "sys",
    "system",
];

/// How tables spell their columns.
pub(super) trait ColumnSpelling {
    /// The spelling of a column, by its name as it was written, where that is not lower case.
    fn spelling(&self, name: &str) -> Option<String>;
}

/// Lower case, quoted so that nothing is done to it again.
pub(super) fn lower_ident(ident: &mut Ident) {
    let lower = ident.value.to_lowercase();
    if ident.quote_style.is_some() || lower != ident.value {
        *ident = Ident {
            value: lower,
            quote_style: Some('`'),
            span: ident.span,
        };
    }
}

fn spell_ident(ident: &mut Ident, names: &dyn ColumnSpelling) {
    let spelling = names.spelling(&ident.value);
    lower_ident(ident);
    if let Some(spelling) = spelling {
        *ident = Ident {
            value: spelling,
            quote_style: Some('`'),
            span: ident.span,
        };
    }
}

/// A column, with the table it may be qualified by.
pub(super) fn rewrite_column_names(expr: &mut Expr, names: &dyn ColumnSpelling) {
    match expr {
        Expr::Identifier(name) => spell_ident(name, names),
        Expr::CompoundIdentifier(parts) => {
            if let Some((column, qualifiers)) = parts.split_last_mut() {
                qualifiers.iter_mut().for_each(lower_ident);
                spell_ident(column, names);
            }
        }
        _ => {}
    }
}

/// The aliases of a select list, and the columns of USING.
pub(super) fn rewrite_aliases(select: &mut Select, names: &dyn ColumnSpelling) {
    for item in &mut select.projection {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => spell_ident(alias, names),
            SelectItem::QualifiedWildcard(
                datafusion::sql::sqlparser::ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) => lower_parts(name),
            _ => {}
        }
    }
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        if let Some(JoinConstraint::Using(columns)) = constraint(&mut join.join_operator) {
            for column in columns {
                for part in &mut column.0 {
                    if let ObjectNamePart::Identifier(ident) = part {
                        spell_ident(ident, names);
                    }
                }
            }
        }
    }
}

fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}

fn lower_parts(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(ident) = part {
            lower_ident(ident);
        }
    }
}

/// Whether a table is one of the system schemas'.
pub(super) fn is_system_table(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Table { name, .. } if in_system_schema(name))
}

fn in_system_schema(name: &ObjectName) -> bool {
    let schema = name
        .0
        .len()
        .checked_sub(2)
        .and_then(|at| name.0[at].as_ident());
    schema.is_some_and(|schema| SYSTEM_SCHEMAS.contains(&schema.value.to_lowercase().as_str()))
}

/// A table in FROM: its alias in lower case; one that is called with capitals gets its lower-case name as alias, since that is
/// how the columns' qualifiers are written.
pub(super) fn rewrite_table(factor: &mut TableFactor) {
    if let TableFactor::Table { name, alias, .. } = factor {
        if in_system_schema(name) {
            lower_parts(name);
        }
        for part in &mut name.0 {
            if let ObjectNamePart::Identifier(ident) = part
                && ident.value.chars().any(char::is_uppercase)
            {
                ident.quote_style = Some('`');
            }
        }
        let table = name.0.last().and_then(|part| part.as_ident());
        if alias.is_none()
            && let Some(table) = table.filter(|table| table.value.chars().any(char::is_uppercase))
        {
            *alias = Some(TableAlias {
                explicit: true,
                name: Ident::with_quote('`', table.value.to_lowercase()),
                columns: Vec::new(),
                at: None,
            });
        }
    }
    let alias = match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias,
        _ => return,
    };
    // What a hint calls a relation is no name.
    if let Some(alias) = alias.as_mut().filter(|alias| !is_hinted(alias)) {
        lower_ident(&mut alias.name);
        alias
            .columns
            .iter_mut()
            .for_each(|column| lower_ident(&mut column.name));
    }
}
