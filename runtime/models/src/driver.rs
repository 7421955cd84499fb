//! One model call: encodes the request, sends it, reads the answer, retries.
//!
//! Owns the order of these steps, the deadline and the bounds. Knows no provider: the wire encodes and
//! decodes, [`crate::call_error`] classifies failures, and [`crate::retry`] decides on retries.

mod requests;

use crate::call_error::CallError;
use crate::entra::{AccessToken, EntraSignIn};
use crate::event_stream::{EventStream, EventTooLong};
use crate::raw_start::RawStart;
use crate::refusals::formats::RefusedFormats;
use crate::refusals::thoughts::RefusedThoughts;
use crate::refusals::{Interface, LearntChanges};
use crate::retry::retry_delay;
use crate::retry_advice::RetryAdvice;
use crate::transport::{Endpoint, ResponseBody, Transport, TransportResponse, read_body};
use crate::wire::{AnswerAssembler, AnswerFormat, ChatRequest, Reasoning, Wire, WireError};
use bytes::Bytes;
use http::{HeaderMap, header};
use redflow_contract::fact::{ModelAnswer, Usage};
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_ports::{DeltaObserver, Measurement, Meter, ModelWait, WaitObserver};
use requests::Requests;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;
use url::Url;

/// What a request costs by its usage; none if that is not known.
pub type CostOf<'a> = dyn Fn(&Usage) -> Option<f64> + Sync + 'a;

/// The largest answer, in bytes: as the provider sends it, or what is assembled from a stream. Agents accept far
/// less of it.
pub const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// The most bytes of a stream as the provider sends it. An event takes some hundred bytes for one token, so a long
/// answer is far smaller than its stream. A stream of comments or empty events must end too.
pub const MAX_STREAM_BYTES: usize = 256 * 1024 * 1024;

/// The most bytes that are read of an error.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The longest wait for the body of an error.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// The time between two requests to a server that loads its model.
const LOADING_WAIT: Duration = Duration::from_secs(2);

/// The longest time that a call waits for a model that is being loaded.
pub const MAX_LOADING_TIME: Duration = Duration::from_secs(300);

/// What to do about a token that Azure refuses.
const TOKEN_REMEDY: &str =
    "; the application needs a role on the resource, such as *Cognitive Services OpenAI User*";

/// What all models of a process share.
pub struct Driver {
    /// Sends the requests.
    pub transport: Arc<dyn Transport>,
    /// Counts the retries.
    pub meter: Arc<dyn Meter>,
}

/// One model at one address.
pub struct Target {
    /// The format of its requests and answers.
    pub wire: Box<dyn Wire>,
    /// Which of OpenAI's two interfaces it is. None for other wires.
    pub interface: Option<Interface>,
    /// Its address, and the headers of every request.
    pub endpoint: Endpoint,
    /// The provider, for metrics.
    pub provider: &'static str,
    /// The provider and its host, for users.
    pub provider_text: String,
    /// The name of the model, for messages.
    pub model: String,
    /// How long one call may take, retries included.
    pub timeout: Duration,
    /// The longest time between two parts of a stream.
    pub idle_timeout: Option<Duration>,
    /// Secrets to remove from the errors of the provider.
    pub secrets: Scrubber,
    /// Signs in for a token that every request needs. None if the headers of the endpoint are enough.
    pub sign_in: Option<Arc<EntraSignIn>>,
}

impl Target {
    /// The same address with another model.
    pub(crate) fn with_model(&self, model: &str) -> Self {
        Self {
            wire: self.wire.with_model(model),
            interface: self.interface,
            endpoint: self.endpoint.clone(),
            provider: self.provider,
            provider_text: self.provider_text.clone(),
            model: model.to_owned(),
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            secrets: self.secrets.clone(),
            sign_in: self.sign_in.clone(),
        }
    }
}

/// How often and how a call may be repeated.
#[derive(Clone, Copy, Default)]
pub struct CallOptions<'a> {
    /// When the call must have ended. None for the timeout of the target from now on.
    pub deadline: Option<Instant>,
    /// How often it is retried after a passing failure.
    pub max_retries: u32,
    /// Whether a provider that refuses to stream fails the call. If not, it is called without a stream.
    pub requires_stream: bool,
    /// The same model behind OpenAI's other interface, if it may be called there.
    pub other_interface: Option<&'a Target>,
    /// Whether the node allows only this interface, although there is another one.
    pub only_interface: bool,
    /// Whether the node sets the limit of output tokens.
    pub has_own_limit: bool,
    /// The most output tokens of the model. None if unknown.
    pub max_output: Option<u32>,
    /// What a request costs by its usage; none if the price is not known. Each request is paid for itself, because larger
    /// ones have other prices.
    pub cost: Option<&'a CostOf<'a>>,
    /// Where changes of requests are remembered, if the provider accepts the changed one.
    pub learnt: Option<&'a LearntChanges>,
    /// The formats to ask for if the provider refuses that of the request, the strictest first.
    pub weaker_formats: &'a [AnswerFormat<'a>],
    /// Where a refused format is remembered, if the provider accepts a weaker one.
    pub refused_formats: Option<&'a RefusedFormats>,
    /// Where refused thoughts are remembered, if the provider accepts the request without them.
    pub refused_thoughts: Option<&'a RefusedThoughts>,
    /// Whether the call waits for a model that is still being loaded.
    pub waits_for_loading: bool,
    /// Learns that it does.
    pub wait_observer: Option<&'a dyn WaitObserver>,
    /// Whether the answer keeps the start of the response as it was sent.
    pub keeps_raw: bool,
}

impl Driver {
    /// Makes one call. `deltas` receives the text of a streamed answer as it arrives, separately for each
    /// attempt. It receives any other text at once.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub async fn call(
        &self,
        target: &Target,
        chat: &ChatRequest<'_>,
        options: CallOptions<'_>,
        deltas: Option<&dyn DeltaObserver>,
    ) -> Result<ModelAnswer, Failure> {
        let deadline = options.deadline.unwrap_or_else(|| Instant::now() + target.timeout);
        let mut loading = LoadingWait { observer: options.wait_observer, since: None, is_reported: false };
        let mut requests = Requests::new(target, chat, options);
        let (mut max_retries, mut attempts) = (options.max_retries, 1);
        loop {
            let raw = options.keeps_raw.then(Box::default);
            let mut progress =
                DeltaProgress { deltas, attempt: attempts, reported_bytes: 0, is_answered: false, raw };
            // Awaited without a variable, which would take the room of the attempt once more.
            let error = match tokio::time::timeout_at(
                deadline,
                self.attempt(&requests, &mut progress, &mut loading),
            )
            .await
            {
                Ok(Ok(answer)) => {
                    if requests.raise_limit(&answer) {
                        tracing::info!(
                            provider = target.provider,
                            "the answer was cut off before its first word, so it is asked for with twice the limit"
                        );
                        attempts += 1;
                        max_retries = max_retries.saturating_add(1);
                        continue;
                    }
                    return Ok(requests.finish(answer));
                }
                Ok(Err(error)) => error,
                Err(_) => CallError::TimedOut(target.timeout),
            };
            let is_in_time = |wait: &Duration| Instant::now() + *wait < deadline;
            if options.waits_for_loading
                && error.is_loading()
                && is_in_time(&LOADING_WAIT)
                && loading.elapsed() < MAX_LOADING_TIME
            {
                loading.begin();
                tracing::info!(provider = target.provider, "waiting while the server loads the model");
                tokio::time::sleep(LOADING_WAIT).await;
                continue;
            }
            loading.end();
            // Once an answer has begun, its text may have been read.
            if !progress.is_answered && requests.change_after(&error) {
                attempts += 1;
                max_retries = max_retries.saturating_add(1);
                continue;
            }
            // There is no retry after the deadline.
            let wait = retry_delay(&error, attempts, max_retries, fastrand::f64()).filter(is_in_time);
            let Some(wait) = wait else {
                let target = requests.target();
                let mut error = requests.final_error(error);
                error.scrub(&target.secrets);
                let mut message = error.message(&target.provider_text, &target.model, attempts);
                if error.is_not_found() {
                    let address = target.wire.address(&target.endpoint.url, chat.stream);
                    let _ = write!(message, "; the request went to {}", shown_address(&address));
                }
                if options.only_interface && error.may_mean_interface() {
                    message.push_str(
                        "; `api` of the node is \"responses\": with \"auto\" another interface is tried",
                    );
                }
                if error.is_refused_token() && target.sign_in.is_some() {
                    message.push_str(TOKEN_REMEDY);
                }
                return Err(Failure { code: error.code(), message });
            };
            self.meter.record(Measurement::ModelRetry { provider: target.provider, failed: error.code() });
            tracing::warn!(
                provider = target.provider,
                code = error.code().as_str(),
                wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                "retrying the model call"
            );
            tokio::time::sleep(wait).await;
            attempts += 1;
        }
    }

    async fn attempt(
        &self,
        requests: &Requests<'_>,
        progress: &mut DeltaProgress<'_>,
        loading: &mut LoadingWait<'_>,
    ) -> Result<ModelAnswer, CallError> {
        let (target, chat) = (requests.target(), requests.chat());
        let (response, token) = self.send(requests).await?;
        let TransportResponse { status, headers, body } = response;
        if !(200..300).contains(&status) {
            let text = without_secrets(&read_error_body(body).await, target, token.as_deref());
            let advice = RetryAdvice::from_headers(&headers, now());
            let after = advice.after.or_else(|| target.wire.requested_wait(&text));
            let error = target.wire.parse_error(status, &text);
            let error = CallError::Provider(error, RetryAdvice { after, ..advice });
            return Err(without_token(error, token.as_deref()));
        }
        progress.is_answered = true;
        loading.end();
        if let Some(reason) = unreadable_reason(&headers) {
            return Err(CallError::Malformed(reason));
        }
        let answer = if chat.stream && !is_plain_json(&headers) {
            let events = EventStream::new(target.wire.stream_format());
            let idle_timeout = target.idle_timeout.unwrap_or(Duration::MAX);
            read_stream(body, events, target.wire.assembler(chat.reasoning), idle_timeout, progress).await
        } else {
            read_answer(body, &*target.wire, chat.reasoning, progress).await
        };
        let mut answer = answer.map_err(|error| without_token(error, token.as_deref()))?;
        answer.request_id = request_id(&headers);
        answer.raw = progress.raw.take().map(|raw| raw.into_text());
        if let Some(token) = token {
            token.secrets.answer(&mut answer);
        }
        Ok(answer)
    }

    /// Sends a request, and the token that it was sent with. A token that is refused is renewed once.
    async fn send(
        &self,
        requests: &Requests<'_>,
    ) -> Result<(TransportResponse, Option<Arc<AccessToken>>), CallError> {
        let target = requests.target();
        let (endpoint, mut refused) = (endpoint_of(target, requests.chat().stream), None);
        loop {
            let (endpoint, token) = match &target.sign_in {
                None => (Cow::Borrowed(&*endpoint), None),
                Some(sign_in) => {
                    // Boxed, because few models sign in.
                    let token = Box::pin(sign_in.token(&*self.transport, refused.as_ref())).await?;
                    (Cow::Owned(token.add_to(&endpoint)), Some(token))
                }
            };
            // Each attempt encodes the body again, and only when it can be sent, so that a waiting run does not hold it
            // in memory.
            let encoded = requests.encode();
            let body = encoded.map_err(|_| CallError::Malformed("the request could not be encoded"))?;
            let response = self.transport.post(&endpoint, body).await?;
            match token {
                Some(token) if response.status == 401 && refused.is_none() => refused = Some(token),
                token => return Ok((response, token)),
            }
        }
    }
}

/// The body of an error without the secrets of the request. The wires cut its text, so it is scrubbed first.
fn without_secrets(body: &[u8], target: &Target, token: Option<&AccessToken>) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(body).into_owned();
    target.secrets.text(&mut text);
    if let Some(token) = token {
        token.secrets.text(&mut text);
    }
    text.into_bytes()
}

/// An error without the token that the request was sent with.
fn without_token(mut error: CallError, token: Option<&AccessToken>) -> CallError {
    if let Some(token) = token {
        error.scrub(&token.secrets);
    }
    error
}

/// Reads an answer that comes at once.
async fn read_answer(
    body: Box<dyn ResponseBody>,
    wire: &dyn Wire,
    reasoning: Reasoning,
    progress: &mut DeltaProgress<'_>,
) -> Result<ModelAnswer, CallError> {
    let (text, is_complete) = read_body(body, MAX_RESPONSE_BYTES).await?;
    if !is_complete {
        return Err(CallError::TooLarge(MAX_RESPONSE_BYTES));
    }
    if let Some(raw) = &mut progress.raw {
        raw.add(&text);
    }
    let answer = wire.decode(&text, reasoning)?;
    if let Some(deltas) = progress.deltas.filter(|_| !answer.text.is_empty()) {
        deltas.text(progress.attempt, &answer.text);
    }
    Ok(answer)
}

/// The endpoint of a request. Its headers are copied only for a wire with several addresses.
fn endpoint_of(target: &Target, stream: bool) -> Cow<'_, Endpoint> {
    match target.wire.address(&target.endpoint.url, stream) {
        Cow::Borrowed(_) => Cow::Borrowed(&target.endpoint),
        Cow::Owned(url) => Cow::Owned(Endpoint { url, headers: target.endpoint.headers.clone() }),
    }
}

/// Reads the body of an error. The status says enough, so the wait for its explanation is short.
pub(crate) async fn read_error_body(body: Box<dyn ResponseBody>) -> Bytes {
    let text = tokio::time::timeout(ERROR_BODY_TIMEOUT, read_body(body, MAX_ERROR_BYTES)).await;
    let (text, _) = text.unwrap_or_else(|_| Ok(Default::default())).unwrap_or_default();
    text
}

/// About the size of the encoded request, so that encoding rarely reallocates and wastes little memory.
pub(crate) fn estimated_bytes(chat: &ChatRequest<'_>) -> usize {
    let quoted = |text: &str| text.len() + text.len() / 8 + 48;
    let messages = chat.messages.iter().map(|message| {
        let calls = message.tool_calls.iter().map(|call| quoted(&call.arguments) + 64);
        let images = message.images.iter().map(|image| image.data.len() + 96);
        quoted(&message.content) + calls.sum::<usize>() + images.sum::<usize>()
    });
    let tools = chat.tools.iter().map(|tool| tool.description.len() + 256);
    let schema =
        if let AnswerFormat::JsonSchema { schema, .. } = chat.format { schema.get().len() } else { 0 };
    256 + schema + tools.sum::<usize>() + messages.sum::<usize>()
}

/// An address without its query.
pub(crate) fn shown_address(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a server ignored the request for a stream and sent the whole answer at once.
fn is_plain_json(headers: &HeaderMap) -> bool {
    content_type(headers).eq_ignore_ascii_case("application/json")
}

fn content_type(headers: &HeaderMap) -> &str {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

/// Why no wire can read the body, whatever it holds. A retry would not help.
pub(crate) fn unreadable_reason(headers: &HeaderMap) -> Option<&'static str> {
    let encoding = headers.get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity");
    if encoding.is_some() {
        return Some("the answer is compressed, which was not requested");
    }
    content_type(headers).eq_ignore_ascii_case("text/html").then_some("it is a web page; check the address")
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = ["x-request-id", "request-id", "apim-request-id"].iter().find_map(|name| headers.get(*name))?;
    id.to_str().ok().map(|id| id.chars().take(100).collect())
}

async fn read_stream(
    mut body: Box<dyn ResponseBody>,
    mut events: EventStream,
    mut assembler: Box<dyn AnswerAssembler>,
    idle_timeout: Duration,
    progress: &mut DeltaProgress<'_>,
) -> Result<ModelAnswer, CallError> {
    let mut received = 0_usize;
    loop {
        let next = tokio::time::timeout(idle_timeout, body.next()).await;
        let Some(part) = next.map_err(|_| CallError::Idle(idle_timeout))?? else { break };
        received = received.saturating_add(part.len());
        if received > MAX_STREAM_BYTES {
            return Err(CallError::TooLarge(MAX_STREAM_BYTES));
        }
        if let Some(raw) = &mut progress.raw {
            raw.add(&part);
        }
        let result = events.push(&part, |name, data| add_event(&mut *assembler, name, data));
        progress.report(&*assembler);
        if assembler.held_bytes() > MAX_RESPONSE_BYTES {
            return Err(CallError::TooLarge(MAX_RESPONSE_BYTES));
        }
        match result.map_err(|EventTooLong| CallError::TooLarge(MAX_RESPONSE_BYTES))? {
            None => {}
            Some(Ok(())) => return Ok(assembler.finish()?),
            Some(Err(error)) => return Err(error.into()),
        }
    }
    let result = events.finish(|name, data| add_event(&mut *assembler, name, data));
    progress.report(&*assembler);
    match result {
        // The stream broke off within this event.
        Some(Err(WireError::Malformed(_))) => Err(CallError::Interrupted),
        Some(Err(error)) => Err(error.into()),
        Some(Ok(())) | None => Ok(assembler.finish()?),
    }
}

/// The wait of a call for a model that is being loaded.
struct LoadingWait<'a> {
    observer: Option<&'a dyn WaitObserver>,
    /// When the call first waited.
    since: Option<Instant>,
    /// Whether the observer takes the call for waiting.
    is_reported: bool,
}

impl LoadingWait<'_> {
    fn elapsed(&self) -> Duration {
        self.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.is_reported = true;
        if let Some(observer) = self.observer {
            observer.waiting(Some(ModelWait::Loading));
        }
    }

    /// The server answers something else, so the model is loaded.
    fn end(&mut self) {
        if std::mem::take(&mut self.is_reported)
            && let Some(observer) = self.observer
        {
            observer.waiting(None);
        }
    }
}

/// What has arrived of an attempt's answer, and how much of it the observer has received.
struct DeltaProgress<'a> {
    deltas: Option<&'a dyn DeltaObserver>,
    attempt: u32,
    reported_bytes: usize,
    /// Whether the response is an answer and not an error.
    is_answered: bool,
    /// The start of the response. None if the answer does not keep it.
    raw: Option<Box<RawStart>>,
}

impl DeltaProgress<'_> {
    /// Sends the new text to the observer.
    fn report(&mut self, assembler: &dyn AnswerAssembler) {
        let Some(deltas) = self.deltas else { return };
        let mut end = 0;
        assembler.visit_text(&mut |part| {
            let begin = self.reported_bytes.saturating_sub(end);
            // A part that grows after a later one was reported may be cut within a character. Then it is not
            // reported.
            if let Some(new) = part.get(begin..).filter(|new| !new.is_empty()) {
                deltas.text(self.attempt, new);
            }
            end += part.len();
        });
        self.reported_bytes = self.reported_bytes.max(end);
    }
}

/// Something after the last event, or after an error.
fn add_event(
    assembler: &mut dyn AnswerAssembler,
    name: Option<&[u8]>,
    data: &[u8],
) -> Option<Result<(), WireError>> {
    let name = match name.map(std::str::from_utf8).transpose() {
        Ok(name) => name,
        Err(_) => return Some(Err(WireError::Malformed("the name of an event is not UTF-8"))),
    };
    match assembler.add_event(name, data) {
        Ok(false) => None,
        Ok(true) => Some(Ok(())),
        Err(error) => Some(Err(error)),
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
