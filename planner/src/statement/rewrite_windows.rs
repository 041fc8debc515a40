//! Frames of windows: `RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND …`.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, NamedWindowExpr, Select, Value, WindowFrame, WindowFrameBound, WindowType,
};

use super::ast_build::text;
use super::rewrite_expressions::is_whole_number;

/// The frames of `WINDOW w AS (…)`.
pub(super) fn named_windows(select: &mut Select) {
    for window in &mut select.named_window {
        if let NamedWindowExpr::WindowSpec(spec) = &mut window.1 {
            spec.window_frame.iter_mut().for_each(frame);
        }
    }
}

/// The frame of `OVER (…)`.
pub(super) fn window(function: &mut Function) {
    if let Some(WindowType::WindowSpec(spec)) = &mut function.over {
        spec.window_frame.iter_mut().for_each(frame);
    }
}

/// DataFusion takes the amount of an interval as text only.
fn frame(frame: &mut WindowFrame) {
    for bound in std::iter::once(&mut frame.start_bound).chain(&mut frame.end_bound) {
        let (WindowFrameBound::Preceding(Some(bound)) | WindowFrameBound::Following(Some(bound))) =
            bound
        else {
            continue;
        };
        if let Expr::Interval(interval) = bound.as_mut()
            && is_whole_number(&interval.value)
            && let Expr::Value(value) = interval.value.as_mut()
            && let Value::Number(digits, _) = &value.value
        {
            *interval.value = text(digits.clone());
        }
    }
}
