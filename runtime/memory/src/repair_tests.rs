use super::{is_complete, join_complete_turns, split_turns};
use pretty_assertions::assert_eq;
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use std::collections::HashMap;

/// `u`, `s` and `a` are a user, system or assistant message; `a1,2` has the calls 1 and 2; `t1` is the result
/// of call 1; `t` is a result without a call id.
fn message(word: &str) -> ChatMessage {
    let (role, ids) = word.split_at(1);
    let ids: Vec<&str> = ids.split(',').filter(|id| !id.is_empty()).collect();
    let call = |id: &&str| RequestedCall { id: (*id).into(), name: "x".into(), arguments: "{}".into() };
    match role {
        "u" => ChatMessage { tool_calls: ids.iter().map(call).collect(), ..text(ChatRole::User, word) },
        "s" => text(ChatRole::System, word),
        "a" => ChatMessage { tool_calls: ids.iter().map(call).collect(), ..text(ChatRole::Assistant, word) },
        _ => {
            ChatMessage { tool_call_id: ids.first().map(|id| (*id).to_owned()), ..text(ChatRole::Tool, word) }
        }
    }
}

fn text(role: ChatRole, content: &str) -> ChatMessage {
    ChatMessage::new(role, content)
}

fn messages(words: &str) -> Vec<ChatMessage> {
    words.split_whitespace().map(message).collect()
}

fn words(messages: &[ChatMessage]) -> String {
    messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_turn_is_complete_when_every_call_has_one_result() {
    for complete in [
        "",
        "u",
        "u a",
        "u a1 t1 a",
        "u a1,2 t2 t1 a",
        "u a1 t1 a2 t2 a",
        "u a1 t1",
        "a",
        "u a u a",
        "u a1,2 t1 t2 a3,4,5 t5 t3 t4 a",
    ] {
        assert!(is_complete(&messages(complete)), "{complete}");
    }
    let broken = [
        "u a1",                         // no result
        "u a1 a",                       // no result, and another message
        "u a1 u t1",                    // the result comes too late
        "u a1,2 t1 a",                  // one of two parallel results
        "u a1,2 t1 t2 a3,4 t4 a5 t5 a", // a result is missing in the middle
        "u a1,2 t1 t1 a",               // one result twice, the other missing
        "u a1,2 t1 t2 a2,3 t2 t3 a",    // a parallel call has the id of an earlier one
        "u a1 t1 t1",                   // two results
        "u a1,1 t1 t1",                 // the same call twice in one message
        "u a1 t1 a1 t1",                // the same call twice
        "u t1 a",                       // no call
        "t1 a",                         // no call, at the start
        "u t",                          // a result without a call id
        "u a1 t",                       // a result without a call id, while a call is open
        "u t1 a1",                      // the result before the call
        "u1 t1",                        // a call of a user
    ];
    for broken in broken {
        assert!(!is_complete(&messages(broken)), "{broken}");
    }
}

#[test]
fn a_flat_conversation_is_split_at_user_messages() {
    let rows: [(&str, &[&str]); 7] = [
        ("", &[]),
        ("s", &[]),
        ("u a u a", &["u a", "u a"]),
        ("s s u a1 t1 a u", &["u a1 t1 a", "u"]),
        ("t1 a u a", &["t1 a", "u a"]),
        ("a a", &["a a"]),
        ("u s a", &["u a"]),
    ];
    for (flat, expected) in rows {
        let turns: Vec<String> = split_turns(&messages(flat)).iter().map(|turn| words(turn)).collect();
        assert_eq!(turns, expected, "{flat}");
    }
}

#[test]
fn incomplete_turns_are_left_out_as_a_whole() {
    let turns = ["t9 a", "u a1,2 t1 a", "u a", "u a3 t3 a", "u a4"].map(messages);
    assert_eq!(words(&join_complete_turns(turns)), "u a u a3 t3 a");
}

fn any_messages() -> impl Strategy<Value = Vec<ChatMessage>> {
    let ids = prop::collection::vec(0u8..4, 0..3);
    let calls = ids.prop_map(|ids| {
        let ids: Vec<String> = ids.iter().map(u8::to_string).collect();
        format!("a{}", ids.join(","))
    });
    let word = prop_oneof![
        2 => prop::strategy::Just("u".to_owned()),
        1 => prop::strategy::Just("s".to_owned()),
        4 => calls,
        4 => (0u8..4).prop_map(|id| format!("t{id}")),
    ];
    prop::collection::vec(word.prop_map(|word| message(&word)), 0..24)
}

proptest! {
    /// Checks the rule in another way than the code does: it counts calls and results per turn, and their
    /// order.
    #[test]
    fn every_remaining_call_has_its_result(flat in any_messages()) {
        let turns = split_turns(&flat);
        let expected: usize = flat.iter().filter(|message| message.role != ChatRole::System).count();
        prop_assert_eq!(turns.iter().map(Vec::len).sum::<usize>(), expected);
        for turn in split_turns(&join_complete_turns(&turns)) {
            let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
            let mut called_at: HashMap<&str, usize> = HashMap::new();
            for (at, message) in turn.iter().enumerate() {
                for call in &message.tool_calls {
                    counts.entry(&call.id).or_default().0 += 1;
                    called_at.insert(&call.id, at);
                }
                if let Some(id) = message.tool_call_id.as_deref() {
                    counts.entry(id).or_default().1 += 1;
                    prop_assert!(called_at.get(id).is_some_and(|called_at| *called_at < at));
                    let between = &turn[called_at[id] + 1..at];
                    prop_assert!(between.iter().all(|message| message.role == ChatRole::Tool));
                }
            }
            prop_assert!(counts.values().all(|counts| *counts == (1, 1)), "{}", words(&turn));
        }
    }

    #[test]
    fn repairing_twice_changes_nothing(flat in any_messages()) {
        let once = join_complete_turns(split_turns(&flat));
        prop_assert_eq!(join_complete_turns(split_turns(&once)), once);
    }
}
