//! The least an agent can be: a loop that writes its conversation as JSON, posts it with the client the models
//! use, reads the answer and does what it says.
//!
//! Sends what the product sends, byte for byte: how the conversation begins is overheard from it. Keeps
//! nothing, checks nothing, tries nothing again.

use crate::Failure;
use crate::live_provider::{answer, said_before};
use bytes::Bytes;
use http::HeaderMap;
use redflow_models::transport::{Endpoint, Incoming, Pieces, Transport, TransportError};
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

/// How every conversation begins, and what is said with it.
#[derive(Deserialize)]
pub(crate) struct Opening {
    model: String,
    messages: Vec<Said>,
    response_format: Box<RawValue>,
    max_tokens: u32,
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    messages: &'a [Said],
    response_format: &'a RawValue,
    max_tokens: u32,
}

#[derive(Clone, Serialize, Deserialize)]
struct Said {
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
#[allow(dead_code, reason = "read, as every client reads it")]
struct Answer {
    id: String,
    model: String,
    choices: Vec<Choice>,
    usage: Usage,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read, as every client reads it")]
struct Choice {
    message: Content,
    finish_reason: String,
}

#[derive(Deserialize)]
struct Content {
    content: String,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read, as every client reads it")]
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
struct Observed<'a> {
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
            let question = Question { model, messages: &messages, response_format, max_tokens: *max_tokens };
            let body = serde_json::to_vec(&question)?;
            let Incoming { status, mut body, .. } = self.transport.post(&self.endpoint, body).await?;
            if status != 200 {
                return Err(format!("the provider answers with {status}").into());
            }
            let bytes = whole(&mut *body).await?;
            drop(body);
            let answer: Answer = serde_json::from_slice(&bytes)?;
            let text = answer.choices.into_iter().next().ok_or("no choice")?.message.content;
            match serde_json::from_str(&text)? {
                Action::Final { message } => return Ok(message),
                Action::Tool { tool, input } if tool == "calculator" => {
                    let result = calculated(&input.expression);
                    let output = Output { result, expression: &input.expression };
                    let observed = serde_json::to_string(&Observed { success: true, output })?;
                    messages.push(Said { role: Role::Assistant, content: text.into() });
                    messages.push(Said { role: Role::User, content: observed.into() });
                }
                Action::Tool { tool, .. } => return Err(format!("there is no tool {tool}").into()),
            }
        }
    }

    /// So many runs, so many of them at any time.
    pub(crate) async fn drive(self: &Arc<Self>, runs: usize, at_once: usize) -> Result<(), Failure> {
        let begun = Arc::new(AtomicU64::new(0));
        let mut drivers = JoinSet::new();
        for _ in 0..at_once {
            let (agent, begun) = (Arc::clone(self), Arc::clone(&begun));
            drivers.spawn(async move {
                while begun.fetch_add(1, Ordering::Relaxed) < runs as u64 {
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

/// The one sum it is asked for.
fn calculated(expression: &str) -> f64 {
    black_box(expression);
    (black_box(1203.50) + 17.0) * 0.19
}

async fn whole(body: &mut dyn Pieces) -> Result<Bytes, Failure> {
    let Some(first) = body.next().await? else { return Ok(Bytes::new()) };
    let Some(second) = body.next().await? else { return Ok(first) };
    let mut all = [first, second].concat();
    while let Some(piece) = body.next().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all.into())
}

/// A way out that leads nowhere: answers as the provider does, and remembers what was sent.
pub(crate) struct Overheard {
    tool_calls: usize,
    bodies: Mutex<Vec<Vec<u8>>>,
}

impl Overheard {
    pub(crate) fn new(tool_calls: usize) -> Self {
        Self { tool_calls, bodies: Mutex::default() }
    }

    /// What was sent, in order.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.bodies.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transport for Overheard {
    fn post<'a>(&'a self, _: &'a Endpoint, body: Vec<u8>) -> BoxFuture<'a, Result<Incoming, TransportError>> {
        let text = answer(said_before(&body) < self.tool_calls);
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        let body = Box::new(Once(Some(text.into())));
        Box::pin(ready(Ok(Incoming { status: 200, headers: HeaderMap::new(), body })))
    }
}

struct Once(Option<Bytes>);

impl Pieces for Once {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(ready(Ok(self.0.take())))
    }
}
