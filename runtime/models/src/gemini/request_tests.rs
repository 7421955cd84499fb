use super::{Gemini, NAME, NO_SIGNATURE};
use crate::samples::{
    Sample, assistant, assistant_calls, call, conversation, first_request, first_request_with_schema,
    request_with_memory, request_with_tools, second_request, system, tool, tool_result, tool_turn,
    tool_turn_with_reasoning, user, with_reasoning,
};
use crate::wire::Reasoning::{Discard, Keep};
use pretty_assertions::assert_eq;
use redflow_contract::transcript::{ChatMessage, Image, ImageType};
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

fn wire() -> Gemini {
    Gemini { model: "gemini-3.5-flash".to_owned(), needs_signatures: true, ..Gemini::default() }
}

/// The parts of the answer of [`tool_turn`], as the API sent them.
fn own_parts() -> [Value; 4] {
    [
        json!({"text": "Two calls.", "thought": true}),
        json!({"text": "I will look."}),
        json!({"functionCall": {"id": "fc_1", "name": "calculator", "args": {"expression": "1/0"}}, "thoughtSignature": "c2ln"}),
        json!({"functionCall": {"name": "clock", "args": {"zone": "UTC"}}}),
    ]
}

/// The same answer as a message, with the ids that the run gave the calls.
fn own_turn() -> Sample {
    let calls = [
        call("fc_1", "calculator", r#"{"expression":"1/0"}"#),
        call("call_7", "clock", r#"{"zone": "UTC"}"#),
    ];
    let answer = with_reasoning(NAME, &own_parts(), assistant_calls("I will look.", &calls));
    let failure = r#"{"success":false,"error":"Division by zero."}"#;
    let messages =
        [user("Look."), answer, tool_result("call_7", "12:00"), tool_result("fc_1", failure), user("And?")];
    Sample { reasoning: Keep, ..conversation(messages) }
}

fn image(mime: ImageType, data: &str) -> Image {
    Image { mime, data: data.into() }
}

fn with_images() -> ChatMessage {
    let images = vec![image(ImageType::Png, "aVZCTw=="), image(ImageType::Webp, "UklGRg==")];
    ChatMessage { images, ..user("What is this?") }
}

#[test]
fn request_bodies_equal_their_golden_files() {
    let options = Gemini {
        max_output_tokens: Some(8_192),
        temperature: Some(0.7),
        top_p: Some(0.9),
        top_k: Some(40),
        seed: Some(-7),
        stop: vec!["END".to_owned(), "STOP".to_owned()],
        thinking_level: Some("LOW"),
        ..wire()
    };
    let old = Gemini { model: "gemini-2.5-flash".to_owned(), needs_signatures: false, ..wire() };
    let foreign = json!({"type": "thinking", "thinking": "Two calls.", "signature": "c2ln"});
    for (name, wire, sample) in [
        ("first", wire(), first_request()),
        ("first-schema", wire(), first_request_with_schema()),
        ("later", wire(), second_request()),
        ("recalled", wire(), request_with_memory()),
        ("tools", wire(), request_with_tools()),
        ("tool-turn", wire(), tool_turn()),
        ("tool-turn-unsigned", old, tool_turn()),
        ("foreign-thinking", wire(), tool_turn_with_reasoning("anthropic-messages", &[foreign])),
        ("thinking", wire(), own_turn()),
        ("options", options, first_request_with_schema()),
        ("stream", wire(), Sample { stream: true, ..first_request() }),
    ] {
        sample.check_golden(&wire, &format!("gemini-{name}"));
    }
}

fn contents(sample: &Sample) -> Value {
    sample.body(&wire())["contents"].clone()
}

fn turn(role: &str, parts: &Value) -> Value {
    json!({"role": role, "parts": parts})
}

#[test]
fn conversations_become_alternating_turns() {
    let text = |text: &str| json!([{"text": text}]);
    for (name, sample, expected) in [
        ("no messages", conversation([]), json!([turn("user", &text("…"))])),
        ("only a system message", conversation([system("Be good.")]), json!([turn("user", &text("…"))])),
        (
            "the assistant first",
            conversation([assistant("a"), user("b")]),
            json!([turn("user", &text("…")), turn("model", &text("a")), turn("user", &text("b"))]),
        ),
        (
            "adjacent messages",
            conversation([user("a"), user("b"), assistant("c"), assistant("d"), user("e")]),
            json!([
                turn("user", &json!([{"text": "a"}, {"text": "b"}])),
                turn("model", &json!([{"text": "c"}, {"text": "d"}])),
                turn("user", &text("e")),
            ]),
        ),
        (
            "empty and blank texts",
            conversation([user("a"), user(""), assistant(" \n"), user("b")]),
            json!([turn("user", &text("a")), turn("model", &text("(empty)")), turn("user", &text("b"))]),
        ),
        (
            "a system message in the middle",
            conversation([user("a"), system("Be good."), assistant("b"), user("c")]),
            json!([
                turn("user", &json!([{"text": "a"}, {"text": "Be good."}])),
                turn("model", &text("b")),
                turn("user", &text("c")),
            ]),
        ),
    ] {
        assert_eq!(contents(&sample), expected, "{name}");
    }
}

#[test]
fn the_system_message_is_separate_and_left_out_when_empty() {
    let body = conversation([system("Be good."), user("a")]).body(&wire());
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "Be good."}]}));
    for sample in [conversation([user("a")]), conversation([system(" "), user("a")])] {
        assert_eq!(sample.body(&wire()).get("systemInstruction"), None);
    }
}

#[test]
fn images_come_before_their_text() {
    let data = |mime: &str, data: &str| json!({"inlineData": {"mimeType": mime, "data": data}});
    let expected =
        json!([data("image/png", "aVZCTw=="), data("image/webp", "UklGRg=="), {"text": "What is this?"}]);
    assert_eq!(contents(&conversation([with_images()])), json!([turn("user", &expected)]));
    let only = ChatMessage {
        images: vec![image(ImageType::Jpeg, "/9j/"), image(ImageType::Gif, "R0lG")],
        ..user("")
    };
    let expected = json!([data("image/jpeg", "/9j/"), data("image/gif", "R0lG")]);
    assert_eq!(contents(&conversation([only])), json!([turn("user", &expected)]));
}

#[test]
fn results_follow_their_calls_and_name_the_tools() {
    let calls = [
        call("a", "x", "{}"),
        call("b", "y", "not JSON"),
        call("c", "no such tool!", "[]"),
        call("", "z", "{}"),
    ];
    let results = [
        tool_result("b", r#" {"success": true} "#),
        tool_result("of nobody", "lost"),
        tool_result("a", "4"),
        tool_result("", "[1]"),
    ];
    let messages = [user("go"), assistant_calls("", &calls)].into_iter().chain(results).chain([user("more")]);
    let found = contents(&conversation(messages));
    assert_eq!(
        found[1]["parts"],
        json!([
            {"functionCall": {"id": "a", "name": "x", "args": {}}, "thoughtSignature": NO_SIGNATURE},
            {"functionCall": {"id": "b", "name": "y", "args": {}}},
            {"functionCall": {"id": "c", "name": "no_such_tool_", "args": {}}},
            {"functionCall": {"name": "z", "args": {}}},
        ])
    );
    assert_eq!(
        found[2]["parts"],
        json!([
            {"functionResponse": {"id": "a", "name": "x", "response": {"output": "4"}}},
            {"functionResponse": {"id": "b", "name": "y", "response": {"success": true}}},
            {"functionResponse": {"id": "c", "name": "no_such_tool_", "response": {"error": "(no result)"}}},
            {"functionResponse": {"name": "z", "response": {"output": "[1]"}}},
        ])
    );
    // Gemini 3 refuses a text or a picture in the turn of the results.
    assert_eq!(found[3], turn("user", &json!([{"text": "more"}])));
    assert_eq!(found.as_array().unwrap().len(), 4);
    // A model before Gemini 3 may not know the text.
    let old = Gemini { needs_signatures: false, ..wire() };
    assert!(!tool_turn().body(&old).to_string().contains(NO_SIGNATURE));
}

#[test]
fn parts_of_this_api_go_back_as_they_came() {
    let found = contents(&own_turn());
    assert_eq!(found[1], turn("model", &json!(own_parts())));
    // The second call came without an id, so its result has none, whatever id the run gave it.
    let failure = json!({"success": false, "error": "Division by zero."});
    assert_eq!(
        found[2]["parts"],
        json!([
            {"functionResponse": {"id": "fc_1", "name": "calculator", "response": failure}},
            {"functionResponse": {"name": "clock", "response": {"output": "12:00"}}},
        ])
    );
    assert_eq!(found[3], turn("user", &json!([{"text": "And?"}])));
    // An id that the run replaced, because an earlier call had it.
    let mut sample = own_turn();
    let answer = std::sync::Arc::make_mut(&mut sample.messages[1]);
    answer.tool_calls[0].id = "call_9".to_owned();
    sample.messages[3] = std::sync::Arc::new(tool_result("call_9", "{}"));
    let replaced = contents(&sample);
    assert_eq!(replaced[1], turn("model", &json!(own_parts())));
    assert_eq!(
        replaced[2]["parts"][0],
        json!({"functionResponse": {"id": "fc_1", "name": "calculator", "response": {}}})
    );
}

#[test]
fn parts_that_no_longer_fit_the_message_do_not_go_back() {
    let change = |change: fn(&mut ChatMessage)| {
        let mut sample = own_turn();
        change(std::sync::Arc::make_mut(&mut sample.messages[1]));
        contents(&sample)[1]["parts"].clone()
    };
    let calls = |ids: [&str; 2]| {
        [
            json!({"functionCall": {"id": ids[0], "name": "calculator", "args": {"expression": "1/0"}}, "thoughtSignature": NO_SIGNATURE}),
            json!({"functionCall": {"id": ids[1], "name": "clock", "args": {"zone": "UTC"}}}),
        ]
    };
    let [first, second] = calls(["fc_1", "call_7"]);
    for (name, found, expected) in [
        (
            "the text",
            change(|message| message.content = "[redacted]".to_owned()),
            json!([{"text": "[redacted]"}, first, second]),
        ),
        (
            "more text",
            change(|message| message.content.push('!')),
            json!([{"text": "I will look.!"}, first, second]),
        ),
        (
            "a call less",
            change(|message| drop(message.tool_calls.pop())),
            json!([{"text": "I will look."}, first]),
        ),
        (
            "the arguments of a call",
            change(|message| message.tool_calls[1].arguments = "{}".to_owned()),
            json!([{"text": "I will look."}, first, {"functionCall": {"id": "call_7", "name": "clock", "args": {}}}]),
        ),
        (
            "the tool of a call",
            change(|message| message.tool_calls[1].name = "watch".to_owned()),
            json!([{"text": "I will look."}, first, {"functionCall": {"id": "call_7", "name": "watch", "args": {"zone": "UTC"}}}]),
        ),
        (
            "no parts",
            change(|message| message.reasoning.as_mut().unwrap().parts.clear()),
            json!([{"text": "I will look."}, first, second]),
        ),
        (
            "another wire",
            change(|message| message.reasoning.as_mut().unwrap().wire = "ollama-chat".to_owned()),
            json!([{"text": "I will look."}, first, second]),
        ),
    ] {
        assert_eq!(found, expected, "{name}");
    }
    let discarded = Sample { reasoning: Discard, ..own_turn() };
    assert_eq!(contents(&discarded)[1]["parts"], json!([{"text": "I will look."}, first, second]));
    let result = &contents(&discarded)[2]["parts"][1];
    assert_eq!(
        *result,
        json!({"functionResponse": {"id": "call_7", "name": "clock", "response": {"output": "12:00"}}})
    );
}

#[test]
fn tools_and_the_choice_of_them() {
    for (choice, mode) in
        [(ToolChoice::Auto, "AUTO"), (ToolChoice::Required, "ANY"), (ToolChoice::None, "NONE")]
    {
        let body = Sample { tool_choice: choice, ..request_with_tools() }.body(&wire());
        assert_eq!(body["toolConfig"], json!({"functionCallingConfig": {"mode": mode}}));
        assert_eq!(body["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 2);
    }
    let none =
        Sample { tools: vec![], tool_choice: ToolChoice::Required, ..request_with_tools() }.body(&wire());
    assert_eq!((none.get("tools"), none.get("toolConfig")), (None, None));
    for (schema, written) in [
        (None, json!({"name": "x"})),
        (Some(json!({})), json!({"name": "x", "parametersJsonSchema": {"type": "object"}})),
        (Some(json!(true)), json!({"name": "x", "parametersJsonSchema": {"type": "object"}})),
        (
            Some(json!({"required": ["a"]})),
            json!({"name": "x", "parametersJsonSchema": {"type": "object", "required": ["a"]}}),
        ),
    ] {
        let sample = Sample { tools: vec![tool("x", "", schema)], ..request_with_tools() };
        assert_eq!(sample.body(&wire())["tools"], json!([{"functionDeclarations": [written]}]));
    }
}

#[test]
fn sends_only_the_settings_that_are_set() {
    let body = conversation([user("a")]).body(&wire());
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["contents"]);
    let body = conversation([user("a")]).body(&Gemini { thinking_level: Some("HIGH"), ..wire() });
    assert_eq!(body["generationConfig"], json!({"thinkingConfig": {"thinkingLevel": "HIGH"}}));
    let json = Sample { json: true, ..conversation([user("a")]) };
    assert_eq!(json.body(&wire())["generationConfig"], json!({"responseMimeType": "application/json"}));
}
