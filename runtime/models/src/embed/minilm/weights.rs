//! Reads a file of weights in the format safetensors: a length, a JSON header, and numbers.
//!
//! Trusts nothing in the file: every length and position is checked before something is read.

use super::{WEIGHTS_FILE, invalid};
use redflow_ports::ArchiveError;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

/// The most bytes of the header.
const MAX_HEADER_BYTES: u64 = 256 * 1024;
/// The most bytes of the file.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// A file of weights, of which only the header is read.
pub(super) struct Weights<R> {
    source: R,
    tensors: HashMap<String, Tensor>,
    /// Where the numbers begin.
    start: u64,
    /// How many bytes they have.
    bytes: u64,
}

#[derive(Debug, Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl<R: Read + Seek> Weights<R> {
    /// Reads the header of a file with this many bytes.
    pub(super) fn open(source: R, bytes: u64) -> Result<Self, ArchiveError> {
        Self::read_header(source, bytes).ok_or_else(|| invalid(WEIGHTS_FILE))
    }

    fn read_header(mut source: R, bytes: u64) -> Option<Self> {
        if bytes > MAX_FILE_BYTES {
            return None;
        }
        let mut length = [0; 8];
        source.read_exact(&mut length).ok()?;
        let length = u64::from_le_bytes(length);
        let start = length.checked_add(8).filter(|start| length <= MAX_HEADER_BYTES && *start <= bytes)?;
        let mut header = vec![0; usize::try_from(length).ok()?];
        source.read_exact(&mut header).ok()?;
        let entries: HashMap<String, &RawValue> = serde_json::from_slice(&header).ok()?;
        let mut tensors = HashMap::with_capacity(entries.len());
        for (name, entry) in entries {
            if name != "__metadata__" {
                tensors.insert(name, serde_json::from_str(entry.get()).ok()?);
            }
        }
        let bytes = bytes - start;
        let is_inside = |tensor: &Tensor| tensor.data_offsets.is_sorted() && tensor.data_offsets[1] <= bytes;
        tensors.values().all(is_inside).then_some(Self { source, tensors, start, bytes })
    }

    /// Whether there is a tensor of this name and shape.
    pub(super) fn check(&self, name: &str, shape: &[usize]) -> Result<(), ArchiveError> {
        self.place(name, shape).map(drop).ok_or_else(|| invalid(WEIGHTS_FILE))
    }

    /// The numbers of a tensor, row by row.
    pub(super) fn read(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ArchiveError> {
        self.read_numbers(name, shape).ok_or_else(|| invalid(WEIGHTS_FILE))
    }

    fn read_numbers(&mut self, name: &str, shape: &[usize]) -> Option<Vec<f32>> {
        let (begin, bytes) = self.place(name, shape)?;
        self.source.seek(SeekFrom::Start(self.start + begin)).ok()?;
        let mut data = vec![0; usize::try_from(bytes).ok()?];
        self.source.read_exact(&mut data).ok()?;
        let (numbers, _) = data.as_chunks();
        let numbers: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        numbers.iter().all(|number| number.is_finite()).then_some(numbers)
    }

    /// Where a tensor begins among the numbers, and how many bytes it has.
    fn place(&self, name: &str, shape: &[usize]) -> Option<(u64, u64)> {
        let tensor = self.tensors.get(name)?;
        let [begin, end] = tensor.data_offsets;
        let shape = shape.iter().map(|size| *size as u64);
        let bytes = shape.clone().try_fold(4_u64, u64::checked_mul)?;
        let is_sound = tensor.dtype == "F32"
            && tensor.shape.iter().copied().eq(shape)
            && begin.checked_add(bytes) == Some(end)
            && end <= self.bytes;
        is_sound.then_some((begin, bytes))
    }
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
