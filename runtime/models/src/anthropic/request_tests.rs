use super::{AnthropicMessages, NAME};
use crate::samples::{
    Sample, call, calling, check_golden, first, first_by_schema, later, model, of, offered, recalled, result,
    system, thinking, thoughtful_turn, tool, tool_turn, user,
};
use pretty_assertions::assert_eq;
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

fn wire() -> AnthropicMessages {
    AnthropicMessages {
        model: "claude-sonnet-5".to_owned(),
        max_tokens: 1000,
        ..AnthropicMessages::default()
    }
}

fn thought() -> [Value; 2] {
    [
        json!({"type": "thinking", "thinking": "Two calls.", "signature": "c2ln"}),
        json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
    ]
}

#[test]
fn requests_are_as_they_were() {
    let limited =
        AnthropicMessages { stop: vec!["END".to_owned(), "STOP".to_owned()], effort: Some("high"), ..wire() };
    // Only the API's version of 2023 takes these.
    let sampled =
        AnthropicMessages { temperature: Some(0.7), top_p: Some(0.9), top_k: Some(40), ..limited.clone() };
    let thinks = AnthropicMessages { max_tokens: 8192, thinking_budget: Some(2048), ..wire() };
    let cases = [
        ("first", wire(), first()),
        ("first-schema", wire(), first_by_schema()),
        ("later", wire(), later()),
        ("recalled", wire(), recalled()),
        ("tools", wire(), offered()),
        ("tool-turn", wire(), tool_turn()),
        ("options", limited, first_by_schema()),
        ("sampling-2023-06-01", sampled, first_by_schema()),
        ("stream", wire(), Sample { stream: true, ..first() }),
        ("thinking", thinks, thoughtful_turn(NAME, &thought())),
    ];
    for (name, wire, sample) in cases {
        check_golden(&format!("anthropic-{name}"), &wire, &sample);
    }
}

#[test]
fn conversations_become_turns_that_alternate() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let cases = [
        ("none at all", of([]), json!([{"role": "user", "content": "…"}])),
        ("only rules", of([system("Be good.")]), json!([{"role": "user", "content": "…"}])),
        (
            "the model first",
            of([model("a"), user("b")]),
            json!([
                {"role": "user", "content": "…"},
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": "b"},
            ]),
        ),
        (
            "neighbours",
            of([user("a"), user("b"), model("c"), model("d"), user("e")]),
            json!([
                {"role": "user", "content": [text("a"), text("b")]},
                {"role": "assistant", "content": [text("c"), text("d")]},
                {"role": "user", "content": "e"},
            ]),
        ),
        (
            "empty and blank texts",
            of([user("a"), user(""), model(" \n"), user("b")]),
            json!([
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "(empty)"},
                {"role": "user", "content": "b"},
            ]),
        ),
        (
            "rules in the midst",
            of([user("a"), system("Be good."), model("b"), user("c")]),
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
fn the_rules_are_apart_and_left_out_when_empty() {
    assert_eq!(of([system("Be good."), user("a")]).body(&wire())["system"], "Be good.");
    for sample in [of([user("a")]), of([system(" "), user("a")])] {
        assert_eq!(sample.body(&wire()).get("system"), None);
    }
}

/// The blocks of the turns after the first.
fn turns(sample: &Sample) -> Vec<Value> {
    let body = sample.body(&wire());
    body["messages"].as_array().unwrap().iter().skip(1).map(|turn| turn["content"].clone()).collect()
}

#[test]
fn results_come_first_in_the_order_of_the_calls() {
    let calls = [call("a", "x", "{}"), call("b", "y", "{}")];
    let sample = of([user("?"), calling("", &calls), result("b", "2"), user("And?"), result("a", "1")]);
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
    let sample = of([user("?"), calling("", &[call("a", "x", "{}")]), result("z", "0"), user("Go on.")]);
    let missing = json!([
        {"type": "tool_result", "tool_use_id": "a", "content": "(no result)", "is_error": true},
        {"type": "text", "text": "Go on."},
    ]);
    assert_eq!(turns(&sample)[1], missing);
    assert_eq!(turns(&of([user("?"), model("Hm."), result("z", "0")]))[1], "(empty)");
    // A result that says nothing is one all the same.
    let silent = of([user("?"), calling("", &[call("a", "x", "{}")]), result("a", "")]);
    assert_eq!(turns(&silent)[1], json!([{"type": "tool_result", "tool_use_id": "a"}]));
}

#[test]
fn failures_are_marked() {
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
        let sample = of([user("?"), calling("", &[call("a", "x", "{}")]), result("a", content)]);
        assert_eq!(turns(&sample)[1][0].get("is_error"), failed.then_some(&json!(true)), "{content}");
    }
}

#[test]
fn arguments_are_an_object() {
    let cases = [
        (r#" {"b": 1, "a": [1.0, 1e2]} "#, r#"{"b":1,"a":[1.0,100.0]}"#),
        ("", "{}"),
        ("{", "{}"),
        ("[1]", "{}"),
        ("null", "{}"),
        (r#""{}""#, "{}"),
    ];
    for (arguments, input) in cases {
        let sample = of([user("?"), calling("", &[call("a", "x", arguments)]), result("a", "1")]);
        assert_eq!(turns(&sample)[0][0]["input"].to_string(), input, "{arguments}");
    }
}

#[test]
fn ids_that_would_be_refused_are_replaced_by_their_place() {
    let turn = |id: &str| [calling("", &[call(id, "x", "{}")]), result(id, "1")];
    let first = [user("?")].into_iter();
    let sample =
        of(first.chain(["call_0", "call_0", "x.y:0", "", "toolu_A-1"].iter().flat_map(|id| turn(id))));
    let ids = |key: &str, skip: usize| -> Vec<Value> {
        turns(&sample).into_iter().skip(skip).step_by(2).map(|content| content[0][key].clone()).collect()
    };
    let expected = ["call_0", "call_at_3_0", "call_at_5_0", "call_at_7_0", "toolu_A-1"];
    assert_eq!(ids("id", 0), expected);
    assert_eq!(ids("tool_use_id", 1), expected);
    let twice = of([user("?"), calling("", &[call("a", "x", "{}"), call("a", "y", "{}")]), result("a", "1")]);
    assert_eq!(
        (&turns(&twice)[0][0]["id"], &turns(&twice)[0][1]["id"]),
        (&json!("a"), &json!("call_at_1_1"))
    );
}

#[test]
fn thoughts_go_back_to_their_own_wire_if_they_are_wanted() {
    let turn = |wire: &str, reasoning| {
        let message = thinking(wire, &thought(), model("Hm."));
        turns(&Sample { reasoning, ..of([user("?"), message, user("!")]) }).swap_remove(0)
    };
    let mut blocks = thought().to_vec();
    blocks.push(json!({"type": "text", "text": "Hm."}));
    assert_eq!(turn(NAME, true), Value::Array(blocks));
    assert_eq!(turn(NAME, false), "Hm.");
    assert_eq!(turn("openai-responses", true), "Hm.");
}

#[test]
fn tools_are_offered_with_a_choice() {
    let cases = [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "any"), (ToolChoice::None, "none")];
    for (choice, kind) in cases {
        assert_eq!(Sample { choice, ..offered() }.body(&wire())["tool_choice"], json!({"type": kind}));
    }
    let none = Sample { tools: vec![], choice: ToolChoice::Required, ..offered() }.body(&wire());
    assert_eq!((none.get("tools"), none.get("tool_choice")), (None, None));
    let schemas = [
        (None, json!({"type": "object"})),
        (Some(json!({})), json!({"type": "object"})),
        (Some(json!(true)), json!({"type": "object"})),
        (Some(json!({"required": ["a"]})), json!({"type": "object", "required": ["a"]})),
        (Some(json!({"type": "object", "title": "T"})), json!({"type": "object", "title": "T"})),
    ];
    for (schema, written) in schemas {
        let sample = Sample { tools: vec![tool("x", "", schema)], ..offered() };
        assert_eq!(sample.body(&wire())["tools"], json!([{"name": "x", "input_schema": written}]));
    }
}

#[test]
fn what_is_not_set_is_not_sent() {
    let body = of([user("a")]).body(&AnthropicMessages { effort: Some("low"), ..wire() });
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "max_tokens", "messages", "output_config"]);
    assert_eq!(body["output_config"], json!({"effort": "low"}));
}
