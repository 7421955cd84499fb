use super::{DIMENSIONS, HashEmbedder, MAX_BYTES, ln, vector_of};
use crate::recording::block_on;
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
use redflow_ports::{EmbedPurpose, Embedder as _};

fn similarity(a: &str, b: &str) -> f32 {
    vector_of(a).iter().zip(vector_of(b)).map(|(a, b)| a * b).sum()
}

#[test]
fn it_says_what_it_is_and_makes_a_vector_of_each_text() {
    let embedder = HashEmbedder::default();
    let info = embedder.info();
    assert_eq!((info.id.as_str(), info.dimensions), ("hash", 512));
    assert!(!info.finds_meaning && !info.is_cached);
    let texts: Vec<String> = (0..40).map(|number| format!("text {number}")).collect();
    let embedded = block_on(embedder.embed(&texts, EmbedPurpose::Query)).unwrap();
    assert_eq!((embedded.vectors.len(), embedded.tokens, embedded.cost), (40, 0, None));
    assert_eq!(embedded.vectors[39], vector_of("text 39"));
}

#[test]
fn texts_with_common_words_are_closer() {
    let query = "How long do I have for a refund?";
    let near = "A refund is possible for thirty days. How to get one: write to us.";
    let far = "Our office opens at nine every morning except on Sunday.";
    assert!(similarity(query, near) > similarity(query, far) + 0.1);
    // Case and punctuation do not count, forms of a word are similar, and the order counts a little.
    assert!((similarity("Refund, POLICY!", "refund policy") - 1.0).abs() < 1e-6);
    assert!(similarity("refunding", "refunded") > 0.2);
    assert!(similarity("bites dog man", "dog bites man") < 0.999);
    assert!(similarity("rückerstattung", "RÜCKERSTATTUNG") > 0.999);
    assert!(similarity("東京タワーの高さ", "東京タワー") > 0.1);
}

#[test]
fn the_vector_of_a_text_is_the_same_everywhere() {
    // A change of these numbers makes all collections of this embedder useless.
    let vector = vector_of("The refund policy: refund within 30 days.");
    let found: Vec<(usize, u32)> =
        vector.iter().enumerate().filter(|(_, x)| x.abs() > 0.26).map(|(i, x)| (i, x.to_bits())).collect();
    assert_eq!(found, FIXED);
}

const FIXED: [(usize, u32); 6] = [
    (31, 0x3e96_7ee3),
    (115, 0x3e96_7ee3),
    (136, 0xbefe_cfb0),
    (190, 0x3e96_7ee3),
    (197, 0xbe96_7ee3),
    (455, 0x3e96_7ee3),
];

#[test]
fn only_the_first_64_kib_count_and_a_text_without_words_has_a_vector() {
    let long = "word ".repeat(MAX_BYTES / 5 + 1);
    assert_eq!(vector_of(&format!("{long}other")), vector_of(&long[..MAX_BYTES]));
    assert_eq!(vector_of("ä".repeat(MAX_BYTES).as_str()).len(), DIMENSIONS);
    assert_eq!(vector_of(" .,;!"), vector_of(""));
    assert_eq!(vector_of("")[0], 1.0);
}

#[test]
fn the_logarithm_is_right() {
    for number in [1, 2, 3, 7, 10, 1_000, 65_536, 123_457] {
        assert!((ln(number) - (number as f64).ln()).abs() < 1e-12, "{number}");
    }
}

proptest! {
    #[test]
    fn every_text_has_a_vector_of_length_1(text in "\\PC{0,200}") {
        let vector = vector_of(&text);
        let length: f32 = vector.iter().map(|x| x * x).sum();
        prop_assert!((length - 1.0).abs() < 1e-4, "{}", length);
        prop_assert_eq!(vector, vector_of(&text));
    }

    #[test]
    fn common_words_bring_texts_together(
        mut words in prop::collection::btree_set("[a-m]{4,9}", 5..9),
        others in prop::collection::btree_set("[n-z]{4,9}", 5..9),
    ) {
        let join = |words: &std::collections::BTreeSet<String>| {
            words.iter().cloned().collect::<Vec<_>>().join(" ")
        };
        let (whole, other) = (join(&words), join(&others));
        words.pop_first();
        prop_assert!(similarity(&whole, &join(&words)) > similarity(&whole, &other));
    }
}
