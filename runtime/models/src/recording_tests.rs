//! A way out that leads nowhere: it keeps what was sent and answers from a script.

use crate::samples;
use crate::transport::{Endpoint, Incoming, Pieces, Transport, TransportError};
use crate::{ModelSettings, register};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use redflow_contract::fact::ModelAnswer;
use redflow_contract::id::{InstanceId, NodeRef, NodeSummary};
use redflow_contract::limits::RunLimits;
use redflow_contract::plan::{AgentSpec, ToolSpec};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::Transcript;
use redflow_ports::{
    Adapters, AnswerKind, BoxFuture, BuildError, ChatModel, DeltaObserver, Measurement, Meter, ModelRequest,
    NodeConfig, ToolChoice,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// What comes back.
#[derive(Clone)]
pub(crate) enum Reply {
    Answer { status: u16, headers: Vec<(&'static str, String)>, pieces: Vec<Result<Bytes, TransportError>> },
    Fails(TransportError),
    Never,
}

impl Reply {
    pub(crate) fn of(status: u16, headers: &[(&'static str, &str)], body: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self::Answer { status, headers, pieces: vec![Ok(Bytes::copy_from_slice(body.as_bytes()))] }
    }
}

/// What a request looked like.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) url: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) endpoint: Endpoint,
}

impl Sent {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The body without the conversation.
    pub(crate) fn settings(&self) -> Value {
        let mut body = self.body.clone();
        for name in ["messages", "input", "instructions", "system"] {
            body.as_object_mut().unwrap().remove(name);
        }
        body
    }
}

/// Keeps what is sent. Where the script has ended, every wire gets the answer it hopes for.
#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) script: Mutex<VecDeque<Reply>>,
    pub(crate) seen: Mutex<Vec<(Sent, tokio::time::Instant)>>,
}

impl Recording {
    pub(crate) fn with(script: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { script: Mutex::new(script.into_iter().collect()), ..Self::default() })
    }

    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.seen.lock().unwrap().iter().map(|(sent, _)| sent.clone()).collect()
    }

    /// How long after one another the requests came.
    pub(crate) fn waits(&self) -> Vec<u128> {
        let seen = self.seen.lock().unwrap();
        seen.windows(2).map(|pair| (pair[1].1 - pair[0].1).as_millis()).collect()
    }
}

fn hoped_for(path: &str) -> Value {
    if path.ends_with("/chat/completions") {
        let usage = json!({"prompt_tokens": 1_000, "completion_tokens": 100});
        json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage})
    } else if path.ends_with("/responses") {
        let message = json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]});
        json!({"status": "completed", "output": [message], "usage": {"input_tokens": 1_000, "output_tokens": 100}})
    } else if path.ends_with("/v1/messages") {
        let usage = json!({"input_tokens": 600, "cache_read_input_tokens": 400, "output_tokens": 100});
        json!({"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn", "usage": usage})
    } else {
        json!({"message": {"content": "hi"}, "done": true, "prompt_eval_count": 1_000, "eval_count": 100})
    }
}

impl Transport for Recording {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Incoming, TransportError>> {
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        let headers = endpoint.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
        let sent = Sent {
            url: endpoint.url.to_string(),
            headers: headers.collect(),
            body: serde_json::from_slice(&body).unwrap(),
            endpoint: endpoint.clone(),
        };
        self.seen.lock().unwrap().push((sent, tokio::time::Instant::now()));
        let scripted = self.script.lock().unwrap().pop_front();
        Box::pin(async move {
            let json = [("content-type", "application/json")];
            let hoped = || Reply::of(200, &json, &hoped_for(endpoint.url.path()).to_string());
            match scripted.unwrap_or_else(hoped) {
                Reply::Fails(error) => Err(error),
                Reply::Never => std::future::pending().await,
                Reply::Answer { status, headers, pieces } => {
                    let header = |(name, value): (&'static str, String)| {
                        (HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap())
                    };
                    let headers: HeaderMap = headers.into_iter().map(header).collect();
                    Ok(Incoming { status, headers, body: Box::new(Scripted(pieces.into())) })
                }
            }
        })
    }
}

struct Scripted(VecDeque<Result<Bytes, TransportError>>);

impl Pieces for Scripted {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async { self.0.pop_front().transpose() })
    }
}

/// Counts the calls that are made again.
#[derive(Default)]
pub(crate) struct Retries(pub(crate) Mutex<Vec<String>>);

impl Meter for Retries {
    fn record(&self, measure: Measurement<'_>) {
        if let Measurement::ModelRetry { provider, failed } = measure {
            self.0.lock().unwrap().push(format!("{provider} {failed}", failed = failed.as_str()));
        }
    }
}

/// A node of a flow, and what it is asked.
pub(crate) struct Node {
    type_name: &'static str,
    props: Value,
    env: Vec<(&'static str, &'static str)>,
    pub(crate) tools: Vec<ToolSpec>,
}

impl Node {
    /// One that has its key.
    pub(crate) fn new(type_name: &'static str, props: Value) -> Self {
        let env = vec![
            ("OPENAI_API_KEY", "sk-of-the-environment"),
            ("ANTHROPIC_API_KEY", "ak-of-the-environment"),
            ("AZURE_OPENAI_API_KEY", "az-of-the-environment"),
        ];
        Self { type_name, props, env, tools: Vec::new() }
    }

    /// One in an empty environment.
    pub(crate) fn alone(type_name: &'static str, props: Value) -> Self {
        Self { env: Vec::new(), ..Self::new(type_name, props) }
    }

    pub(crate) fn build(&self, settings: ModelSettings) -> Result<Arc<dyn ChatModel>, BuildError> {
        let mut adapters = Adapters::default();
        register(&mut adapters, settings);
        let node = NodeSummary { id: "m".into(), type_name: self.type_name.to_owned(), name: String::new() };
        let env = |name: &str| {
            self.env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let props = self.props.as_object().unwrap();
        adapters.models[self.type_name](NodeConfig { node: &node, props, env: &env, takes: &|_| () })
    }

    /// Why it cannot be built.
    pub(crate) fn refusal(&self) -> String {
        let transport: Arc<dyn Transport> = Recording::with([]);
        let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
        match self.build(settings) {
            Ok(_) => panic!("{} was built from {}", self.type_name, self.props),
            Err(error) => error.reason,
        }
    }

    /// Asks it once. Time stands still, but for the waits between two tries.
    pub(crate) fn ask(
        &self,
        answer_kind: AnswerKind<'_>,
        recording: &Arc<Recording>,
        settings: ModelSettings,
    ) -> Result<ModelAnswer, Failure> {
        self.ask_heard(answer_kind, recording, settings, None)
    }

    /// The same, with someone who hears the answer as it comes in.
    pub(crate) fn ask_heard(
        &self,
        answer_kind: AnswerKind<'_>,
        recording: &Arc<Recording>,
        settings: ModelSettings,
        deltas: Option<&dyn DeltaObserver>,
    ) -> Result<ModelAnswer, Failure> {
        let transport: Arc<dyn Transport> = Arc::<Recording>::clone(recording);
        let model = self.build(ModelSettings { transport: Some(transport), ..settings }).unwrap();
        let spec = spec(self.tools.clone());
        let mut transcript = Transcript::default();
        transcript.push(Arc::new(samples::system("Answer in JSON.")));
        transcript.push(Arc::new(samples::user("What is 2+2?")));
        let request =
            ModelRequest { iteration: 1, transcript: &transcript, spec: &spec, answer_kind, deltas };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(model.call(request))
    }

    /// The request it makes when something is wanted of it.
    pub(crate) fn wanting(&self, answer_kind: AnswerKind<'_>) -> Sent {
        let recording = Recording::with([]);
        let _ = self.ask(answer_kind, &recording, ModelSettings::default());
        recording.sent().remove(0)
    }

    /// The request it makes when an answer is wanted and no tools are there.
    pub(crate) fn sent(&self) -> Sent {
        self.wanting(AnswerKind::Reply(ToolChoice::None))
    }
}

fn spec(tools: Vec<ToolSpec>) -> AgentSpec {
    AgentSpec {
        agent: NodeRef { instance: InstanceId::local(), node_id: "agent".into() },
        type_name: "agent-core".to_owned(),
        name: String::new(),
        max_iterations: 1,
        tools,
        stop_conditions: Vec::new(),
        debug: false,
        timeout_ms: 1,
        memory: false,
        model_response_wired: false,
        limits: RunLimits::default(),
    }
}
