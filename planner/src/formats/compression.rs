//! Decompression of one chunk, with a bound on what comes out of it.
//!
//! The bound is what keeps a damaged file from taking all memory: a few bytes can claim to become gigabytes.

use std::io::{self, Read};

use super::error::FormatError;
use super::file_format::FileFormat;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Deflate without a header (ORC calls it zlib).
    Deflate,
    Snappy,
    Lz4,
    Zstd,
    Bzip2,
    Xz,
}

impl Codec {
    /// Decompresses `bytes` to at most `limit` bytes.
    pub(crate) fn decompress(
        self,
        format: FileFormat,
        bytes: &[u8],
        limit: usize,
    ) -> Result<Vec<u8>, FormatError> {
        let failed = |reason: String| {
            FormatError::damaged(
                format,
                format!("a {self:?} chunk cannot be decompressed: {reason}"),
            )
        };
        let too_large = || failed(format!("it holds more than {limit} bytes"));
        let out = match self {
            Codec::Deflate => bounded(flate2::read::DeflateDecoder::new(bytes), limit),
            Codec::Zstd => zstd::Decoder::with_buffer(bytes).and_then(|d| bounded(d, limit)),
            Codec::Bzip2 => bounded(bzip2::read::MultiBzDecoder::new(bytes), limit),
            Codec::Xz => bounded(liblzma::read::XzDecoder::new_multi_decoder(bytes), limit),
            Codec::Snappy => {
                let length = snap::raw::decompress_len(bytes).map_err(|e| failed(e.to_string()))?;
                if length > limit {
                    return Err(too_large());
                }
                snap::raw::Decoder::new()
                    .decompress_vec(bytes)
                    .map_err(io::Error::other)
            }
            Codec::Lz4 => {
                let mut out = vec![0; limit];
                lz4_flex::block::decompress_into(bytes, &mut out)
                    .map(|length| {
                        out.truncate(length);
                        out
                    })
                    .map_err(io::Error::other)
            }
        }
        .map_err(|e| failed(e.to_string()))?;
        if out.len() > limit {
            return Err(too_large());
        }
        Ok(out)
    }
}

/// All that `reader` yields, but no more than a byte over the limit.
fn bounded(reader: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(most).read_to_end(&mut out)?;
    Ok(out)
}
