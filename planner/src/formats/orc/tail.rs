//! The end of a file: how it is compressed, its types, and where its stripes are (ORC specification, "File Tail").
//!
//! ```text
//!   stripes … │ metadata │ footer │ postscript │ 1 byte: the length of the postscript
//! ```

use bytes::Bytes;
use prost::Message;

use super::messages::{Footer, PostScript, StripeInformation};
use super::stream::{Compression, Stream, damaged};
use super::types::Types;
use crate::formats::FileFormat;
use crate::formats::compression::Codec;
use crate::formats::error::FormatError;
use crate::formats::file_bytes::FileBytes;

/// What is read at once in the hope that it holds all of the tail.
const TAIL_BYTES: u64 = 64 << 10;

/// A footer has some hundred bytes a column and stripe.
const MAX_FOOTER_BYTES: usize = 256 << 20;

/// A chunk's length is written with 23 bits.
const MAX_CHUNK_BYTES: u64 = 1 << 23;
const DEFAULT_CHUNK_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(super) struct Tail {
    pub(super) compression: Option<Compression>,
    pub(super) types: Types,
    pub(super) stripes: Vec<StripeAt>,
}

/// Where a stripe is in its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct StripeAt {
    pub(super) offset: u64,
    pub(super) index_and_data: u64,
    pub(super) footer: u64,
    pub(super) first_row: u64,
    pub(super) rows: u64,
}

impl Tail {
    pub(super) async fn read(bytes: &dyn FileBytes, size: u64) -> Result<Self, FormatError> {
        if size == 0 {
            return Err(damaged("it is empty"));
        }
        let start = size.saturating_sub(TAIL_BYTES);
        let mut tail = bytes.read(start..size).await?;
        let postscript_length = match tail.last() {
            Some(length) => usize::from(*length),
            None => return Err(damaged("it is empty")),
        };
        let Some(postscript_at) = tail.len().checked_sub(1 + postscript_length) else {
            return Err(damaged("its postscript is longer than the file"));
        };
        let postscript = PostScript::decode(&tail[postscript_at..tail.len() - 1])
            .map_err(|e| damaged(format!("it has no postscript: {e}")))?;
        if postscript.magic.as_deref() != Some("ORC") {
            return Err(damaged("its postscript does not say ORC"));
        }
        let footer_length = postscript.footer_length.unwrap_or_default();
        let postscript_bytes = postscript_length as u64 + 1;
        let Some(footer_at) = size
            .checked_sub(postscript_bytes)
            .and_then(|at| at.checked_sub(footer_length))
        else {
            return Err(damaged("its footer is longer than the file"));
        };
        if footer_at < start {
            if footer_length > MAX_FOOTER_BYTES as u64 {
                return Err(damaged(format!("its footer has {footer_length} bytes")));
            }
            tail = bytes.read(footer_at..size - postscript_bytes).await?;
        } else {
            tail = tail.slice((footer_at - start) as usize..postscript_at);
        }
        let compression = compression(&postscript)?;
        let footer = Footer::decode(footer_bytes(tail, compression)?.as_slice())
            .map_err(|e| damaged(format!("its footer cannot be read: {e}")))?;
        if footer.encryption.is_some() {
            return Err(FormatError::unsupported(
                FileFormat::Orc,
                "encrypted columns",
            ));
        }
        Ok(Self {
            compression,
            types: Types::new(&footer.types)?,
            stripes: stripes(&footer, footer_at)?,
        })
    }
}

/// The bytes of a footer of file or stripe.
pub(super) fn footer_bytes(
    bytes: Bytes,
    compression: Option<Compression>,
) -> Result<Vec<u8>, FormatError> {
    Stream::new(bytes, compression).all(MAX_FOOTER_BYTES)
}

fn compression(postscript: &PostScript) -> Result<Option<Compression>, FormatError> {
    let codec = match postscript.compression.unwrap_or_default() {
        0 => return Ok(None),
        1 => Codec::Deflate,
        2 => Codec::Snappy,
        3 => return Err(FormatError::unsupported(FileFormat::Orc, "the codec LZO")),
        4 => Codec::Lz4,
        5 => Codec::Zstd,
        6 => {
            return Err(FormatError::unsupported(
                FileFormat::Orc,
                "the codec Brotli",
            ));
        }
        other => {
            return Err(FormatError::unsupported(
                FileFormat::Orc,
                format!("the codec of number {other}"),
            ));
        }
    };
    let chunk_bytes = postscript
        .compression_block_size
        .unwrap_or(DEFAULT_CHUNK_BYTES);
    if chunk_bytes > MAX_CHUNK_BYTES {
        return Err(damaged(format!(
            "its chunks have up to {chunk_bytes} bytes"
        )));
    }
    Ok(Some(Compression {
        codec,
        chunk_bytes: chunk_bytes as usize,
    }))
}

fn stripes(footer: &Footer, end: u64) -> Result<Vec<StripeAt>, FormatError> {
    let mut first_row = 0u64;
    let mut stripes = Vec::with_capacity(footer.stripes.len());
    for (number, stripe) in footer.stripes.iter().enumerate() {
        let at = stripe_at(stripe, first_row, end)
            .ok_or_else(|| damaged(format!("stripe {number} lies outside of the file")))?;
        first_row = first_row
            .checked_add(at.rows)
            .ok_or_else(|| damaged("its stripes have more than 2^64 rows"))?;
        stripes.push(at);
    }
    if let Some(rows) = footer.number_of_rows.filter(|rows| *rows != first_row) {
        return Err(damaged(format!(
            "it says that it has {rows} rows, and its stripes say {first_row}"
        )));
    }
    Ok(stripes)
}

fn stripe_at(stripe: &StripeInformation, first_row: u64, end: u64) -> Option<StripeAt> {
    let offset = stripe.offset.unwrap_or_default();
    let index_and_data = stripe
        .index_length
        .unwrap_or_default()
        .checked_add(stripe.data_length.unwrap_or_default())?;
    let footer = stripe.footer_length.unwrap_or_default();
    let stripe_end = offset.checked_add(index_and_data)?.checked_add(footer)?;
    (stripe_end <= end).then_some(StripeAt {
        offset,
        index_and_data,
        footer,
        first_row,
        rows: stripe.number_of_rows.unwrap_or_default(),
    })
}
