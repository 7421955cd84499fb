//! Request bodies: strict JSON or bytes, of bounded size, that arrive in bounded time.

use crate::app::App;
use crate::response::{Problem, printable};
use crate::work_slots::{BodySlot, work_on_body};
use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use futures::StreamExt as _;
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use redflow_contract::json::{
    JsonLimits, JsonProblem, LIST_FOR_OBJECT, count_values, parse_exact, read_typed,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A larger body needs a slot. A larger body or message is parsed on another thread.
pub(crate) const LARGE: usize = 256 * 1024;

/// Levels of nesting around a flow.
const LEVELS_AROUND_FLOW: usize = 2;

/// Bytes around a message.
pub(crate) const BYTES_AROUND_MESSAGE: usize = 64 * 1024;

/// Bytes a second. A slower body gives its slot up if other callers wait for one.
const MIN_RATE: f64 = 128.0 * 1024.0;

/// How often the rate of a body is checked.
const RATE_CHECK: Duration = Duration::from_secs(1);

/// The body of a request, and the name of the token of the caller that sends it.
pub(crate) struct RequestBody {
    caller: Arc<str>,
    body: Body,
}

impl RequestBody {
    pub(crate) fn new(caller: &Caller, body: Body) -> Self {
        Self { caller: Arc::clone(&caller.token_name), body }
    }
}

impl<S: Sync> FromRequest<S> for RequestBody {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        // The guard has set the caller.
        let caller = request.extensions().get().map_or_else(Caller::anonymous, Caller::clone);
        Ok(Self { caller: caller.token_name, body: request.into_body() })
    }
}

/// Reads a body that holds a flow. The caller holds the slot until it is done with the flow.
pub(crate) async fn read_flow<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: RequestBody,
    app: &App,
) -> Result<(T, BodySlot), Problem> {
    read(headers, body, app, app.settings.max_body_bytes).await
}

/// Reads a body that holds no more than a message.
pub(crate) async fn read_message<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: RequestBody,
    app: &App,
) -> Result<T, Problem> {
    Ok(read(headers, body, app, max_message_body(app)).await?.0)
}

/// Bytes of a body that holds no more than a message.
fn max_message_body(app: &App) -> usize {
    let message = usize::try_from(app.settings.run_limits.max_message_bytes).unwrap_or(usize::MAX);
    app.settings.max_body_bytes.min(message.saturating_add(BYTES_AROUND_MESSAGE))
}

/// Reads a body of limited size. The caller holds the slot until it is done with the content.
pub(crate) async fn read_limited<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: RequestBody,
    app: &App,
    max_bytes: usize,
) -> Result<(T, BodySlot), Problem> {
    read(headers, body, app, app.settings.max_body_bytes.min(max_bytes)).await
}

async fn read<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: RequestBody,
    app: &App,
    max_bytes: usize,
) -> Result<(T, BodySlot), Problem> {
    redflow_access::json_only(headers)?;
    let (bytes, slot) = collect(body, app, max_bytes).await?;
    let read = parser(app, max_bytes);
    let (value, slot) = work_on_body(slot, move || to_type(read(&bytes)?)).await?;
    Ok((value?, slot))
}

/// Parses a body within the limits of the sidecar.
fn parser(app: &App, max_bytes: usize) -> impl FnOnce(&[u8]) -> Result<Value, Problem> + use<> {
    let max_depth = app.settings.flow_limits.max_depth + LEVELS_AROUND_FLOW;
    let limits = JsonLimits { max_bytes, max_depth };
    let max_keys = app.settings.max_body_keys;
    move |bytes| {
        // A text has at most as many values as bytes.
        if bytes.len() > max_keys && count_values(bytes) > max_keys {
            let text = format!("The body has more than {max_keys} object keys and list elements.");
            return Err(Problem::new(ApiCode::BodyTooLarge, text));
        }
        parse_value(bytes, limits)
    }
}

/// Reads a body that holds no more than a message. Gives its value, and its bytes for another parser.
pub(crate) async fn read_json(
    headers: &HeaderMap,
    body: RequestBody,
    app: &App,
) -> Result<(Value, Vec<u8>), Problem> {
    redflow_access::json_only(headers)?;
    let max_bytes = max_message_body(app);
    let (bytes, slot) = collect(body, app, max_bytes).await?;
    let read = parser(app, max_bytes);
    let (read, _) = work_on_body(slot, move || (read(&bytes), bytes)).await?;
    Ok((read.0?, read.1))
}

/// Reads a body of any bytes. Its slot is free again when all of them are there.
pub(crate) async fn read_bytes(
    headers: &HeaderMap,
    body: RequestBody,
    app: &App,
    max_bytes: usize,
) -> Result<Vec<u8>, Problem> {
    redflow_access::bytes_only(headers)?;
    Ok(collect(body, app, app.settings.max_body_bytes.min(max_bytes)).await?.0)
}

/// Refuses a body where the route has none. An empty object counts as none.
pub(crate) async fn expect_none(body: RequestBody, app: &App) -> Result<(), Problem> {
    let (bytes, _) = collect(body, app, LARGE).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) || bytes == b"{}" {
        return Ok(());
    }
    Err(Problem::new(ApiCode::BodyInvalid, "This route takes no body."))
}

async fn collect(body: RequestBody, app: &App, max_bytes: usize) -> Result<(Vec<u8>, BodySlot), Problem> {
    let too_large = || {
        let text = format!("The body has more than {max_bytes} bytes, the limit of this route.");
        Problem::new(ApiCode::BodyTooLarge, text)
    };
    let RequestBody { caller, body } = body;
    // The header announces it, so no byte is read.
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large());
    }
    let read = async {
        let (mut bytes, mut slot, mut rate) = (Vec::new(), None, None);
        let mut pieces = body.into_data_stream();
        while let Some(piece) = next_piece(&mut pieces, rate.as_mut(), app).await? {
            let piece = piece.map_err(|_| {
                Problem::new(
                    ApiCode::RequestInvalid,
                    "The body ended early or is not framed as HTTP requires.",
                )
            })?;
            if bytes.len() + piece.len() > max_bytes {
                return Err(too_large());
            }
            if slot.is_none() && bytes.len() + piece.len() > LARGE {
                slot = app.work_slots.large_body(&caller).await;
                rate = Some(ArrivalRate::new());
            }
            if let Some(rate) = &mut rate {
                rate.bytes += piece.len();
            }
            bytes.extend_from_slice(&piece);
        }
        Ok((bytes, slot))
    };
    tokio::time::timeout(app.settings.body_timeout, read).await.unwrap_or_else(|_| {
        Err(Problem::new(
            ApiCode::RequestTimeout,
            "The body did not arrive in time, or too many large bodies arrived at once. Send it again.",
        ))
    })
}

/// How fast a body arrives since the last check.
struct ArrivalRate {
    since: Instant,
    bytes: usize,
    is_slow: bool,
}

impl ArrivalRate {
    fn new() -> Self {
        Self { since: Instant::now(), bytes: 0, is_slow: false }
    }

    fn is_slow(&mut self) -> bool {
        let elapsed = self.since.elapsed();
        if elapsed >= RATE_CHECK {
            let is_slow = (self.bytes as f64) < elapsed.as_secs_f64() * MIN_RATE;
            *self = Self { is_slow, ..Self::new() };
        }
        self.is_slow
    }
}

/// The next piece of a body. A slow body that has a slot gives way when other callers wait for one.
async fn next_piece(
    pieces: &mut BodyDataStream,
    rate: Option<&mut ArrivalRate>,
    app: &App,
) -> Result<Option<Result<Bytes, axum::Error>>, Problem> {
    let Some(rate) = rate else { return Ok(pieces.next().await) };
    loop {
        if rate.is_slow() && app.work_slots.has_waiting_bodies() {
            let text = "The body arrived too slowly while other callers waited. Send it again.";
            return Err(Problem::new(ApiCode::RequestTimeout, text));
        }
        if let Ok(piece) = tokio::time::timeout(RATE_CHECK, pieces.next()).await {
            return Ok(piece);
        }
    }
}

/// Reads strict JSON. Errors give the place and quote no value, because it may be a secret.
fn parse_value(bytes: &[u8], limits: JsonLimits) -> Result<Value, Problem> {
    parse_exact(bytes, limits).map_err(|problem| {
        let (code, text) = match problem {
            JsonProblem::TooLarge { limit, .. } => {
                (ApiCode::BodyTooLarge, format!("The body has more than {limit} bytes."))
            }
            JsonProblem::TooDeep { limit, .. } => {
                (ApiCode::BodyInvalid, format!("The body nests deeper than {limit} levels."))
            }
            JsonProblem::NotJson { message, line, column } => (
                ApiCode::BodyInvalid,
                format!("The body is not JSON: {message} in line {line}, column {column}."),
            ),
            JsonProblem::DuplicateKeys { pointers, .. } => {
                let first = pointers.first().map(|pointer| printable(pointer)).unwrap_or_default();
                (ApiCode::BodyInvalid, format!("The body has a duplicate key at `{first}`."))
            }
        };
        Problem::new(code, text)
    })
}

fn to_type<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    read_typed(value).map_err(|error| {
        let text = error.to_string();
        // These messages name keys only; others may quote a value.
        let safe = ["unknown field", "missing field", "unknown variant", LIST_FOR_OBJECT];
        let text = match safe.iter().find(|start| text.starts_with(*start)) {
            Some(_) => printable(&text),
            None => "a value has the wrong type for its key".to_owned(),
        };
        Problem::new(
            ApiCode::BodyInvalid,
            format!("The body does not match the schema: {text}. See /openapi.json."),
        )
    })
}
