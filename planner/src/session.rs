//! The settings of one query, and the DataFusion session that they make.

use std::fmt;
use std::sync::Arc;

use datafusion::config::Dialect;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::pushdown_sort::PushdownSort;
use datafusion::prelude::SessionConfig;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::buckets::{BucketJoins, BucketPlacement};
use crate::comparisons::{
    AlikeLists, AlikeOperators, Comparisons, CountedRows, EqualFloats, EqualZeros, SeveralLists,
    TimeTexts,
};
use crate::exact_arithmetic::{DecimalAverages, ExactArithmetic};
use crate::extension_types::{ExtensionTexts, ExtensionTypes};
use crate::hints::HintedRelations;
use crate::memory::query_runtime;
use crate::metadata_answers::MetadataAnswers;
use crate::null_supplying::NullSupplyingSides;
use crate::ordered_files::OrderedFiles;
use crate::portable_joins::PortableJoins;
use crate::progress::QueryProgress;
use crate::proven_filters::ProvenFilters;
use crate::provider::QueryCatalogs;
use crate::query_planner::IcebergQueryPlanner;
use crate::replaced_rules::{self, logical_rules};
use crate::runtime_filters::{RuntimeFilterLink, RuntimeFilterOptions, RuntimeFilters};
use crate::single_row_subqueries::SingleRowSubqueries;
use crate::size_estimates::ForgetSizeEstimates;
use crate::skewed_joins::SkewOptions;
use crate::window_constants::WindowConstants;
use crate::window_groups::WindowGroups;
use crate::yielding_joins::YieldingJoins;

/// A side of a join that is estimated to be no larger is built once, for all partitions. A cluster has settings of its own.
const BUILT_ONCE_BYTES: usize = 16 << 20;
const BUILT_ONCE_ROWS: usize = 1 << 20;

/// Names one query from its first log line to its audit record, on every process that takes part.
///
/// A version 7 UUID: ids sort by the time they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueryId(pub Uuid);

impl QueryId {
    /// A new id.
    #[allow(clippy::new_without_default)] // Each call gives another id: `default` would promise the opposite.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for QueryId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// How one query runs.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    pub query_id: QueryId,
    /// Partitions that a stage of the plan is cut into in one process.
    pub target_partitions: usize,
    /// Rows of a record batch.
    pub batch_rows: usize,
    /// The most memory that the query may use in one process; `None`: whatever the process has.
    pub query_memory_bytes: Option<u64>,
    /// Filters are evaluated inside the Parquet reader, column by column, and the other columns are decoded only for
    /// the rows that are left.
    pub late_materialization: bool,
    /// Joins by hashing, which needs the smaller side in memory. Without, joins by sorting, which spills: slower, and
    /// what is left for a join that does not fit.
    pub prefer_hash_join: bool,
    /// Joins are put into the order that costs least by statistics. Without, they stay as they are written.
    pub join_reorder: bool,
    /// Shuffles are taken away where tables are in buckets of what they are joined or grouped by.
    pub bucket_joins: bool,
    /// How joins are filtered at run time, on a cluster; `None`: not at all.
    pub runtime_filters: Option<RuntimeFilterOptions>,
    /// Rows of heavy keys are spread where a shuffled join probes with at least so many rows, by estimate; `None`: nowhere.
    pub skew_join_min_rows: Option<usize>,
    /// The names of the workers that the query runs on, in the order of its tasks; none if it runs in this process.
    pub workers: Vec<String>,
    /// Where scans tell how far they are.
    pub progress: Option<Arc<QueryProgress>>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            query_id: QueryId::new(),
            target_partitions: std::thread::available_parallelism().map_or(4, |n| n.get()),
            batch_rows: 8192,
            query_memory_bytes: None,
            late_materialization: false,
            prefer_hash_join: true,
            join_reorder: true,
            bucket_joins: true,
            runtime_filters: None,
            skew_join_min_rows: None,
            workers: Vec::new(),
            progress: None,
        }
    }
}

/// The configuration that coordinator and workers run a query with.
pub fn session_config(o: &SessionOptions) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(o.target_partitions.max(1))
        .with_batch_size(o.batch_rows.max(1))
        .with_collect_statistics(true)
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::MySQL;
    options.optimizer.prefer_hash_join = o.prefer_hash_join;
    // In one process a side that is built once costs less than sending both sides by their hashes.
    options.optimizer.hash_join_single_partition_threshold = BUILT_ONCE_BYTES;
    options.optimizer.hash_join_single_partition_threshold_rows = BUILT_ONCE_ROWS;
    if let Some(limit) = o.query_memory_bytes {
        // What each sort sets aside to merge what it spilled. A few sorts of DataFusion's 10 MB would be all that a
        // small limit leaves for what cannot spill.
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let share = limit / (16 * o.target_partitions.max(1));
        let reserved = &mut options.execution.sort_spill_reservation_bytes;
        *reserved = share.min(*reserved);
    }
    let parquet = &mut options.execution.parquet;
    parquet.enable_page_index = true;
    parquet.pruning = true;
    parquet.bloom_filter_on_read = true;
    parquet.pushdown_filters = o.late_materialization;
    parquet.reorder_filters = true;
    parquet.schema_force_view_types = true;
    // Iceberg has microseconds; INT96 of migrated files is read as such.
    parquet.coerce_int96 = Some("us".to_string());
    if let Some(progress) = &o.progress {
        config = config.with_extension(Arc::clone(progress));
    }
    config
}

/// The session of one query: its settings, memory limit, catalogs and functions.
pub fn session_builder(
    o: &SessionOptions,
    runtime: Arc<RuntimeEnv>,
    catalogs: Arc<QueryCatalogs>,
    default_catalog: &str,
    default_database: &str,
) -> datafusion::error::Result<SessionStateBuilder> {
    let mut config =
        session_config(o).with_default_catalog_and_schema(default_catalog, default_database);
    config.options_mut().extensions.insert(BucketPlacement {
        workers: o.workers.clone(),
    });
    if o.workers.is_empty() {
        config = config.with_extension(Arc::new(RuntimeFilterLink::within_process()));
    }
    let mut builder = SessionStateBuilder::new()
        .with_session_id(o.query_id.to_string())
        .with_config(config)
        .with_runtime_env(query_runtime(&runtime, o.query_memory_bytes))
        .with_catalog_list(catalogs)
        .with_default_features()
        .with_relation_planners(vec![Arc::new(HintedRelations)])
        .with_query_planner(Arc::new(IcebergQueryPlanner {
            order_joins: o.join_reorder,
            share_subplans: o.workers.is_empty(),
            skew: o.skew_join_min_rows.map(|min_rows| SkewOptions {
                min_rows,
                partitions: o.target_partitions * o.workers.len().max(1),
            }),
        }))
        .with_analyzer_rule(Arc::new(SingleRowSubqueries))
        .with_physical_optimizer_rules(physical_rules(o));
    let functions = builder.scalar_functions().get_or_insert_default();
    // Later ones replace earlier ones of the same name, so MySQL's meaning wins.
    functions.extend(crate::functions::scalar_functions());
    let aggregates = builder.aggregate_functions().get_or_insert_default();
    // Turned round in two phases it gives the wrong row. As a window function it stays.
    aggregates.retain(|function| function.name() != "nth_value");
    aggregates.extend(crate::functions::aggregate_functions());
    let mut analyzer = Analyzer::with_rules(analyzer_rules());
    analyzer.add_function_rewrite(Arc::new(Comparisons));
    *builder.analyzer() = Some(analyzer);
    let mut builder = builder.with_optimizer_rules(logical_rules());
    let planners = builder.expr_planners().get_or_insert_default();
    planners.extend(crate::functions::expr_planners());
    planners.push(Arc::new(AlikeOperators));
    Ok(builder)
}

type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// DataFusion's rules, what answers without reading before them, and what makes plans run well after them.
fn physical_rules(o: &SessionOptions) -> Vec<PhysicalRule> {
    let mut rules = replaced_rules::physical_rules();
    let mut after = |known: &str, rule: PhysicalRule| {
        let place = rules.iter().position(|rule| rule.name() == known);
        rules.insert(place.map_or(rules.len(), |place| place + 1), rule);
    };
    after(PushdownSort::new().name(), Arc::new(OrderedFiles));
    after(JoinSelection::new().name(), Arc::new(NullSupplyingSides));
    after(JoinSelection::new().name(), Arc::new(ForgetSizeEstimates));
    rules.insert(
        0,
        Arc::new(MetadataAnswers {
            bucket_joins: o.bucket_joins,
        }),
    );
    rules.push(Arc::new(WindowConstants));
    rules.push(Arc::new(ProvenFilters));
    rules.push(Arc::new(PortableJoins));
    rules.push(Arc::new(YieldingJoins));
    rules.push(Arc::new(BucketJoins {
        unasked: o.bucket_joins,
    }));
    if let Some(options) = o.runtime_filters {
        rules.push(Arc::new(RuntimeFilters {
            options,
            workers: o.workers.len(),
        }));
    }
    rules
}

/// DataFusion's rules, and what compares and computes otherwise than they would.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(WindowGroups));
    rules.insert(0, Arc::new(ExtensionTypes));
    rules.insert(0, Arc::new(AlikeLists));
    rules.push(Arc::new(ExtensionTexts));
    rules.push(Arc::new(TimeTexts));
    rules.push(Arc::new(DecimalAverages));
    rules.push(Arc::new(ExactArithmetic));
    rules.push(Arc::new(EqualZeros));
    rules.push(Arc::new(EqualFloats));
    rules.push(Arc::new(SeveralLists));
    rules.push(Arc::new(CountedRows));
    rules
}
