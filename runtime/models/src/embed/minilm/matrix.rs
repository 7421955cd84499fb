//! Products of matrices, and the functions of their numbers, as fast as the processor allows.
//!
//! Owns the order in which numbers lie in memory. Every function is compiled for several kinds of processors,
//! and the best one is chosen when it runs.

use fearless_simd::{Level, Simd, dispatch, f32x16, prelude::*};

/// The columns of a panel.
const LANES: usize = 16;
/// So many rows of the second matrix are used at once, because they fit into the fastest cache.
const DEPTH: usize = 384;

/// The second matrix of a product, in panels of 16 columns.
pub(super) struct Panels {
    /// Row by row within each panel.
    data: Vec<f32>,
    rows: usize,
    columns: usize,
}

impl Panels {
    /// The matrix of which a function tells the number in a row and a column. The number of columns is rounded
    /// up to a multiple of 16; the further ones are zeros.
    pub(super) fn new(rows: usize, columns: usize, number: impl Fn(usize, usize) -> f32) -> Self {
        let padded = columns.next_multiple_of(LANES);
        let mut data = Vec::with_capacity(rows * padded);
        for first in (0..columns).step_by(LANES) {
            for row in 0..rows {
                data.extend(
                    (first..first + LANES).map(
                        |column| {
                            if column < columns { number(row, column) } else { 0.0 }
                        },
                    ),
                );
            }
        }
        Self { data, rows, columns: padded }
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns, a multiple of 16.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Adds the product of a matrix and this one to a result. Both lie in memory row by row.
    pub(super) fn add_product(&self, level: Level, matrix: &[f32], result: &mut [f32]) {
        if self.rows > 0 && self.columns > 0 {
            dispatch!(level, simd => add_product(simd, self, matrix, result));
        }
    }
}

/// Uses as many registers as the processor has.
#[inline(always)]
fn add_product<S: Simd>(simd: S, panels: &Panels, matrix: &[f32], result: &mut [f32]) {
    match S::f32s::LEN {
        16 => add_blocks::<S, 12>(simd, panels, matrix, result),
        8 => add_blocks::<S, 6>(simd, panels, matrix, result),
        _ => add_blocks::<S, 3>(simd, panels, matrix, result),
    }
}

#[inline(always)]
fn add_blocks<S: Simd, const ROWS: usize>(simd: S, panels: &Panels, matrix: &[f32], result: &mut [f32]) {
    let (width, columns) = (panels.rows, panels.columns);
    let mut packed = Vec::new();
    for begin in (0..width).step_by(DEPTH) {
        let depth = DEPTH.min(width - begin);
        packed.clear();
        // Each block has some rows of the matrix, column by column. Missing rows are zeros.
        for rows in matrix.chunks(width * ROWS) {
            let block = packed.len();
            packed.resize(block + depth, [0.0_f32; ROWS]);
            for (row, numbers) in rows.chunks_exact(width).enumerate() {
                for (group, number) in packed[block..].iter_mut().zip(&numbers[begin..begin + depth]) {
                    group[row] = *number;
                }
            }
        }
        for (index, panel) in panels.data.chunks_exact(width * LANES).enumerate() {
            let (panel, _) = panel[begin * LANES..(begin + depth) * LANES].as_chunks::<LANES>();
            for (block, results) in packed.chunks_exact(depth).zip(result.chunks_mut(columns * ROWS)) {
                let sums = block_product(simd, block, panel);
                for (sum, row) in sums.iter().zip(results.chunks_exact_mut(columns)) {
                    let place = &mut row[index * LANES..][..LANES];
                    (f32x16::from_slice(simd, place) + *sum).store_slice(place);
                }
            }
        }
    }
}

#[inline(always)]
fn block_product<S: Simd, const ROWS: usize>(
    simd: S,
    block: &[[f32; ROWS]],
    panel: &[[f32; LANES]],
) -> [f32x16<S>; ROWS] {
    let mut sums = [f32x16::splat(simd, 0.0); ROWS];
    for (group, numbers) in block.iter().zip(panel) {
        let numbers = f32x16::from_slice(simd, numbers);
        for (sum, factor) in sums.iter_mut().zip(group) {
            *sum = numbers.mul_add(f32x16::splat(simd, *factor), *sum);
        }
    }
    sums
}

/// Replaces the first numbers of each row by their softmax, after a scale. The others become zeros.
pub(super) fn softmax(level: Level, rows: &mut [f32], width: usize, used: usize, scale: f32) {
    #[inline(always)]
    fn run<S: Simd>(_: S, rows: &mut [f32], width: usize, used: usize, scale: f32) {
        for row in rows.chunks_exact_mut(width) {
            let (row, rest) = row.split_at_mut(used);
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for x in row.iter_mut() {
                *x = exp((*x - largest) * scale);
            }
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
            rest.fill(0.0);
        }
    }
    dispatch!(level, simd => run(simd, rows, width, used, scale));
}

/// Replaces each number by its GELU: the number times its share of a normal distribution.
pub(super) fn gelu(level: Level, numbers: &mut [f32]) {
    #[inline(always)]
    fn run<S: Simd>(_: S, numbers: &mut [f32]) {
        for x in numbers {
            *x = 0.5 * *x * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2));
        }
    }
    dispatch!(level, simd => run(simd, numbers));
}

/// Gives each row the mean 0 and the variance 1, then scales and shifts it.
pub(super) fn layer_norm(level: Level, rows: &mut [f32], scale: &[f32], shift: &[f32]) {
    #[inline(always)]
    fn run<S: Simd>(_: S, rows: &mut [f32], scale: &[f32], shift: &[f32]) {
        const LEAST: f64 = 1e-12;
        let count = scale.len() as f64;
        for row in rows.chunks_exact_mut(scale.len()) {
            let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
            let variance = row.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
            let (mean, factor) = (mean as f32, (1.0 / (variance + LEAST).sqrt()) as f32);
            for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
                *x = (*x - mean) * factor * scale + shift;
            }
        }
    }
    dispatch!(level, simd => run(simd, rows, scale, shift));
}

/// The exponential function, to seven digits. Without branches, so that several are computed at once.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding it rounds a small number to a whole one, which is then in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let whole = rounded - ROUND;
    let rest = x - whole * LN_2_HIGH - whole * LN_2_LOW;
    let series = 1.0 / 5_040.0;
    let series = series * rest + 1.0 / 720.0;
    let series = series * rest + 1.0 / 120.0;
    let series = series * rest + 1.0 / 24.0;
    let series = series * rest + 1.0 / 6.0;
    let series = series * rest + 0.5;
    let series = series * rest + 1.0;
    let series = series * rest + 1.0;
    f32::from_bits(series.to_bits().wrapping_add(rounded.to_bits() << 23))
}

/// The error function, with an error below 2e-7: formula 7.1.26 of Abramowitz and Stegun.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let positive = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * positive);
    let series = 1.061_405_4 * t - 1.453_152;
    let series = series * t + 1.421_413_7;
    let series = series * t - 0.284_496_74;
    let series = series * t + 0.254_829_6;
    (1.0 - series * t * exp(-positive * positive)).copysign(x)
}

#[cfg(test)]
#[path = "matrix_tests.rs"]
mod tests;
