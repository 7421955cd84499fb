//! The smallest agent: a loop that posts its conversation as JSON with the models' HTTP client, and does what the answer
//! says.
//!
//! It sends the same bytes as the product, because its first request is recorded from the product. It stores nothing,
//! checks nothing and retries nothing.

use super::provider::{ModelReply, answer, count_answers, has_native_tools};
use crate::Failure;
use bytes::Bytes;
use http::HeaderMap;
use redflow_models::transport::{Endpoint, ResponseBody, Transport, TransportError, TransportResponse};
use redflow_ports::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::future::ready;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// An agent without a runtime.
pub(crate) struct RawAgent {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) endpoint: Endpoint,
    pub(crate) opening: Opening,
}

/// The first request of every conversation.
#[derive(Deserialize)]
pub(crate) struct Opening {
    model: String,
    messages: Vec<ChatMessage>,
    tools: Option<Box<RawValue>>,
    tool_choice: Option<String>,
    response_format: Option<Box<RawValue>>,
    max_tokens: Option<u32>,
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: &'a [ChatMessage],
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
}

#[derive(Clone, Serialize, Deserialize)]
struct ChatMessage {
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Arc<str>>,
    content: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Arc<[NativeCall]>>,
}

impl ChatMessage {
    fn new(role: Role, content: String) -> Self {
        Self { role, tool_call_id: None, content: Some(content.into()), tool_calls: None }
    }
}

#[derive(Serialize, Deserialize)]
struct NativeCall {
    id: Arc<str>,
    #[serde(rename = "type")]
    kind: String,
    function: CalledFunction,
}

#[derive(Serialize, Deserialize)]
struct CalledFunction {
    name: String,
    arguments: String,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "every client parses it")]
struct ChatCompletion {
    id: String,
    model: String,
    choices: Vec<CompletionChoice>,
    usage: Usage,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "every client parses it")]
struct CompletionChoice {
    message: CompletionMessage,
    finish_reason: String,
}

#[derive(Deserialize)]
struct CompletionMessage {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Arc<[NativeCall]>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "every client parses it")]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
enum Action {
    Tool { tool: String, input: Input },
    Final { message: String },
}

#[derive(Deserialize)]
struct Input {
    expression: String,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    success: bool,
    output: CalculatorOutput<'a>,
}

#[derive(Serialize)]
struct CalculatorOutput<'a> {
    result: f64,
    expression: &'a str,
}

impl RawAgent {
    /// One run, to its final answer.
    pub(crate) async fn run(&self) -> Result<String, Failure> {
        let opening = &self.opening;
        let mut messages = opening.messages.clone();
        loop {
            let request = ChatRequest {
                model: &opening.model,
                messages: &messages,
                tools: opening.tools.as_deref(),
                tool_choice: opening.tool_choice.as_deref(),
                response_format: opening.response_format.as_deref(),
                max_tokens: opening.max_tokens,
            };
            let body = serde_json::to_vec(&request)?;
            let TransportResponse { status, mut body, .. } =
                self.transport.post(&self.endpoint, body).await?;
            if status != 200 {
                return Err(format!("the provider answers with {status}").into());
            }
            let bytes = read_all(&mut *body).await?;
            drop(body);
            let answer: ChatCompletion = serde_json::from_slice(&bytes)?;
            let CompletionMessage { content, tool_calls } =
                answer.choices.into_iter().next().ok_or("no choice")?.message;
            if let Some(calls) = tool_calls {
                let tool_calls = Some(Arc::clone(&calls));
                messages.push(ChatMessage {
                    role: Role::Assistant,
                    tool_call_id: None,
                    content: None,
                    tool_calls,
                });
                for call in &*calls {
                    let input: Input = serde_json::from_str(&call.function.arguments)?;
                    let tool_call_id = Some(Arc::clone(&call.id));
                    let content = tool_result(&call.function.name, &input)?;
                    messages.push(ChatMessage { tool_call_id, ..ChatMessage::new(Role::Tool, content) });
                }
                continue;
            }
            let text = content.ok_or("no content")?;
            if opening.tools.is_some() {
                return Ok(text);
            }
            match serde_json::from_str(&text)? {
                Action::Final { message } => return Ok(message),
                Action::Tool { tool, input } => {
                    let result = tool_result(&tool, &input)?;
                    messages.push(ChatMessage::new(Role::Assistant, text));
                    messages.push(ChatMessage::new(Role::User, result));
                }
            }
        }
    }

    /// Runs `runs` times, `at_once` of them at a time.
    pub(crate) async fn drive(self: &Arc<Self>, runs: usize, at_once: usize) -> Result<(), Failure> {
        let started = Arc::new(AtomicU64::new(0));
        let mut drivers = JoinSet::new();
        for _ in 0..at_once {
            let (agent, started) = (Arc::clone(self), Arc::clone(&started));
            drivers.spawn(async move {
                while started.fetch_add(1, Ordering::Relaxed) < runs as u64 {
                    black_box(agent.run().await?);
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(driver) = drivers.join_next().await {
            driver??;
        }
        Ok(())
    }
}

fn tool_result(tool: &str, Input { expression }: &Input) -> Result<String, Failure> {
    if tool != "calculator" {
        return Err(format!("there is no tool {tool}").into());
    }
    let output = CalculatorOutput { result: calculate(expression), expression };
    Ok(serde_json::to_string(&ToolResult { success: true, output })?)
}

/// The only calculation of the benchmark: `(1203.50 + n) * 0.19`.
fn calculate(expression: &str) -> f64 {
    let number = expression.split(['+', ')']).nth(1).and_then(|number| number.trim().parse().ok());
    let result: f64 = (black_box(1203.50) + number.unwrap_or(0.0)) * 0.19;
    // Rounded as the calculator does it.
    (result * 1e9).round() / 1e9
}

async fn read_all(body: &mut dyn ResponseBody) -> Result<Bytes, Failure> {
    let Some(first) = body.next().await? else { return Ok(Bytes::new()) };
    let Some(second) = body.next().await? else { return Ok(first) };
    let mut all = [first, second].concat();
    while let Some(piece) = body.next().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all.into())
}

/// A transport without a network: it answers as the provider does, and records the bodies.
pub(crate) struct RecordingTransport {
    tool_calls: usize,
    bodies: Mutex<Vec<Vec<u8>>>,
}

impl RecordingTransport {
    pub(crate) fn new(tool_calls: usize) -> Self {
        Self { tool_calls, bodies: Mutex::default() }
    }

    /// The recorded bodies, in order.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.bodies.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transport for RecordingTransport {
    fn post<'a>(
        &'a self,
        _: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        let answers = count_answers(&body);
        let text = answer(match (answers < self.tool_calls, has_native_tools(&body)) {
            (true, true) => ModelReply::NativeCall(answers),
            (false, true) => ModelReply::NativeFinal,
            (true, false) => ModelReply::ToolCall,
            (false, false) => ModelReply::Final,
        });
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        let body = Box::new(Once(Some(text.into())));
        Box::pin(ready(Ok(TransportResponse { status: 200, headers: HeaderMap::new(), body })))
    }
}

struct Once(Option<Bytes>);

impl ResponseBody for Once {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(ready(Ok(self.0.take())))
    }
}
