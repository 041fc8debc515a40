//! Rows without buckets on their way to where the buckets of their keys are read.
//!
//! A shuffle of DataFusion's, here and between workers, sends a row to the partition that the hash of an expression says.
//! The expression is one of ours: it takes a key to its bucket, and a bucket to a number whose hash says the wanted place.
//!
//! ```text
//!   key ──Murmur3──▶ bucket ──the plan's list──▶ number ──DataFusion's hash──▶ worker × slots + slot
//! ```
//!
//! Among the tasks of a stage, partition `worker × slots + slot` is the `slot`th of task `worker`; in one task, the modulus is
//! `slots`, and the same number leads to `slot`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::hash_utils::create_hashes;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::repartition::{REPARTITION_RANDOM_STATE, RepartitionExec};
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use datafusion::scalar::ScalarValue;

use super::hash::bucket;
use super::hashes::for_each_hash;
use super::placement::BucketPlaces;

/// Its name in plans. It is no function for SQL.
const NAME: &str = "tarn_bucket_route";

/// Numbers that are tried until each place has one: of random hashes some 20 times as many are needed as there are places.
const MOST_TRIES: i64 = 1 << 22;

/// The function of this module, for the registries that plans are decoded with.
pub(crate) fn route_function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(BucketRoute {
        signature: Signature::any(2, Volatility::Immutable),
    }))
}

/// A shuffle of `input` to where buckets are read; which places these are is said later, by [`routed`].
pub(super) fn shuffle_by_bucket(
    input: Arc<dyn ExecutionPlan>,
    key: &Arc<dyn PhysicalExpr>,
) -> Result<Arc<dyn ExecutionPlan>> {
    shuffle(input, key, ScalarValue::Binary(None), 1)
}

/// The shuffle with its places, if the node is one that waits for them.
pub(super) fn routed(
    plan: &Arc<dyn ExecutionPlan>,
    count: u32,
    places: &BucketPlaces,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some((repartition, key, None)) = bucket_shuffle(plan) else {
        return Ok(None);
    };
    let routes = routes(count, places)?;
    let bytes = routes
        .iter()
        .flat_map(|route| route.to_le_bytes())
        .collect();
    let input = Arc::clone(repartition.input());
    shuffle(input, &key, ScalarValue::Binary(Some(bytes)), places.slots).map(Some)
}

/// Whether a node is a shuffle to buckets.
pub(super) fn is_bucket_shuffle(plan: &Arc<dyn ExecutionPlan>) -> bool {
    bucket_shuffle(plan).is_some()
}

/// A shuffle to buckets: the node, the key, and the list of routes once it is known.
#[allow(clippy::type_complexity)] // Taken apart where it is made.
fn bucket_shuffle(
    plan: &Arc<dyn ExecutionPlan>,
) -> Option<(&RepartitionExec, Arc<dyn PhysicalExpr>, Option<Vec<u8>>)> {
    let repartition = plan.downcast_ref::<RepartitionExec>()?;
    let Partitioning::Hash(exprs, _) = repartition.partitioning() else {
        return None;
    };
    let [expr] = exprs.as_slice() else {
        return None;
    };
    let route = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [key, routes] = route.args() else {
        return None;
    };
    match routes.downcast_ref::<Literal>()?.value() {
        ScalarValue::Binary(routes) if route.name() == NAME => {
            Some((repartition, Arc::clone(key), routes.clone()))
        }
        _ => None,
    }
}

fn shuffle(
    input: Arc<dyn ExecutionPlan>,
    key: &Arc<dyn PhysicalExpr>,
    routes: ScalarValue,
    partitions: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let route = ScalarFunctionExpr::new(
        NAME,
        route_function(),
        vec![Arc::clone(key), Arc::new(Literal::new(routes))],
        Arc::new(Field::new(NAME, DataType::Int64, false)),
        Arc::new(ConfigOptions::default()),
    );
    let partitioning = Partitioning::Hash(vec![Arc::new(route)], partitions);
    Ok(Arc::new(RepartitionExec::try_new(input, partitioning)?))
}

/// By bucket, a number whose hash leads to the bucket's place.
fn routes(count: u32, places: &BucketPlaces) -> Result<Vec<i64>> {
    let all = places.slots * places.workers;
    let mut by_place: Vec<Option<i64>> = vec![None; all];
    let mut missing = all;
    let mut first = 0;
    while missing > 0 {
        if first >= MOST_TRIES {
            return Err(DataFusionError::Internal(
                "no number's hash leads to some worker".to_string(),
            ));
        }
        let numbers: Int64Array = (first..first + 1024).collect::<Vec<_>>().into();
        let mut hashes = vec![0; numbers.len()];
        let column: ArrayRef = Arc::new(numbers);
        create_hashes(
            &[column],
            REPARTITION_RANDOM_STATE.random_state(),
            &mut hashes,
        )?;
        for (number, hash) in (first..).zip(hashes) {
            let route = &mut by_place[(hash % all as u64) as usize];
            if route.is_none() {
                *route = Some(number);
                missing -= 1;
            }
        }
        first += 1024;
    }
    Ok((0..count.max(1))
        .map(|bucket| {
            let place = places.of(Some(bucket));
            by_place[place.worker * places.slots + place.slot].unwrap_or(0)
        })
        .collect())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BucketRoute {
    signature: Signature,
}

impl ScalarUDFImpl for BucketRoute {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [
            keys,
            ColumnarValue::Scalar(ScalarValue::Binary(Some(routes))),
        ] = args.args.as_slice()
        else {
            return Err(DataFusionError::Execution(format!(
                "{NAME} takes a key and a plan's list of routes"
            )));
        };
        let routes: Vec<i64> = routes
            .chunks_exact(8)
            .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap_or_default()))
            .collect();
        let Some(of_null) = routes.first().copied() else {
            return Err(DataFusionError::Execution(format!("{NAME} has no routes")));
        };
        let keys = keys.to_array(args.number_rows)?;
        let mut numbers = vec![of_null; keys.len()];
        let count = routes.len() as u32;
        let known = for_each_hash(&keys, |row, hash| {
            numbers[row] = routes[bucket(hash, count) as usize];
            true
        });
        if !known {
            return Err(DataFusionError::Execution(format!(
                "values of type {} have no buckets",
                keys.data_type()
            )));
        }
        Ok(ColumnarValue::Array(Arc::new(Int64Array::from(numbers))))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::metrics::Time;
    use datafusion::physical_plan::repartition::BatchPartitioner;

    use arrow::array::RecordBatch;
    use arrow::datatypes::Schema;

    use super::super::hash::hash_long;
    use super::super::placement::BucketPlacement;
    use super::*;

    /// The partition that DataFusion sends each key to, among that many.
    fn partitions(keys: &[Option<i64>], routes: &[i64], count: usize) -> Vec<(Option<i64>, usize)> {
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
        let bytes = routes
            .iter()
            .flat_map(|route| route.to_le_bytes())
            .collect();
        let route = ScalarFunctionExpr::new(
            NAME,
            route_function(),
            vec![
                datafusion::physical_expr::expressions::col("k", &schema).expect("a column"),
                Arc::new(Literal::new(ScalarValue::Binary(Some(bytes)))),
            ],
            Arc::new(Field::new(NAME, DataType::Int64, false)),
            Arc::new(ConfigOptions::default()),
        );
        let batch = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(keys.to_vec()))])
            .expect("a batch");
        let mut found = Vec::new();
        BatchPartitioner::new_hash_partitioner(vec![Arc::new(route)], count, Time::new())
            .expect("a partitioner")
            .partition(batch, |partition, rows| {
                let keys = rows.column(0);
                let keys = keys.as_any().downcast_ref::<Int64Array>().expect("keys");
                found.extend(keys.iter().map(|key| (key, partition)));
                Ok(())
            })
            .expect("rows are sent");
        found
    }

    #[test]
    fn rows_are_sent_to_where_their_buckets_are_read() {
        let keys: Vec<Option<i64>> = (0..500).map(Some).chain([None]).collect();
        for (workers, buckets, cores) in [(3, 16, 2), (1, 8, 4), (5, 64, 3), (3, 2, 2), (0, 8, 2)] {
            let placement = BucketPlacement {
                workers: (0..workers).map(|i| format!("http://w{i}")).collect(),
            };
            let places = placement.places(buckets, cores);
            let routes = routes(buckets, &places).expect("routes");
            let place =
                |key: &Option<i64>| places.of(key.map(|key| bucket(hash_long(key), buckets)));
            // In one task.
            for (key, partition) in partitions(&keys, &routes, places.slots) {
                assert_eq!(partition, place(&key).slot, "{key:?}");
            }
            // In a task on each worker.
            let all = places.slots * places.workers;
            let sent = partitions(&keys, &routes, all);
            assert_eq!(sent.len(), keys.len());
            for (key, partition) in sent {
                let place = place(&key);
                assert_eq!(
                    partition,
                    place.worker * places.slots + place.slot,
                    "{key:?}"
                );
            }
        }
    }
}
