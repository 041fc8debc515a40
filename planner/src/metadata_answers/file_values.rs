//! What expressions are for whole files, by their metrics and partition values.
//!
//! All of it is per file of one manifest, and only what is certain for every row of the file counts as known.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array,
};
use arrow::compute::kernels::cmp;
use arrow::compute::kernels::zip::zip;
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, IsNotNullExpr, LikeExpr, Literal,
};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use tarn_catalog::DecodedManifest;

use crate::prune::{ColumnBounds, TableLayout, column_bounds};
use crate::statistics::has_exact_bounds;

/// The files of one manifest.
pub(super) struct FileValues<'a> {
    manifest: &'a DecodedManifest,
    layout: &'a TableLayout,
}

/// A value for each file, of use where it is known.
pub(super) struct Known {
    pub(super) values: ArrayRef,
    pub(super) known: Vec<bool>,
}

impl<'a> FileValues<'a> {
    pub(super) fn new(manifest: &'a DecodedManifest, layout: &'a TableLayout) -> Self {
        Self { manifest, layout }
    }

    fn files(&self) -> usize {
        self.manifest.entries.len()
    }

    pub(super) fn rows(&self, file: usize) -> u64 {
        self.manifest.entries[file].data_file().record_count()
    }

    fn bounds(&self, column: usize) -> Option<Arc<ColumnBounds>> {
        let column = self.layout.columns().get(column)?;
        column.primitive.as_ref()?;
        Some(column_bounds(self.manifest, column))
    }

    /// The value that the expression has in every row of a file.
    ///
    /// Floats have none but null: equal ones can differ by their sign or by their bits.
    pub(super) fn constant(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Known> {
        if is_volatile(expr) {
            return None;
        }
        let mut columns: Vec<usize> = collect_columns(expr).iter().map(|c| c.index()).collect();
        columns.sort_unstable();
        let mut known = vec![true; self.files()];
        let mut arrays = Vec::with_capacity(columns.len());
        for column in &columns {
            let constants = self.constant_column(*column)?;
            for (known, of_column) in known.iter_mut().zip(&constants.known) {
                *known &= of_column;
            }
            arrays.push(constants.values);
        }
        let values = self.evaluate(expr, &columns, arrays)?;
        if is_float(values.data_type()) && !columns.is_empty() {
            for (file, known) in known.iter_mut().enumerate() {
                *known &= values.is_null(file);
            }
        }
        let mut constants = Known { values, known };
        if let [column] = columns.as_slice()
            && !expr.is::<Column>()
            && let Some(same) = self.same_at_both_ends(expr, *column)
        {
            constants = constants.or(same)?;
        }
        Some(constants)
    }

    fn constant_column(&self, column: usize) -> Option<Known> {
        let bounds = self.bounds(column)?;
        let nulls = bounds.null_counts.as_primitive::<UInt64Type>();
        let all_null = self.all_null(nulls);
        let comparable = !is_float(bounds.lower.data_type());
        let same = cmp::eq(&bounds.lower, &bounds.upper).ok()?;
        let known = (0..self.files())
            .map(|file| {
                let one_value = comparable
                    && nulls.is_valid(file)
                    && nulls.value(file) == 0
                    && is_true(&same, file);
                all_null[file] || one_value
            })
            .collect();
        let values = nullif(&bounds.lower, &BooleanArray::from(all_null)).ok()?;
        Some(Known { values, known })
    }

    fn all_null(&self, nulls: &UInt64Array) -> Vec<bool> {
        (0..self.files())
            .map(|file| nulls.is_valid(file) && nulls.value(file) >= self.rows(file))
            .collect()
    }

    /// What grows or falls along with a column is one value wherever it is the same at both ends of the column's bounds.
    fn same_at_both_ends(&self, expr: &Arc<dyn PhysicalExpr>, column: usize) -> Option<Known> {
        if !self.follows(expr) {
            return None;
        }
        let (lower, upper, inside) = self.at_both_ends(expr, column)?;
        if is_float(lower.data_type()) {
            return None;
        }
        let same = cmp::eq(&lower, &upper).ok()?;
        let known = inside
            .into_iter()
            .enumerate()
            .map(|(file, inside)| inside && is_true(&same, file))
            .collect();
        Some(Known {
            values: lower,
            known,
        })
    }

    /// The expression at the bounds of its column, and for which files all values of the column are between them.
    fn at_both_ends(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        column: usize,
    ) -> Option<(ArrayRef, ArrayRef, Vec<bool>)> {
        let bounds = self.bounds(column)?;
        if is_float(bounds.lower.data_type()) {
            return None;
        }
        let nulls = bounds.null_counts.as_primitive::<UInt64Type>();
        let inside = (0..self.files())
            .map(|file| {
                nulls.is_valid(file)
                    && nulls.value(file) == 0
                    && bounds.lower.is_valid(file)
                    && bounds.upper.is_valid(file)
            })
            .collect();
        let at = |end: &ArrayRef| self.evaluate(expr, &[column], vec![Arc::clone(end)]);
        Some((at(&bounds.lower)?, at(&bounds.upper)?, inside))
    }

    /// Whether the expression never falls, or never rises, as its column rises.
    fn follows(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        let of = |expr: &Arc<dyn PhysicalExpr>| expr.data_type(&self.layout.schema).ok();
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let keeps_order =
                of(cast.expr()).is_some_and(|from| keeps_order(&from, cast.cast_type()));
            return keeps_order && self.follows(cast.expr());
        }
        if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
            let argument = match (function.name(), function.args()) {
                ("date_trunc", [unit, argument]) if unit.is::<Literal>() => argument,
                ("year" | "date" | "to_days", [argument]) => argument,
                _ => return false,
            };
            let is_time = of(argument).is_some_and(|of| is_time(&of));
            return is_time && self.follows(argument);
        }
        expr.is::<Column>()
    }

    /// For each file: whether the filter is true for all rows, for certain.
    pub(super) fn always(&self, filter: &Arc<dyn PhysicalExpr>) -> Vec<bool> {
        if let Some(binary) = filter.downcast_ref::<BinaryExpr>()
            && matches!(binary.op(), Operator::And | Operator::Or)
        {
            let both = self
                .always(binary.left())
                .into_iter()
                .zip(self.always(binary.right()));
            return match binary.op() {
                Operator::And => both.map(|(left, right)| left && right).collect(),
                _ => both.map(|(left, right)| left || right).collect(),
            };
        }
        let mut always = vec![false; self.files()];
        if let Some(constants) = self.constant(filter)
            && let Some(values) = constants.values.as_boolean_opt()
        {
            for (file, always) in always.iter_mut().enumerate() {
                *always |= constants.known[file] && is_true(values, file);
            }
        }
        for (always, convex) in always.iter_mut().zip(self.between_ends(filter)) {
            *always |= convex;
        }
        always
    }

    /// For each file: whether the filter keeps an unbroken range of a column's values, both ends of its bounds among
    /// them, and the column has no nulls.
    fn between_ends(&self, filter: &Arc<dyn PhysicalExpr>) -> Vec<bool> {
        let nothing = || vec![false; self.files()];
        if let Some(not_null) = filter.downcast_ref::<IsNotNullExpr>() {
            let column = not_null.arg().downcast_ref::<Column>();
            return match column.and_then(|column| self.bounds(column.index())) {
                Some(bounds) => {
                    let nulls = bounds.null_counts.as_primitive::<UInt64Type>();
                    nulls.iter().map(|nulls| nulls == Some(0)).collect()
                }
                None => nothing(),
            };
        }
        if let Some(binary) = filter.downcast_ref::<BinaryExpr>()
            && *binary.op() == Operator::NotEq
        {
            // On one side of the value or on the other.
            let side = |op| -> Arc<dyn PhysicalExpr> {
                let (left, right) = (Arc::clone(binary.left()), Arc::clone(binary.right()));
                Arc::new(BinaryExpr::new(left, op, right))
            };
            let (below, above) = (side(Operator::Lt), side(Operator::Gt));
            let below = self.between_ends(&below).into_iter();
            return below
                .zip(self.between_ends(&above))
                .map(|(below, above)| below || above)
                .collect();
        }
        let Some(column) = self.column_of_range(filter) else {
            return nothing();
        };
        let Some((lower, upper, mut inside)) = self.at_both_ends(filter, column) else {
            return nothing();
        };
        let (Some(lower), Some(upper)) = (lower.as_boolean_opt(), upper.as_boolean_opt()) else {
            return nothing();
        };
        for (file, inside) in inside.iter_mut().enumerate() {
            *inside &= is_true(lower, file) && is_true(upper, file);
        }
        inside
    }

    /// The one column of a comparison with a literal, or of `LIKE 'prefix%'`.
    fn column_of_range(&self, filter: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let compared = if let Some(binary) = filter.downcast_ref::<BinaryExpr>() {
            let is_range = matches!(
                binary.op(),
                Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
            );
            match (
                is_range,
                binary.left().is::<Literal>(),
                binary.right().is::<Literal>(),
            ) {
                (true, false, true) => binary.left(),
                (true, true, false) => binary.right(),
                _ => return None,
            }
        } else {
            let like = filter.downcast_ref::<LikeExpr>()?;
            if like.negated() || like.case_insensitive() || !like.expr().is::<Column>() {
                return None;
            }
            let pattern = like.pattern().downcast_ref::<Literal>()?.value();
            let prefix = pattern.try_as_str().flatten()?.strip_suffix('%')?;
            if prefix.contains(['%', '_', '\\']) {
                return None;
            }
            like.expr()
        };
        let columns = collect_columns(compared);
        let column = columns
            .iter()
            .next()
            .filter(|_| columns.len() == 1)?
            .index();
        (!is_volatile(compared) && self.follows(compared)).then_some(column)
    }

    /// The smallest or largest value that the expression has in a file, null if it has none.
    pub(super) fn extreme(&self, expr: &Arc<dyn PhysicalExpr>, largest: bool) -> Option<Known> {
        let constants = self.constant(expr);
        let Some(column) = expr.downcast_ref::<Column>() else {
            return constants;
        };
        let metrics = self.extreme_of_column(column.index(), largest);
        match (constants, metrics) {
            (Some(constants), Some(metrics)) => constants.or(metrics),
            (constants, metrics) => constants.or(metrics),
        }
    }

    fn extreme_of_column(&self, column: usize, largest: bool) -> Option<Known> {
        let bounds = self.bounds(column)?;
        let data_type = &self.layout.columns()[column].arrow;
        let values = if largest { &bounds.max } else { &bounds.min };
        let same = cmp::eq(&bounds.min, &bounds.max).ok()?;
        let known = (0..self.files())
            .map(|file| {
                values.is_valid(file)
                    && (bounds.exact
                        || has_exact_bounds(
                            data_type,
                            self.manifest.entries[file].data_file().file_format(),
                        )
                        || match is_float(data_type) {
                            // Without NaN there are bounds; of zeros they do not tell the sign.
                            true => !is_zero(values, file),
                            false => is_true(&same, file),
                        })
            })
            .collect();
        Some(Known {
            values: Arc::clone(values),
            known,
        })
    }

    /// How many rows of a file have a value of the expression.
    pub(super) fn count(&self, expr: &Arc<dyn PhysicalExpr>) -> Vec<Option<u64>> {
        let all = |file| Some(self.rows(file));
        if let Some(literal) = expr.downcast_ref::<Literal>()
            && !literal.value().is_null()
        {
            return (0..self.files()).map(all).collect();
        }
        let constants = self.constant(expr);
        let of_constant = |file: usize| {
            let constants = constants.as_ref().filter(|c| c.known[file])?;
            Some(if constants.values.is_null(file) {
                0
            } else {
                self.rows(file)
            })
        };
        let column = expr.downcast_ref::<Column>();
        let bounds = column.and_then(|column| self.bounds(column.index()));
        (0..self.files())
            .map(|file| {
                let of_column = bounds.as_ref().and_then(|bounds| {
                    let nulls = bounds.null_counts.as_primitive::<UInt64Type>();
                    let nulls = nulls.is_valid(file).then(|| nulls.value(file))?;
                    self.rows(file).checked_sub(nulls)
                });
                of_column.or_else(|| of_constant(file))
            })
            .collect()
    }

    fn evaluate(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        columns: &[usize],
        arrays: Vec<ArrayRef>,
    ) -> Option<ArrayRef> {
        let evaluated = || -> Result<ArrayRef> {
            let fields: Vec<Field> = columns
                .iter()
                .map(|column| {
                    self.layout
                        .schema
                        .field(*column)
                        .clone()
                        .with_nullable(true)
                })
                .collect();
            let schema = Arc::new(Schema::new(fields));
            let expr = reassign_expr_columns(Arc::clone(expr), &schema)?;
            let options = RecordBatchOptions::new().with_row_count(Some(self.files()));
            let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
            expr.evaluate(&batch)?.into_array(self.files())
        };
        // What cannot be evaluated on bounds is left to be evaluated on rows.
        evaluated().ok()
    }
}

impl Known {
    /// These values, and the others where these are not known.
    fn or(self, other: Known) -> Option<Known> {
        let mine = BooleanArray::from(self.known.clone());
        let values = zip(&mine, &self.values, &other.values).ok()?;
        let known = self.known.iter().zip(&other.known).map(|(a, b)| *a || *b);
        Some(Known {
            values,
            known: known.collect(),
        })
    }
}

/// Whether a cast of greater values gives no smaller ones. A time of the day, for one, begins anew with each day.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    from == to || (from.is_numeric() && to.is_numeric()) || (is_time(from) && is_time(to))
}

/// Whether the type is of days or moments.
fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
}

fn is_float(data_type: &DataType) -> bool {
    data_type.is_floating()
}

fn is_true(array: &BooleanArray, at: usize) -> bool {
    array.is_valid(at) && array.value(at)
}

fn is_zero(array: &ArrayRef, at: usize) -> bool {
    use arrow::datatypes::{Float32Type, Float64Type};
    match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(at) == 0.0,
        DataType::Float64 => array.as_primitive::<Float64Type>().value(at) == 0.0,
        _ => false,
    }
}
