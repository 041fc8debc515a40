//! A scan on its way to a worker.
//!
//! ```text
//!   Scan ┬ plan    the plain Parquet scan, without files, as datafusion-proto writes it:
//!        │         schema, projection, predicate, Parquet options
//!        ├ table   name, storage, schema with field ids, name mapping, scan report
//!        ├ groups  the files, with what datafusion-proto has no place for: constants, exact statistics, deletes
//!        ├ buckets the column and number of buckets, where partitions are buckets
//!        └ flags   limit in 64 bits, order, partitioned_by_file_group, the sort order that was pushed down
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::{ExecutionPlan, SortOrderPushdownResult};
use datafusion::scalar::ScalarValue;
use datafusion_proto::physical_plan::from_proto::parse_physical_sort_exprs;
use datafusion_proto::physical_plan::to_proto::serialize_physical_sort_exprs;
use datafusion_proto::physical_plan::{
    AsExecutionPlan, DefaultPhysicalProtoConverter, PhysicalExtensionCodec,
    PhysicalPlanDecodeContext,
};
use datafusion_proto::protobuf::{PhysicalPlanNode, PhysicalSortExprNode};
use object_store::ObjectMeta;
use object_store::path::Path;
use prost::Message;

use super::column_adapter::FileConstants;
use super::delete_codec::{DecodedDeletes, DeleteFileSet, DeletesMessage, FileDeletesMessage};
use super::scan_table::ScanTable;
use super::source::IcebergSource;
use super::stores::ScanStores;
use crate::buckets::{
    BucketJoinExec, FileBucket, FileBuckets, ScanBuckets, SharedBuildExec, decode_join,
    encode_join, is_join,
};
use crate::deletes::FileDeletes;
use crate::error::codec_error;
use crate::formats::FileFormat;
use crate::metadata_answers::{decode_answer, encode_answer};
use crate::null_supplying::NullSupplyingExec;
use crate::progress::QueryProgress;
use crate::runtime_filters::{decode_filter, encode_filter, is_filter};

/// Carries [`IcebergTable`](crate::IcebergTable) scans between coordinator and workers.
///
/// Both sides have one. The worker's registers the table's store in the runtime that it decodes for, so a worker
/// needs no configuration of catalogs or stores.
#[derive(Debug)]
pub struct ScanCodec {
    stores: Arc<ScanStores>,
}

impl ScanCodec {
    /// A codec that opens stores through `stores`.
    pub fn new(stores: Arc<ScanStores>) -> Self {
        Self { stores }
    }
}

/// Tells our messages from those of other codecs, which are tried in turn.
const MAGIC: u64 = u64::from_le_bytes(*b"tarnscan");

#[derive(Clone, PartialEq, Message)]
struct ScanMessage {
    #[prost(fixed64, tag = "1")]
    magic: u64,
    #[prost(bytes = "vec", tag = "2")]
    plan: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    table: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    groups: Vec<GroupMessage>,
    #[prost(uint64, optional, tag = "5")]
    limit: Option<u64>,
    #[prost(bool, tag = "6")]
    preserve_order: bool,
    #[prost(bool, tag = "7")]
    partitioned_by_file_group: bool,
    /// Files of one partition share their constants; each file names its set by number.
    #[prost(message, repeated, tag = "8")]
    constants: Vec<ConstantsMessage>,
    /// The order that was pushed down as a hint.
    #[prost(message, repeated, tag = "9")]
    order: Vec<PhysicalSortExprNode>,
    /// Each delete file once; data files name theirs by number.
    #[prost(message, optional, tag = "20")]
    deletes: Option<DeletesMessage>,
    /// Set when the partitions are buckets.
    #[prost(message, optional, tag = "21")]
    buckets: Option<BucketsMessage>,
}

/// A [`ScanBuckets`] whose files are placed.
#[derive(Clone, PartialEq, Message)]
struct BucketsMessage {
    #[prost(uint32, tag = "1")]
    column: u32,
    #[prost(uint32, tag = "2")]
    count: u32,
}

/// A file's bucket of the column that the scan's are of.
#[derive(Clone, PartialEq, Message)]
struct FileBucketMessage {
    #[prost(uint32, tag = "1")]
    count: u32,
    #[prost(uint32, optional, tag = "2")]
    bucket: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct GroupMessage {
    #[prost(message, repeated, tag = "1")]
    files: Vec<FileMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct FileMessage {
    #[prost(string, tag = "1")]
    path: String,
    #[prost(uint64, tag = "2")]
    size: u64,
    #[prost(int64, optional, tag = "3")]
    range_start: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    range_end: Option<i64>,
    #[prost(uint32, optional, tag = "5")]
    constants: Option<u32>,
    #[prost(message, optional, tag = "6")]
    statistics: Option<datafusion_proto::generated::datafusion_common::Statistics>,
    #[prost(message, optional, tag = "20")]
    deletes: Option<FileDeletesMessage>,
    /// [`FileFormat::number`], for files that are not Parquet.
    #[prost(uint32, optional, tag = "16")]
    format: Option<u32>,
    #[prost(message, optional, tag = "17")]
    bucket: Option<FileBucketMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct ConstantsMessage {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    values: Vec<datafusion_proto::protobuf::ScalarValue>,
}

impl PhysicalExtensionCodec for ScanCodec {
    fn try_encode(&self, node: Arc<dyn ExecutionPlan>, buf: &mut Vec<u8>) -> Result<()> {
        if encode_answer(&node, buf)? {
            return Ok(());
        }
        if let Some(join) = node.downcast_ref::<BucketJoinExec>() {
            return encode_join(join, self, buf);
        }
        if encode_filter(&node, self, buf)? {
            return Ok(());
        }
        if node.is::<SharedBuildExec>() {
            SharedBuildExec::encode(buf);
            return Ok(());
        }
        if node.is::<NullSupplyingExec>() {
            NullSupplyingExec::encode(buf);
            return Ok(());
        }
        let config = node
            .downcast_ref::<DataSourceExec>()
            .and_then(|exec| exec.data_source().downcast_ref());
        let source = config
            .and_then(|config: &FileScanConfig| config.file_source.downcast_ref::<IcebergSource>());
        let (Some(config), Some(source)) = (config, source) else {
            return Err(codec_error(format!(
                "{} is not an Iceberg scan",
                node.name()
            )));
        };
        let bare = FileScanConfigBuilder::new(
            config.object_store_url.clone(),
            Arc::new(source.parquet().clone()),
        )
        .with_output_ordering(config.output_ordering.clone())
        .with_constraints(config.constraints.clone())
        .with_batch_size(config.batch_size)
        .build();
        let plan =
            PhysicalPlanNode::try_from_physical_plan(DataSourceExec::from_data_source(bare), self)?;
        let mut constants = ConstantSets::default();
        let mut deletes = DeleteFileSet::default();
        let groups = config
            .file_groups
            .iter()
            .map(|group| {
                let files = group
                    .iter()
                    .map(|file| encode_file(file, &mut constants, &mut deletes, source.buckets()))
                    .collect::<Result<_>>()?;
                Ok(GroupMessage { files })
            })
            .collect::<Result<_>>()?;
        let order = match source.order() {
            Some(order) => serialize_physical_sort_exprs(
                order.to_vec(),
                self,
                &DefaultPhysicalProtoConverter {},
            )?,
            None => vec![],
        };
        let message = ScanMessage {
            magic: MAGIC,
            plan: plan.encode_to_vec(),
            table: source.table().encode()?.to_vec(),
            groups,
            limit: config.limit.map(|limit| limit as u64),
            preserve_order: config.preserve_order,
            partitioned_by_file_group: config.partitioned_by_file_group,
            constants: constants.messages,
            order,
            deletes: deletes.into_message(),
            buckets: source
                .buckets()
                .map(|buckets| {
                    Ok::<_, DataFusionError>(BucketsMessage {
                        column: u32::try_from(buckets.column).map_err(codec_error)?,
                        count: buckets.count,
                    })
                })
                .transpose()?,
        };
        message.encode(buf).map_err(codec_error)
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(answer) = decode_answer(buf)? {
            return Ok(answer);
        }
        if SharedBuildExec::is_in(buf) {
            return SharedBuildExec::over(inputs);
        }
        if NullSupplyingExec::is_in(buf) {
            return NullSupplyingExec::over(inputs);
        }
        if is_filter(buf) {
            return decode_filter(buf, inputs, ctx, self);
        }
        if is_join(buf) {
            return decode_join(buf, inputs, ctx, self);
        }
        let message = ScanMessage::decode(buf).map_err(codec_error)?;
        if message.magic != MAGIC {
            return Err(codec_error("the message is not an Iceberg scan"));
        }
        let table = Arc::new(ScanTable::decode(&message.table)?);
        // The plain scan looks its store up while it is decoded.
        self.stores.register(&table.storage, &ctx.runtime_env())?;
        let plan = PhysicalPlanNode::decode(message.plan.as_slice())
            .map_err(codec_error)?
            .try_into_physical_plan(ctx, self)?;
        let config = plan
            .downcast_ref::<DataSourceExec>()
            .and_then(|exec| exec.data_source().downcast_ref());
        let parquet = config
            .and_then(|config: &FileScanConfig| config.file_source.downcast_ref::<ParquetSource>());
        let (Some(config), Some(parquet)) = (config, parquet) else {
            return Err(codec_error(
                "the message holds another plan than a Parquet scan",
            ));
        };
        let constants = message
            .constants
            .iter()
            .map(decode_constants)
            .collect::<Result<Vec<_>>>()?;
        let deletes = DecodedDeletes::new(message.deletes.unwrap_or_default(), &table)?;
        let buckets = message.buckets.map(|buckets| ScanBuckets {
            column: buckets.column as usize,
            count: buckets.count,
            placed: true,
        });
        let groups = message
            .groups
            .into_iter()
            .map(|group| {
                let files = group
                    .files
                    .into_iter()
                    .map(|file| decode_file(file, &constants, &deletes, buckets));
                Ok(FileGroup::new(files.collect::<Result<_>>()?))
            })
            .collect::<Result<_>>()?;
        let progress = ctx.session_config().get_extension::<QueryProgress>();
        let stores = Arc::clone(&self.stores);
        let source =
            IcebergSource::new(parquet.clone(), table, stores, progress).with_buckets(buckets);
        let source = with_order(
            source,
            &message.order,
            &PhysicalPlanDecodeContext::new(ctx, self),
        )?;
        let limit = message
            .limit
            .map(usize::try_from)
            .transpose()
            .map_err(codec_error)?;
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(source)
            .with_file_groups(groups)
            .with_limit(limit)
            .with_preserve_order(message.preserve_order)
            .with_partitioned_by_file_group(message.partitioned_by_file_group)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// The source, with the order pushed down that was pushed down before it travelled.
fn with_order(
    source: IcebergSource,
    order: &[PhysicalSortExprNode],
    ctx: &PhysicalPlanDecodeContext<'_>,
) -> Result<Arc<dyn FileSource>> {
    if order.is_empty() {
        return Ok(Arc::new(source));
    }
    let schema = Arc::clone(source.table_schema().table_schema());
    let order = parse_physical_sort_exprs(order, ctx, &schema, &DefaultPhysicalProtoConverter {})?;
    // No order of the files is known here, as none was when the hint was given.
    Ok(
        match source.try_pushdown_sort(&order, &EquivalenceProperties::new(schema))? {
            SortOrderPushdownResult::Inexact { inner } => inner,
            _ => Arc::new(source),
        },
    )
}

/// The distinct sets of constants among the files of a scan.
#[derive(Default)]
struct ConstantSets {
    by_address: HashMap<*const HashMap<String, ScalarValue>, u32>,
    messages: Vec<ConstantsMessage>,
}

impl ConstantSets {
    fn number(&mut self, FileConstants(set): &FileConstants) -> Result<u32> {
        // Files of one partition share one set, so its address will do as its identity.
        if let Some(number) = self.by_address.get(&Arc::as_ptr(set)) {
            return Ok(*number);
        }
        let number = u32::try_from(self.messages.len()).map_err(codec_error)?;
        let mut message = ConstantsMessage::default();
        for (name, value) in set.iter() {
            message.names.push(name.clone());
            message.values.push(value.try_into().map_err(codec_error)?);
        }
        self.messages.push(message);
        self.by_address.insert(Arc::as_ptr(set), number);
        Ok(number)
    }
}

fn encode_file(
    file: &PartitionedFile,
    constants: &mut ConstantSets,
    deletes: &mut DeleteFileSet,
    buckets: Option<ScanBuckets>,
) -> Result<FileMessage> {
    Ok(FileMessage {
        path: file.object_meta.location.to_string(),
        size: file.object_meta.size,
        range_start: file.range.as_ref().map(|range| range.start),
        range_end: file.range.as_ref().map(|range| range.end),
        constants: file
            .extensions
            .get::<FileConstants>()
            .map(|set| constants.number(set))
            .transpose()?,
        statistics: file
            .statistics
            .as_ref()
            .map(|statistics| statistics.as_ref().into()),
        deletes: file
            .extensions
            .get::<FileDeletes>()
            .map(|of| deletes.file(of))
            .transpose()?,
        format: file
            .extensions
            .get::<FileFormat>()
            .map(|format| format.number()),
        bucket: buckets
            .zip(file.extensions.get::<FileBuckets>())
            .and_then(|(of, buckets)| buckets.of_column(of.column))
            .map(|bucket| FileBucketMessage {
                count: bucket.count,
                bucket: bucket.bucket,
            }),
    })
}

fn decode_constants(message: &ConstantsMessage) -> Result<FileConstants> {
    let values = message
        .names
        .iter()
        .zip(&message.values)
        .map(|(name, value)| {
            let value = ScalarValue::try_from(value).map_err(codec_error)?;
            Ok((name.clone(), value))
        });
    Ok(FileConstants(Arc::new(values.collect::<Result<_>>()?)))
}

fn decode_file(
    message: FileMessage,
    constants: &[FileConstants],
    deletes: &DecodedDeletes,
    buckets: Option<ScanBuckets>,
) -> Result<PartitionedFile> {
    let mut file = data_file(
        Path::parse(&message.path).map_err(codec_error)?,
        message.size,
    );
    file.range = match (message.range_start, message.range_end) {
        (Some(start), Some(end)) => Some(FileRange { start, end }),
        _ => None,
    };
    if let Some(number) = message.constants {
        let set = constants
            .get(number as usize)
            .ok_or_else(|| codec_error("a file's constants are missing"))?;
        file = file.with_extension(set.clone());
    }
    if let Some(number) = message.format {
        let format = FileFormat::of_number(number)
            .ok_or_else(|| codec_error(format!("a file is of the unknown format {number}")))?;
        file = file.with_extension(format);
    }
    if let Some(statistics) = &message.statistics {
        file.statistics = Some(Arc::new(
            Statistics::try_from(statistics).map_err(codec_error)?,
        ));
    }
    if let (Some(of), Some(bucket)) = (buckets, message.bucket) {
        file = file.with_extension(FileBuckets::from(FileBucket {
            column: of.column,
            count: bucket.count,
            bucket: bucket.bucket,
        }));
    }
    if let Some(of) = message.deletes {
        file = file.with_extension(deletes.file(of)?);
    }
    Ok(file)
}

/// A data file to read. Data files never change, so when one was last modified does not matter.
pub(crate) fn data_file(location: Path, size: u64) -> PartitionedFile {
    PartitionedFile::new_from_meta(ObjectMeta {
        location,
        last_modified: chrono::DateTime::UNIX_EPOCH,
        size,
        e_tag: None,
        version: None,
    })
}
