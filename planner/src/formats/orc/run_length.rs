//! Integers in runs, in both versions (ORC specification, "Integer Run Length Encoding, version 1" and "version 2").

use super::stream::{Stream, damaged};
use crate::formats::error::FormatError;
use crate::formats::varint::unzigzag;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// Reads integers of up to 64 bits. A run is decoded at a time; none has more than 512 values.
#[derive(Debug)]
pub(super) struct IntegerRuns {
    stream: Stream,
    version: Version,
    signed: bool,
    run: Vec<i64>,
    at: usize,
}

impl IntegerRuns {
    pub(super) fn signed(stream: Stream, version: Version) -> Self {
        Self::new(stream, version, true)
    }

    pub(super) fn unsigned(stream: Stream, version: Version) -> Self {
        Self::new(stream, version, false)
    }

    fn new(stream: Stream, version: Version, signed: bool) -> Self {
        Self {
            stream,
            version,
            signed,
            run: Vec::new(),
            at: 0,
        }
    }

    pub(super) fn next(&mut self) -> Result<i64, FormatError> {
        if self.at == self.run.len() {
            self.run.clear();
            self.at = 0;
            match self.version {
                Version::V1 => self.run_of_version_1()?,
                Version::V2 => self.run_of_version_2()?,
            }
        }
        let value = *self
            .run
            .get(self.at)
            .ok_or_else(|| damaged("a run is empty"))?;
        self.at += 1;
        Ok(value)
    }

    /// The next value, which must not be negative.
    pub(super) fn length(&mut self) -> Result<usize, FormatError> {
        let value = self.next()?;
        usize::try_from(value).map_err(|_| damaged(format!("a length is {value}")))
    }

    fn varint(&mut self) -> Result<i64, FormatError> {
        match self.signed {
            true => self.stream.signed_varint(),
            false => self.stream.varint().map(|value| value as i64),
        }
    }

    fn sign(&self, value: u64) -> i64 {
        if self.signed {
            unzigzag(value)
        } else {
            value as i64
        }
    }

    fn run_of_version_1(&mut self) -> Result<(), FormatError> {
        let control = self.stream.byte()? as i8;
        if control >= 0 {
            let length = usize::from(control as u8) + 3;
            let delta = i64::from(self.stream.byte()? as i8);
            let mut value = self.varint()?;
            for _ in 0..length {
                self.run.push(value);
                value = value.wrapping_add(delta);
            }
        } else {
            for _ in 0..control.unsigned_abs() {
                let value = self.varint()?;
                self.run.push(value);
            }
        }
        Ok(())
    }

    fn run_of_version_2(&mut self) -> Result<(), FormatError> {
        let header = self.stream.byte()?;
        match header >> 6 {
            0 => self.short_repeat(header),
            1 => self.direct(header),
            2 => self.patched_base(header),
            _ => self.delta(header),
        }
    }

    fn short_repeat(&mut self, header: u8) -> Result<(), FormatError> {
        let width = usize::from(header >> 3 & 7) + 1;
        let length = usize::from(header & 7) + 3;
        let value = self.big_endian(width)?;
        let value = self.sign(value);
        self.run.resize(length, value);
        Ok(())
    }

    fn direct(&mut self, header: u8) -> Result<(), FormatError> {
        let width = bit_width(header >> 1 & 0x1f);
        let length = self.run_length(header)?;
        let mut bits = PackedBits::new(&mut self.stream);
        for _ in 0..length {
            self.run.push(bits.next(width)? as i64);
        }
        if self.signed {
            for value in &mut self.run {
                *value = unzigzag(*value as u64);
            }
        }
        Ok(())
    }

    /// Most values are near a base and few far from it: the high bits of those are in a list of their own, with the
    /// distance of each from the one before.
    fn patched_base(&mut self, header: u8) -> Result<(), FormatError> {
        let width = bit_width(header >> 1 & 0x1f);
        let length = self.run_length(header)?;
        let third = self.stream.byte()?;
        let fourth = self.stream.byte()?;
        let base_bytes = usize::from(third >> 5) + 1;
        let patch_width = bit_width(third & 0x1f);
        let gap_width = u32::from(fourth >> 5) + 1;
        let patches = usize::from(fourth & 0x1f);
        if patch_width + gap_width > 64 || patch_width + width > 64 {
            return Err(damaged("the patches of a run have more than 64 bits"));
        }
        let base = self.big_endian(base_bytes)?;
        // The highest bit of the base is its sign.
        let sign = 1u64 << (base_bytes * 8 - 1);
        let base = if base & sign != 0 {
            (base & !sign).wrapping_neg() as i64
        } else {
            base as i64
        };
        let mut bits = PackedBits::new(&mut self.stream);
        for _ in 0..length {
            self.run.push(bits.next(width)? as i64);
        }
        let entry_width = packed_width(patch_width + gap_width);
        let mut bits = PackedBits::new(&mut self.stream);
        let mut position = 0usize;
        for _ in 0..patches {
            let entry = bits.next(entry_width)?;
            let gap = entry >> patch_width & ((1 << gap_width) - 1);
            let patch = entry & low_bits(patch_width);
            position += gap as usize;
            // A gap of 255 without a patch is the first part of a longer one, and patches nothing.
            let value = self
                .run
                .get_mut(position)
                .ok_or_else(|| damaged("a patch lies outside of its run"))?;
            *value |= (patch << width) as i64;
        }
        for value in &mut self.run {
            *value = base.wrapping_add(*value);
        }
        Ok(())
    }

    fn delta(&mut self, header: u8) -> Result<(), FormatError> {
        let width = match header >> 1 & 0x1f {
            0 => None,
            code => Some(bit_width(code)),
        };
        let length = self.run_length(header)?;
        let first = self.varint()?;
        let delta = self.stream.signed_varint()?;
        self.run.push(first);
        let mut value = first;
        let Some(width) = width else {
            for _ in 1..length {
                value = value.wrapping_add(delta);
                self.run.push(value);
            }
            return Ok(());
        };
        if length < 2 {
            return Err(damaged("a run of differences has a single value"));
        }
        value = value.wrapping_add(delta);
        self.run.push(value);
        let mut bits = PackedBits::new(&mut self.stream);
        for _ in 2..length {
            let step = bits.next(width)? as i64;
            value = match delta < 0 {
                true => value.wrapping_sub(step),
                false => value.wrapping_add(step),
            };
            self.run.push(value);
        }
        Ok(())
    }

    /// Nine bits of length, less one: the last of the header, and a byte after it.
    fn run_length(&mut self, header: u8) -> Result<usize, FormatError> {
        Ok((usize::from(header & 1) << 8 | usize::from(self.stream.byte()?)) + 1)
    }

    fn big_endian(&mut self, bytes: usize) -> Result<u64, FormatError> {
        let mut value = 0;
        for _ in 0..bytes {
            value = value << 8 | u64::from(self.stream.byte()?);
        }
        Ok(value)
    }
}

fn low_bits(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

/// The width that five bits of a header stand for.
fn bit_width(code: u8) -> u32 {
    match code {
        0..=23 => u32::from(code) + 1,
        24 => 26,
        25 => 28,
        26 => 30,
        27 => 32,
        28 => 40,
        29 => 48,
        30 => 56,
        _ => 64,
    }
}

/// The width that numbers of so many bits are packed with.
fn packed_width(bits: u32) -> u32 {
    match bits {
        0..=24 => bits.max(1),
        25..=26 => 26,
        27..=28 => 28,
        29..=30 => 30,
        31..=32 => 32,
        33..=40 => 40,
        41..=48 => 48,
        49..=56 => 56,
        _ => 64,
    }
}

/// Numbers one after another without regard for bytes, the highest bit first.
struct PackedBits<'a> {
    stream: &'a mut Stream,
    byte: u8,
    left: u32,
}

impl<'a> PackedBits<'a> {
    fn new(stream: &'a mut Stream) -> Self {
        Self {
            stream,
            byte: 0,
            left: 0,
        }
    }

    fn next(&mut self, width: u32) -> Result<u64, FormatError> {
        let mut value = 0u64;
        let mut wanted = width;
        while wanted > 0 {
            if self.left == 0 {
                self.byte = self.stream.byte()?;
                self.left = 8;
            }
            let now = wanted.min(self.left);
            let bits = self.byte >> (self.left - now) & (low_bits(now) as u8);
            value = value << now | u64::from(bits);
            self.left -= now;
            wanted -= now;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn decode(bytes: &[u8], version: Version, signed: bool, count: usize) -> Vec<i64> {
        let stream = Stream::new(Bytes::copy_from_slice(bytes), None);
        let mut runs = IntegerRuns::new(stream, version, signed);
        (0..count).map(|_| runs.next().expect("a value")).collect()
    }

    /// The examples of the specification, each with its own answer.
    #[test]
    fn the_specification_s_examples() {
        let v1 = |bytes: &[u8], n| decode(bytes, Version::V1, false, n);
        assert_eq!(v1(&[0x61, 0x00, 0x07], 100), vec![7; 100]);
        let down: Vec<i64> = (1..=100).rev().collect();
        assert_eq!(v1(&[0x61, 0xff, 0x64], 100), down);
        assert_eq!(
            v1(&[0xfb, 0x02, 0x03, 0x06, 0x07, 0x0b], 5),
            [2, 3, 6, 7, 11]
        );

        let v2 = |bytes: &[u8], n| decode(bytes, Version::V2, false, n);
        assert_eq!(v2(&[0x0a, 0x27, 0x10], 5), [10_000; 5]);
        let direct = [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
        assert_eq!(v2(&direct, 4), [23713, 43806, 57005, 48879]);
        let patched = [
            0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46,
            0x50, 0x5a, 0x64, 0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
        ];
        let expected = [
            2030, 2000, 2020, 1_000_000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120,
            2130, 2140, 2150, 2160, 2170, 2180, 2190,
        ];
        assert_eq!(v2(&patched, 20), expected);
        let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
        assert_eq!(v2(&delta, 10), [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
    }

    #[test]
    fn a_run_that_breaks_off_is_an_error() {
        for bytes in [&[0x5e, 0x03, 0x5c][..], &[0x8e, 0x13], &[0xc6], &[]] {
            let stream = Stream::new(Bytes::copy_from_slice(bytes), None);
            let mut runs = IntegerRuns::unsigned(stream, Version::V2);
            assert!(runs.next().is_err());
        }
    }
}
