//! The smallest agent: a loop that posts its conversation as JSON with the models' HTTP client, and does what the answer
//! says.
//!
//! It sends the same bytes as the product, because its first request is recorded from the product. It stores nothing,
//! checks nothing and retries nothing.

use super::provider::{ModelReply, answer, count_answers};
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
    response_format: Box<RawValue>,
    max_tokens: u32,
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: &'a [ChatMessage],
    response_format: &'a RawValue,
    max_tokens: u32,
}

#[derive(Clone, Serialize, Deserialize)]
struct ChatMessage {
    role: Role,
    content: Arc<str>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    User,
    Assistant,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "every client parses it")]
struct Answer {
    id: String,
    model: String,
    choices: Vec<Choice>,
    usage: Usage,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "every client parses it")]
struct Choice {
    message: Content,
    finish_reason: String,
}

#[derive(Deserialize)]
struct Content {
    content: String,
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
    output: Output<'a>,
}

#[derive(Serialize)]
struct Output<'a> {
    result: f64,
    expression: &'a str,
}

impl RawAgent {
    /// One run, to its final answer.
    pub(crate) async fn run(&self) -> Result<String, Failure> {
        let Opening { model, messages, response_format, max_tokens } = &self.opening;
        let mut messages = messages.clone();
        loop {
            let request =
                ChatRequest { model, messages: &messages, response_format, max_tokens: *max_tokens };
            let body = serde_json::to_vec(&request)?;
            let TransportResponse { status, mut body, .. } =
                self.transport.post(&self.endpoint, body).await?;
            if status != 200 {
                return Err(format!("the provider answers with {status}").into());
            }
            let bytes = read_all(&mut *body).await?;
            drop(body);
            let answer: Answer = serde_json::from_slice(&bytes)?;
            let text = answer.choices.into_iter().next().ok_or("no choice")?.message.content;
            match serde_json::from_str(&text)? {
                Action::Final { message } => return Ok(message),
                Action::Tool { tool, input } if tool == "calculator" => {
                    let result = calculate(&input.expression);
                    let output = Output { result, expression: &input.expression };
                    let result_text = serde_json::to_string(&ToolResult { success: true, output })?;
                    messages.push(ChatMessage { role: Role::Assistant, content: text.into() });
                    messages.push(ChatMessage { role: Role::User, content: result_text.into() });
                }
                Action::Tool { tool, .. } => return Err(format!("there is no tool {tool}").into()),
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

/// The only calculation of the benchmark.
fn calculate(expression: &str) -> f64 {
    black_box(expression);
    (black_box(1203.50) + 17.0) * 0.19
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
        let calls_tool = count_answers(&body) < self.tool_calls;
        let text = answer(if calls_tool { ModelReply::ToolCall } else { ModelReply::Final });
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
