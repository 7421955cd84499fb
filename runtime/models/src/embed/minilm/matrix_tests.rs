use super::{Panels, erf, exp, gelu, layer_norm, softmax};
use fearless_simd::Level;
use proptest::prelude::{prop_assert, proptest};

/// Numbers from -1 to 1 that look random.
fn number(seed: usize) -> f32 {
    let mixed = (seed as u64 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as f32 / (1 << 23) as f32 - 1.0
}

proptest! {
    #[test]
    fn products_are_right(rows in 0_usize..30, inner in 1_usize..50, columns in 1_usize..40, long in 0_usize..2) {
        let inner = inner + long * 380;
        let matrix: Vec<f32> = (0..rows * inner).map(number).collect();
        let other = |row: usize, column: usize| number(row * 7_919 + column);
        let panels = Panels::new(inner, columns, other);
        prop_assert!((panels.rows(), panels.columns()) == (inner, columns.next_multiple_of(16)));
        for level in [Level::new(), Level::baseline()] {
            let mut result = vec![0.5; rows * panels.columns()];
            panels.add_product(level, &matrix, &mut result);
            for row in 0..rows {
                for column in 0..panels.columns() {
                    let products = (0..inner).map(|k| f64::from(matrix[row * inner + k]) * f64::from(other(k, column)));
                    let expected = if column < columns { 0.5 + products.sum::<f64>() } else { 0.5 };
                    let found = f64::from(result[row * panels.columns() + column]);
                    prop_assert!((found - expected).abs() < 1e-4, "{} is not {}", found, expected);
                }
            }
        }
    }

    #[test]
    fn the_exponential_function_is_right(x in -86_f32..86.0) {
        let expected = f64::from(x).exp();
        prop_assert!((f64::from(exp(x)) / expected - 1.0).abs() < 5e-7, "{} {}", exp(x), expected);
    }
}

#[test]
fn functions_have_their_known_values() {
    assert_eq!((exp(0.0), exp(f32::NEG_INFINITY) < 1e-37, exp(1e9).is_finite()), (1.0, true, true));
    // From tables of the error function.
    for (x, expected) in [
        (0.0, 0.0),
        (0.1, 0.112_462_92),
        (0.5, 0.520_499_9),
        (1.0, 0.842_700_8),
        (2.0, 0.995_322_3),
        (9.0, 1.0),
    ] {
        assert!((erf(x) - expected).abs() < 3e-7, "{x}");
        assert!((erf(-x) + expected).abs() < 3e-7, "{x}");
    }
    let mut numbers = [-1.0, 0.0, 1.0, 3.0];
    gelu(Level::new(), &mut numbers);
    for (found, expected) in numbers.into_iter().zip([-0.158_655_25, 0.0, 0.841_344_7, 2.995_950_5]) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }
    let mut rows = [1.0, 2.0, 9.0, 1_000.0, 1_000.0, 9.0];
    softmax(Level::new(), &mut rows, 3, 2, 1.0);
    for (found, expected) in rows.into_iter().zip([0.268_941_43, 0.731_058_6, 0.0, 0.5, 0.5, 0.0]) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }
    let mut row = [1.0, 2.0, 3.0, 4.0];
    layer_norm(Level::new(), &mut row, &[1.0, 1.0, 2.0, 1.0], &[0.0, 0.0, 1.0, 0.0]);
    for (found, expected) in row.into_iter().zip([-1.341_640_8, -0.447_213_6, 1.894_427_2, 1.341_640_8]) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }
    let mut same = [5.0; 4];
    layer_norm(Level::new(), &mut same, &[1.0; 4], &[0.25; 4]);
    assert_eq!(same, [0.25; 4]);
}
