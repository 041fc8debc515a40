//! Queries over tables as they were, and over their branches and tags.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::sql::parser::Statement as PlannerStatement;
use iceberg::spec::PrimitiveType;
use tarn_catalog::{
    DEFAULT_CATALOG, DEFAULT_DATABASE, PinnedTable, RefChange, RefCreation, RefKind, RefRetention,
};

use super::lake::{Lake, rows};
use crate::statement::rewrite_query;
use crate::statement::sql_session::{TestSession, query};
use crate::{NoVirtualSchemas, QueryCatalogs, TableNames};

/// What a statement of a client answers: through the parser, the rewrites and the names of versions.
pub(crate) async fn ask(lake: &Lake, sql: &str) -> Result<String, String> {
    let answered = async {
        let (plan, task) = planned(lake, sql).await?;
        collect(plan, task).await
    };
    answered
        .await
        .map(|batches| rows(&batches))
        .map_err(|error| error.to_string())
}

/// The plan of a statement of a client.
pub(crate) async fn planned(
    lake: &Lake,
    sql: &str,
) -> datafusion::error::Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
    let catalogs = QueryCatalogs::new(
        Arc::clone(&lake.catalogs),
        Arc::clone(&lake.stores),
        Arc::new(NoVirtualSchemas),
    );
    let state = lake.state(Arc::clone(&catalogs));
    let mut statement = rewrite_query(&query(sql), &TestSession::default())
        .map_err(|error| datafusion::error::DataFusionError::External(Box::new(error)))?;
    let names = TableNames {
        catalogs: &catalogs,
        state: &state,
        catalog: DEFAULT_CATALOG,
        database: DEFAULT_DATABASE,
        time_zone: "SYSTEM",
        describing: false,
    };
    names.resolve(&mut statement).await?;
    let statement = PlannerStatement::Statement(Box::new(statement));
    let logical = state.statement_to_plan(statement).await?;
    let plan = state.create_physical_plan(&logical).await?;
    Ok((plan, state.task_ctx()))
}

async fn answer(lake: &Lake, sql: &str) -> String {
    ask(lake, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

pub(crate) async fn pinned(lake: &Lake, table: &str) -> PinnedTable {
    lake.catalogs
        .get(DEFAULT_CATALOG)
        .expect("the catalog is there")
        .table(DEFAULT_DATABASE, table)
        .await
        .expect("the table is there")
}

pub(crate) async fn change(lake: &Lake, table: &str, change: RefChange) -> Result<bool, String> {
    lake.catalogs
        .get(DEFAULT_CATALOG)
        .expect("the catalog is there")
        .change_ref(DEFAULT_DATABASE, table, &change)
        .await
        .map(|outcome| outcome.changed)
        .map_err(|error| error.to_string())
}

fn new_ref(kind: RefKind, name: &str, snapshot: Option<i64>, creation: RefCreation) -> RefChange {
    RefChange::Create {
        kind,
        name: name.to_owned(),
        snapshot,
        creation,
        retention: RefRetention::default(),
    }
}

fn longs(values: &[i64]) -> Vec<ArrayRef> {
    vec![Arc::new(Int64Array::from(values.to_vec()))]
}

/// A table `t(id)` of three commits of a row each, and their snapshots in order.
async fn three_commits() -> (Lake, Vec<i64>) {
    let lake = Lake::new().await;
    lake.create("t", &[("id", PrimitiveType::Long)], &[]).await;
    let mut snapshots = Vec::new();
    for id in 1..=3 {
        lake.append("t", longs(&[id])).await;
        let snapshot = pinned(&lake, "t").await.snapshot().map(|s| s.snapshot_id());
        snapshots.push(snapshot.expect("it was written to"));
    }
    (lake, snapshots)
}

#[tokio::test]
async fn each_table_of_a_query_is_read_at_its_own_version() {
    let (lake, s) = three_commits().await;
    let (first, second) = (s[0], s[1]);
    for (sql, wanted) in [
        (
            format!("SELECT id FROM t FOR VERSION AS OF {first} ORDER BY id"),
            "1",
        ),
        (
            format!("SELECT id FROM `default`.t VERSION AS OF {second} ORDER BY id"),
            "1; 2",
        ),
        (
            format!("SELECT id FROM t FOR SYSTEM_VERSION AS OF '{second}' ORDER BY id"),
            "1; 2",
        ),
        (format!("SELECT t.id FROM t FOR VERSION AS OF {first}"), "1"),
        (
            "SELECT count(*) FROM t FOR VERSION AS OF 'main'".to_owned(),
            "3",
        ),
        (
            format!(
                "SELECT now.id, old.id FROM t now LEFT JOIN t FOR VERSION AS OF {first} old ON now.id = old.id ORDER BY 1"
            ),
            "1,1; 2,; 3,",
        ),
        (
            format!(
                "WITH t AS (SELECT id + 10 AS id FROM t FOR VERSION AS OF {second}) SELECT id FROM t ORDER BY id"
            ),
            "11; 12",
        ),
        (
            format!(
                "SELECT id FROM t WHERE id NOT IN (SELECT id FROM t FOR VERSION AS OF {second}) AND (SELECT count(*) FROM t \
                 FOR VERSION AS OF {first}) = 1"
            ),
            "3",
        ),
        (format!("SELECT id FROM t.snapshot_id_{first}"), "1"),
        (
            format!("SELECT id FROM lake.`default`.t.snapshot_id_{second} ORDER BY id"),
            "1; 2",
        ),
        (
            "SELECT count(*) FROM t FOR TIMESTAMP AS OF NOW(6)".to_owned(),
            "3",
        ),
        (
            "SELECT count(*) FROM t TIMESTAMP AS OF '9999-12-31'".to_owned(),
            "3",
        ),
        (
            "SELECT count(*) FROM t FOR SYSTEM_TIME AS OF 4102444800".to_owned(),
            "3",
        ),
        (
            "SELECT count(*) FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2100-01-01 00:00:00' x"
                .to_owned(),
            "3",
        ),
        (
            "SELECT count(*) FROM t FOR SYSTEM_TIME AS OF DATE_ADD(NOW(), INTERVAL 1 DAY)"
                .to_owned(),
            "3",
        ),
    ] {
        assert_eq!(answer(&lake, &sql).await, wanted, "{sql}");
    }
}

#[tokio::test]
async fn versions_that_make_no_sense_are_told() {
    let (lake, s) = three_commits().await;
    let clash = format!(
        "WITH x AS (SELECT 1) SELECT * FROM x FOR VERSION AS OF {}",
        s[0]
    );
    let twice = format!("SELECT * FROM t.snapshot_id_{} FOR VERSION AS OF 1", s[0]);
    for (sql, said) in [
        ("SELECT * FROM t FOR VERSION AS OF 5", "has no snapshot 5"),
        (
            "SELECT * FROM t FOR VERSION AS OF 'mian'",
            "has no branch or tag 'mian'; did you mean 'main'?",
        ),
        (
            "SELECT * FROM t.branch_x",
            "has no branch 'x'; it has 'main'",
        ),
        (
            "SELECT * FROM t FOR VERSION AS OF main",
            "FOR VERSION AS OF takes a snapshot's id",
        ),
        (
            "SELECT * FROM t FOR VERSION AS OF 1.5",
            "FOR VERSION AS OF takes a snapshot's id",
        ),
        (
            "SELECT * FROM t FOR VERSION AS OF NULL",
            "FOR VERSION AS OF takes a snapshot's id",
        ),
        (
            "SELECT * FROM t FOR TIMESTAMP AS OF '1999-01-01'",
            "has no snapshot as old as 1999-01-01 00:00:00.000 UTC",
        ),
        (
            "SELECT * FROM t FOR TIMESTAMP AS OF 'soon'",
            "'soon' is not a time",
        ),
        ("SELECT * FROM t FOR TIMESTAMP AS OF TRUE", "takes a time"),
        (
            clash.as_str(),
            "the common table expression 'x' has no versions",
        ),
        (twice.as_str(), "says twice which version"),
        ("SELECT * FROM range(3) FOR VERSION AS OF 1", ""),
        (
            "SELECT * FROM nothing FOR VERSION AS OF 1",
            "table 'lake.default.nothing' does not exist",
        ),
        ("SELECT * FROM a.b.c.d", "has too many parts"),
    ] {
        // Some are not even read as SQL, which will do.
        if tarn_parses(sql) {
            let error = ask(&lake, sql).await.expect_err(sql);
            assert!(error.contains(said), "{sql}: {error}");
        }
    }
}

fn tarn_parses(sql: &str) -> bool {
    crate::statement::parse_statement(sql).is_ok()
}

#[tokio::test]
async fn branches_and_tags_are_made_read_and_dropped() {
    let (lake, s) = three_commits().await;
    use RefCreation as C;
    use RefKind::{Branch, Tag};
    let make = |kind, name: &str, snapshot, creation| {
        change(&lake, "t", new_ref(kind, name, snapshot, creation))
    };

    assert_eq!(make(Tag, "v1", Some(s[0]), C::Create).await, Ok(true));
    assert_eq!(make(Branch, "odd name/x", None, C::Create).await, Ok(true));
    lake.append("t", longs(&[4])).await;
    assert_eq!(answer(&lake, "SELECT id FROM t.tag_v1").await, "1");
    assert_eq!(
        answer(
            &lake,
            "SELECT count(*) FROM t FOR VERSION AS OF 'odd name/x'"
        )
        .await,
        "3"
    );
    assert_eq!(
        answer(
            &lake,
            "SELECT count(*) FROM `default`.t.`branch_odd name/x`"
        )
        .await,
        "3"
    );

    assert_eq!(make(Tag, "v1", None, C::IfNotExists).await, Ok(false));
    let again = make(Tag, "v1", None, C::Create)
        .await
        .expect_err("it is there");
    assert!(again.contains("it has a tag 'v1' already"), "{again}");
    let other = make(Branch, "v1", None, C::CreateOrReplace)
        .await
        .expect_err("it is a tag");
    assert!(other.contains("'v1' is a tag, not a branch"), "{other}");
    assert_eq!(
        make(Tag, "v1", Some(s[1]), C::CreateOrReplace).await,
        Ok(true)
    );
    assert_eq!(answer(&lake, "SELECT count(*) FROM t.tag_v1").await, "2");
    let none = make(Tag, "v2", None, C::Replace)
        .await
        .expect_err("it is not there");
    assert!(
        none.contains("has no tag 'v2'; did you mean 'v1'?"),
        "{none}"
    );
    let unknown = make(Tag, "v3", Some(7), C::Create)
        .await
        .expect_err("no such snapshot");
    assert!(unknown.contains("has no snapshot 7"), "{unknown}");

    let drop = |kind, name: &str, if_exists| {
        change(
            &lake,
            "t",
            RefChange::Drop {
                kind,
                name: name.to_owned(),
                if_exists,
            },
        )
    };
    assert_eq!(drop(Tag, "v1", false).await, Ok(true));
    assert_eq!(drop(Tag, "v1", true).await, Ok(false));
    assert!(drop(Tag, "v1", false).await.is_err());
    let main = drop(Branch, "main", false)
        .await
        .expect_err("it is the main branch");
    assert!(main.contains("main branch cannot be dropped"), "{main}");
    assert!(ask(&lake, "SELECT * FROM t.tag_v1").await.is_err());
    assert_eq!(
        answer(&lake, "SELECT name FROM t$refs ORDER BY name").await,
        "main; odd name/x"
    );
}

#[tokio::test]
async fn a_table_goes_back_to_its_own_snapshots() {
    let (lake, s) = three_commits().await;
    let back = |snapshot| change(&lake, "t", RefChange::RollbackTo { snapshot });
    assert_eq!(back(s[0]).await, Ok(true));
    assert_eq!(answer(&lake, "SELECT id FROM t").await, "1");
    assert_eq!(back(s[0]).await, Ok(false), "it is there already");
    // The third is not an ancestor of the first.
    let error = back(s[2]).await.expect_err("it is not an ancestor");
    assert!(
        error.contains("which is not an ancestor of its current one"),
        "{error}"
    );
    lake.append("t", longs(&[9])).await;
    assert_eq!(answer(&lake, "SELECT id FROM t ORDER BY id").await, "1; 9");
    assert_eq!(
        change(&lake, "t", RefChange::SetCurrent { snapshot: s[2] }).await,
        Ok(true)
    );
    assert_eq!(
        answer(&lake, "SELECT id FROM t ORDER BY id").await,
        "1; 2; 3"
    );
    assert_eq!(
        answer(
            &lake,
            "SELECT is_current_ancestor, count(*) FROM t.history GROUP BY 1 ORDER BY 1"
        )
        .await,
        // Made current: 1, 2, 3, back to 1, 9, and 3 again.
        "false,1; true,5"
    );
    let early = change(&lake, "t", RefChange::RollbackToTime { micros: 1 }).await;
    assert!(
        early
            .expect_err("too early")
            .contains("has no snapshot as old as"),
        "it says so"
    );
    let at = pinned(&lake, "t")
        .await
        .metadata()
        .snapshot_by_id(s[1])
        .map(|x| x.timestamp_ms());
    let at = at.expect("the snapshot is there");
    // Strictly before: right after the second commit, and a moment before it.
    let back = |micros| change(&lake, "t", RefChange::RollbackToTime { micros });
    assert_eq!(back(at * 1000 + 1).await, Ok(true));
    let rows = answer(&lake, "SELECT id FROM t ORDER BY id").await;
    assert!(
        rows == "1; 2" || rows == "1; 2; 3",
        "commits of one millisecond cannot be told apart: {rows}"
    );
}

#[tokio::test]
async fn a_real_table_goes_before_a_metadata_table() {
    let lake = Lake::new().await;
    lake.create("t", &[("id", PrimitiveType::Long)], &[]).await;
    lake.create("t$files", &[("name", PrimitiveType::String)], &[])
        .await;
    lake.append(
        "t$files",
        vec![Arc::new(StringArray::from(vec!["mine"])) as ArrayRef],
    )
    .await;
    assert_eq!(answer(&lake, "SELECT name FROM t$files").await, "mine");
    assert_eq!(answer(&lake, "SELECT count(*) FROM t.files").await, "0");
    let catalog = lake
        .catalogs
        .get(DEFAULT_CATALOG)
        .expect("the catalog is there");
    catalog
        .create_database("t", Default::default(), false)
        .await
        .expect("a database");
    let table = tarn_catalog::NewTable::new(
        "files",
        pinned(&lake, "t$files").await.schema().as_ref().clone(),
    );
    catalog.create_table("t", table).await.expect("a table");
    assert_eq!(answer(&lake, "SELECT count(name) FROM t.files").await, "0");
    // Its database is there, but it is not: the metadata table.
    assert_eq!(answer(&lake, "SELECT count(*) FROM t.snapshots").await, "0");
}
