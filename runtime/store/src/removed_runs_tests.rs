use super::{MARGIN_MS, RemovedRuns, erased_event, message_ids};
use pretty_assertions::assert_eq;
use redflow_contract::chat::{ChatItem, ChatSpeaker};
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeSummary;
use redflow_contract::stream::StreamEvent;
use serde_json::json;

fn person(id: &str) -> ChatItem {
    let (speaker, content) = (ChatSpeaker::User, id.to_owned());
    ChatItem { id: id.to_owned(), speaker, content, timestamp: 1, trace_id: None, iteration: None }
}

fn answer(run: &str) -> ChatItem {
    ChatItem { speaker: ChatSpeaker::Agent, trace_id: Some(run.into()), ..person(&format!("{run}-1")) }
}

/// One removed run, `mine`, that a message with these ids started.
fn removed(line: &serde_json::Value) -> RemovedRuns {
    let mut removed = RemovedRuns::default();
    let journal = format!("{{\"header\":1}}\n{line}\nother\n{{\"id\":\"too late\"}}\n");
    removed.add("mine".into(), 1_000_000, 2_000_000, journal.as_bytes());
    removed
}

#[test]
fn ids_are_found_in_the_message_that_starts_a_run() {
    let line =
        json!({"message": {"_msgid": "m \"1\"\n", "chatMessage": {"id": "c1", "type": "user"}}, "id": 7});
    assert_eq!(message_ids(&line.to_string()), ["m \"1\"\n", "c1"]);
    let removed = removed(&line);
    for (id, is_mine) in [("c1", true), ("m \"1\"\n", true), ("too late", false), ("c2", false)] {
        assert_eq!(removed.has_item(&person(id)), is_mine, "{id}");
    }
}

#[test]
fn the_items_of_a_chat_are_chosen_by_their_run() {
    let known = removed(&json!({"_msgid": "q2"}));
    // The question is known, so the one of another person right before the answer stays.
    let items = [person("q1"), answer("other"), person("q2"), person("q3"), answer("mine"), answer("mine")];
    assert_eq!(known.select_items(&items), [false, false, true, false, true, true]);
    // The question is not known: those right before the first answer.
    let unknown = removed(&json!({}));
    assert_eq!(unknown.select_items(&items), [false, false, true, true, true, true]);
    let later = [person("q1"), answer("mine"), person("q2"), answer("mine")];
    assert_eq!(unknown.select_items(&later), [true, true, false, true]);
    assert_eq!(unknown.select_items(&[person("q1"), answer("other")]), [false, false]);
    // A question that starts a run that stays is not taken for it.
    let mut unknown = unknown;
    let chat = ["q2", "q3"].map(str::to_owned).into();
    unknown.keep_messages(format!("{}\n", json!({"_msgid": "q3", "id": "no item"})).as_bytes(), &chat);
    assert_eq!(unknown.select_items(&items), [false, false, true, false, true, true]);
}

#[test]
fn free_text_of_the_flow_is_chosen_by_its_time() {
    let removed = removed(&json!({}));
    let node = NodeSummary { id: "d".into(), type_name: "debug".into(), name: String::new() };
    let debug = |at| {
        let (node, property, value) = (node.clone(), "payload".to_owned(), json!("words"));
        StreamEvent::Flow { at, event: FlowEvent::Debug { node, property, value } }
    };
    for (at, is_near) in [
        (1_000_000 - MARGIN_MS - 1, false),
        (1_000_000 - MARGIN_MS, true),
        (1_500_000, true),
        (2_000_000 + MARGIN_MS, true),
        (2_000_000 + MARGIN_MS + 1, false),
    ] {
        assert_eq!(removed.has_event(&debug(at)), is_near, "{at}");
    }
    // Events without free text stay, whenever they happened.
    let deployed = FlowEvent::Deployed { revision: "r".into(), agents: 1, refused: 0, instance: None };
    assert!(!removed.has_event(&StreamEvent::Flow { at: 1_500_000, event: deployed }));
    let erased = serde_json::to_value(erased_event(&debug(5))).unwrap();
    assert_eq!(erased, json!({"kind": "flow", "at": 5, "event": {"type": "erased"}}));
}
