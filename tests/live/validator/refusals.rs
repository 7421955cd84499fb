//! Tests that the validator refuses each kind of bad request, and accepts the good one.

use super::{Rules, problems_in, problems_of};
use redflow_testkit::HttpRequest;
use serde_json::{Value, json};

/// A body with another value at a place, or without it.
fn changed(body: &Value, at: &str, to: &Option<Value>) -> Value {
    let mut body = body.clone();
    let (parent, key) = at.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("no {at}"));
    match (parent, to) {
        (Value::Array(list), Some(value)) if key == "-" => list.push(value.clone()),
        (Value::Array(list), Some(value)) => list[key.parse::<usize>().unwrap()] = value.clone(),
        (Value::Array(list), None) => drop(list.remove(key.parse().unwrap())),
        (Value::Object(map), Some(value)) => drop(map.insert(key.to_owned(), value.clone())),
        (Value::Object(map), None) => drop(map.remove(key).unwrap_or_else(|| panic!("no {at}"))),
        _ => panic!("no {at}"),
    }
    body
}

type Row = (&'static str, Option<Value>, &'static str);

#[track_caller]
fn refuses(rules: Rules, good: Value, rows: Vec<Row>) {
    assert_eq!(problems_in(&rules, &good), [] as [String; 0], "{rules:?}: {good:#}");
    for (at, to, words) in rows {
        let problems = problems_in(&rules, &changed(&good, at, &to));
        assert!(problems.iter().any(|problem| problem.contains(words)), "{at} {to:?}: {words}: {problems:?}");
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"a": {"type": ["string", "null"]},
           "b": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/c"}, {"type": "null"}]}}},
           "required": ["a", "b"], "additionalProperties": false,
           "$defs": {"c": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}}})
}

fn schema_rows(at: &'static str) -> Vec<Row> {
    let place = |rest: &str| -> &'static str { format!("{at}{rest}").leak() };
    vec![
        (place("/type"), Some(json!("array")), "no object"),
        (place("/required"), Some(json!(["a"])), "not every property is required"),
        (place("/additionalProperties"), None, "more properties are allowed"),
        (place("/additionalProperties"), Some(json!(true)), "more properties are allowed"),
        (place("/properties/a/minLength"), Some(json!(1)), "minLength is outside the subset"),
        (place("/properties/a/type"), Some(json!("text")), "the type"),
        (place("/properties/a"), Some(json!({})), "takes anything"),
        (place("/properties/b/items"), None, "no items"),
        (place("/properties/b/items/anyOf/0/$ref"), Some(json!("#/$defs/d")), "leads nowhere"),
        (place("/$defs/c/additionalProperties"), None, "more properties are allowed"),
        (place("/oneOf"), Some(json!([])), "oneOf is outside the subset"),
    ]
}

#[test]
fn chat() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "4"});
    let assistant = json!({"role": "assistant", "content": "yes"});
    let good = json!({
        "model": "m", "temperature": 0.5, "max_completion_tokens": 5, "stream": true, "stop": ["a"],
        "stream_options": {"include_usage": true}, "tool_choice": "auto",
        "messages": [
            {"role": "system", "content": "rules"}, {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [call("1"), call("2")]},
            result("2"), result("1"), {"role": "assistant", "content": "so"}, {"role": "user", "content": "and?"},
        ],
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema(), "strict": true}},
    });
    let mut rows = vec![
        ("/model", None, "model is missing"),
        ("/max_tokens", Some(json!(5)), "two limits of tokens"),
        ("/prompt_cache_retention", Some(json!("1h")), "may not be"),
        ("/max_completion_tokens", Some(json!(0)), "may not be 0"),
        ("/top_k", Some(json!(5)), "top_k does not exist"),
        ("/temperature", Some(json!(2.5)), "may not be 2.5"),
        ("/temperature", Some(json!(null)), "may not be null"),
        ("/stream", Some(json!(false)), "stream_options without a stream"),
        ("/stop", Some(json!(["a", "b", "c", "d", "e"])), "one to four"),
        ("/stop", Some(json!([])), "one to four"),
        ("/messages", Some(json!([])), "may not be []"),
        ("/messages/1/role", Some(json!("system")), "not the first"),
        ("/messages/1/role", Some(json!("robot")), "the role"),
        ("/messages/1/content", Some(json!("")), "may not be"),
        ("/messages/1/content", Some(json!(["hi"])), "no object"),
        (
            "/messages/1/content",
            Some(json!([{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}])),
            "no data URL",
        ),
        (
            "/messages/1/content",
            Some(json!([{"type": "image_url", "image_url": {"url": "data:image/bmp;base64,AAAA"}}])),
            "the media type",
        ),
        ("/messages/1/name", Some(json!("Ada")), "name does not exist"),
        ("/messages/2/tool_calls", None, "may not be null"),
        ("/messages/2/tool_calls/1/id", Some(json!("1")), "the call 1 twice"),
        ("/messages/2/tool_calls/1/id", Some(json!("3")), "which no call waits for"),
        ("/messages/2/tool_calls/1/function/arguments", Some(json!({})), "may not be {}"),
        ("/messages/2/tool_calls/1/function/arguments", Some(json!("{")), "no object"),
        ("/messages/3", None, "have no result"),
        ("/messages/4/tool_call_id", Some(json!("2")), "which no call waits for"),
        ("/messages/5", Some(result("1")), "which no call waits for"),
        ("/messages/2", Some(assistant.clone()), "which no call waits for"),
        ("/messages/6", None, "the last is neither"),
        ("/messages/6", Some(assistant), "two assistants in a row"),
        ("/tools", None, "a choice without tools"),
        ("/tools/0/function/name", Some(json!("a b")), "the name"),
        ("/tools/0/function/strict", Some(json!(true)), "more properties are allowed"),
        ("/tools/0/name", Some(json!("t")), "name does not exist"),
        ("/tool_choice", Some(json!("any")), "may not be"),
        ("/response_format/type", Some(json!("schema")), "may not be"),
        ("/response_format", Some(json!({"type": "json_object"})), "no message names JSON"),
        ("/response_format/json_schema/strict", None, "not strict"),
        ("/response_format/json_schema/name", Some(json!("a b")), "the name"),
    ];
    rows.extend(schema_rows("/response_format/json_schema/schema"));
    refuses(Rules::Chat, good.clone(), rows);
    let nameless = changed(&good, "/model", &None);
    assert_eq!(problems_in(&Rules::ChatAtDeployment, &nameless), [] as [String; 0]);
}

#[test]
fn a_union_of_actions() {
    let branch = |input: Value| {
        json!({"type": "object", "required": ["action", "input"], "additionalProperties": false,
               "properties": {"action": {"type": "string", "enum": ["tool"]}, "input": input}})
    };
    let good = json!({
        "model": "m", "stream": false, "messages": [{"role": "user", "content": "hi"}],
        "format": {
            "anyOf": [
                branch(json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}})),
                branch(json!({"$ref": "#/$defs/t"})),
            ],
            "$defs": {"t": {"type": "object"}},
        },
    });
    let other_order = json!({"input": {"type": "object"}, "action": {"type": "string"}});
    let rows = vec![
        ("/format/type", Some(json!("object")), "type beside a union"),
        ("/format/anyOf/0/required", Some(json!(["action"])), "not every property is required"),
        ("/format/anyOf/0/additionalProperties", None, "more properties are allowed"),
        ("/format/anyOf/0/properties/input", Some(json!({"type": "array"})), "an input that is no object"),
        ("/format/anyOf/1/properties/input/$ref", Some(json!("#/$defs/u")), "an input that is no object"),
        ("/format/anyOf/0/properties", Some(other_order), "the action is not first"),
    ];
    refuses(Rules::Ollama, good, rows);
}

#[test]
fn responses() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"});
    let result = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "4"});
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"});
    let good = json!({
        "model": "m", "instructions": "rules", "max_output_tokens": 16, "store": false, "stream": true,
        "reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"], "tool_choice": "required",
        "input": [
            {"role": "user", "content": "hi"}, reasoning, {"role": "assistant", "content": "let me see"},
            call("1"), call("2"), result("2"), result("1"),
        ],
        "tools": [{"type": "function", "name": "t", "parameters": {"type": "object"}, "strict": false}],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": schema(), "strict": true}},
    });
    let mut rows = vec![
        ("/model", None, "model is missing"),
        ("/seed", Some(json!(5)), "seed does not exist"),
        ("/stop", Some(json!("a")), "stop does not exist"),
        ("/frequency_penalty", Some(json!(1)), "frequency_penalty does not exist"),
        ("/presence_penalty", Some(json!(1)), "presence_penalty does not exist"),
        ("/max_tokens", Some(json!(100)), "max_tokens does not exist"),
        ("/messages", Some(json!([])), "messages does not exist"),
        ("/response_format", Some(json!({})), "response_format does not exist"),
        ("/stream_options", Some(json!({})), "stream_options does not exist"),
        ("/max_output_tokens", Some(json!(15)), "may not be 15"),
        ("/reasoning/effort", Some(json!("hard")), "may not be"),
        ("/input/0/role", Some(json!("tool")), "the role"),
        ("/input/0/content", Some(json!("")), "may not be"),
        (
            "/input/0/content",
            Some(json!([{"type": "input_image", "image_url": "data:image/png;base64,A"}])),
            "no Base64",
        ),
        ("/input/0/content", Some(json!([{"type": "text", "text": "hi"}])), "may not be"),
        ("/input/0/type", Some(json!("text")), "the item"),
        ("/input/1/encrypted_content", None, "does not keep"),
        ("/input/2", Some(json!({"role": "user", "content": "hi"})), "without what it led to"),
        ("/input/-", Some(reasoning), "without what it led to"),
        ("/input/4/call_id", Some(json!("1")), "the call 1 twice"),
        ("/input/4/arguments", Some(json!({})), "may not be {}"),
        ("/input/5", None, "have no result"),
        ("/input/6/call_id", Some(json!("3")), "which no call waits for"),
        ("/input/-", Some(json!({"role": "assistant", "content": "4"})), "the last is neither"),
        ("/input/-", Some(json!({"role": "system", "content": "more"})), "not the first"),
        ("/tools/0/strict", None, "strict is missing"),
        ("/tools/0/function", Some(json!({})), "function does not exist"),
        ("/tools", None, "a choice without tools"),
        ("/text/format/json_schema", Some(json!({})), "json_schema does not exist"),
        ("/text/format", Some(json!({"type": "json_object"})), "no message names JSON"),
        ("/text/format/type", Some(json!("json")), "the type"),
    ];
    rows.extend(schema_rows("/text/format/schema"));
    refuses(Rules::Responses, good, rows);
}

#[test]
fn anthropic() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "4"});
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let user = json!({"role": "user", "content": "more"});
    let good = json!({
        "model": "m", "max_tokens": 2048, "system": "rules", "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 1024}, "tool_choice": {"type": "auto"},
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [thought, {"type": "text", "text": "so"}, call("1"), call("2")]},
            {"role": "user", "content": [result("2"), result("1"), {"type": "text", "text": "well"}]},
        ],
        "tools": [{"name": "t", "input_schema": {"type": "object"}}],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema()}},
    });
    let rows = || {
        vec![
            ("/model", None, "model is missing"),
            ("/max_tokens", None, "max_tokens is missing"),
            ("/cache_control", Some(json!({"type": "ephemeral", "ttl": "2h"})), "may not be"),
            ("/messages/0/content", Some(json!([{"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "AAAA"}}])), "may not be"),
            ("/messages/0/content", Some(json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A"}}])), "no Base64"),
            ("/max_completion_tokens", Some(json!(5)), "max_completion_tokens does not exist"),
            ("/seed", Some(json!(5)), "seed does not exist"),
            ("/stop", Some(json!(["a"])), "stop does not exist"),
            ("/stop_sequences/0", Some(json!(" ")), "no text"),
            ("/system", Some(json!("")), "may not be"),
            ("/messages/0/role", Some(json!("system")), "the role"),
            ("/messages/0", None, "the first is not the user"),
            ("/messages/0/content", Some(json!(" ")), "empty"),
            ("/messages/0/content", Some(json!([])), "neither"),
            ("/messages/0/content", Some(json!([{"type": "text", "text": ""}])), "may not be"),
            ("/messages/1/content/0/signature", None, "signature is missing"),
            ("/messages/1/content/-", Some(thought.clone()), "a thought behind"),
            ("/messages/1/content/0/type", Some(json!("image")), "the block"),
            ("/messages/1/content/2/input", Some(json!("{}")), "may not be"),
            ("/messages/1/content/3/id", Some(json!("1")), "the call 1 twice"),
            ("/messages/2/content/0", None, "have no result"),
            ("/messages/2/content/-", Some(result("3")), "a result behind a text"),
            ("/messages/2/content/0/tool_use_id", Some(json!("3")), "which no call waits for"),
            ("/messages/2/content/0/type", Some(json!("function_call_output")), "does not exist"),
            ("/messages/1", Some(user.clone()), "which no call waits for"),
            ("/messages/-", Some(user.clone()), "two of the user in a row"),
            ("/messages/-", Some(json!({"role": "assistant", "content": "{"})), "the last is neither"),
            ("/thinking/budget_tokens", Some(json!(1023)), "may not be 1023"),
            ("/thinking/budget_tokens", Some(json!(2048)), "no room for the answer"),
            ("/thinking/budget_tokens", None, "a budget or none"),
            ("/tool_choice", Some(json!({"type": "any"})), "a forced tool while thinking"),
            ("/tool_choice", Some(json!("auto")), "may not be"),
            ("/tool_choice", Some(json!({"type": "required"})), "may not be"),
            ("/tools", None, "a choice without tools"),
            ("/tools/0/input_schema", None, "input_schema is missing"),
            ("/tools/0/function", Some(json!({})), "function does not exist"),
            ("/output_config/effort", Some(json!("none")), "may not be"),
            ("/output_config/format/strict", Some(json!(true)), "strict does not exist"),
            ("/output_config/format/type", Some(json!("json_object")), "may not be"),
            ("/response_format", Some(json!({})), "response_format does not exist"),
        ]
        .into_iter()
        .chain(schema_rows("/output_config/format/schema"))
        .collect::<Vec<Row>>()
    };
    let mut newer = rows();
    for sampling in ["/temperature", "/top_p", "/top_k"] {
        newer.push((sampling, Some(json!(1)), "was removed in 2026-10-21"));
    }
    refuses(Rules::Anthropic("2026-10-21".to_owned()), good.clone(), newer);
    let sampled = changed(&good, "/temperature", &Some(json!(1)));
    let mut older = rows();
    older.push(("/temperature", Some(json!(0.5)), "a temperature while thinking"));
    older.push(("/temperature", Some(json!(1.5)), "may not be 1.5"));
    refuses(Rules::Anthropic("2023-06-01".to_owned()), sampled, older);
    assert!(!problems_in(&Rules::Anthropic("2024-01-01".to_owned()), &good).is_empty());
}

#[test]
fn ollama() {
    let call = json!({"function": {"name": "t", "arguments": {}}});
    let result = json!({"role": "tool", "tool_name": "t", "content": "4"});
    let good = json!({
        "model": "m", "stream": false, "format": schema(), "options": {"num_predict": 5}, "keep_alive": "5m",
        "messages": [
            {"role": "system", "content": "rules"}, {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call, call]},
            result, result,
        ],
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
    });
    let mut rows = vec![
        ("/model", None, "model is missing"),
        ("/stream", None, "stream is missing"),
        ("/temperature", Some(json!(1)), "temperature does not exist"),
        ("/max_tokens", Some(json!(1)), "max_tokens does not exist"),
        ("/options/max_tokens", Some(json!(1)), "max_tokens does not exist"),
        ("/options/top_k", Some(json!(0)), "may not be 0"),
        ("/messages/1/role", Some(json!("system")), "not the first"),
        ("/messages/1/content", Some(json!(null)), "may not be null"),
        ("/messages/1/images", Some(json!(["data:image/png;base64,AAAA"])), "no Base64"),
        ("/messages/2/tool_calls/0/function/arguments", Some(json!("{}")), "may not be"),
        ("/messages/2/tool_calls/0/id", Some(json!("1")), "id does not exist"),
        ("/messages/2/tool_calls/0", None, "which no call waits for"),
        ("/messages/3", None, "have no result"),
        ("/messages/3/tool_name", Some(json!("u")), "which no call waits for"),
        ("/messages/3/tool_call_id", Some(json!("1")), "tool_call_id does not exist"),
        ("/messages/-", Some(json!({"role": "assistant", "content": "4"})), "the last is neither"),
        ("/format", Some(json!("text")), "the word"),
    ];
    rows.extend(schema_rows("/format"));
    refuses(Rules::Ollama, good, rows);
}

#[test]
fn gemini() {
    let call = |id: Option<&str>| match id {
        Some(id) => json!({"functionCall": {"id": id, "name": "t", "args": {}}, "thoughtSignature": "s"}),
        None => json!({"functionCall": {"name": "t", "args": {}}}),
    };
    let result = |id: Option<&str>| match id {
        Some(id) => json!({"functionResponse": {"id": id, "name": "t", "response": {"output": 4}}}),
        None => json!({"functionResponse": {"name": "t", "response": {}}}),
    };
    let user = json!({"role": "user", "parts": [{"text": "and?"}]});
    let model = json!({"role": "model", "parts": [{"text": "so"}]});
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let good = json!({
        "systemInstruction": {"parts": [{"text": "rules"}]},
        "contents": [
            {"role": "user", "parts": [image, {"text": "hi"}]},
            {"role": "model", "parts": [{"text": "hm", "thought": true}, call(Some("1")), call(None), {"text": "", "thoughtSignature": "s"}]},
            {"role": "user", "parts": [result(Some("1")), result(None)]},
            {"role": "user", "parts": [{"text": "go on"}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "t", "parametersJsonSchema": {"type": "object"}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {
            "temperature": 0.5, "maxOutputTokens": 5, "seed": 7, "stopSequences": ["a"],
            "responseMimeType": "application/json", "responseJsonSchema": schema(),
            "thinkingConfig": {"thinkingLevel": "LOW"},
        },
    });
    let mut rows = vec![
        ("/contents", None, "contents is missing"),
        ("/stream", Some(json!(true)), "stream does not exist"),
        ("/model", Some(json!("m")), "model does not exist"),
        ("/systemInstruction/parts/0/text", Some(json!("")), "may not be"),
        ("/contents/0/role", Some(json!("assistant")), "the role"),
        ("/contents/0/parts", Some(json!([])), "may not be []"),
        ("/contents/0/parts/1/text", Some(json!("")), "may not be"),
        ("/contents/0/parts/0/inlineData/mimeType", Some(json!("image/bmp")), "may not be"),
        ("/contents/0/parts/0/inlineData/data", None, "data is missing"),
        ("/contents/0/parts/0/inlineData/data", Some(json!("A")), "no Base64"),
        ("/contents/0", Some(model.clone()), "the first is not the user"),
        ("/contents/1/parts/1/functionCall/args", Some(json!("{}")), "may not be"),
        ("/contents/1/parts/1/functionCall/name", None, "name is missing"),
        ("/contents/1/parts/1/id", Some(json!("1")), "id does not exist"),
        ("/contents/1/parts/3/thoughtSignature", None, "may not be"),
        ("/contents/1/parts/1", None, "which no call waits for"),
        ("/contents/2/parts/0", None, "have no result"),
        ("/contents/2/parts/0/functionResponse/id", None, "which no call waits for"),
        ("/contents/2/parts/0/functionResponse/name", Some(json!("u")), "which no call waits for"),
        ("/contents/2/parts/0/functionResponse/response", Some(json!("4")), "may not be"),
        ("/contents/2/parts/-", Some(result(None)), "which no call waits for"),
        ("/contents/2/parts/-", Some(json!({"text": "so"})), "a text or a picture in the turn of results"),
        ("/contents/3/parts/-", Some(result(None)), "a result behind a text"),
        ("/contents/-", Some(user), "two of the user in a row"),
        ("/contents/-", Some(model), "the last is neither"),
        ("/tools", None, "a choice without tools"),
        ("/tools/0/functionDeclarations/0/parameters", Some(json!({})), "parameters does not exist"),
        ("/tools/0/functionDeclarations/0/name", Some(json!("a b")), "the name"),
        ("/toolConfig/functionCallingConfig/mode", Some(json!("REQUIRED")), "may not be"),
        ("/generationConfig/max_tokens", Some(json!(1)), "max_tokens does not exist"),
        ("/generationConfig/seed", Some(json!(4_294_967_296_i64)), "beyond 32 bits"),
        ("/generationConfig/stopSequences", Some(json!(["a", "b", "c", "d", "e", "f"])), "more than five"),
        ("/generationConfig/responseMimeType", None, "without its media type"),
        ("/generationConfig/thinkingConfig/thinkingLevel", Some(json!("low")), "may not be"),
    ];
    rows.extend(schema_rows("/generationConfig/responseJsonSchema"));
    refuses(Rules::Gemini, good, rows);
}

#[test]
fn refuses_wrong_methods_paths_and_headers() {
    let body = r#"{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}"#;
    let headers =
        [("content-type", "application/json"), ("anthropic-version", "2023-06-01"), ("x-api-key", "k")];
    let good = HttpRequest {
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        body: body.as_bytes().to_vec(),
    };
    assert_eq!(problems_of(&good), [] as [String; 0]);
    let at = |path: &str| HttpRequest { path: path.to_owned(), ..good.clone() };
    let headed = |name: &str, value: &str| {
        let mut request = good.clone();
        request.headers.insert(name.to_owned(), value.to_owned());
        request
    };
    for (bad, words) in [
        (HttpRequest { method: "PUT".to_owned(), ..good.clone() }, "instead of POST"),
        (at("/v1/complete"), "no address"),
        (at("/v1/messages?beta=true"), "the query"),
        (at("/openai/deployments/d/chat/completions"), "no api-version"),
        (at("/v1/chat/completions"), "keys in"),
        (at("/v1beta/models/m:generateContent"), "keys in"),
        (at("/v1beta/models/m:streamGenerateContent"), "a stream without alt=sse"),
        (at("/v1beta/models/m:generateContent?alt=sse"), "no address"),
        (headed("x-goog-api-key", "k"), "keys in"),
        (headed("authorization", "Bearer k"), "keys in"),
        (headed("api-key", "k"), "keys in"),
        (headed("content-type", "text/plain"), "content-type"),
        (headed("anthropic-version", ""), "there is no anthropic-version"),
        (headed("authorization", "k"), "no bearer token"),
    ] {
        let problems = problems_of(&bad);
        assert!(problems.iter().any(|problem| problem.contains(words)), "{words}: {problems:?}");
    }
}

#[test]
fn refuses_bad_requests_for_embeddings() {
    let good = json!({"model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 3});
    let rows = vec![
        ("/model", None, "model is missing"),
        ("/input", Some(json!([])), "not 1 to 2048 texts"),
        ("/input/1", Some(json!("")), "no text"),
        ("/encoding_format", Some(json!("text")), "may not be"),
        ("/dimensions", Some(json!(0)), "may not be"),
        ("/messages", Some(json!([])), "the key messages does not exist"),
    ];
    refuses(Rules::Embeddings, good, rows);
}
