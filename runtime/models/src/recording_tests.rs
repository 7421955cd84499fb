//! A transport without a network: it records requests and responds from a script.

use crate::samples;
use crate::transport::{Endpoint, ResponseBody, Transport, TransportError, TransportResponse};
use crate::{ModelSettings, register};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use redflow_contract::fact::ModelAnswer;
use redflow_contract::id::{InstanceId, NodeRef, NodeSummary};
use redflow_contract::plan::ToolSpec;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, Transcript};
use redflow_ports::{
    ActionSchemas, Adapters, AnswerKind, BoxFuture, BuildError, CacheKey, ChatModel, DeltaObserver,
    Measurement, Meter, ModelRequest, NodeConfig, SchemaText, ToolChoice,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// A scripted response.
#[derive(Clone)]
pub(crate) enum Reply {
    Response {
        status: u16,
        headers: Vec<(&'static str, String)>,
        parts: Vec<Result<Bytes, TransportError>>,
    },
    Error(TransportError),
    /// The provider never responds.
    Hang,
}

impl Reply {
    pub(crate) fn new(status: u16, headers: &[(&'static str, &str)], body: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self::Response { status, headers, parts: vec![Ok(Bytes::copy_from_slice(body.as_bytes()))] }
    }
}

/// A request that the transport received.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) url: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) endpoint: Endpoint,
}

impl RecordedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Whether it asks for a stream, in its body or by its address.
    pub(crate) fn is_stream(&self) -> bool {
        self.body["stream"] == json!(true) || self.url.contains(":streamGenerateContent?alt=sse")
    }

    /// The body without the conversation.
    pub(crate) fn settings(&self) -> Value {
        let mut body = self.body.clone();
        for name in ["messages", "input", "instructions", "system", "contents", "systemInstruction"] {
            body.as_object_mut().unwrap().remove(name);
        }
        body
    }
}

/// Records every request. After the end of the script, every wire gets a good answer.
#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) script: Mutex<VecDeque<Reply>>,
    pub(crate) received: Mutex<Vec<(RecordedRequest, tokio::time::Instant)>>,
    /// The responses to requests for a list of models. Without one, no connection can be made.
    lists: Mutex<VecDeque<Reply>>,
    list_addresses: Mutex<Vec<String>>,
}

impl Recording {
    pub(crate) fn new(script: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { script: Mutex::new(script.into_iter().collect()), ..Self::default() })
    }

    /// A server that responds to requests for a list of models.
    pub(crate) fn with_lists(lists: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { lists: Mutex::new(lists.into_iter().collect()), ..Self::default() })
    }

    /// The addresses of the requests for a list of models.
    pub(crate) fn list_addresses(&self) -> Vec<String> {
        self.list_addresses.lock().unwrap().clone()
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.received.lock().unwrap().iter().map(|(request, _)| request.clone()).collect()
    }

    /// The times between the requests, in milliseconds.
    pub(crate) fn waits(&self) -> Vec<u128> {
        let received = self.received.lock().unwrap();
        received.windows(2).map(|pair| (pair[1].1 - pair[0].1).as_millis()).collect()
    }
}

fn good_answer(path: &str) -> Value {
    if path.ends_with("/chat/completions") {
        let usage = json!({"prompt_tokens": 1_000, "completion_tokens": 100});
        json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage})
    } else if path.ends_with("/responses") {
        let message = json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]});
        json!({"status": "completed", "output": [message], "usage": {"input_tokens": 1_000, "output_tokens": 100}})
    } else if path.ends_with("/v1/messages") {
        let usage = json!({"input_tokens": 600, "cache_read_input_tokens": 400, "output_tokens": 100});
        json!({"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn", "usage": usage})
    } else if path.ends_with("enerateContent") {
        let candidate = json!({"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"});
        let usage =
            json!({"promptTokenCount": 1_000, "cachedContentTokenCount": 400, "candidatesTokenCount": 100});
        json!({"candidates": [candidate], "usageMetadata": usage})
    } else {
        json!({"message": {"content": "hi"}, "done": true, "prompt_eval_count": 1_000, "eval_count": 100})
    }
}

impl Transport for Recording {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        let headers = endpoint.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
        let request = RecordedRequest {
            url: endpoint.url.to_string(),
            headers: headers.collect(),
            body: match endpoint.headers["content-type"].to_str().unwrap() {
                "application/json" => serde_json::from_slice(&body).unwrap(),
                _ => String::from_utf8(body).unwrap().into(),
            },
            endpoint: endpoint.clone(),
        };
        self.received.lock().unwrap().push((request, tokio::time::Instant::now()));
        let scripted = self.script.lock().unwrap().pop_front();
        Box::pin(async move {
            let json = [("content-type", "application/json")];
            let default = || Reply::new(200, &json, &good_answer(endpoint.url.path()).to_string());
            respond(scripted.unwrap_or_else(default)).await
        })
    }

    fn get<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        self.list_addresses.lock().unwrap().push(endpoint.url.to_string());
        let scripted = self.lists.lock().unwrap().pop_front();
        Box::pin(respond(scripted.unwrap_or(Reply::Error(TransportError::Connect))))
    }
}

async fn respond(reply: Reply) -> Result<TransportResponse, TransportError> {
    match reply {
        Reply::Error(error) => Err(error),
        Reply::Hang => std::future::pending().await,
        Reply::Response { status, headers, parts } => {
            let header = |(name, value): (&'static str, String)| {
                (HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap())
            };
            let headers: HeaderMap = headers.into_iter().map(header).collect();
            Ok(TransportResponse { status, headers, body: Box::new(ScriptedBody(parts.into())) })
        }
    }
}

struct ScriptedBody(VecDeque<Result<Bytes, TransportError>>);

impl ResponseBody for ScriptedBody {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async { self.0.pop_front().transpose() })
    }
}

/// Records the retries of all calls.
#[derive(Default)]
pub(crate) struct RetryLog(pub(crate) Mutex<Vec<String>>);

impl Meter for RetryLog {
    fn record(&self, measurement: Measurement<'_>) {
        if let Measurement::ModelRetry { provider, failed } = measurement {
            self.0.lock().unwrap().push(format!("{provider} {failed}", failed = failed.as_str()));
        }
    }
}

/// Records the deltas of an answer.
#[derive(Default)]
pub(crate) struct DeltaLog(pub(crate) Mutex<Vec<(u32, String)>>);

impl DeltaObserver for DeltaLog {
    fn text(&self, attempt: u32, text: &str) {
        self.0.lock().unwrap().push((attempt, text.to_owned()));
    }
}

/// Runs a call. The clock advances only while the call waits.
pub(crate) fn block_on<T>(call: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(call)
}

/// A model node of a flow, and what its agent sends.
pub(crate) struct Node {
    type_name: &'static str,
    props: Value,
    env: Vec<(&'static str, &'static str)>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) retry: bool,
    pub(crate) keeps_raw: bool,
    /// The session of the agent; none outside a run.
    pub(crate) session: Option<&'static str>,
}

impl Node {
    /// A node whose keys are in the environment. A model of OpenAI is one of Chat Completions, if the node names none.
    pub(crate) fn new(type_name: &'static str, mut props: Value) -> Self {
        let names = ["model", "baseURL", "options"];
        if type_name == "openai-model" && names.iter().all(|name| props.get(name).is_none()) {
            props["model"] = json!("gpt-4o");
        }
        Self::as_written(type_name, props)
    }

    /// The same, with nothing but what is written.
    pub(crate) fn as_written(type_name: &'static str, props: Value) -> Self {
        let env = vec![
            ("OPENAI_API_KEY", "sk-of-the-environment"),
            ("ANTHROPIC_API_KEY", "ak-of-the-environment"),
            ("AZURE_OPENAI_API_KEY", "az-of-the-environment"),
            ("GEMINI_API_KEY", "gk-of-the-environment"),
            ("AZURE_CLIENT_SECRET", "cs-of-the-environment"),
        ];
        let messages = vec![samples::system("Answer in JSON."), samples::user("What is 2+2?")];
        let (tools, session) = (Vec::new(), None);
        Self { type_name, props, env, tools, messages, retry: true, keeps_raw: false, session }
    }

    /// A node in an empty environment.
    pub(crate) fn without_env(type_name: &'static str, props: Value) -> Self {
        Self { env: Vec::new(), ..Self::new(type_name, props) }
    }

    /// A node in this environment.
    pub(crate) fn with_env(
        type_name: &'static str,
        props: Value,
        env: Vec<(&'static str, &'static str)>,
    ) -> Self {
        Self { env, ..Self::new(type_name, props) }
    }

    pub(crate) fn build(&self, settings: ModelSettings) -> Result<Arc<dyn ChatModel>, BuildError> {
        let mut adapters = Adapters::default();
        register(&mut adapters, settings);
        let node = NodeSummary { id: "m".into(), type_name: self.type_name.to_owned(), name: String::new() };
        let env = |name: &str| {
            self.env.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        };
        let props = self.props.as_object().unwrap();
        adapters.models[self.type_name](NodeConfig::new(&node, props, &env, &|_| ()))
    }

    /// Why the model cannot be built.
    pub(crate) fn build_error(&self) -> String {
        let transport: Arc<dyn Transport> = Recording::new([]);
        let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
        match self.build(settings) {
            Ok(_) => panic!("{} was built from {}", self.type_name, self.props),
            Err(error) => error.reason,
        }
    }

    /// Calls the model once.
    pub(crate) fn call(
        &self,
        answer_kind: &AnswerKind,
        recording: &Arc<Recording>,
        settings: ModelSettings,
    ) -> Result<ModelAnswer, Failure> {
        self.call_observed(answer_kind, recording, settings, None)
    }

    /// The same, with an observer of the deltas.
    pub(crate) fn call_observed(
        &self,
        answer_kind: &AnswerKind,
        recording: &Arc<Recording>,
        settings: ModelSettings,
        deltas: Option<&dyn DeltaObserver>,
    ) -> Result<ModelAnswer, Failure> {
        let answer_kind = &match answer_kind {
            AnswerKind::Reply(reply) => {
                AnswerKind::Reply(redflow_ports::Reply { tools: self.tools.clone().into(), ..reply.clone() })
            }
            action => action.clone(),
        };
        let transport: Arc<dyn Transport> = Arc::<Recording>::clone(recording);
        let model = self.build(ModelSettings { transport: Some(transport), ..settings }).unwrap();
        let mut transcript = Transcript::default();
        for message in &self.messages {
            transcript.push(Arc::new(message.clone()));
        }
        let agent = NodeRef { instance: InstanceId::local(), node_id: "agent".into() };
        let request = ModelRequest {
            answer_kind,
            retry: self.retry,
            delta_observer: deltas,
            cache_key: self.session.map(|session| CacheKey { agent: &agent, session: Some(session) }),
            keeps_raw: self.keeps_raw,
            ..ModelRequest::for_text(&transcript)
        };
        block_on(model.call(request))
    }

    /// The request of a call for this kind of answer.
    pub(crate) fn request_for(&self, answer_kind: &AnswerKind) -> RecordedRequest {
        let recording = Recording::new([]);
        let _ = self.call(answer_kind, &recording, ModelSettings::default());
        recording.requests().remove(0)
    }

    /// The request of a call for a reply without tools.
    pub(crate) fn request(&self) -> RecordedRequest {
        self.request_for(&reply(ToolChoice::None))
    }
}

/// A reply with the tools of the node.
pub(crate) fn reply(choice: ToolChoice) -> AnswerKind {
    AnswerKind::Reply(redflow_ports::Reply { choice, ..Default::default() })
}

/// An action by one schema for all providers.
pub(crate) fn action_by(schema: &RawValue) -> AnswerKind {
    let object = Some(SchemaText::from(schema.to_owned()));
    AnswerKind::Action(ActionSchemas { object_with_range: object.clone(), branches: object.clone(), object })
}
