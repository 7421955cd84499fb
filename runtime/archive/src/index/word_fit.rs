//! How well a text fits a word: BM25 with the numbers that FTS5 has too. The length of a text is its bytes.

/// How soon further occurrences of a word count less.
const SATURATION: f32 = 1.2;
/// How much less a long text counts.
const LENGTH_WEIGHT: f32 = 0.75;
/// A word that half of the texts have counts hardly.
const LEAST_WEIGHT: f32 = 1e-6;

/// How much a word counts that some of all texts have.
pub(super) fn weight(texts: usize, with_word: usize) -> f32 {
    let without = texts.saturating_sub(with_word) as f32;
    ((without + 0.5) / (with_word as f32 + 0.5)).ln().max(LEAST_WEIGHT)
}

/// How well a text fits that has a word so many times. Its length is that of an average text times `length`.
pub(super) fn fit(times: u32, length: f32) -> f32 {
    let times = times as f32;
    times * (SATURATION + 1.0) / (times + SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length))
}

#[cfg(test)]
mod tests {
    use super::{LEAST_WEIGHT, fit, weight};
    use pretty_assertions::assert_eq;

    #[test]
    fn rare_words_count_more() {
        assert!(weight(1_000, 1) > weight(1_000, 10));
        assert!(weight(1_000, 10) > weight(1_000, 499));
        assert_eq!([weight(1_000, 500), weight(1_000, 1_000), weight(0, 1)], [LEAST_WEIGHT; 3]);
    }

    #[test]
    fn short_texts_with_many_occurrences_fit_best() {
        assert_eq!(fit(1, 1.0), 1.0);
        assert!(fit(2, 1.0) > fit(1, 1.0));
        assert!(fit(2, 1.0) - fit(1, 1.0) > fit(3, 1.0) - fit(2, 1.0), "each one counts less");
        assert!(fit(1, 0.5) > fit(1, 1.0) && fit(1, 2.0) < fit(1, 1.0));
        assert!(fit(u32::MAX, 0.0) <= 2.2);
    }
}
