//! One model call: encoded, sent, read, tried again.
//!
//! Owns the order of these, the deadline and the bounds. Knows no provider: what to write and how to read is
//! the wire's business, what to make of a failure [`crate::fault`]'s, when to try again [`crate::retry`]'s.

use crate::fault::Fault;
use crate::frames::{Frames, TooLong};
use crate::retry::{Advice, next_wait};
use crate::transport::{Endpoint, Incoming, Pieces, Transport};
use crate::wire::{Assemble, Chat, Format, Wire, WireError};
use bytes::Bytes;
use http::{HeaderMap, header};
use redflow_contract::fact::ModelAnswer;
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_ports::{DeltaObserver, Measurement, Meter};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Bytes of one answer as the provider sends it; what an agent takes of it is bounded far lower.
pub const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of an error that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long the body of an error is waited for.
const ERROR_PATIENCE: Duration = Duration::from_secs(2);

/// What all models of a process share.
pub struct Driver {
    /// The way out.
    pub transport: Arc<dyn Transport>,
    /// Who counts.
    pub meter: Arc<dyn Meter>,
}

/// One model at one place.
pub struct Target {
    /// Its language.
    pub wire: Box<dyn Wire>,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Who runs it, for metrics.
    pub provider: &'static str,
    /// Who runs it, for people.
    pub who: String,
    /// The model.
    pub model: String,
    /// How long one call may take, retries included.
    pub timeout: Duration,
    /// How often a call that failed for now is made again.
    pub max_retries: u32,
    /// What no error may say, though the provider says it.
    pub secrets: Scrubber,
}

impl Driver {
    /// Makes one call. Of an answer that comes in pieces, `deltas` hears the text of each try as it comes.
    ///
    /// # Errors
    /// Why there is no answer, for good.
    pub async fn call(
        &self,
        target: &Target,
        chat: &Chat<'_>,
        deltas: Option<&dyn DeltaObserver>,
    ) -> Result<ModelAnswer, Failure> {
        let deadline = Instant::now() + target.timeout;
        let mut tries = 1;
        loop {
            let told = Told { deltas, attempt: tries, bytes: 0 };
            let attempt = tokio::time::timeout_at(deadline, self.attempt(target, chat, told));
            let mut fault = match attempt.await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(fault)) => fault,
                Err(_) => Fault::TimedOut(target.timeout),
            };
            let wait = next_wait(&fault, tries, target.max_retries, fastrand::f64());
            // A wait that outlasts the call is no wait.
            let wait = wait.filter(|wait| Instant::now() + *wait < deadline);
            let Some(wait) = wait else {
                fault.scrub(&target.secrets);
                let message = fault.sentence(&target.who, &target.model, tries);
                return Err(Failure { code: fault.code(), message });
            };
            self.meter.record(Measurement::ModelRetry { provider: target.provider, failed: fault.code() });
            tracing::warn!(
                provider = target.provider,
                code = fault.code().as_str(),
                wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                "the model is asked again"
            );
            tokio::time::sleep(wait).await;
            tries += 1;
        }
    }

    async fn attempt(&self, target: &Target, chat: &Chat<'_>, told: Told<'_>) -> Result<ModelAnswer, Fault> {
        // Written anew for each try: a run that waits for its answer does not hold its question.
        let mut body = Vec::with_capacity(room_for(chat));
        let written = target.wire.encode(chat, &mut body);
        written.map_err(|_| Fault::Garbled("the request itself could not be written"))?;
        let Incoming { status, headers, body } = self.transport.post(&target.endpoint, body).await?;
        if !(200..300).contains(&status) {
            // The status says enough; its explanation is not waited for long.
            let text = tokio::time::timeout(ERROR_PATIENCE, read(body, MAX_ERROR_BYTES)).await;
            let (text, _) = text.unwrap_or_else(|_| Ok(Default::default())).unwrap_or_default();
            return Err(Fault::Provider(target.wire.error(status, &text), Advice::of(&headers, now())));
        }
        if let Some(what) = unreadable(&headers) {
            return Err(Fault::Garbled(what));
        }
        let mut answer = if chat.stream && !is_plain_json(&headers) {
            let frames = Frames::new(target.wire.framing());
            assemble(body, frames, target.wire.assemble(chat.reasoning), told).await?
        } else {
            let (text, whole) = read(body, MAX_RESPONSE_BYTES).await?;
            if !whole {
                return Err(Fault::TooLarge(MAX_RESPONSE_BYTES));
            }
            target.wire.decode(&text, chat.reasoning)?
        };
        answer.request_id = request_id(&headers);
        Ok(answer)
    }
}

/// About as many bytes as a request has, so that it is written without being moved, and little of it is empty.
fn room_for(chat: &Chat<'_>) -> usize {
    let told = chat.messages.iter().map(|message| message.content.len() + message.content.len() / 8 + 48);
    let schema = if let Format::JsonSchema(schema) = chat.format { schema.get().len() } else { 0 };
    256 + schema + told.sum::<usize>()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a server that was asked for a stream gives the whole answer at once.
fn is_plain_json(headers: &HeaderMap) -> bool {
    content_type(headers).eq_ignore_ascii_case("application/json")
}

fn content_type(headers: &HeaderMap) -> &str {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

/// What an answer is that no wire can read, and no second try makes better.
fn unreadable(headers: &HeaderMap) -> Option<&'static str> {
    let packed = headers.get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity");
    if packed.is_some() {
        return Some("the answer is compressed, which was not asked for");
    }
    content_type(headers).eq_ignore_ascii_case("text/html").then_some("a web page; check the address")
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = ["x-request-id", "request-id", "apim-request-id"].iter().find_map(|name| headers.get(*name))?;
    id.to_str().ok().map(|id| id.chars().take(100).collect())
}

/// Reads a body; also whether that was all of it.
async fn read(mut body: Box<dyn Pieces>, most: usize) -> Result<(Bytes, bool), Fault> {
    // Most answers come in one piece, which is then not copied.
    let Some(first) = body.next().await? else { return Ok((Bytes::new(), true)) };
    let Some(second) = body.next().await? else {
        let whole = first.len() <= most;
        return Ok((first.slice(..first.len().min(most)), whole));
    };
    let mut all = Vec::with_capacity(first.len() + second.len());
    all.extend_from_slice(&first);
    all.extend_from_slice(&second);
    while all.len() <= most {
        let Some(piece) = body.next().await? else { return Ok((all.into(), true)) };
        all.extend_from_slice(&piece);
    }
    all.truncate(most);
    Ok((all.into(), false))
}

async fn assemble(
    mut body: Box<dyn Pieces>,
    mut frames: Frames,
    mut answer: Box<dyn Assemble>,
    mut told: Told<'_>,
) -> Result<ModelAnswer, Fault> {
    let mut seen = 0_usize;
    while let Some(piece) = body.next().await? {
        seen = seen.saturating_add(piece.len());
        if seen > MAX_RESPONSE_BYTES {
            return Err(Fault::TooLarge(MAX_RESPONSE_BYTES));
        }
        let taken = frames.push(&piece, |name, data| take(&mut *answer, name, data));
        told.tell(&*answer);
        match taken.map_err(|TooLong| Fault::TooLarge(MAX_RESPONSE_BYTES))? {
            None => {}
            Some(Ok(())) => return Ok(answer.finish()?),
            Some(Err(error)) => return Err(error.into()),
        }
    }
    let taken = frames.end(|name, data| take(&mut *answer, name, data));
    told.tell(&*answer);
    match taken {
        // Half an event is no event: the stream broke off in it.
        Some(Err(WireError::Garbled(_))) => Err(Fault::Cut),
        Some(Err(error)) => Err(error.into()),
        Some(Ok(())) | None => Ok(answer.finish()?),
    }
}

/// How much of the answer of a try has been told to whoever hears it.
struct Told<'a> {
    deltas: Option<&'a dyn DeltaObserver>,
    attempt: u32,
    bytes: usize,
}

impl Told<'_> {
    /// Tells what is new.
    fn tell(&mut self, answer: &dyn Assemble) {
        let Some(deltas) = self.deltas else { return };
        let mut end = 0;
        answer.text(&mut |part| {
            let begin = self.bytes.saturating_sub(end);
            // A part that has grown after a later one was told may be cut in a character: then it stays untold.
            if let Some(new) = part.get(begin..).filter(|new| !new.is_empty()) {
                deltas.text(self.attempt, new);
            }
            end += part.len();
        });
        self.bytes = self.bytes.max(end);
    }
}

/// Something if that was the last event, or an error.
fn take(answer: &mut dyn Assemble, name: Option<&[u8]>, data: &[u8]) -> Option<Result<(), WireError>> {
    let name = match name.map(std::str::from_utf8).transpose() {
        Ok(name) => name,
        Err(_) => return Some(Err(WireError::Garbled("the name of an event is no text"))),
    };
    match answer.event(name, data) {
        Ok(false) => None,
        Ok(true) => Some(Ok(())),
        Err(error) => Some(Err(error)),
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
