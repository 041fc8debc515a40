//! The ends of runtime filters on their way to workers.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use datafusion_proto::physical_plan::from_proto::parse_physical_expr;
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr;
use datafusion_proto::protobuf::PhysicalExprNode;
use prost::Message;
use uuid::Uuid;

use super::FilterEnd;
use super::source::RuntimeFilterSource;
use super::target::RuntimeFilterTarget;
use crate::error::{codec_error, is_marked};

/// Tells our messages from those of others.
const MAGIC: u64 = u64::from_le_bytes(*b"tarnrtfl");

#[derive(Clone, PartialEq, Message)]
struct EndMessage {
    #[prost(fixed64, tag = "1")]
    magic: u64,
    #[prost(bytes = "vec", tag = "2")]
    id: Vec<u8>,
    #[prost(uint32, tag = "3")]
    number: u32,
    #[prost(message, repeated, tag = "4")]
    keys: Vec<PhysicalExprNode>,
    /// Of a source.
    #[prost(uint32, optional, tag = "5")]
    bloom_bytes: Option<u32>,
    /// Of a target.
    #[prost(uint32, optional, tag = "6")]
    wait_ms: Option<u32>,
    /// Of a source.
    #[prost(bool, tag = "7")]
    in_place: bool,
}

/// Whether a message is of one end of a filter.
pub(crate) fn is_filter(message: &[u8]) -> bool {
    is_marked(message, MAGIC)
}

/// Writes a node without its input; `false` for one of another kind.
pub(crate) fn encode_filter(
    node: &Arc<dyn ExecutionPlan>,
    codec: &dyn PhysicalExtensionCodec,
    buf: &mut Vec<u8>,
) -> Result<bool> {
    let source = node.downcast_ref::<RuntimeFilterSource>();
    let target = node.downcast_ref::<RuntimeFilterTarget>();
    let Some(end) = source.map(|it| &it.end).or(target.map(|it| &it.end)) else {
        return Ok(false);
    };
    let message = EndMessage {
        magic: MAGIC,
        id: end.id.as_bytes().to_vec(),
        number: end.number,
        keys: end
            .keys
            .iter()
            .map(|key| serialize_physical_expr(key, codec))
            .collect::<Result<_>>()?,
        bloom_bytes: source.map(|it| it.bloom_bytes),
        wait_ms: target.map(|it| it.wait_ms),
        in_place: source.is_some_and(|it| it.in_place),
    };
    message.encode(buf).map_err(codec_error)?;
    Ok(true)
}

/// The node over its input.
pub(crate) fn decode_filter(
    message: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
    ctx: &TaskContext,
    codec: &dyn PhysicalExtensionCodec,
) -> Result<Arc<dyn ExecutionPlan>> {
    let message = EndMessage::decode(message).map_err(codec_error)?;
    let [input] = inputs else {
        return Err(codec_error("an end of a filter has one input"));
    };
    let schema = input.schema();
    let end = FilterEnd {
        id: Uuid::from_slice(&message.id).map_err(codec_error)?,
        number: message.number,
        keys: message
            .keys
            .iter()
            .map(|key| parse_physical_expr(key, ctx, &schema, codec))
            .collect::<Result<Vec<PhysicalExprRef>>>()?,
    };
    let input = Arc::clone(input);
    match (message.bloom_bytes, message.wait_ms) {
        (Some(bytes), None) => Ok(Arc::new(RuntimeFilterSource::new(
            end,
            bytes,
            message.in_place,
            input,
        ))),
        (None, Some(wait)) => Ok(Arc::new(RuntimeFilterTarget::new(end, wait, input))),
        _ => Err(codec_error("an end of a filter is a source or a target")),
    }
}
