//! Framing: a payload travels as packets of at most 2^24-1 bytes, each with a length and a sequence
//! number.
//!
//! ```text
//!   | length: 3 bytes LE | sequence: 1 byte | length bytes of payload |   ... the next packet ...
//! ```
//!
//! A packet of exactly 2^24-1 bytes says that the payload goes on in the next one, which may be empty.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

/// The most payload bytes one packet can carry.
pub(crate) const MAX_PACKET_PAYLOAD: usize = 0xff_ffff;
const HEADER: usize = 4;

/// Why a stream of packets cannot be followed any further.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum PacketError {
    #[error("packet {found} came where packet {expected} was due")]
    OutOfOrder { expected: u8, found: u8 },
    #[error("a payload of more than {limit} bytes")]
    TooLarge { limit: usize },
}

/// Puts payloads together from the bytes that arrive.
///
/// Memory follows what has arrived, never what a header claims. A payload over the limit is refused
/// when its header is seen; or it is read to its end without being kept, so that a client that is
/// still sending it can be told (it would not read an answer before it has sent all).
#[derive(Debug)]
pub(crate) struct PacketDecoder {
    buffer: BytesMut,
    /// The parts of a payload that is split over several packets.
    parts: BytesMut,
    sequence: u8,
    max_payload: usize,
    /// The most bytes of a payload over the limit that are read and forgotten.
    max_skipped: usize,
    skip: Option<Skip>,
}

/// How far a payload over the limit has been skipped.
#[derive(Debug)]
struct Skip {
    /// Bytes of its current packet that have not arrived.
    left: usize,
    /// No packet follows the current one.
    last: bool,
    total: usize,
}

impl PacketDecoder {
    pub fn new(max_payload_bytes: usize) -> Self {
        Self {
            buffer: BytesMut::with_capacity(16 * 1024),
            parts: BytesMut::new(),
            sequence: 0,
            max_payload: max_payload_bytes,
            max_skipped: 0,
            skip: None,
        }
    }

    /// Sets the limit of a payload, and of what is skipped of a larger one.
    pub fn set_limits(&mut self, max_payload_bytes: usize, max_skipped_bytes: usize) {
        self.max_payload = max_payload_bytes;
        self.max_skipped = max_skipped_bytes;
    }

    /// Where bytes from the peer are appended.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Bytes that have arrived and were not asked for yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The sequence number that the answer starts with.
    pub fn next_sequence(&self) -> u8 {
        self.sequence
    }

    /// The next packet begins a new exchange (`sequence` 0) or goes on with this one.
    pub fn expect_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The next whole payload, or `None` until more bytes have arrived.
    pub fn next_payload(&mut self) -> Result<Option<Bytes>, PacketError> {
        loop {
            if let Some(skip) = &mut self.skip {
                let arrived = skip.left.min(self.buffer.len());
                self.buffer.advance(arrived);
                skip.left -= arrived;
                if skip.left > 0 {
                    return Ok(None);
                }
                if skip.last || skip.total > self.max_skipped {
                    self.skip = None;
                    return Err(PacketError::TooLarge {
                        limit: self.max_payload,
                    });
                }
            }
            if self.buffer.len() < HEADER {
                return Ok(None);
            }
            let length =
                u32::from_le_bytes([self.buffer[0], self.buffer[1], self.buffer[2], 0]) as usize;
            let (expected, found) = (self.sequence, self.buffer[3]);
            if found != expected {
                self.sequence = found.wrapping_add(1);
                return Err(PacketError::OutOfOrder { expected, found });
            }
            let last = length < MAX_PACKET_PAYLOAD;
            let too_large = self.parts.len() + length > self.max_payload;
            if !too_large && self.skip.is_none() && self.buffer.len() < HEADER + length {
                return Ok(None);
            }
            self.sequence = self.sequence.wrapping_add(1);
            self.buffer.advance(HEADER);
            if too_large || self.skip.is_some() {
                let before = self.skip.take().map_or(0, |skip| skip.total);
                self.parts = BytesMut::new();
                if self.max_skipped == 0 {
                    return Err(PacketError::TooLarge {
                        limit: self.max_payload,
                    });
                }
                self.skip = Some(Skip {
                    left: length,
                    last,
                    total: before + length,
                });
                continue;
            }
            let part = self.buffer.split_to(length);
            if last && self.parts.is_empty() {
                return Ok(Some(part.freeze()));
            }
            self.parts.extend_from_slice(&part);
            if last {
                return Ok(Some(std::mem::take(&mut self.parts).freeze()));
            }
        }
    }
}

/// Frames payloads into one buffer, which is sent when it is large enough.
#[derive(Debug, Default)]
pub(crate) struct PacketEncoder {
    buffer: Vec<u8>,
    sequence: u8,
}

/// Where in the buffer a packet that is being written begins.
#[derive(Debug)]
#[must_use]
pub(crate) struct PacketStart(usize);

impl PacketEncoder {
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Starts a packet; its payload is then appended to [`Self::payload`].
    pub fn begin(&mut self) -> PacketStart {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER]);
        PacketStart(start)
    }

    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Takes back a packet whose payload could not be written.
    pub fn abandon(&mut self, start: PacketStart) {
        self.buffer.truncate(start.0);
    }

    /// Ends a packet: writes its header, and splits it if it is too long for one.
    pub fn end(&mut self, start: PacketStart) {
        let length = self.buffer.len() - start.0 - HEADER;
        if length < MAX_PACKET_PAYLOAD {
            self.write_header(start.0, length);
            return;
        }
        let payload = self.buffer.split_off(start.0 + HEADER);
        self.buffer.truncate(start.0);
        for part in payload.chunks(MAX_PACKET_PAYLOAD) {
            self.append_part(part);
        }
        if payload.len().is_multiple_of(MAX_PACKET_PAYLOAD) {
            self.append_part(&[]);
        }
    }

    /// Frames one whole payload.
    #[cfg(test)]
    pub fn put(&mut self, payload: &[u8]) {
        let start = self.begin();
        self.buffer.extend_from_slice(payload);
        self.end(start);
    }

    /// What is to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Forgets what was sent, and gives back the memory that an unusually large row took.
    pub fn clear(&mut self, keep_capacity_bytes: usize) {
        self.buffer.clear();
        self.buffer.shrink_to(keep_capacity_bytes);
    }

    fn append_part(&mut self, part: &[u8]) {
        let at = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER]);
        self.write_header(at, part.len());
        self.buffer.extend_from_slice(part);
    }

    fn write_header(&mut self, at: usize, length: usize) {
        let length = (length as u32).to_le_bytes();
        self.buffer[at..at + HEADER].copy_from_slice(&[
            length[0],
            length[1],
            length[2],
            self.sequence,
        ]);
        self.sequence = self.sequence.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], limit: usize, chunk: usize) -> Result<Vec<Bytes>, PacketError> {
        let mut decoder = PacketDecoder::new(limit);
        let mut found = vec![];
        for piece in bytes.chunks(chunk) {
            decoder.buffer().extend_from_slice(piece);
            while let Some(payload) = decoder.next_payload()? {
                found.push(payload);
            }
        }
        Ok(found)
    }

    #[test]
    fn a_small_payload_is_one_packet() {
        let mut encoder = PacketEncoder::default();
        encoder.set_sequence(7);
        encoder.put(b"abc");
        assert_eq!(encoder.bytes(), [3, 0, 0, 7, b'a', b'b', b'c']);
        assert_eq!(encoder.sequence(), 8);
    }

    #[test]
    fn payloads_round_trip_at_the_edge_of_16_mib() {
        for (length, packets) in [
            (MAX_PACKET_PAYLOAD - 1, 1),
            (MAX_PACKET_PAYLOAD, 2),
            (MAX_PACKET_PAYLOAD + 1, 2),
            (2 * MAX_PACKET_PAYLOAD, 3),
        ] {
            let payload: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let mut encoder = PacketEncoder::default();
            encoder.put(&payload);
            assert_eq!(encoder.bytes().len(), length + 4 * packets, "{length}");
            assert_eq!(usize::from(encoder.sequence()), packets);
            let found = decode(encoder.bytes(), usize::MAX, 1 << 20).unwrap();
            assert_eq!(found.len(), 1);
            assert!(found[0] == payload, "{length}");
        }
    }

    #[test]
    fn bytes_may_arrive_one_at_a_time() {
        let mut encoder = PacketEncoder::default();
        encoder.put(b"one");
        encoder.put(b"");
        encoder.put(b"three");
        assert_eq!(
            decode(encoder.bytes(), 100, 1).unwrap(),
            ["one", "", "three"]
        );
    }

    #[test]
    fn a_wrong_sequence_number_is_refused() {
        assert_eq!(
            decode(&[1, 0, 0, 3, 0], 100, 5),
            Err(PacketError::OutOfOrder {
                expected: 0,
                found: 3
            })
        );
    }

    #[test]
    fn a_payload_over_the_limit_is_refused_from_its_header() {
        assert_eq!(
            decode(&[101, 0, 0, 0], 100, 4),
            Err(PacketError::TooLarge { limit: 100 })
        );
        // Over the limit only together with the part before.
        let mut encoder = PacketEncoder::default();
        encoder.put(&vec![0; MAX_PACKET_PAYLOAD + 10]);
        assert_eq!(
            decode(encoder.bytes(), MAX_PACKET_PAYLOAD + 9, 1 << 20),
            Err(PacketError::TooLarge {
                limit: MAX_PACKET_PAYLOAD + 9
            })
        );
    }

    #[test]
    fn a_payload_over_the_limit_may_be_skipped_to_its_end() {
        let mut encoder = PacketEncoder::default();
        encoder.put(&vec![0; 2 * MAX_PACKET_PAYLOAD + 10]);
        for (max_skipped, sequence) in [(usize::MAX, 3), (MAX_PACKET_PAYLOAD, 2)] {
            let mut decoder = PacketDecoder::new(100);
            decoder.set_limits(100, max_skipped);
            let mut result = Ok(None);
            for piece in encoder.bytes().chunks(1 << 20) {
                assert_eq!(result, Ok(None), "it is not over");
                decoder.buffer().extend_from_slice(piece);
                result = decoder.next_payload();
                assert!(decoder.buffered() <= 1 << 20, "nothing is kept");
                if result.is_err() {
                    break;
                }
            }
            assert_eq!(result, Err(PacketError::TooLarge { limit: 100 }));
            assert_eq!(decoder.next_sequence(), sequence);
        }
    }

    #[test]
    fn an_abandoned_packet_leaves_nothing() {
        let mut encoder = PacketEncoder::default();
        encoder.put(b"a");
        let start = encoder.begin();
        encoder.payload().extend_from_slice(b"half");
        encoder.abandon(start);
        encoder.put(b"b");
        assert_eq!(encoder.bytes(), [1, 0, 0, 0, b'a', 1, 0, 0, 1, b'b']);
    }
}
