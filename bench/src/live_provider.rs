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
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The first argument of a benchmark that was started to answer.
pub(crate) const PROBE: &str = "--probe-provider";

/// What it says of the calls it holds, and of nothing else.
const HELD: &str = "/held";

/// With a number behind it: from now on every answer waits so many milliseconds.
const PAUSE: &str = "/pause/";

/// The same for how many calls it had, and how many bytes were asked.
const ASKED: &str = "/asked";

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

    /// From now on every answer waits so many milliseconds.
    pub(crate) fn pause(&self, ms: u64) -> Result<(), Failure> {
        Counts::new(self.port)?.of(&format!("{PAUSE}{ms}")).map(drop)
    }

    /// What it was asked so far.
    pub(crate) fn tally(&self) -> Result<Tally, Failure> {
        let told = Counts::new(self.port)?.of(ASKED)?;
        let (calls, bytes) = told.split_once(' ').ok_or("the provider does not say what it was asked")?;
        Ok(Tally { calls: calls.parse()?, bytes: bytes.parse()? })
    }
}

/// Calls, and the bytes of their bodies.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
}

impl Tally {
    pub(crate) fn since(self, before: Self) -> Self {
        Self { calls: self.calls - before.calls, bytes: self.bytes - before.bytes }
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
    calls: AtomicU64,
    bytes: AtomicU64,
    pause: AtomicU64,
}

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Held,
    Asked,
    Pause(u64),
    Answer { tool_calls: usize, holds: bool },
}

impl Script {
    fn new() -> Self {
        Self {
            tool: response(&answer(true)),
            last: response(&answer(false)),
            held: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            pause: AtomicU64::new(0),
        }
    }

    async fn converse(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::with_capacity(4096);
        loop {
            let Some((wanted, Range { start, end: length })) = head(&buffer) else {
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
            if let Wanted::Answer { .. } = wanted {
                self.calls.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add((length - start) as u64, Ordering::Relaxed);
                let pause = self.pause.load(Ordering::Relaxed);
                if pause > 0 {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            }
            match wanted {
                Wanted::Held => {
                    let held = self.held.load(Ordering::Relaxed);
                    stream.write_all(short(&held.to_string()).as_bytes()).await?;
                }
                Wanted::Pause(ms) => {
                    self.pause.store(ms, Ordering::Relaxed);
                    stream.write_all(short("").as_bytes()).await?;
                }
                Wanted::Asked => {
                    let (calls, bytes) =
                        (self.calls.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
                    stream.write_all(short(&format!("{calls} {bytes}")).as_bytes()).await?;
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

fn short(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

/// What a request wants, and where its body is, once its head is there.
fn head(bytes: &[u8]) -> Option<(Wanted, Range<usize>)> {
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
        HELD => return Some((Wanted::Held, body)),
        ASKED => return Some((Wanted::Asked, body)),
        _ => {}
    }
    if let Some(ms) = path.strip_prefix(PAUSE) {
        return Some((Wanted::Pause(ms.parse().ok()?), body));
    }
    let mut steps = path.split('/').skip(1);
    let tool_calls = steps.next()?.parse().ok()?;
    Some((Wanted::Answer { tool_calls, holds: steps.next()? == "hold" }, body))
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

/// Asks what the provider has counted, over a connection of its own.
pub(crate) struct Counts(std::net::TcpStream);

impl Counts {
    pub(crate) fn new(port: u16) -> std::io::Result<Self> {
        std::net::TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).map(Self)
    }

    /// How many calls are held.
    pub(crate) fn held(&mut self) -> Result<u64, Failure> {
        Ok(self.of(HELD)?.parse()?)
    }

    fn of(&mut self, path: &str) -> Result<String, Failure> {
        self.0.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes())?;
        let mut bytes = [0; 256];
        // Short enough to come in one piece.
        let read = self.0.read(&mut bytes)?;
        let text = std::str::from_utf8(&bytes[..read])?;
        let (_, told) = text.split_once("\r\n\r\n").ok_or("the provider does not say what it has counted")?;
        Ok(told.to_owned())
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
        assert_eq!(head(request), Some((wanted, request.len() - 4..request.len())));
        assert_eq!(head(&request[..60]), None);
        assert_eq!(head(b"GET /held HTTP/1.1\r\n\r\n"), Some((Wanted::Held, 22..22)));
        assert_eq!(head(b"GET /pause/5 HTTP/1.1\r\n\r\n"), Some((Wanted::Pause(5), 25..25)));
        assert_eq!(said_before(br#"[{"role":"user"},{"role":"assistant"},{"role":"assistant"}]"#), 2);
        assert!(serde_json::from_str::<serde_json::Value>(&answer(true)).is_ok());
    }
}
