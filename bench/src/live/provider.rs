//! A provider of models in its own process. It speaks as much HTTP as a client needs, and answers at once.
//!
//! The path selects the answers: below `/5/answer` five tool calls and then the final answer, below `/2/hold` two tool
//! calls and then no answer at all. The body shows which call it is. The benchmarks never measure this process.

use crate::Failure;
use crate::open_files;
use crate::probe::{Probe, print_figures, wait_for_end};
use crate::world::runtime;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The first argument of a process that is a provider.
pub(crate) const PROBE: &str = "--probe-provider";

/// The most iterations that the editor allows.
pub(super) const MAX_ITERATIONS: usize = 20;

/// The last answer of every run.
pub(super) const FINAL_ANSWER: &str = "The tax is 231.90.";

/// The path that gives the number of held calls.
const HELD: &str = "/held";

/// The part of a path that selects [`AfterCalls::Hold`].
const HOLD: &str = "hold";

/// With a number of milliseconds: every later answer waits so long.
const PAUSE: &str = "/pause/";

/// The path that gives the number of calls and of request bytes.
const TOTALS: &str = "/totals";

/// A running provider. Drop kills it.
pub(crate) struct Provider {
    _process: Probe,
    pub(crate) port: u16,
}

impl Provider {
    pub(crate) fn start() -> Result<Self, Failure> {
        let mut process = Probe::start(PROBE, &[])?;
        let port = u16::try_from(process.figures()?.count("port"))?;
        Ok(Self { _process: process, port })
    }

    /// Every later answer waits `ms` milliseconds.
    pub(crate) fn pause(&self, ms: u64) -> Result<(), Failure> {
        ProviderCounts::new(self.port)?.read(&format!("{PAUSE}{ms}")).map(drop)
    }

    /// The requests so far.
    pub(crate) fn totals(&self) -> Result<RequestTotals, Failure> {
        let text = ProviderCounts::new(self.port)?.read(TOTALS)?;
        let (calls, bytes) = text.split_once(' ').ok_or("the provider gives no totals")?;
        Ok(RequestTotals { calls: calls.parse()?, bytes: bytes.parse()? })
    }
}

/// Calls, and the bytes of their bodies.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestTotals {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
}

impl RequestTotals {
    pub(crate) fn since(self, before: Self) -> Self {
        Self { calls: self.calls - before.calls, bytes: self.bytes - before.bytes }
    }
}

/// The work of such a process.
pub(crate) fn probe() -> Result<(), Failure> {
    open_files::raise_limit();
    runtime()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        print_figures(&json!({"port": listener.local_addr()?.port()}))?;
        let end = tokio::task::spawn_blocking(wait_for_end);
        tokio::select! {
            served = serve(listener) => Ok(served?),
            _ = end => Ok(()),
        }
    })
}

/// What the provider does after the tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterCalls {
    /// Gives the final answer.
    Answer,
    /// Never answers.
    Hold,
}

/// The base address for a number of tool calls.
pub(crate) fn base(port: u16, tool_calls: usize, after: AfterCalls) -> String {
    let after = match after {
        AfterCalls::Answer => "answer",
        AfterCalls::Hold => HOLD,
    };
    format!("http://127.0.0.1:{port}/{tool_calls}/{after}/v1")
}

/// Answers all clients.
pub(super) async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let script = Arc::new(Script::new());
    loop {
        let (stream, _) = listener.accept().await?;
        let script = Arc::clone(&script);
        // A closed connection is no failure.
        tokio::spawn(async move { script.serve_connection(stream).await });
    }
}

/// The responses as bytes of HTTP, and the counts.
struct Script {
    tool: Vec<u8>,
    last: Vec<u8>,
    /// The answers to requests with native tools: a call for each number of earlier answers, and the last.
    native_calls: Vec<Vec<u8>>,
    native_last: Vec<u8>,
    held: AtomicU64,
    calls: AtomicU64,
    bytes: AtomicU64,
    pause: AtomicU64,
}

/// A request, by its path.
#[derive(Debug, PartialEq, Eq)]
enum ProviderRequest {
    Held,
    Totals,
    Pause(u64),
    Answer { tool_calls: usize, after: AfterCalls },
}

impl Script {
    fn new() -> Self {
        Self {
            tool: response(&answer(ModelReply::ToolCall)),
            last: response(&answer(ModelReply::Final)),
            native_calls: (0..MAX_ITERATIONS).map(|n| response(&answer(ModelReply::NativeCall(n)))).collect(),
            native_last: response(&answer(ModelReply::NativeFinal)),
            held: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            pause: AtomicU64::new(0),
        }
    }

    async fn serve_connection(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::with_capacity(4096);
        loop {
            let Some((request, Range { start, end: length })) = parse_head(&buffer) else {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
                continue;
            };
            while buffer.len() < length {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            }
            let answers = count_answers(&buffer[..length]);
            let is_native = has_native_tools(&buffer[..length]);
            buffer.drain(..length);
            if let ProviderRequest::Answer { .. } = request {
                self.calls.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add((length - start) as u64, Ordering::Relaxed);
                let pause = self.pause.load(Ordering::Relaxed);
                if pause > 0 {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            }
            match request {
                ProviderRequest::Held => {
                    let held = self.held.load(Ordering::Relaxed);
                    stream.write_all(text_response(&held.to_string()).as_bytes()).await?;
                }
                ProviderRequest::Pause(ms) => {
                    self.pause.store(ms, Ordering::Relaxed);
                    stream.write_all(text_response("").as_bytes()).await?;
                }
                ProviderRequest::Totals => {
                    let (calls, bytes) =
                        (self.calls.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
                    stream.write_all(text_response(&format!("{calls} {bytes}")).as_bytes()).await?;
                }
                ProviderRequest::Answer { tool_calls, .. } if answers < tool_calls => {
                    let native = self.native_calls.get(answers).filter(|_| is_native);
                    stream.write_all(native.unwrap_or(&self.tool)).await?;
                }
                ProviderRequest::Answer { after: AfterCalls::Answer, .. } => {
                    stream.write_all(if is_native { &self.native_last } else { &self.last }).await?;
                }
                ProviderRequest::Answer { after: AfterCalls::Hold, .. } => {
                    self.held.fetch_add(1, Ordering::Relaxed);
                    drop(buffer);
                    // Until the client closes the connection.
                    return stream.read(&mut [0]).await.map(drop);
                }
            }
        }
    }
}

fn text_response(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

/// The request and the range of its body, once the head is complete.
fn parse_head(bytes: &[u8]) -> Option<(ProviderRequest, Range<usize>)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value.trim())
    });
    let body = end..end + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or_default();
    match path {
        HELD => return Some((ProviderRequest::Held, body)),
        TOTALS => return Some((ProviderRequest::Totals, body)),
        _ => {}
    }
    if let Some(ms) = path.strip_prefix(PAUSE) {
        return Some((ProviderRequest::Pause(ms.parse().ok()?), body));
    }
    let mut steps = path.split('/').skip(1);
    let tool_calls = steps.next()?.parse().ok()?;
    let after = if steps.next()? == HOLD { AfterCalls::Hold } else { AfterCalls::Answer };
    Some((ProviderRequest::Answer { tool_calls, after }, body))
}

/// The number of earlier answers in a request. It counts without parsing.
pub(super) fn count_answers(body: &[u8]) -> usize {
    const WORDS: &[u8] = br#""role":"assistant""#;
    body.windows(WORDS.len()).filter(|found| *found == WORDS).count()
}

/// Whether a request has native tools. It looks without parsing.
pub(super) fn has_native_tools(body: &[u8]) -> bool {
    const WORDS: &[u8] = br#","tools":[{"#;
    body.windows(WORDS.len()).any(|found| found == WORDS)
}

/// An answer of the model.
#[derive(Clone, Copy)]
pub(super) enum ModelReply {
    ToolCall,
    Final,
    /// A native tool call. Each has another input, because an AI Agent does not make the same call three times in a row.
    NativeCall(usize),
    NativeFinal,
}

/// The body of an answer.
pub(super) fn answer(reply: ModelReply) -> String {
    let text =
        |content: Value| json!({"role": "assistant", "content": content, "refusal": null, "annotations": []});
    let message = match reply {
        ModelReply::ToolCall => text(
            json!({"action": "tool", "tool": "calculator", "input": {"expression": "(1203.50 + 17) * 0.19"}, "confidence": 0.8, "message": "First the tax on both items."}).to_string().into(),
        ),
        ModelReply::Final => text(
            json!({"action": "final", "message": FINAL_ANSWER, "confidence": 0.93}).to_string().into(),
        ),
        ModelReply::NativeCall(n) => {
            let input = json!({"expression": format!("(1203.50 + {n}) * 0.19")}).to_string();
            let function = json!({"name": "calculator", "arguments": input});
            let mut message = text(Value::Null);
            message["tool_calls"] = json!([{"id": format!("call_7mQ2{n}"), "type": "function", "function": function}]);
            message
        }
        ModelReply::NativeFinal => text(FINAL_ANSWER.into()),
    };
    let finish_reason = if matches!(reply, ModelReply::NativeCall(_)) { "tool_calls" } else { "stop" };
    let body: Value = json!({
        "id": "chatcmpl-CcT2bXq1hVt0N8yJf5oW7pRkQ3mLz",
        "object": "chat.completion",
        "created": 1_763_195_823,
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason,
        }],
        "usage": {
            "prompt_tokens": 412,
            "completion_tokens": 38,
            "total_tokens": 450,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "service_tier": "default",
        "system_fingerprint": "fp_4fce0778af",
    });
    format!("{body:#}")
}

fn response(body: &str) -> Vec<u8> {
    let lines = [
        "HTTP/1.1 200 OK".to_owned(),
        "date: Sat, 15 Nov 2025 08:37:03 GMT".to_owned(),
        "content-type: application/json".to_owned(),
        format!("content-length: {}", body.len()),
        "openai-organization: bench".to_owned(),
        "openai-processing-ms: 412".to_owned(),
        "openai-version: 2020-10-01".to_owned(),
        "x-ratelimit-limit-requests: 10000".to_owned(),
        "x-ratelimit-limit-tokens: 10000000".to_owned(),
        "x-ratelimit-remaining-requests: 9999".to_owned(),
        "x-ratelimit-remaining-tokens: 9999550".to_owned(),
        "x-ratelimit-reset-requests: 6ms".to_owned(),
        "x-ratelimit-reset-tokens: 2ms".to_owned(),
        "x-request-id: req_7e1d0f6b2a9c4d58b3e6f1a2c4d5e6f7".to_owned(),
    ];
    format!("{}\r\n\r\n{body}", lines.join("\r\n")).into_bytes()
}

/// Reads the counts of the provider over its own connection.
pub(crate) struct ProviderCounts(std::net::TcpStream);

impl ProviderCounts {
    pub(crate) fn new(port: u16) -> std::io::Result<Self> {
        std::net::TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).map(Self)
    }

    /// The number of held calls.
    pub(crate) fn held(&mut self) -> Result<u64, Failure> {
        Ok(self.read(HELD)?.parse()?)
    }

    fn read(&mut self, path: &str) -> Result<String, Failure> {
        self.0.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes())?;
        let mut bytes = [0; 256];
        // The response is short enough for one read.
        let read = self.0.read(&mut bytes)?;
        let text = std::str::from_utf8(&bytes[..read])?;
        let (_, body) = text.split_once("\r\n\r\n").ok_or("the provider gives no count")?;
        Ok(body.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{AfterCalls, ModelReply, ProviderRequest, answer, count_answers, parse_head};

    #[test]
    fn path_and_body_select_the_answer() {
        let request =
            b"POST /2/hold/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";
        let expected = ProviderRequest::Answer { tool_calls: 2, after: AfterCalls::Hold };
        assert_eq!(parse_head(request), Some((expected, request.len() - 4..request.len())));
        assert_eq!(parse_head(&request[..60]), None);
        assert_eq!(parse_head(b"GET /held HTTP/1.1\r\n\r\n"), Some((ProviderRequest::Held, 22..22)));
        assert_eq!(parse_head(b"GET /pause/5 HTTP/1.1\r\n\r\n"), Some((ProviderRequest::Pause(5), 25..25)));
        assert_eq!(count_answers(br#"[{"role":"user"},{"role":"assistant"},{"role":"assistant"}]"#), 2);
        assert!(serde_json::from_str::<serde_json::Value>(&answer(ModelReply::ToolCall)).is_ok());
    }
}
