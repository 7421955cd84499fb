use super::{AnthropicMessages, NAME, Thinking, ThinkingDisplay};
use crate::samples::{
    Sample, assistant, assistant_calls, call, conversation, first_request, first_request_with_schema,
    request_with_memory, request_with_tools, second_request, system, tool, tool_result, tool_turn,
    tool_turn_with_reasoning, user, with_reasoning, with_strict,
};
use crate::wire::CacheLifetime;
use crate::wire::Reasoning::{self, Discard, Keep};
use crate::wire::Wire;
use pretty_assertions::assert_eq;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

fn wire() -> AnthropicMessages {
    AnthropicMessages {
        model: "claude-sonnet-5".to_owned(),
        max_tokens: 1000,
        ..AnthropicMessages::default()
    }
}

fn thinking_blocks() -> [Value; 2] {
    [
        json!({"type": "thinking", "thinking": "Two calls.", "signature": "c2ln"}),
        json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
    ]
}

#[test]
fn request_bodies_equal_their_golden_files() {
    let limited =
        AnthropicMessages { stop: vec!["END".to_owned(), "STOP".to_owned()], effort: Some("high"), ..wire() };
    // Only the API version of 2023 accepts these settings.
    let sampled =
        AnthropicMessages { temperature: Some(0.7), top_p: Some(0.9), top_k: Some(40), ..limited.clone() };
    let thinking =
        AnthropicMessages { max_tokens: 8192, thinking: Thinking::Enabled { budget: 2048 }, ..wire() };
    let cases = [
        ("first", wire(), first_request()),
        ("first-schema", wire(), first_request_with_schema()),
        ("later", wire(), second_request()),
        ("recalled", wire(), request_with_memory()),
        ("tools", wire(), request_with_tools()),
        ("tool-turn", wire(), tool_turn()),
        ("options", limited, first_request_with_schema()),
        ("sampling-2023-06-01", sampled, first_request_with_schema()),
        ("stream", wire(), Sample { stream: true, ..first_request() }),
        ("thinking", thinking, tool_turn_with_reasoning(NAME, &thinking_blocks())),
        ("cache-5m", wire(), Sample { cache: Some(CacheLifetime::FiveMinutes), ..tool_turn() }),
        ("cache-1h", wire(), Sample { cache: Some(CacheLifetime::OneHour), ..first_request() }),
        ("strict-tools", wire(), with_strict(request_with_tools())),
    ];
    for (name, wire, sample) in cases {
        sample.check_golden(&wire, &format!("anthropic-{name}"));
    }
}

#[test]
fn conversations_become_alternating_turns() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let cases = [
        ("no messages", conversation([]), json!([{"role": "user", "content": "…"}])),
        (
            "only a system message",
            conversation([system("Be good.")]),
            json!([{"role": "user", "content": "…"}]),
        ),
        (
            "the assistant first",
            conversation([assistant("a"), user("b")]),
            json!([
                {"role": "user", "content": "…"},
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": "b"},
            ]),
        ),
        (
            "adjacent messages",
            conversation([user("a"), user("b"), assistant("c"), assistant("d"), user("e")]),
            json!([
                {"role": "user", "content": [text("a"), text("b")]},
                {"role": "assistant", "content": [text("c"), text("d")]},
                {"role": "user", "content": "e"},
            ]),
        ),
        (
            "empty and blank texts",
            conversation([user("a"), user(""), assistant(" \n"), user("b")]),
            json!([
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "(empty)"},
                {"role": "user", "content": "b"},
            ]),
        ),
        (
            "a system message in the middle",
            conversation([user("a"), system("Be good."), assistant("b"), user("c")]),
            json!([
                {"role": "user", "content": [text("a"), text("Be good.")]},
                {"role": "assistant", "content": "b"},
                {"role": "user", "content": "c"},
            ]),
        ),
    ];
    for (name, sample, messages) in cases {
        assert_eq!(sample.body(&wire())["messages"], messages, "{name}");
    }
}

#[test]
fn the_system_message_is_separate_and_left_out_when_empty() {
    assert_eq!(conversation([system("Be good."), user("a")]).body(&wire())["system"], "Be good.");
    for sample in [conversation([user("a")]), conversation([system(" "), user("a")])] {
        assert_eq!(sample.body(&wire()).get("system"), None);
    }
}

/// The blocks of the turns after the first.
fn turns(sample: &Sample) -> Vec<Value> {
    let body = sample.body(&wire());
    body["messages"].as_array().unwrap().iter().skip(1).map(|turn| turn["content"].clone()).collect()
}

#[test]
fn results_come_first_in_the_order_of_their_calls() {
    let calls = [call("a", "x", "{}"), call("b", "y", "{}")];
    let sample = conversation([
        user("?"),
        assistant_calls("", &calls),
        tool_result("b", "2"),
        user("And?"),
        tool_result("a", "1"),
    ]);
    let expected = [
        json!([
            {"type": "tool_use", "id": "a", "name": "x", "input": {}},
            {"type": "tool_use", "id": "b", "name": "y", "input": {}},
        ]),
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": "1"},
            {"type": "tool_result", "tool_use_id": "b", "content": "2"},
            {"type": "text", "text": "And?"},
        ]),
    ];
    assert_eq!(turns(&sample), expected);
}

#[test]
fn every_call_has_a_result_and_every_result_a_call() {
    let sample = conversation([
        user("?"),
        assistant_calls("", &[call("a", "x", "{}")]),
        tool_result("z", "0"),
        user("Go on."),
    ]);
    let missing = json!([
        {"type": "tool_result", "tool_use_id": "a", "content": "(no result)", "is_error": true},
        {"type": "text", "text": "Go on."},
    ]);
    assert_eq!(turns(&sample)[1], missing);
    assert_eq!(turns(&conversation([user("?"), assistant("Hm."), tool_result("z", "0")]))[1], "(empty)");
    // An empty result is still a result.
    let empty = conversation([user("?"), assistant_calls("", &[call("a", "x", "{}")]), tool_result("a", "")]);
    assert_eq!(turns(&empty)[1], json!([{"type": "tool_result", "tool_use_id": "a"}]));
}

#[test]
fn failed_results_are_marked() {
    let cases = [
        (r#"{"success":false,"error":"no"}"#, true),
        (r#" {"error":"no","success":false}"#, true),
        (r#"{"success":true,"output":{"success":false}}"#, false),
        (r#"{"success":"false"}"#, false),
        (r#"{"output":1}"#, false),
        ("[false]", false),
        ("false", false),
        ("{", false),
        ("plain", false),
    ];
    for (content, failed) in cases {
        let sample = conversation([
            user("?"),
            assistant_calls("", &[call("a", "x", "{}")]),
            tool_result("a", content),
        ]);
        assert_eq!(turns(&sample)[1][0].get("is_error"), failed.then_some(&json!(true)), "{content}");
    }
}

#[test]
fn arguments_are_always_an_object() {
    let cases = [
        (r#" {"b": 1, "a": [1.0, 1e2]} "#, r#"{"b":1,"a":[1.0,100.0]}"#),
        ("", "{}"),
        ("{", "{}"),
        ("[1]", "{}"),
        ("null", "{}"),
        (r#""{}""#, "{}"),
    ];
    for (arguments, input) in cases {
        let sample = conversation([
            user("?"),
            assistant_calls("", &[call("a", "x", arguments)]),
            tool_result("a", "1"),
        ]);
        assert_eq!(turns(&sample)[0][0]["input"].to_string(), input, "{arguments}");
    }
}

#[test]
fn invalid_ids_are_replaced_by_the_position_of_the_call() {
    let turn = |id: &str| [assistant_calls("", &[call(id, "x", "{}")]), tool_result(id, "1")];
    let first = [user("?")].into_iter();
    let sample = conversation(
        first.chain(["call_0", "call_0", "x.y:0", "", "toolu_A-1"].iter().flat_map(|id| turn(id))),
    );
    let ids = |key: &str, skip: usize| -> Vec<Value> {
        turns(&sample).into_iter().skip(skip).step_by(2).map(|content| content[0][key].clone()).collect()
    };
    let expected = ["call_0", "call_at_3_0", "call_at_5_0", "call_at_7_0", "toolu_A-1"];
    assert_eq!(ids("id", 0), expected);
    assert_eq!(ids("tool_use_id", 1), expected);
    let twice = conversation([
        user("?"),
        assistant_calls("", &[call("a", "x", "{}"), call("a", "y", "{}")]),
        tool_result("a", "1"),
    ]);
    assert_eq!(
        (&turns(&twice)[0][0]["id"], &turns(&twice)[0][1]["id"]),
        (&json!("a"), &json!("call_at_1_1"))
    );
}

#[test]
fn sends_reasoning_back_only_to_its_own_wire_and_only_if_kept() {
    let turn = |wire: &str, reasoning| {
        let message = with_reasoning(wire, &thinking_blocks(), assistant("Hm."));
        turns(&Sample { reasoning, ..conversation([user("?"), message, user("!")]) }).swap_remove(0)
    };
    let mut blocks = thinking_blocks().to_vec();
    blocks.push(json!({"type": "text", "text": "Hm."}));
    assert_eq!(turn(NAME, Keep), Value::Array(blocks));
    assert_eq!(turn(NAME, Discard), "Hm.");
    assert_eq!(turn("openai-responses", Keep), "Hm.");
}

/// An answer as a stream brings it: its thoughts, texts and calls take turns.
fn interleaved() -> (Vec<Value>, ChatMessage) {
    let content = vec![
        json!({"type": "thinking", "thinking": "", "signature": "c2lnMQ=="}),
        json!({"type": "text", "text": "I look, "}),
        json!({"type": "tool_use", "id": "toolu_1", "name": "x", "input": {"b": 1.50, "a": "é"}, "caller": {"type": "direct"}}),
        json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
        json!({"type": "text", "text": "\n"}),
        json!({"type": "text", "text": "and again."}),
        json!({"type": "tool_use", "id": "toolu_2", "name": "y", "input": {}}),
    ];
    let body = json!({"type": "message", "content": content, "stop_reason": "tool_use"});
    let answer = wire().decode(body.to_string().as_bytes(), Keep).unwrap();
    let message =
        ChatMessage { reasoning: answer.reasoning, ..assistant_calls(&answer.text, &answer.tool_calls) };
    (content, message)
}

/// The blocks that a message of the model becomes.
fn sent_blocks(message: ChatMessage, reasoning: Reasoning) -> Value {
    let results = [tool_result("toolu_1", "1"), tool_result("toolu_2", "2")];
    let messages = [user("?"), message].into_iter().chain(results);
    turns(&Sample { reasoning, ..conversation(messages) }).swap_remove(0)
}

#[test]
fn blocks_go_back_as_they_came_through_several_rounds() {
    let (mut content, message) = interleaved();
    // The API refuses blank texts.
    content.remove(4);
    let mut messages = vec![user("?")];
    for round in 0..3 {
        let mut turn = message.clone();
        let part = |part: &mut Value| {
            part["id"] = json!(format!("toolu_{round}_{}", part["name"].as_str().unwrap()))
        };
        let opaque = turn.reasoning.as_mut().unwrap();
        opaque.parts.iter_mut().filter(|part| part["type"] == "tool_use").for_each(part);
        for call in &mut turn.tool_calls {
            call.id = format!("toolu_{round}_{}", call.name);
        }
        let results: Vec<_> = turn.tool_calls.iter().map(|call| tool_result(&call.id, "1")).collect();
        messages.push(turn);
        messages.extend(results);
    }
    let all = turns(&Sample { reasoning: Keep, ..conversation(messages) });
    for (round, blocks) in all.iter().step_by(2).enumerate() {
        let mut expected = content.clone();
        expected[2]["id"] = json!(format!("toolu_{round}_x"));
        expected[5]["id"] = json!(format!("toolu_{round}_y"));
        assert_eq!(blocks, &json!(expected));
    }
    assert_eq!(all.len(), 6);
}

#[test]
fn the_input_of_a_call_goes_back_as_the_model_wrote_it() {
    let written = r#"{"z": 1e2, "a":"\u00e9", "n": 12345678901234567890123.0}"#;
    let body = format!(
        r#"{{"content":[{{"type":"thinking","thinking":"","signature":"s"}},{{"type":"tool_use","id":"toolu_1","name":"x","input":{written}}}]}}"#
    );
    let answer = wire().decode(body.as_bytes(), Keep).unwrap();
    let message = ChatMessage { reasoning: answer.reasoning, ..assistant_calls("", &answer.tool_calls) };
    let sample =
        Sample { reasoning: Keep, ..conversation([user("?"), message, tool_result("toolu_1", "1")]) };
    let mut bytes = Vec::new();
    wire().encode(&sample.request(), &mut bytes).unwrap();
    let sent = String::from_utf8(bytes).unwrap();
    assert!(sent.contains(&format!(r#"[{{"type":"thinking","thinking":"","signature":"s"}},{{"type":"tool_use","id":"toolu_1","name":"x","input":{written}}}]"#)), "{sent}");
}

#[test]
fn a_message_that_was_changed_is_sent_without_its_thoughts() {
    let (_, message) = interleaved();
    let without =
        |message: &ChatMessage| sent_blocks(ChatMessage { reasoning: None, ..message.clone() }, Keep);
    assert_ne!(sent_blocks(message.clone(), Keep), without(&message));
    assert_eq!(sent_blocks(message.clone(), Discard), without(&message));
    let changes: [fn(&mut ChatMessage); 7] = [
        |message| message.content.push('!'),
        |message| message.content = message.content.replace("look", "see"),
        |message| drop(message.tool_calls.pop()),
        |message| message.tool_calls.swap(0, 1),
        |message| message.tool_calls[0].arguments = r#"{"b":2,"a":"é"}"#.to_owned(),
        |message| message.tool_calls[0].name = "z".to_owned(),
        |message| message.tool_calls[1].id = "toolu_9".to_owned(),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut changed = message.clone();
        change(&mut changed);
        assert_eq!(sent_blocks(changed.clone(), Keep), without(&changed), "{number}");
    }
}

#[test]
fn sends_how_the_model_thinks() {
    let adaptive = |display| Thinking::Adaptive { display };
    for (thinking, sent) in [
        (Thinking::Unset, None),
        (adaptive(None), Some(json!({"type": "adaptive"}))),
        (
            adaptive(Some(ThinkingDisplay::Summarized)),
            Some(json!({"type": "adaptive", "display": "summarized"})),
        ),
        (adaptive(Some(ThinkingDisplay::Omitted)), Some(json!({"type": "adaptive", "display": "omitted"}))),
        (Thinking::Enabled { budget: 1024 }, Some(json!({"type": "enabled", "budget_tokens": 1024}))),
        (Thinking::Disabled, Some(json!({"type": "disabled"}))),
    ] {
        let body = request_with_tools().body(&AnthropicMessages { thinking, ..wire() });
        assert_eq!(body.get("thinking"), sent.as_ref());
        let forced = if matches!(thinking, Thinking::Enabled { .. }) { "auto" } else { "any" };
        assert_eq!(body["tool_choice"]["type"], forced);
    }
}

#[test]
fn sends_tools_with_a_tool_choice() {
    let cases = [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "any"), (ToolChoice::None, "none")];
    for (tool_choice, kind) in cases {
        assert_eq!(
            Sample { tool_choice, ..request_with_tools() }.body(&wire())["tool_choice"],
            json!({"type": kind})
        );
    }
    // A thinking model cannot be forced to call a tool.
    let thinking =
        AnthropicMessages { thinking: Thinking::Enabled { budget: 1024 }, max_tokens: 2048, ..wire() };
    for (tool_choice, kind) in [(ToolChoice::Required, "auto"), (ToolChoice::None, "none")] {
        let body = Sample { tool_choice, ..request_with_tools() }.body(&thinking);
        assert_eq!(body["tool_choice"], json!({"type": kind}));
    }
    let none =
        Sample { tools: vec![], tool_choice: ToolChoice::Required, ..request_with_tools() }.body(&wire());
    assert_eq!((none.get("tools"), none.get("tool_choice")), (None, None));
    let schemas = [
        (None, json!({"type": "object"})),
        (Some(json!({})), json!({"type": "object"})),
        (Some(json!(true)), json!({"type": "object"})),
        (Some(json!({"required": ["a"]})), json!({"type": "object", "required": ["a"]})),
        (Some(json!({"type": "object", "title": "T"})), json!({"type": "object", "title": "T"})),
    ];
    for (schema, written) in schemas {
        let sample = Sample { tools: vec![tool("x", "", schema)], ..request_with_tools() };
        assert_eq!(sample.body(&wire())["tools"], json!([{"name": "x", "input_schema": written}]));
    }
}

#[test]
fn a_conversation_with_calls_has_tools_that_cannot_be_called() {
    let sample = Sample { tools: vec![], ..tool_turn() };
    let body = sample.body(&wire());
    let any = json!({"type": "object"});
    let expected =
        json!([{"name": "calculator", "input_schema": any}, {"name": "clock", "input_schema": any}]);
    assert_eq!(body["tools"], expected);
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    sample.check_golden(&wire(), "anthropic-called-tools");
}

#[test]
fn sends_only_the_settings_that_are_set() {
    let body = conversation([user("a")]).body(&AnthropicMessages { effort: Some("low"), ..wire() });
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "max_tokens", "messages", "output_config"]);
    assert_eq!(body["output_config"], json!({"effort": "low"}));
}
