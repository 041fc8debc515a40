//! A join with the rows of heavy keys spread.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{JoinType, UnnestOptions, internal_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::functions::math::random;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, case, in_list, is_null, lit,
};
use datafusion::physical_expr::utils::conjunction;
use datafusion::physical_expr::{PhysicalExprRef, ScalarFunctionExpr};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::unnest::{ListUnnest, UnnestExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use datafusion::scalar::ScalarValue;

use super::sample::HeavyKeys;

/// The column by which copies of build rows are told apart.
const SALT: &str = "__salt";
/// Salts for each partition: their hashes fall where they will, and many of them fall evenly.
const SALTS_PER_PARTITION: usize = 4;
/// Copies of a build row.
const MOST_SALTS: usize = 512;

/// A partitioned join, both sides of which are shuffled by their keys, with heavy keys spread over so many partitions.
pub(super) fn spread(
    join: &HashJoinExec,
    heavy: &HeavyKeys,
    partitions: usize,
    task: &TaskContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let salts = (partitions * SALTS_PER_PARTITION).min(MOST_SALTS);
    let (mut build_keys, mut probe_keys): (Vec<_>, Vec<_>) = join.on.iter().cloned().unzip();
    let build = with_copies(input_of(&join.left)?, &build_keys, heavy, salts)?;
    let probe = with_random_salts(input_of(&join.right)?, &probe_keys, heavy, salts, task)?;
    build_keys.push(last_column(&build));
    probe_keys.push(last_column(&probe));
    let on = build_keys.iter().cloned().zip(probe_keys.iter().cloned());
    let sides = vec![
        shuffled(&join.left, build, build_keys.clone())?,
        shuffled(&join.right, probe, probe_keys.clone())?,
    ];
    join.builder()
        .with_new_children(sides)?
        .with_on(on.collect())
        .with_projection(Some(without_salts(join)))
        .recompute_properties()
        .reset_state()
        .build_exec()
}

/// The columns that the join gives, in terms of the join with a salt behind the columns of each side.
fn without_salts(join: &HashJoinExec) -> Vec<usize> {
    let width = |side: &Arc<dyn ExecutionPlan>| side.schema().fields().len();
    let (build, probe) = match join.join_type {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (0, width(&join.right)),
        _ => (width(&join.left), width(&join.right)),
    };
    let salts_before = |column: usize| {
        let of_build = usize::from(build > 0 && column >= build);
        // Behind both sides there is the mark.
        of_build + usize::from(column >= build + probe)
    };
    let mark = usize::from(join.join_type == JoinType::RightMark);
    let shown: Vec<usize> = match &join.projection {
        Some(projection) => projection.to_vec(),
        None => (0..build + probe + mark).collect(),
    };
    shown
        .into_iter()
        .map(|column| column + salts_before(column))
        .collect()
}

fn input_of(shuffle: &Arc<dyn ExecutionPlan>) -> Result<&Arc<dyn ExecutionPlan>> {
    match shuffle.children()[..] {
        [input] => Ok(input),
        _ => internal_err!("a shuffle has one input"),
    }
}

/// The build side with a copy of the rows of heavy keys for each salt.
fn with_copies(
    input: &Arc<dyn ExecutionPlan>,
    keys: &[PhysicalExprRef],
    heavy: &HeavyKeys,
    salts: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = input.schema();
    let list = |count: usize| -> PhysicalExprRef {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let salts: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count));
        lit(SingleRowListArrayBuilder::new(salts).build_list_scalar())
    };
    let salted = match is_heavy(keys, heavy, &schema)? {
        Some(is_heavy) => case(None, vec![(is_heavy, list(salts))], Some(list(1)))?,
        None => list(1),
    };
    let lists = with_column(input, salted)?;
    let unnested = ListUnnest {
        index_in_input_schema: schema.fields().len(),
        depth: 1,
    };
    let salt = Arc::new(Field::new(SALT, DataType::Int32, true));
    let fields: Vec<_> = schema.fields().iter().cloned().chain([salt]).collect();
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    Ok(Arc::new(UnnestExec::new(
        lists,
        vec![unnested],
        vec![],
        Arc::new(schema),
        UnnestOptions::default(),
    )?))
}

/// The probe side with random salts for the rows of heavy keys.
fn with_random_salts(
    input: &Arc<dyn ExecutionPlan>,
    keys: &[PhysicalExprRef],
    heavy: &HeavyKeys,
    salts: usize,
    task: &TaskContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = input.schema();
    let options = Arc::clone(task.session_config().options());
    let random = Arc::new(ScalarFunctionExpr::try_new(
        random(),
        vec![],
        &schema,
        options,
    )?);
    let scaled = BinaryExpr::new(random, Operator::Multiply, lit(salts as f64));
    // Cut off, so below the number of salts.
    let salt: PhysicalExprRef = Arc::new(CastExpr::new(Arc::new(scaled), DataType::Int32, None));
    let mut cases = Vec::new();
    if heavy.nulls {
        // They match nothing, wherever they are.
        for key in keys {
            cases.push((is_null(Arc::clone(key))?, Arc::clone(&salt)));
        }
    }
    if let Some(is_heavy) = is_heavy(keys, heavy, &schema)? {
        cases.push((is_heavy, salt));
    }
    with_column(input, case(None, cases, Some(lit(0i32)))?)
}

/// The input with the salt as its last column.
fn with_column(
    input: &Arc<dyn ExecutionPlan>,
    salt: PhysicalExprRef,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = input.schema();
    let columns = schema.fields().iter().enumerate();
    let columns = columns.map(|(i, field)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), i)),
        alias: field.name().clone(),
    });
    let salt = ProjectionExpr {
        expr: salt,
        alias: SALT.to_owned(),
    };
    let all = ProjectionExec::try_new(columns.chain([salt]), Arc::clone(input))?;
    Ok(Arc::new(all))
}

/// Whether a key was added to spread the rows of others.
pub(crate) fn is_salt(key: &PhysicalExprRef) -> bool {
    key.downcast_ref::<Column>()
        .is_some_and(|column| column.name() == SALT)
}

fn last_column(side: &Arc<dyn ExecutionPlan>) -> PhysicalExprRef {
    Arc::new(Column::new(SALT, side.schema().fields().len() - 1))
}

/// Another input shuffled over as many partitions as before.
fn shuffled(
    before: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
    by: Vec<PhysicalExprRef>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let by = Partitioning::Hash(by, before.output_partitioning().partition_count());
    Ok(Arc::new(RepartitionExec::try_new(input, by)?))
}

/// Whether a row has one of the heavy keys; `None` if there is none.
fn is_heavy(
    keys: &[PhysicalExprRef],
    heavy: &HeavyKeys,
    schema: &Schema,
) -> Result<Option<PhysicalExprRef>> {
    if let [key] = keys {
        let values: Vec<PhysicalExprRef> = heavy.keys.iter().flatten().cloned().map(lit).collect();
        if values.is_empty() {
            return Ok(None);
        }
        return Ok(Some(in_list(Arc::clone(key), values, &false, schema)?));
    }
    let one = |values: &Vec<ScalarValue>| -> PhysicalExprRef {
        conjunction(keys.iter().zip(values).map(|(key, value)| {
            let (key, value) = (Arc::clone(key), lit(value.clone()));
            Arc::new(BinaryExpr::new(key, Operator::Eq, value)) as PhysicalExprRef
        }))
    };
    let any = heavy.keys.iter().map(one);
    Ok(any.reduce(|any, one| Arc::new(BinaryExpr::new(any, Operator::Or, one))))
}
