//! Taking times by hand.

use std::time::Instant;

/// What some work gives, and the microseconds it takes. Reading the clock is part of the figure.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let given = std::hint::black_box(work());
    let micros = began.elapsed().as_secs_f64() * 1e6;
    (given, micros)
}

/// The middle of some samples; the mean of the two in the middle if their number is even.
pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.as_slice() {
        [] => f64::NAN,
        sorted if sorted.len() % 2 == 1 => sorted[middle],
        sorted => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Microseconds of reading the clock twice around nothing.
pub(crate) fn overhead() -> f64 {
    median((0..10_001).map(|_| timed(|| ()).1).collect())
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(vec![4.0, 1.0, 2.0, 9.0]) - 3.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }
}
