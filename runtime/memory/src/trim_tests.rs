use super::{Limits, Size, turns_that_fit};
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};
use redflow_contract::id::NodeSummary;
use redflow_ports::NodeConfig;
use serde_json::Map;

fn size((messages, bytes): (usize, usize)) -> Size {
    Size { messages, bytes }
}

#[test]
fn the_newest_turns_within_the_limits_stay_complete() {
    let limits = Limits { messages: 10, bytes: 100 };
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
        assert_eq!(turns_that_fit(newest_first, limits), expected, "{oldest_first:?}");
    }
}

#[test]
fn a_node_without_limits_gets_the_defaults() {
    let node = NodeSummary { id: "m".into(), type_name: "buffer-memory".to_owned(), name: String::new() };
    let node = NodeConfig { node: &node, props: &Map::new(), env: &|_| None, on_secret: &|_| () };
    let of = |messages, bytes| Limits::for_node(&node, messages, 10, bytes);
    assert_eq!(of(None, None), Ok(Limits { messages: 10, bytes: 2 * 1024 * 1024 }));
    assert_eq!(of(Some(3), Some(4)), Ok(Limits { messages: 3, bytes: 4 }));
    assert_eq!(of(None, Some(4_194_304)), Ok(Limits { messages: 10, bytes: 4_194_304 }));
    assert_eq!(of(None, Some(4_194_305)), Err(node.error("its maxBytes is 4194305; the limit is 4194304")));
}

fn turns() -> impl Strategy<Value = Vec<Size>> {
    prop::collection::vec((1usize..8, 0usize..60).prop_map(size), 1..20)
}

proptest! {
    #[test]
    fn the_newest_turn_stays_and_as_many_others_as_fit(
        newest_first in turns(), messages in 1usize..30, bytes in 1usize..300,
    ) {
        let limits = Limits { messages, bytes };
        let total = |turns: &[Size]| {
            let messages = turns.iter().map(|size| size.messages).sum::<usize>();
            (messages, turns.iter().map(|size| size.bytes).sum::<usize>())
        };
        let fits = |turns: &[Size]| total(turns).0 <= messages && total(turns).1 <= bytes;
        let keep = turns_that_fit(newest_first.iter().copied(), limits);
        prop_assert!(keep >= 1);
        prop_assert!(keep == 1 || fits(&newest_first[..keep]));
        prop_assert!(keep == newest_first.len() || !fits(&newest_first[..=keep]));
        // Trimming again changes nothing.
        prop_assert_eq!(turns_that_fit(newest_first[..keep].iter().copied(), limits), keep);
    }
}
