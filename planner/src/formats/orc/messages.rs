//! The parts of ORC's protocol buffers that a reader of rows needs (`orc_proto.proto`).

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct PostScript {
    #[prost(uint64, optional, tag = "1")]
    pub footer_length: Option<u64>,
    #[prost(int32, optional, tag = "2")]
    pub compression: Option<i32>,
    #[prost(uint64, optional, tag = "3")]
    pub compression_block_size: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub metadata_length: Option<u64>,
    #[prost(string, optional, tag = "8000")]
    pub magic: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Footer {
    #[prost(message, repeated, tag = "3")]
    pub stripes: Vec<StripeInformation>,
    #[prost(message, repeated, tag = "4")]
    pub types: Vec<Type>,
    #[prost(uint64, optional, tag = "6")]
    pub number_of_rows: Option<u64>,
    #[prost(message, optional, tag = "10")]
    pub encryption: Option<Encryption>,
}

/// That a file is encrypted is all that is looked at.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Encryption {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StripeInformation {
    #[prost(uint64, optional, tag = "1")]
    pub offset: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub index_length: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub data_length: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub footer_length: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub number_of_rows: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Type {
    #[prost(int32, optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(uint32, repeated, tag = "2")]
    pub subtypes: Vec<u32>,
    #[prost(string, repeated, tag = "3")]
    pub field_names: Vec<String>,
    #[prost(uint32, optional, tag = "5")]
    pub precision: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub scale: Option<u32>,
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<StringPair>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StringPair {
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StripeFooter {
    #[prost(message, repeated, tag = "1")]
    pub streams: Vec<StreamInformation>,
    #[prost(message, repeated, tag = "2")]
    pub columns: Vec<ColumnEncoding>,
    #[prost(string, optional, tag = "3")]
    pub writer_timezone: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StreamInformation {
    #[prost(int32, optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub column: Option<u32>,
    #[prost(uint64, optional, tag = "3")]
    pub length: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ColumnEncoding {
    #[prost(int32, optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub dictionary_size: Option<u32>,
}
