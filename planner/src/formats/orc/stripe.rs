//! The streams of a stripe that hold the columns that are read (ORC specification, "Stripes").

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use prost::Message;

use super::messages::{ColumnEncoding, StripeFooter};
use super::run_length::Version;
use super::stream::{Compression, Stream, damaged};
use super::tail::{StripeAt, footer_bytes};
use crate::formats::FileFormat;
use crate::formats::error::FormatError;
use crate::formats::file_bytes::FileBytes;

/// What a stream holds of its column. The rest are indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Present,
    Data,
    Length,
    Dictionary,
    Secondary,
}

impl Part {
    fn of(kind: i32) -> Option<Self> {
        Some(match kind {
            0 => Part::Present,
            1 => Part::Data,
            2 => Part::Length,
            3 => Part::Dictionary,
            5 => Part::Secondary,
            _ => return None,
        })
    }
}

/// How a column is encoded in a stripe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoding {
    pub(super) version: Version,
    /// The number of its entries, if there is a dictionary.
    pub(super) dictionary: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Stripe {
    streams: HashMap<(usize, Part), Bytes>,
    encodings: Vec<ColumnEncoding>,
    compression: Option<Compression>,
    pub(super) zone: chrono_tz::Tz,
}

impl Stripe {
    /// Reads the streams of `columns`.
    pub(super) async fn read(
        bytes: &dyn FileBytes,
        at: StripeAt,
        compression: Option<Compression>,
        columns: &HashSet<usize>,
    ) -> Result<Self, FormatError> {
        let footer_at = at.offset + at.index_and_data;
        let footer = bytes.read(footer_at..footer_at + at.footer).await?;
        let footer = StripeFooter::decode(footer_bytes(footer, compression)?.as_slice())
            .map_err(|e| damaged(format!("the footer of a stripe cannot be read: {e}")))?;

        let mut ranges = Vec::new();
        let mut names = Vec::new();
        let mut start = at.offset;
        for stream in &footer.streams {
            let end = start
                .checked_add(stream.length.unwrap_or_default())
                .filter(|end| *end <= footer_at)
                .ok_or_else(|| damaged("a stream lies outside of its stripe"))?;
            let column = stream.column.unwrap_or_default() as usize;
            if let Some(part) = Part::of(stream.kind.unwrap_or_default())
                && columns.contains(&column)
                && end > start
            {
                names.push((column, part));
                ranges.push(start..end);
            }
            start = end;
        }
        let read = match ranges.is_empty() {
            true => vec![],
            false => bytes.read_many(&ranges).await?,
        };
        let mut streams = HashMap::new();
        for ((name, range), bytes) in names.into_iter().zip(&ranges).zip(read) {
            if bytes.len() as u64 != range.end - range.start {
                return Err(damaged("it is shorter than it was"));
            }
            if streams.insert(name, bytes).is_some() {
                return Err(damaged(format!(
                    "column {} has two streams of {:?}",
                    name.0, name.1
                )));
            }
        }
        Ok(Self {
            streams,
            encodings: footer.columns,
            compression,
            zone: zone(footer.writer_timezone.as_deref())?,
        })
    }

    /// A stream of a column, which is empty if nobody wrote it: a column of nulls only has no data.
    pub(super) fn stream(&mut self, column: usize, part: Part) -> Stream {
        self.optional_stream(column, part).unwrap_or_default()
    }

    pub(super) fn optional_stream(&mut self, column: usize, part: Part) -> Option<Stream> {
        self.streams
            .remove(&(column, part))
            .map(|bytes| Stream::new(bytes, self.compression))
    }

    pub(super) fn encoding(&self, column: usize) -> Result<Encoding, FormatError> {
        let encoding = self.encodings.get(column).ok_or_else(|| {
            damaged(format!(
                "a stripe does not say how column {column} is encoded"
            ))
        })?;
        let dictionary = Some(encoding.dictionary_size.unwrap_or_default() as usize);
        let (version, dictionary) = match encoding.kind.unwrap_or_default() {
            0 => (Version::V1, None),
            1 => (Version::V1, dictionary),
            2 => (Version::V2, None),
            3 => (Version::V2, dictionary),
            other => {
                return Err(FormatError::unsupported(
                    FileFormat::Orc,
                    format!("the column encoding of number {other}"),
                ));
            }
        };
        Ok(Encoding {
            version,
            dictionary,
        })
    }
}

/// The zone in which the writer's timestamps without one are.
fn zone(name: Option<&str>) -> Result<chrono_tz::Tz, FormatError> {
    match name {
        None | Some("" | "GMT" | "UTC" | "Z") => Ok(chrono_tz::UTC),
        Some(name) => name.parse().map_err(|_| {
            FormatError::unsupported(FileFormat::Orc, format!("the time zone '{name}'"))
        }),
    }
}
