//! Vectors, and their codes: a byte for each dimension, and the scale that they share.

use fearless_simd::{Level, dispatch};

/// The code of a vector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Code {
    pub(crate) scale: f32,
    pub(crate) data: Vec<i8>,
}

impl Code {
    pub(crate) fn of(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        if largest == 0.0 || !largest.is_finite() {
            return Self { scale: 0.0, data: vec![0; vector.len()] };
        }
        let scale = largest / 127.0;
        let data = vector.iter().map(|value| (value / scale).round() as i8).collect();
        Self { scale, data }
    }

    /// The bytes as they are stored.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.data.iter().map(|value| value.cast_unsigned()).collect()
    }

    pub(crate) fn from_bytes(scale: f32, bytes: &[u8]) -> Self {
        Self { scale, data: bytes.iter().map(|byte| byte.cast_signed()).collect() }
    }

    /// The scale and the bytes, as an encrypted archive stores them.
    pub(crate) fn bytes_with_scale(&self) -> Vec<u8> {
        [&self.scale.to_le_bytes(), &*self.bytes()].concat()
    }

    pub(crate) fn from_bytes_with_scale(bytes: &[u8]) -> Option<Self> {
        let (scale, bytes) = bytes.split_first_chunk()?;
        Some(Self::from_bytes(f32::from_le_bytes(*scale), bytes))
    }
}

/// A vector to search for.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) vector: Vec<f32>,
    pub(crate) code: Code,
}

impl Query {
    pub(crate) fn new(mut vector: Vec<f32>) -> Self {
        normalise(&mut vector);
        let code = Code::of(&vector);
        Self { vector, code }
    }
}

/// Gives the sum of the products of a code and each wanted one of many codes, with its place. It is compiled for
/// several kinds of processors, and the best one is chosen when it runs.
pub(super) fn scan(
    code: &[i8],
    codes: &[i8],
    is_wanted: impl Fn(usize) -> bool,
    mut found: impl FnMut(usize, i32),
) {
    // Wider bytes once, not for each row: the processor multiplies no smaller numbers.
    let code: Vec<i16> = code.iter().copied().map(i16::from).collect();
    dispatch!(Level::new(), _simd => for (at, other) in codes.chunks_exact(code.len()).enumerate() {
        if is_wanted(at) {
            found(at, dot(&code, other));
        }
    });
}

/// The sum of the products. The compiler makes many at once; of the forms that were measured, the plain one is the
/// fastest.
#[inline(always)]
fn dot(left: &[i16], right: &[i8]) -> i32 {
    left.iter().zip(right).map(|(left, right)| i32::from(*left) * i32::from(*right)).sum()
}

/// The cosine of the angle between two vectors of length 1.
pub(crate) fn cosine(left: &[f32], right: &[f32]) -> f32 {
    // Eight sums: one alone would have to be made in order.
    let mut sums = [0.0_f32; 8];
    let (left_parts, right_parts) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest: f32 = left_parts.remainder().iter().zip(right_parts.remainder()).map(|(l, r)| l * r).sum();
    for (left, right) in left_parts.zip(right_parts) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    (sums.iter().sum::<f32>() + rest).clamp(-1.0, 1.0)
}

/// Gives a vector the length 1. A vector of zeros, or with a value that is no number, becomes zeros.
pub(crate) fn normalise(vector: &mut [f32]) {
    let squares: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    let length = squares.sqrt();
    for value in vector {
        *value = if length > 0.0 && length.is_finite() { (f64::from(*value) / length) as f32 } else { 0.0 };
    }
}
