//! From a parsed query to a physical plan that can run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as DfStatement;
use tarn_audit::ScanReport;
use tarn_catalog::TableName;
use tarn_cluster::{QueryContext, RuntimeFilterGuard};
use tarn_planner::statement::{
    DatabaseName, ObjectPath, OutputNames, Query, SessionValue, SessionValues, VariableScope,
    configure_sql, names_row_lineage, rewrite_query,
};
use tarn_planner::{
    JoinDistribution, QueryCatalogs, RuntimeFilterOptions, SessionOptions, TableNames, analyze,
    iceberg_scans, join_distributions, optimize, session_builder, with_ordered_joins,
};
use url::Url;

use crate::dispatch::Dispatch;
use crate::engine::Engine;
use crate::error::Result;
use crate::processes::RunningStatement;
use crate::profile::with_answered_by_metadata;
use crate::session::SessionShared;
use crate::shuffle_limit::shuffles_allowed;
use crate::system::SystemSchemas;
use crate::variables::{SERVER_VERSION, VariableKind, Variables, find};

/// Everything one statement knows: a picture of its session when it began, and its own entry in
/// the process list.
#[derive(Debug, Clone)]
pub(crate) struct StatementContext {
    pub engine: Arc<Engine>,
    pub session: Arc<SessionShared>,
    pub running: Arc<RunningStatement>,
    pub variables: Arc<Variables>,
    pub user_variables: Arc<HashMap<String, SessionValue>>,
    pub catalog: String,
    pub database: String,
}

/// A query whose tables are pinned: however often it is started, it reads the same snapshots.
#[derive(Debug)]
pub(crate) struct Planned {
    pub logical: LogicalPlan,
    pub names: OutputNames,
    pub catalogs: Arc<QueryCatalogs>,
    state: SessionState,
}

/// A physical plan with what it runs in. A query that lost a worker gets a new one.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub plan: Arc<dyn ExecutionPlan>,
    pub task: Arc<TaskContext>,
    /// Keeps what its joins know of their keys.
    _filters: Option<Arc<RuntimeFilterGuard>>,
}

impl Attempt {
    /// Another plan, to run in its place.
    pub fn with_plan(&self, plan: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            plan,
            ..self.clone()
        }
    }
}

impl StatementContext {
    /// The table a path names, with what is missing filled in from the session.
    pub fn resolve(&self, path: &ObjectPath) -> TableName {
        TableName::new(
            path.catalog.as_deref().unwrap_or(&self.catalog),
            path.database.as_deref().unwrap_or(&self.database),
            path.table.as_str(),
        )
    }

    /// The catalog and database that a name means.
    pub fn resolve_database(&self, name: &DatabaseName) -> (String, String) {
        (
            name.catalog.clone().unwrap_or_else(|| self.catalog.clone()),
            name.database.clone(),
        )
    }

    /// Pins the tables of a query and makes its logical plan.
    pub async fn plan(&self, query: &Query) -> Result<Planned> {
        self.plan_on(query, self.engine.parts().dispatch.clone(), false)
            .await
    }

    /// As [`plan`](Self::plan), for a plan that is looked at and never run: no worker is needed.
    pub async fn plan_locally(&self, query: &Query) -> Result<Planned> {
        self.plan_on(query, Dispatch::Local, false).await
    }

    /// As [`plan_locally`](Self::plan_locally), for a query whose parameters have no values yet.
    pub async fn plan_described(&self, query: &Query) -> Result<Planned> {
        self.plan_on(query, Dispatch::Local, true).await
    }

    async fn plan_on(
        &self,
        query: &Query,
        dispatch: Dispatch,
        describing: bool,
    ) -> Result<Planned> {
        let (context, query) = (self.clone(), query.clone());
        let plan = async move { context.plan_here(&query, &dispatch, describing).await };
        self.engine.execution().compute(plan).await
    }

    async fn plan_here(
        &self,
        query: &Query,
        dispatch: &Dispatch,
        describing: bool,
    ) -> Result<Planned> {
        let catalogs = QueryCatalogs::new(
            Arc::clone(&self.engine.parts().catalogs),
            Arc::clone(&self.engine.parts().stores),
            Arc::new(SystemSchemas::new(self.clone())),
        );
        if names_row_lineage(query) {
            catalogs.offer_row_lineage();
        }
        let state = self.state(&catalogs, dispatch, &[])?;
        let names = TableNames {
            catalogs: &catalogs,
            state: &state,
            catalog: &self.catalog,
            database: &self.database,
            time_zone: self.variables.text("time_zone").unwrap_or("SYSTEM"),
            describing,
        };
        let statement = self.spelled(query, &names).await?;
        let mut logical = self.limited(state.statement_to_plan(statement).await?)?;
        // Placeholders have no types before they have values.
        if !describing || query.parameters == 0 {
            logical = analyze(logical, &state)?;
        }
        Ok(Planned {
            logical,
            names: query.names.clone(),
            catalogs,
            state,
        })
    }

    /// The query with its tables called as they are planned, and its columns spelled as its tables spell them.
    async fn spelled(&self, query: &Query, names: &TableNames<'_>) -> Result<DfStatement> {
        let mut ast = rewrite_query(query, self)?;
        Box::pin(names.resolve(&mut ast)).await?;
        let statement = DfStatement::Statement(Box::new(ast));
        let spellings = self.spellings(&statement, names.state).await?;
        if spellings.is_empty() {
            return Ok(statement);
        }
        let spelled = Spelled {
            context: self,
            spellings,
        };
        let mut ast = rewrite_query(query, &spelled)?;
        Box::pin(names.resolve(&mut ast)).await?;
        Ok(DfStatement::Statement(Box::new(ast)))
    }

    /// Columns of the query's tables that are not in lower case, by their lower-case names.
    async fn spellings(
        &self,
        statement: &DfStatement,
        state: &SessionState,
    ) -> Result<HashMap<String, Spelling>> {
        let mut spellings: HashMap<String, Spelling> = HashMap::new();
        for reference in state.resolve_table_references(statement)? {
            let name = reference.table().to_owned();
            let Some(table) = state.schema_for_ref(reference)?.table(&name).await? else {
                continue;
            };
            let schema = table.schema();
            let mut of_table: HashMap<String, Vec<&String>> = HashMap::new();
            for field in schema.fields() {
                let lower = field.name().to_lowercase();
                of_table.entry(lower).or_default().push(field.name());
            }
            for (lower, names) in of_table {
                let spelling = match names.as_slice() {
                    [name] if **name == lower => continue,
                    [name] => Spelling::Always((*name).clone()),
                    names => Spelling::AsWritten(names.iter().map(|n| (*n).clone()).collect()),
                };
                spellings
                    .entry(lower)
                    .and_modify(|known| {
                        if *known != spelling {
                            *known = Spelling::Lower;
                        }
                    })
                    .or_insert(spelling);
            }
        }
        Ok(spellings)
    }

    /// `sql_select_limit`, for a SELECT without a LIMIT of its own.
    fn limited(&self, logical: LogicalPlan) -> Result<LogicalPlan> {
        let limit = self
            .variables
            .text("sql_select_limit")
            .and_then(|text| text.parse::<u64>().ok())
            .filter(|limit| *limit != u64::MAX)
            .and_then(|limit| usize::try_from(limit).ok());
        match limit {
            Some(limit) if !matches!(logical, LogicalPlan::Limit(_)) => {
                Ok(LogicalPlanBuilder::from(logical)
                    .limit(0, Some(limit))?
                    .build()?)
            }
            _ => Ok(logical),
        }
    }

    /// The physical plan of the first attempt, if it is one that may run.
    pub async fn first_attempt(&self, planned: &Planned) -> Result<Attempt> {
        let attempt = self.first_plan(planned).await?;
        shuffles_allowed(
            &self.joins(&attempt.plan),
            self.number("max_shuffled_dimensions"),
        )?;
        Ok(attempt)
    }

    /// The physical plan of the first attempt, to be looked at.
    pub async fn first_plan(&self, planned: &Planned) -> Result<Attempt> {
        self.attempt(planned, planned.state.clone()).await
    }

    /// How the rows of each join of a plan meet.
    pub fn joins(&self, plan: &Arc<dyn ExecutionPlan>) -> Vec<JoinDistribution> {
        let tasks = match &self.engine.parts().dispatch {
            Dispatch::Local => 1,
            Dispatch::Cluster(cluster) => cluster.workers(&QueryContext::default()).len(),
        };
        join_distributions(plan, tasks)
    }

    /// Plans anew over the workers that are left; the pinned tables stay as they are.
    pub async fn next_attempt(&self, planned: &Planned, lost: &[Url]) -> Result<Attempt> {
        let state = self.state(&planned.catalogs, &self.engine.parts().dispatch, lost)?;
        self.attempt(planned, state).await
    }

    /// The optimised logical plan, for EXPLAIN VERBOSE.
    pub async fn optimized(&self, planned: &Planned) -> Result<LogicalPlan> {
        let plan = optimize(&planned.logical, &planned.state)?;
        if !self.variables.is_on("join_reorder") {
            return Ok(plan);
        }
        let state = planned.state.clone();
        let order = async move { Ok(with_ordered_joins(&plan, &state).await?) };
        self.engine.execution().compute(order).await
    }

    fn state(
        &self,
        catalogs: &Arc<QueryCatalogs>,
        dispatch: &Dispatch,
        lost: &[Url],
    ) -> Result<SessionState> {
        let memory = match self.variables.number("query_memory_bytes") {
            0 => None,
            bytes => Some(bytes),
        };
        let mut options = SessionOptions {
            join_reorder: self.variables.is_on("join_reorder"),
            bucket_joins: self.variables.is_on("bucket_joins"),
            query_id: self.running.id,
            query_memory_bytes: memory,
            runtime_filters: self.variables.is_on("runtime_filters").then(|| {
                RuntimeFilterOptions {
                    wait_ms: u32::try_from(self.number("runtime_filter_wait_ms"))
                        .unwrap_or(u32::MAX),
                    min_rows: self.number("runtime_filter_min_rows"),
                }
            }),
            skew_join_min_rows: self
                .variables
                .is_on("skew_joins")
                .then(|| self.number("skew_join_min_rows")),
            progress: Some(Arc::clone(&self.running.progress)),
            ..SessionOptions::default()
        };
        if let partitions @ 1.. = self.number("target_partitions") {
            options.target_partitions = partitions;
        }
        if let rows @ 1.. = self.number("batch_rows") {
            options.batch_rows = rows;
        }
        let mut query = QueryContext {
            query_id: self.running.id.to_string(),
            query_memory_bytes: memory,
            partitions_per_task: Some(self.number("target_partitions"))
                .filter(|partitions| *partitions > 0),
            exclude: lost.to_vec(),
            workers: None,
        };
        if let Dispatch::Cluster(cluster) = dispatch {
            let workers = cluster.workers(&query);
            options.workers = workers.nodes().to_vec();
            query.workers = Some(workers);
        }
        let mut builder = session_builder(
            &options,
            Arc::clone(&self.engine.parts().runtime),
            Arc::clone(catalogs),
            &self.catalog,
            &self.database,
        )?;
        configure_sql(builder.config().get_or_insert_default().options_mut());
        let builder = match dispatch {
            Dispatch::Local => builder,
            Dispatch::Cluster(cluster) => cluster.configure(builder, &query)?,
        };
        let mut state = builder.build();
        // What NOW() is: the same in all parts of a statement, and again when it is started anew.
        state.execution_props_mut().query_execution_start_time = Some(self.running.started.into());
        if memory.is_some() {
            self.running
                .set_memory(Arc::clone(&state.runtime_env().memory_pool));
        }
        Ok(state)
    }

    async fn attempt(&self, planned: &Planned, state: SessionState) -> Result<Attempt> {
        let logical = planned.logical.clone();
        let plan = async move {
            let optimized = optimize(&logical, &state)?;
            let planner = state.query_planner();
            let plan = planner.create_physical_plan(&optimized, &state).await?;
            Ok((plan, state.task_ctx()))
        };
        let (plan, task) = self.engine.execution().compute(plan).await?;
        // A query that is killed is recorded with what was planned; one that ends, with what it did.
        *self.running.scans.lock() = planned_reports(&planned.catalogs, &plan);
        let filters = match &self.engine.parts().dispatch {
            Dispatch::Cluster(cluster) => Some(Arc::new(
                cluster.filters().open(&self.running.id.to_string()),
            )),
            Dispatch::Local => None,
        };
        Ok(Attempt {
            plan,
            task,
            _filters: filters,
        })
    }

    fn number(&self, name: &str) -> usize {
        usize::try_from(self.variables.number(name)).unwrap_or(usize::MAX)
    }
}

/// The scans of a plan as they were planned, with those that metadata answered.
pub(crate) fn planned_reports(
    catalogs: &QueryCatalogs,
    plan: &Arc<dyn ExecutionPlan>,
) -> Vec<ScanReport> {
    let scans = iceberg_scans(plan)
        .into_iter()
        .map(|scan| scan.report)
        .collect();
    with_answered_by_metadata(scans, catalogs)
}

impl SessionValues for StatementContext {
    fn variable(&self, scope: VariableScope, name: &str) -> Option<SessionValue> {
        let variable = find(name)?;
        let values = match scope {
            VariableScope::Global => &self.engine.globals(),
            VariableScope::Default | VariableScope::Session => &self.variables,
        };
        let Some(text) = values.text(name) else {
            return Some(SessionValue::Null);
        };
        Some(match variable.kind {
            VariableKind::Switch => SessionValue::Integer(i64::from(text == "ON")),
            VariableKind::Integer { .. } | VariableKind::Bytes => match text.parse() {
                Ok(number) => SessionValue::Integer(number),
                Err(_) => SessionValue::Text(text.to_owned()),
            },
            VariableKind::Text | VariableKind::Zone | VariableKind::Word(_) => {
                SessionValue::Text(text.to_owned())
            }
        })
    }

    fn user_variable(&self, name: &str) -> Option<SessionValue> {
        self.user_variables.get(name).cloned()
    }

    fn database(&self) -> Option<String> {
        Some(self.database.clone())
    }

    fn catalog(&self) -> String {
        self.catalog.clone()
    }

    fn user(&self) -> String {
        let host = match self.running.client.rsplit_once(':') {
            Some((host, _)) => host,
            None if self.running.client.is_empty() => "localhost",
            None => self.running.client.as_str(),
        };
        format!("{}@{host}", self.running.user)
    }

    fn connection_id(&self) -> u32 {
        self.running.connection
    }

    fn version(&self) -> String {
        SERVER_VERSION.to_owned()
    }

    fn engine_version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }
}

/// How the tables of one query spell a column.
#[derive(Debug, PartialEq)]
enum Spelling {
    /// Like this, in every table that has it.
    Always(String),
    /// Names of one table that differ in case only: only the name as it is means a column.
    AsWritten(HashSet<String>),
    /// Two tables spell it differently.
    Lower,
}

/// A session that also knows how the tables of one query spell their columns.
struct Spelled<'a> {
    context: &'a StatementContext,
    spellings: HashMap<String, Spelling>,
}

impl SessionValues for Spelled<'_> {
    fn variable(&self, scope: VariableScope, name: &str) -> Option<SessionValue> {
        self.context.variable(scope, name)
    }

    fn user_variable(&self, name: &str) -> Option<SessionValue> {
        self.context.user_variable(name)
    }

    fn database(&self) -> Option<String> {
        SessionValues::database(self.context)
    }

    fn catalog(&self) -> String {
        SessionValues::catalog(self.context)
    }

    fn user(&self) -> String {
        self.context.user()
    }

    fn connection_id(&self) -> u32 {
        self.context.connection_id()
    }

    fn version(&self) -> String {
        self.context.version()
    }

    fn engine_version(&self) -> String {
        self.context.engine_version()
    }

    fn column_spelling(&self, name: &str) -> Option<String> {
        match self.spellings.get(&name.to_lowercase())? {
            Spelling::Always(spelling) => Some(spelling.clone()),
            Spelling::AsWritten(names) => names.get(name).cloned(),
            Spelling::Lower => None,
        }
    }
}
