//! An answer from metadata on its way to a worker, beside the scan of the files that are left.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use prost::Message;

use super::node::MetadataAnswerExec;

/// Tells these messages from others.
const MAGIC: u64 = u64::from_le_bytes(*b"tarnmeta");

#[derive(Clone, PartialEq, Message)]
struct AnswerMessage {
    #[prost(fixed64, tag = "1")]
    magic: u64,
    #[prost(string, tag = "2")]
    table: String,
    #[prost(uint64, tag = "3")]
    files: u64,
    /// A stream of Arrow's IPC.
    #[prost(bytes = "vec", tag = "4")]
    rows: Vec<u8>,
}

/// Writes the node, if it is one.
pub(crate) fn encode_answer(node: &Arc<dyn ExecutionPlan>, buf: &mut Vec<u8>) -> Result<bool> {
    let Some(answer) = node.downcast_ref::<MetadataAnswerExec>() else {
        return Ok(false);
    };
    let mut rows = Vec::new();
    let mut writer = StreamWriter::try_new(&mut rows, &answer.rows.schema())?;
    writer.write(&answer.rows)?;
    writer.finish()?;
    drop(writer);
    let message = AnswerMessage {
        magic: MAGIC,
        table: answer.table.clone(),
        files: answer.files,
        rows,
    };
    message.encode_raw(buf);
    Ok(true)
}

/// Reads the node, if the message is one.
pub(crate) fn decode_answer(buf: &[u8]) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let message = match AnswerMessage::decode(buf) {
        Ok(message) if message.magic == MAGIC => message,
        _ => return Ok(None),
    };
    let reader = StreamReader::try_new(Cursor::new(message.rows), None)?;
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>()?;
    let rows = concat_batches(&schema, &batches)?;
    Ok(Some(Arc::new(MetadataAnswerExec::new(
        message.table,
        message.files,
        rows,
        None,
    ))))
}
