use super::{Limits, OwnLimits, Size, turns_that_fit};
use pretty_assertions::assert_eq;
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};
use redflow_contract::id::NodeSummary;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_ports::NodeConfig;
use serde_json::Map;

const MANY: usize = usize::MAX;

fn size((messages, bytes): (usize, usize)) -> Size {
    Size { turns: 1, messages, bytes, tokens: bytes / 3 + 4 * messages }
}

fn limits(turns: usize, messages: usize, bytes: usize, tokens: usize) -> Limits {
    Limits(Size { turns, messages, bytes, tokens })
}

#[test]
fn the_newest_turns_within_the_limits_stay_complete() {
    // Oldest first.
    let rows: [(&[(usize, usize)], usize); 9] = [
        (&[], 0),
        (&[(2, 5)], 1),
        (&[(2, 5), (2, 5), (2, 5), (2, 5), (2, 5)], 5),
        (&[(2, 5), (2, 5), (2, 5), (2, 5), (2, 5), (2, 5)], 5),
        (&[(2, 5), (4, 5), (5, 5)], 2),    // 11 messages are one too many
        (&[(2, 5), (12, 5)], 1),           // over the limit, and kept as the newest
        (&[(1, 5), (12, 5), (2, 5)], 1),   // no turn is skipped to keep an older, shorter one
        (&[(1, 50), (1, 51), (1, 49)], 2), // 100 bytes exactly
        (&[(1, 1), (1, 200)], 1),
    ];
    for (oldest_first, expected) in rows {
        let newest_first = oldest_first.iter().rev().copied().map(size);
        assert_eq!(turns_that_fit(newest_first, limits(MANY, 10, 100, MANY)), expected, "{oldest_first:?}");
    }
    // Each turn has 2 messages, 6 bytes and 10 tokens.
    let newest_first = || [(2, 6); 9].into_iter().map(size);
    assert_eq!(turns_that_fit(newest_first(), limits(3, MANY, MANY, MANY)), 3);
    assert_eq!(turns_that_fit(newest_first(), limits(MANY, MANY, MANY, 39)), 3);
    assert_eq!(turns_that_fit(newest_first(), limits(MANY, MANY, MANY, 40)), 4);
    assert_eq!(turns_that_fit(newest_first(), limits(2, 6, 24, 50)), 2, "all limits hold");
    assert_eq!(turns_that_fit(newest_first(), limits(1, 1, 1, 1)), 1);
}

#[test]
fn a_node_without_limits_gets_the_defaults() {
    let node = NodeSummary { id: "m".into(), type_name: "buffer-memory".to_owned(), name: String::new() };
    let props = Map::new();
    let node = NodeConfig::new(&node, &props, &|_| None, &|_| ());
    let of = |own| Limits::for_node(&node, own, 10);
    assert_eq!(of(OwnLimits::default()), Ok(limits(MANY, 10, 2 * 1024 * 1024, MANY)));
    let all = OwnLimits { messages: Some(3), bytes: Some(4), turns: Some(5), tokens: Some(6) };
    assert_eq!(of(all), Ok(limits(5, 3, 4, 6)));
    let bytes = |bytes| of(OwnLimits { bytes: Some(bytes), ..OwnLimits::default() });
    assert_eq!(bytes(4_194_304), Ok(limits(MANY, 10, 4_194_304, MANY)));
    assert_eq!(bytes(4_194_305), Err(node.error("its maxBytes is 4194305; the limit is 4194304")));
    assert_eq!(limits(5, 3, 4, 6).without_filter(), limits(MANY, 1_000, 4, MANY));
    assert_eq!(limits(5, 2_000, 4, 6).without_filter(), limits(MANY, 2_000, 4, MANY));
}

#[test]
fn the_estimate_of_tokens_is_close_to_what_providers_count() {
    let messages = |texts: &[&str]| -> usize {
        texts.iter().map(|text| ChatMessage::new(ChatRole::User, *text).tokens()).sum()
    };
    // Six messages whose prompt tokens OpenAI publishes as the answer of its API: 129 with gpt-4, 124 with gpt-4o.
    let english = messages(&[
        "You are a helpful, pattern-following assistant that translates corporate jargon into plain English.",
        "New synergies will help drive top-line growth.",
        "Things working well together will increase revenue.",
        "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
        "Let's talk later when we're less busy about how to do better.",
        "This late pivot means we don't have time to boil the ocean for the client deliverable.",
    ]);
    assert!((129 * 8 / 10..=129 * 2).contains(&english), "{english}");
    // The greeting for which OpenAI publishes the tokens of the text alone, with the tokenizers of gpt-4 and gpt-4o.
    let rows = [
        ("Hello, my name is GPT-4o. I'm a new type of language model, it's nice to meet you!", 27, 24),
        ("你好,我的名字是GPT-4o。我是一种新型的语言模型,很高兴见到你!", 34, 24),
        ("こんにちわ、私の名前はGPT−4oです。私は新しいタイプの言語モデルです、初めまして", 37, 26),
        (
            "안녕하세요, 제 이름은 GPT-4o입니다. 저는 새로운 유형의 언어 모델입니다, 만나서 반갑습니다!",
            45,
            27,
        ),
    ];
    for (text, older, newer) in rows {
        let estimate = messages(&[text]) - 4;
        assert!(estimate * 10 >= older * 8, "{estimate} of {older}: {text}");
        assert!(estimate >= newer && estimate <= newer * 2, "{estimate} of {newer}: {text}");
    }
}

fn turns() -> impl Strategy<Value = Vec<Size>> {
    prop::collection::vec((1usize..8, 0usize..60).prop_map(size), 1..20)
}

proptest! {
    #[test]
    fn the_newest_turn_stays_and_as_many_others_as_fit(
        newest_first in turns(), most in (1usize..12, 1usize..30, 1usize..300, 1usize..200),
    ) {
        let limits = limits(most.0, most.1, most.2, most.3);
        let fits = |turns: &[Size]| {
            limits.allow(turns.iter().fold(Size::default(), |total, size| total + *size))
        };
        let keep = turns_that_fit(newest_first.iter().copied(), limits);
        prop_assert!(keep >= 1);
        prop_assert!(keep == 1 || fits(&newest_first[..keep]));
        prop_assert!(keep == newest_first.len() || !fits(&newest_first[..=keep]));
        // Trimming again changes nothing.
        prop_assert_eq!(turns_that_fit(newest_first[..keep].iter().copied(), limits), keep);
    }
}
