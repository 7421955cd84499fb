use super::{cut, is_whole, join};
use pretty_assertions::assert_eq;
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use std::collections::HashMap;

/// `u`, `s` and `a` speak; `a1,2` asks for the calls 1 and 2; `t1` answers the call 1; `t` answers none.
fn message(word: &str) -> ChatMessage {
    let (who, ids) = word.split_at(1);
    let ids: Vec<&str> = ids.split(',').filter(|id| !id.is_empty()).collect();
    let call = |id: &&str| RequestedCall { id: (*id).into(), name: "x".into(), arguments: "{}".into() };
    match who {
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
fn a_turn_is_whole_when_every_call_has_its_one_result() {
    for whole in ["", "u", "u a", "u a1 t1 a", "u a1,2 t2 t1 a", "u a1 t1 a2 t2 a", "u a1 t1", "a", "u a u a"]
    {
        assert!(is_whole(&messages(whole)), "{whole}");
    }
    let broken = [
        "u a1",          // never answered
        "u a1 a",        // never answered, and gone on
        "u a1 u t1",     // answered too late
        "u a1,2 t1 a",   // half of a parallel group
        "u a1 t1 t1",    // answered twice
        "u a1,1 t1 t1",  // asked twice at once
        "u a1 t1 a1 t1", // asked twice
        "u t1 a",        // nobody asked
        "t1 a",          // nobody asked, at the start
        "u t",           // answers nothing
        "u a1 t",        // answers nothing, while something is open
        "u t1 a1",       // answered before it was asked
        "u1 t1",         // only a model asks
    ];
    for broken in broken {
        assert!(!is_whole(&messages(broken)), "{broken}");
    }
}

#[test]
fn a_flat_conversation_is_cut_at_user_messages() {
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
        let turns: Vec<String> = cut(&messages(flat)).iter().map(|turn| words(turn)).collect();
        assert_eq!(turns, expected, "{flat}");
    }
}

#[test]
fn broken_turns_are_left_out_whole() {
    let turns = ["t9 a", "u a1,2 t1 a", "u a", "u a3 t3 a", "u a4"].map(messages);
    assert_eq!(words(&join(turns)), "u a u a3 t3 a");
}

fn any_messages() -> impl Strategy<Value = Vec<ChatMessage>> {
    let ids = prop::collection::vec(0u8..4, 0..3);
    let asks = ids.prop_map(|ids| {
        let ids: Vec<String> = ids.iter().map(u8::to_string).collect();
        format!("a{}", ids.join(","))
    });
    let word = prop_oneof![
        2 => prop::strategy::Just("u".to_owned()),
        1 => prop::strategy::Just("s".to_owned()),
        4 => asks,
        4 => (0u8..4).prop_map(|id| format!("t{id}")),
    ];
    prop::collection::vec(word.prop_map(|word| message(&word)), 0..24)
}

proptest! {
    /// Said in another way than the code does: count, per turn, what is asked and answered, and in which order.
    #[test]
    fn what_is_left_is_always_well_paired(flat in any_messages()) {
        let turns = cut(&flat);
        let expected: usize = flat.iter().filter(|message| message.role != ChatRole::System).count();
        prop_assert_eq!(turns.iter().map(Vec::len).sum::<usize>(), expected);
        for turn in cut(&join(&turns)) {
            let mut asked: HashMap<&str, (usize, usize)> = HashMap::new();
            let mut asked_at: HashMap<&str, usize> = HashMap::new();
            for (at, message) in turn.iter().enumerate() {
                for call in &message.tool_calls {
                    asked.entry(&call.id).or_default().0 += 1;
                    asked_at.insert(&call.id, at);
                }
                if let Some(id) = message.tool_call_id.as_deref() {
                    asked.entry(id).or_default().1 += 1;
                    prop_assert!(asked_at.get(id).is_some_and(|asked_at| *asked_at < at));
                    let between = &turn[asked_at[id] + 1..at];
                    prop_assert!(between.iter().all(|message| message.role == ChatRole::Tool));
                }
            }
            prop_assert!(asked.values().all(|counts| *counts == (1, 1)), "{}", words(&turn));
        }
    }

    #[test]
    fn mending_twice_changes_nothing(flat in any_messages()) {
        let once = join(cut(&flat));
        prop_assert_eq!(join(cut(&once)), once);
    }
}
