use crate::queries::Queries;
use datafusion_distributed::{ExecuteTaskRequest, ProducerHeadSpec, TaskKey, Worker};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long the memory of an ended task may wait to be freed.
const PERIOD: Duration = Duration::from_millis(400);

/// Frees what ended tasks still hold.
///
/// datafusion-distributed keeps tasks in a cache whose removals take effect at a later access: the build sides
/// of a query that was killed would stay in memory, and be counted as used, until the next query comes. Asking
/// the cache for a task that does not exist is such an access.
pub(crate) async fn free_ended_tasks(
    worker: Worker,
    queries: Arc<Queries>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        if queries.running_tasks() > 0 {
            let request = ExecuteTaskRequest {
                task_key: TaskKey {
                    query_id: uuid::Uuid::nil(),
                    stage_id: 0,
                    task_number: 0,
                },
                target_partition_start: 0,
                target_partition_end: 0,
                producer_head_spec: ProducerHeadSpec::None,
            };
            // The access happens at once; after it the call would wait for a plan that never comes.
            let _ =
                tokio::time::timeout(Duration::from_millis(20), worker.execute_task(request)).await;
        }
    }
}
