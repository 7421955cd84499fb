//! A model with the API of OpenAI. It refuses what OpenAI documents that it refuses about names of tools.

use redflow_testkit::http::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The most characters of a name.
const MAX_NAME: usize = 64;

/// The model, and the requests that it got.
pub(crate) struct StrictOpenAi {
    server: HttpServer,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl StrictOpenAi {
    /// A model that calls `tool`, and then answers with the result.
    pub(crate) async fn start(tool: &'static str, input: Value) -> Self {
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&requests);
        let respond = move |request: HttpRequest| {
            let body = request.json().unwrap();
            let answer = answer(&body, tool, &input);
            kept.lock().unwrap().push(body);
            async move { answer }
        };
        Self { server: HttpServer::start(respond).await.unwrap(), requests }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/v1")
    }

    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(request: &Value, tool: &str, input: &Value) -> Vec<u8> {
    let no_tools = Vec::new();
    let tools = request["tools"].as_array().unwrap_or(&no_tools);
    for (index, tool) in tools.iter().enumerate() {
        if let Some((reason, code)) = refusal(tool["function"]["name"].as_str().unwrap_or_default()) {
            let param = format!("tools[{index}].function.name");
            let message = format!("Invalid '{param}': {reason}");
            let error =
                json!({"message": message, "type": "invalid_request_error", "param": param, "code": code});
            return json_response(400, &[], &json!({ "error": error }));
        }
    }
    let messages = request["messages"].as_array().unwrap();
    let result = messages.iter().rev().find(|message| message["role"] == "tool");
    let (message, finish) = match result {
        Some(result) => {
            let text = format!("The tool says: {}", result["content"]);
            (json!({"role": "assistant", "content": text, "refusal": null}), "stop")
        }
        None => {
            let function = json!({"name": tool, "arguments": input.to_string()});
            let call = json!({"id": "call_1", "type": "function", "function": function});
            (
                json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": [call]}),
                "tool_calls",
            )
        }
    };
    let choice = json!({"index": 0, "message": message, "finish_reason": finish, "logprobs": null});
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12});
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000,
                      "model": request["model"], "choices": [choice], "usage": usage});
    json_response(200, &[], &body)
}

fn refusal(name: &str) -> Option<(String, &'static str)> {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || !name.bytes().all(is_taken) {
        let pattern =
            "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
        return Some((pattern.to_owned(), "invalid_value"));
    }
    (name.len() > MAX_NAME).then(|| {
        let length = name.len();
        let text = format!(
            "string too long. Expected a string with maximum length {MAX_NAME}, but got a string with length {length} \
             instead."
        );
        (text, "string_above_max_length")
    })
}

#[test]
fn refuses_names_as_openai_does() {
    let request = |name: &str| json!({"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": name}}]});
    let answer = |name: &str| String::from_utf8(answer(&request(name), "t", &json!({}))).unwrap();
    assert!(answer("agent__house").starts_with("HTTP/1.1 200"));
    let refused = answer("agent.house");
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    assert!(refused.contains(
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern \
         '^[a-zA-Z0-9_-]+$'."
    ));
    assert!(answer(&"x".repeat(65)).contains("maximum length 64, but got a string with length 65"));
}
