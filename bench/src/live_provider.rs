//! A provider of models in a process of its own: speaks as much HTTP as a client needs, and answers at once.
//!
//! The address says what to answer: below `/5/answer` five tool calls and then the final answer, below
//! `/2/hold` two tool calls and then nothing, ever. Which call it is, the body tells. Never what is measured:
//! its processor time is another process's.

use crate::Failure;
use crate::probe::{Probe, tell, wait_for_the_end};
use crate::world::runtime;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The first argument of a benchmark that was started to answer.
pub(crate) const PROBE: &str = "--probe-provider";

/// What it says of the calls it holds, and of nothing else.
const HELD: &str = "/held";

/// The process. Gone when this is dropped.
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
}

/// What such a process does.
pub(crate) fn probe() -> Result<(), Failure> {
    allow_files();
    runtime()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        tell(&json!({"port": listener.local_addr()?.port()}))?;
        let end = tokio::task::spawn_blocking(wait_for_the_end);
        tokio::select! {
            served = serve(listener) => Ok(served?),
            _ = end => Ok(()),
        }
    })
}

/// Lets this process have as many files open as it may allow itself. How many that are.
#[cfg(unix)]
pub(crate) fn allow_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let allowed = if raised.is_ok() { limit.maximum } else { limit.current };
    allowed.unwrap_or(u64::MAX)
}

/// Nobody says: a client that wants too many fails.
#[cfg(not(unix))]
pub(crate) fn allow_files() -> u64 {
    u64::MAX
}

/// The base address of such calls.
pub(crate) fn base(port: u16, tool_calls: usize, holds: bool) -> String {
    format!("http://127.0.0.1:{port}/{tool_calls}/{}/v1", if holds { "hold" } else { "answer" })
}

/// Answers whoever comes.
pub(crate) async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let script = Arc::new(Script::new());
    loop {
        let (stream, _) = listener.accept().await?;
        let script = Arc::clone(&script);
        // A client that goes away is no failure of anything.
        tokio::spawn(async move { script.converse(stream).await });
    }
}

/// What is said, as bytes of HTTP.
struct Script {
    tool: Vec<u8>,
    last: Vec<u8>,
    held: AtomicU64,
}

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Held,
    Answer { tool_calls: usize, holds: bool },
}

impl Script {
    fn new() -> Self {
        Self { tool: response(&answer(true)), last: response(&answer(false)), held: AtomicU64::new(0) }
    }

    async fn converse(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::with_capacity(4096);
        loop {
            let Some((wanted, length)) = head(&buffer) else {
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
            let said = said_before(&buffer[..length]);
            buffer.drain(..length);
            match wanted {
                Wanted::Held => {
                    let held = self.held.load(Ordering::Relaxed).to_string();
                    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{held}", held.len());
                    stream.write_all(text.as_bytes()).await?;
                }
                Wanted::Answer { tool_calls, .. } if said < tool_calls => {
                    stream.write_all(&self.tool).await?;
                }
                Wanted::Answer { holds: false, .. } => stream.write_all(&self.last).await?,
                Wanted::Answer { holds: true, .. } => {
                    self.held.fetch_add(1, Ordering::Relaxed);
                    drop(buffer);
                    // Until the client goes.
                    return stream.read(&mut [0]).await.map(drop);
                }
            }
        }
    }
}

/// What a request wants and how long it is, once its head is there.
fn head(bytes: &[u8]) -> Option<(Wanted, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value.trim())
    });
    let length = end + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or_default();
    if path == HELD {
        return Some((Wanted::Held, length));
    }
    let mut steps = path.split('/').skip(1);
    let tool_calls = steps.next()?.parse().ok()?;
    Some((Wanted::Answer { tool_calls, holds: steps.next()? == "hold" }, length))
}

/// How often the model has spoken before. Counts, and parses nothing.
pub(crate) fn said_before(body: &[u8]) -> usize {
    const WORDS: &[u8] = br#""role":"assistant""#;
    body.windows(WORDS.len()).filter(|found| *found == WORDS).count()
}

/// The body of an answer: a tool call or the final one.
pub(crate) fn answer(calls_tool: bool) -> String {
    let action = if calls_tool {
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "(1203.50 + 17) * 0.19"}, "confidence": 0.8, "message": "First the tax on both items."})
    } else {
        json!({"action": "final", "message": "The tax is 231.90.", "confidence": 0.93})
    };
    let body: Value = json!({
        "id": "chatcmpl-CcT2bXq1hVt0N8yJf5oW7pRkQ3mLz",
        "object": "chat.completion",
        "created": 1_763_195_823,
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": action.to_string(), "refusal": null, "annotations": []},
            "logprobs": null,
            "finish_reason": "stop",
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

/// Asks how many calls are held, over a connection of its own.
pub(crate) struct Held(std::net::TcpStream);

impl Held {
    pub(crate) fn new(port: u16) -> std::io::Result<Self> {
        std::net::TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).map(Self)
    }

    pub(crate) fn count(&mut self) -> Result<u64, Failure> {
        self.0.write_all(format!("GET {HELD} HTTP/1.1\r\n\r\n").as_bytes())?;
        let mut bytes = [0; 256];
        // Short enough to come in one piece.
        let read = self.0.read(&mut bytes)?;
        let text = std::str::from_utf8(&bytes[..read])?;
        let (_, count) = text.split_once("\r\n\r\n").ok_or("the provider does not say what it holds")?;
        Ok(count.parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::{Wanted, answer, head, said_before};

    #[test]
    fn the_address_and_the_body_say_what_to_answer() {
        let request =
            b"POST /2/hold/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";
        let wanted = Wanted::Answer { tool_calls: 2, holds: true };
        assert_eq!(head(request), Some((wanted, request.len())));
        assert_eq!(head(&request[..60]), None);
        assert_eq!(head(b"GET /held HTTP/1.1\r\n\r\n"), Some((Wanted::Held, 22)));
        assert_eq!(said_before(br#"[{"role":"user"},{"role":"assistant"},{"role":"assistant"}]"#), 2);
        assert!(serde_json::from_str::<serde_json::Value>(&answer(true)).is_ok());
    }
}
