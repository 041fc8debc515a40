//! A join of buckets on its way to a worker: the hash join inside, as datafusion-proto writes it, over nothing.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use prost::Message;

use super::join::BucketJoinExec;
use crate::error::{codec_error, is_marked};

/// Tells our messages from those of others.
const MAGIC: u64 = u64::from_le_bytes(*b"tarnjoin");

#[derive(Clone, PartialEq, Message)]
struct JoinMessage {
    #[prost(fixed64, tag = "1")]
    magic: u64,
    #[prost(bytes = "vec", tag = "2")]
    join: Vec<u8>,
    /// datafusion-proto has no place for it.
    #[prost(uint64, optional, tag = "3")]
    fetch: Option<u64>,
}

/// Whether a message is of a join.
pub(crate) fn is_join(message: &[u8]) -> bool {
    is_marked(message, MAGIC)
}

/// Writes the join, without its sides.
pub(crate) fn encode_join(
    join: &BucketJoinExec,
    codec: &dyn PhysicalExtensionCodec,
    buf: &mut Vec<u8>,
) -> Result<()> {
    let sides = join
        .join()
        .children()
        .into_iter()
        .map(|side| Arc::new(EmptyExec::new(side.schema())) as Arc<dyn ExecutionPlan>)
        .collect();
    let bare = BucketJoinExec::of(join.join(), sides)?;
    let bare = Arc::new(bare.join().builder().build()?) as Arc<dyn ExecutionPlan>;
    let message = JoinMessage {
        magic: MAGIC,
        join: PhysicalPlanNode::try_from_physical_plan(bare, codec)?.encode_to_vec(),
        fetch: join.fetch().map(|fetch| fetch as u64),
    };
    message.encode(buf).map_err(codec_error)
}

/// The join of these sides.
pub(crate) fn decode_join(
    message: &[u8],
    sides: &[Arc<dyn ExecutionPlan>],
    ctx: &TaskContext,
    codec: &dyn PhysicalExtensionCodec,
) -> Result<Arc<dyn ExecutionPlan>> {
    let message = JoinMessage::decode(message).map_err(codec_error)?;
    let plan = PhysicalPlanNode::decode(message.join.as_slice())
        .map_err(codec_error)?
        .try_into_physical_plan(ctx, codec)?;
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else {
        return Err(codec_error("the message holds another plan than a join"));
    };
    let fetch = message
        .fetch
        .map(usize::try_from)
        .transpose()
        .map_err(codec_error)?;
    let join = join.builder().with_fetch(fetch).build()?;
    Ok(Arc::new(BucketJoinExec::of(&join, sides.to_vec())?))
}
