//! The wires with sample answers, and models that use them.

use crate::scripted_server::{ScriptedServer, Step};
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_models::transport::{HttpSettings, ReqwestTransport, Transport};
use redflow_models::{ModelSettings, register};
use redflow_ports::{ActionSchemas, Adapters, AnswerKind, BuildError, ChatModel, ModelRequest, NodeConfig};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const KEY: &str = "sk-hidden-0123456789";

/// One of the wires, with samples of its answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wire {
    pub(crate) type_name: &'static str,
    pub(crate) api: &'static str,
    /// Its path below the address of the server.
    pub(crate) path: &'static str,
    /// A whole answer with the text `hi`.
    pub(crate) answer: &'static str,
    /// The same answer as the events of a stream.
    pub(crate) events: &'static [&'static str],
    /// An event that reports an error of the provider.
    pub(crate) failure: &'static str,
}

pub(crate) const CHAT: Wire = Wire {
    type_name: "openai-model",
    api: "chat",
    path: "/v1",
    answer: r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#,
    events: &[
        "data: {\"choices\":[{\"delta\":{\"content\":\"h\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"i\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    ],
    failure: "data: {\"error\":{\"message\":\"Overloaded\",\"code\":\"server_is_overloaded\"}}\n\n",
};

pub(crate) const RESPONSES: Wire = Wire {
    type_name: "openai-model",
    api: "responses",
    path: "/v1",
    answer: r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}"#,
    events: &[
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"h\"}\n\n",
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"i\"}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
    ],
    failure: "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\
              \"error\":{\"code\":\"server_error\",\"message\":\"Overloaded\"}}}\n\n",
};

pub(crate) const ANTHROPIC: Wire = Wire {
    type_name: "anthropic-model",
    api: "",
    path: "",
    answer: r#"{"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#,
    events: &[
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ],
    failure: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
};

pub(crate) const OLLAMA: Wire = Wire {
    type_name: "ollama-model",
    api: "",
    path: "",
    answer: r#"{"message":{"content":"hi"},"done":true}"#,
    events: &[
        "{\"message\":{\"content\":\"h\"},\"done\":false}\n",
        "{\"message\":{\"content\":\"i\"},\"done\":false}\n",
        "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
    ],
    failure: "{\"error\":\"Overloaded\"}\n",
};

pub(crate) const GEMINI: Wire = Wire {
    type_name: "google-model",
    api: "",
    path: "/v1beta",
    answer: r#"{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP"}]}"#,
    events: &[
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"h\"}]}}]}\r\n\r\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"i\"}]}}]}\r\n\r\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\",\"thoughtSignature\":\"c2ln\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n",
    ],
    failure: "data: {\"error\":{\"code\":503,\"message\":\"Overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n",
};

/// A test of every wire.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) stream: bool,
    pub(crate) script: fn(Wire) -> Vec<Step>,
}

pub(crate) fn whole(name: &'static str, script: fn(Wire) -> Vec<Step>) -> Case {
    Case { name, stream: false, script }
}

pub(crate) fn streamed(name: &'static str, script: fn(Wire) -> Vec<Step>) -> Case {
    Case { name, stream: true, script }
}

pub(crate) const WIRES: [Wire; 5] = [CHAT, RESPONSES, ANTHROPIC, OLLAMA, GEMINI];

/// One HTTP client per thread, because creating one is slow. The models of a process share one too.
fn client() -> Arc<dyn Transport> {
    thread_local! {
        static CLIENT: Arc<dyn Transport> =
            Arc::new(ReqwestTransport::new(&HttpSettings::default()).unwrap());
    }
    CLIENT.with(Arc::clone)
}

impl Wire {
    /// A model at this server, with a key, without retries, and with more properties.
    pub(crate) fn at(self, server: &ScriptedServer, more: Value) -> Arc<dyn ChatModel> {
        let settings = ModelSettings { transport: Some(client()), ..ModelSettings::default() };
        self.at_url(&server.url(), more, settings).unwrap()
    }

    pub(crate) fn at_url(
        self,
        url: &str,
        more: Value,
        settings: ModelSettings,
    ) -> Result<Arc<dyn ChatModel>, BuildError> {
        let mut props =
            json!({"baseURL": format!("{url}{}", self.path), "apiKey": KEY, "maxRetries": 0, "model": "m"});
        if !self.api.is_empty() {
            props["api"] = json!(self.api);
        }
        for (name, value) in more.as_object().unwrap() {
            props[name] = value.clone();
        }
        build(self.type_name, &props, settings)
    }
}

fn build(type_name: &str, props: &Value, settings: ModelSettings) -> Result<Arc<dyn ChatModel>, BuildError> {
    let mut adapters = Adapters::default();
    register(&mut adapters, settings);
    let node = NodeSummary { id: "m".into(), type_name: type_name.to_owned(), name: String::new() };
    let props = props.as_object().unwrap();
    adapters.models[type_name](NodeConfig::new(&node, props, &|_| None, &|_| ()))
}

pub(crate) async fn call(model: &dyn ChatModel) -> Result<ModelAnswer, Failure> {
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(ChatMessage::new(ChatRole::System, "Answer in JSON.")));
    transcript.push(Arc::new(ChatMessage::new(ChatRole::User, "What is 2+2?")));
    let answer_kind = &AnswerKind::Action(ActionSchemas::default());
    let answer = model.call(ModelRequest { answer_kind, ..ModelRequest::for_text(&transcript) }).await;
    if let Err(failure) = &answer {
        assert!(!failure.message.contains("sk-hid"), "{}", failure.message);
    }
    answer
}

/// Calls a model with one message.
pub(crate) async fn call_message(
    model: &dyn ChatModel,
    message: ChatMessage,
) -> Result<ModelAnswer, Failure> {
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(message));
    model.call(ModelRequest::for_text(&transcript)).await
}

/// The text of a successful call.
pub(crate) async fn call_text(model: &dyn ChatModel) -> String {
    call(model).await.unwrap().text
}

/// The code and message of a failed call.
pub(crate) async fn call_error(model: &dyn ChatModel) -> (RunErrorCode, String) {
    let failure = call(model).await.unwrap_err();
    (failure.code, failure.message)
}
