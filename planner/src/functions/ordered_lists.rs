//! `ARRAY_AGG` and `GROUP_CONCAT` (`STRING_AGG`) of which each keeps an order of its own.
//!
//! DataFusion computes two of opposite orders from rows in one of them, by turning the other's list round; in two
//! phases it turns it round twice. And it refuses orders that are not opposite. Their accumulators can sort, so they are
//! asked to, where rows do not come in the order that is asked for.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::array_agg::ArrayAgg;
use datafusion::functions_aggregate::string_agg::StringAgg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF,
    Signature,
};

pub(super) fn functions() -> Vec<Arc<AggregateUDF>> {
    let own = |inner: Arc<dyn AggregateUDFImpl>| Arc::new(AggregateUDF::from(Ordered { inner }));
    vec![
        own(Arc::new(ArrayAgg::default())),
        own(Arc::new(StringAgg::new())),
    ]
}

/// DataFusion's function, never turned round.
#[derive(Debug)]
struct Ordered {
    inner: Arc<dyn AggregateUDFImpl>,
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.inner.as_ref() == other.inner.as_ref()
    }
}

impl Eq for Ordered {}

impl Hash for Ordered {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.name().hash(state);
    }
}

impl AggregateUDFImpl for Ordered {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        ordered: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let told = Arc::clone(&self.inner).with_beneficial_ordering(ordered)?;
        // One that sorts anyway has nothing to be told.
        let inner = told.unwrap_or_else(|| Arc::clone(&self.inner));
        Ok(Some(Arc::new(Self { inner })))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
