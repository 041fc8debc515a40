//! A scan that travels is the same scan.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use iceberg::spec::{PrimitiveType as P, Transform};
use tarn_catalog::StoreSettings;

use super::lake::{Lake, rows};
use crate::{ScanCodec, ScanStores, iceberg_scans, session_config};

async fn lake() -> Lake {
    let lake = Lake::new().await;
    lake.create(
        "t",
        &[("id", P::Long), ("part", P::Long), ("s", P::String)],
        &[("part", Transform::Identity)],
    )
    .await;
    let words = StringArray::from(vec!["a", "b", "c", "d"]);
    let ids = |v: [i64; 4]| Arc::new(Int64Array::from(v.to_vec())) as ArrayRef;
    lake.append(
        "t",
        vec![ids([1, 2, 3, 4]), ids([0, 0, 1, 2]), Arc::new(words)],
    )
    .await;
    lake
}

/// The plan as another process gets it: with its own stores and runtime.
pub(super) async fn travel(
    lake: &Lake,
    plan: Arc<dyn ExecutionPlan>,
) -> (Arc<dyn ExecutionPlan>, SessionContext) {
    let codec = ScanCodec::new(Arc::clone(&lake.stores));
    let bytes = PhysicalPlanNode::try_from_physical_plan(plan, &codec).expect("it is encoded");
    let mut buffer = Vec::new();
    prost::Message::encode(&bytes, &mut buffer).expect("bytes");
    let worker = SessionContext::new_with_config_rt(
        session_config(&lake.options),
        Arc::new(RuntimeEnv::default()),
    );
    let mut state = worker.state();
    crate::functions::register_functions(&mut state).expect("functions");
    let worker = SessionContext::new_with_state(state);
    let codec = ScanCodec::new(ScanStores::new(None, StoreSettings::default()));
    let node: PhysicalPlanNode = prost::Message::decode(buffer.as_slice()).expect("a node");
    let plan = node
        .try_into_physical_plan(&worker.task_ctx(), &codec)
        .expect("it is decoded");
    (plan, worker)
}

#[tokio::test]
async fn it_gives_the_same_rows_and_report() {
    let mut lake = lake().await;
    for late in [false, true] {
        lake.options.late_materialization = late;
        for (sql, expected) in [
            ("SELECT id, s FROM t WHERE part < 2 AND id > 1", "2,b; 3,c"),
            ("SELECT s FROM t WHERE s >= 'b' AND part = 0", "b"),
            ("SELECT count(*) FROM t WHERE s <> 'b'", "3"),
            (
                "SELECT id + 1 AS n, part FROM t WHERE id IN (1, 4)",
                "2,0; 5,2",
            ),
            (
                "SELECT a.id, b.s FROM t a JOIN t b ON a.id = b.id AND b.part = 1",
                "3,c",
            ),
            ("SELECT id FROM t ORDER BY id DESC LIMIT 2", "4; 3"),
            // Of operators nothing but the count of rows is asked.
            (
                "SELECT count(*) FROM t a JOIN t b ON a.part = b.part LIMIT 5",
                "6",
            ),
            (
                "SELECT count(*) FROM t a JOIN t b ON a.id < b.id LIMIT 5",
                "6",
            ),
            (
                "SELECT count(*) FROM (VALUES (1), (2)) v(x) CROSS JOIN t LIMIT 5",
                "8",
            ),
            // A join that stops.
            (
                "SELECT count(*) FROM (SELECT a.id FROM t a JOIN t b ON a.part = b.part LIMIT 2) x",
                "2",
            ),
            (
                "SELECT count(*) FROM (SELECT a.id FROM t a LEFT JOIN t b ON a.part = b.part LIMIT 5) x",
                "5",
            ),
        ] {
            let plan = lake.plan(sql).await;
            let before = iceberg_scans(&plan);
            let (plan, worker) = travel(&lake, plan).await;
            let after = iceberg_scans(&plan);
            assert_eq!(before.len(), after.len());
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(before.report, after.report);
                assert_eq!(before.table, after.table);
                assert_eq!(before.file_groups.len(), after.file_groups.len());
                for (before, after) in before.file_groups.iter().zip(&after.file_groups) {
                    for (before, after) in before.iter().zip(after.iter()) {
                        assert_eq!(before.object_meta.location, after.object_meta.location);
                        assert_eq!(
                            (&before.range, &before.statistics),
                            (&after.range, &after.statistics)
                        );
                    }
                }
            }
            let batches = collect(plan, worker.task_ctx())
                .await
                .unwrap_or_else(|e| panic!("{sql}: {e}"));
            let mut answer: Vec<String> = rows(&batches).split("; ").map(str::to_string).collect();
            if !sql.contains("ORDER BY") {
                answer.sort();
            }
            assert_eq!(answer.join("; "), expected, "{sql}");
        }
    }
}

#[tokio::test]
async fn the_order_of_a_top_query_travels_as_a_hint() {
    let lake = lake().await;
    let plan = lake.plan("SELECT id FROM t ORDER BY id DESC LIMIT 1").await;
    let hint = "sort_order_for_reorder=[id@0 DESC], reverse_row_groups=true";
    let shown = |plan: &Arc<dyn ExecutionPlan>| {
        datafusion::physical_plan::displayable(plan.as_ref())
            .indent(false)
            .to_string()
    };
    assert!(shown(&plan).contains(hint), "{}", shown(&plan));
    let (travelled, _) = travel(&lake, plan).await;
    assert!(shown(&travelled).contains(hint), "{}", shown(&travelled));
}

#[tokio::test]
async fn other_bytes_are_refused() {
    let lake = lake().await;
    let codec = ScanCodec::new(Arc::clone(&lake.stores));
    for bytes in [b"".as_slice(), b"tarnscan", &[0xff; 40]] {
        assert!(
            codec
                .try_decode(bytes, &[], &lake.session().task_ctx())
                .is_err()
        );
    }
}
