//! Broadcast joins whose partitions are not all read.
//!
//! The partitions of a hash join in mode `CollectLeft` build one filter for the scan that they probe, and each waits until all of
//! them have said that they know the build side. DataFusion 54 counts on all of them being read. A join by buckets above does
//! not read the partition whose other side is empty:
//!
//! ```text
//!   BucketJoin          bucket 0: no rows on the left,      bucket 1: reads its right side,
//!                       its right side is dropped unread    which waits for that of bucket 0
//!     left
//!     SharedBuild
//!       HashJoin CollectLeft
//! ```
//!
//! So a partition that is dropped unread is read by one of the others, until it has said its word.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use arrow::record_batch::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::join::BucketJoinExec;
use crate::pass_through::{filters_go_to_input, partitioned_as_input, sized_as_input};

/// Tells the message of this node from those of others.
const MAGIC: u64 = u64::from_le_bytes(*b"tarnshbd");

/// A broadcast join, of which partitions may be left unread.
#[derive(Debug)]
pub(crate) struct SharedBuildExec {
    join: Arc<dyn ExecutionPlan>,
    unread: Arc<Unread>,
}

/// What the partitions of one join have in common.
struct Unread {
    inner: Mutex<UnreadStreams>,
}

struct UnreadStreams {
    /// Partitions that are not done; those that are not begun, too.
    open: usize,
    /// Dropped before they gave anything.
    streams: Vec<SendableRecordBatchStream>,
    /// The partitions that were told to wait, any of which can read those.
    waiting: HashMap<usize, Waker>,
}

impl fmt::Debug for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unread").finish_non_exhaustive()
    }
}

impl SharedBuildExec {
    pub(super) fn new(join: Arc<dyn ExecutionPlan>) -> Self {
        let inner = Mutex::new(UnreadStreams {
            open: join.output_partitioning().partition_count(),
            streams: Vec::new(),
            waiting: HashMap::new(),
        });
        Self {
            join,
            unread: Arc::new(Unread { inner }),
        }
    }

    /// Whether a message is of such a node.
    pub(crate) fn is_in(message: &[u8]) -> bool {
        message == MAGIC.to_le_bytes()
    }

    /// Writes the node, without its join.
    pub(crate) fn encode(buf: &mut Vec<u8>) {
        buf.extend_from_slice(&MAGIC.to_le_bytes());
    }

    /// The node over its join.
    pub(crate) fn over(children: &[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn ExecutionPlan>> {
        match children {
            [join] => Ok(Arc::new(Self::new(Arc::clone(join)))),
            _ => internal_err!("a shared build has one join, not {}", children.len()),
        }
    }
}

/// The plan with such a node above each broadcast join, if another join may leave partitions unread.
pub(super) fn with_shared_builds(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if !plan.exists(|node| Ok(node.is::<BucketJoinExec>() || node.is::<SortMergeJoinExec>()))? {
        return Ok(plan);
    }
    plan.transform_up(|node| {
        let shares = node.downcast_ref::<HashJoinExec>().is_some_and(|join| {
            // Its filter may be made on the worker only.
            *join.partition_mode() == PartitionMode::CollectLeft
        });
        Ok(match shares {
            true => Transformed::yes(Arc::new(SharedBuildExec::new(node))),
            false => Transformed::no(node),
        })
    })
    .data()
}

impl DisplayAs for SharedBuildExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SharedBuildExec")
    }
}

impl ExecutionPlan for SharedBuildExec {
    fn name(&self) -> &str {
        "SharedBuildExec"
    }

    partitioned_as_input!(join);
    sized_as_input!(join);
    filters_go_to_input!();

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Self::over(&children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let stream = self.join.execute(partition, context)?;
        Ok(Box::pin(Partition {
            number: partition,
            schema: stream.schema(),
            stream: Some(stream),
            read: false,
            unread: Arc::clone(&self.unread),
        }))
    }
}

/// One partition of the join.
struct Partition {
    number: usize,
    schema: SchemaRef,
    stream: Option<SendableRecordBatchStream>,
    /// It gave something, so it has said its word.
    read: bool,
    unread: Arc<Unread>,
}

impl Stream for Partition {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        let item = stream.poll_next_unpin(cx);
        if item.is_ready() {
            self.read = true;
            return item;
        }
        if self.read {
            return item;
        }
        // It may wait for the word of one that nobody reads.
        let unread = Arc::clone(&self.unread);
        let mut unread = unread.inner.lock();
        unread
            .streams
            .retain_mut(|stream| stream.poll_next_unpin(cx).is_pending());
        unread.waiting.insert(self.number, cx.waker().clone());
        Poll::Pending
    }
}

impl RecordBatchStream for Partition {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let mut unread = self.unread.inner.lock();
        unread.open = unread.open.saturating_sub(1);
        unread.waiting.remove(&self.number);
        if !self.read {
            unread.streams.extend(self.stream.take());
        }
        let of_no_use = match unread.open {
            0 => std::mem::take(&mut unread.streams),
            _ => Vec::new(),
        };
        // Whoever read them may be this one.
        for (_, waker) in unread.waiting.drain() {
            waker.wake();
        }
        drop(unread);
        drop(of_no_use);
    }
}
