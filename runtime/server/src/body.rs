//! Bodies: plain JSON of bounded size, read in bounded time, read strictly.

use crate::answer::Problem;
use crate::settings::Settings;
use crate::sidecar::blocking;
use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use futures::StreamExt as _;
use redflow_contract::code::ApiCode;
use redflow_contract::json::{JsonLimits, JsonProblem, parse_strict};
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};

/// A body larger than this is read beside the others, not before them.
const LARGE: usize = 256 * 1024;

/// Deepest nesting of a body: a flow, and what it is wrapped in.
const ROOM_AROUND_FLOWS: usize = 2;

/// Large bodies that are worked on at the same time, whoever sends them.
static TURNS: Semaphore = Semaphore::const_new(4);

/// Held as long as something that came in a large body is worked on.
pub(crate) type Turn = Option<SemaphorePermit<'static>>;

/// What is around a message in a body, in bytes.
const ROOM_AROUND_MESSAGES: usize = 64 * 1024;

/// Reads a body that holds a flow. Its turn is to be held until everything is done with it.
pub(crate) async fn flow<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: Body,
    settings: &Settings,
) -> Result<(T, Turn), Problem> {
    read(headers, body, settings, settings.max_body_bytes).await
}

/// Reads a body that holds no more than a message.
pub(crate) async fn message<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: Body,
    settings: &Settings,
) -> Result<T, Problem> {
    let message = usize::try_from(settings.run_limits.max_message_bytes).unwrap_or(usize::MAX);
    let most = settings.max_body_bytes.min(message.saturating_add(ROOM_AROUND_MESSAGES));
    Ok(read(headers, body, settings, most).await?.0)
}

/// Reads a body of at most so many bytes. Its turn is to be held until everything is done with it.
pub(crate) async fn within<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: Body,
    settings: &Settings,
    most_bytes: usize,
) -> Result<(T, Turn), Problem> {
    read(headers, body, settings, settings.max_body_bytes.min(most_bytes)).await
}

async fn read<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: Body,
    settings: &Settings,
    most_bytes: usize,
) -> Result<(T, Turn), Problem> {
    redflow_access::json_only(headers)?;
    let (bytes, turn) = collect(body, settings, most_bytes).await?;
    let is_small = turn.is_none();
    let limits =
        JsonLimits { max_bytes: most_bytes, max_depth: settings.flow_limits.max_depth + ROOM_AROUND_FLOWS };
    let most = settings.max_body_keys;
    let read = move || {
        if count_values(&bytes) > most {
            let text = format!("The body has more than {most} keys and elements of lists.");
            return Err(Problem::new(ApiCode::BodyTooLarge, text));
        }
        parse(&bytes, limits)
    };
    let value = if is_small { read()? } else { blocking(read).await?? };
    Ok((value, turn))
}

/// How many values a JSON text has at most, without reading it: each takes far more room than its text.
fn count_values(text: &[u8]) -> usize {
    let (mut values, mut in_string, mut escaped) = (0, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

/// A route without a body takes none.
pub(crate) async fn none(body: Body, settings: &Settings) -> Result<(), Problem> {
    let (bytes, _) = collect(body, settings, LARGE).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) || bytes == b"{}" {
        return Ok(());
    }
    Err(Problem::new(ApiCode::BodyInvalid, "This address takes no body; send none."))
}

async fn collect(body: Body, settings: &Settings, most: usize) -> Result<(Vec<u8>, Turn), Problem> {
    let too_large = || {
        let text = format!("The body has more than {most} bytes, which is what this address takes.");
        Problem::new(ApiCode::BodyTooLarge, text)
    };
    // It says so itself: not a byte of it is read.
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let read = async {
        let (mut bytes, mut turn) = (Vec::new(), None);
        let mut pieces = body.into_data_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| {
                Problem::new(ApiCode::RequestInvalid, "The body broke off or is not framed as HTTP says.")
            })?;
            if bytes.len() + piece.len() > most {
                return Err(too_large());
            }
            if turn.is_none() && bytes.len() + piece.len() > LARGE {
                turn = TURNS.acquire().await.ok();
            }
            bytes.extend_from_slice(&piece);
        }
        Ok((bytes, turn))
    };
    tokio::time::timeout(settings.body_timeout, read).await.unwrap_or_else(|_| {
        Err(Problem::new(
            ApiCode::RequestTimeout,
            "The body did not arrive in time, or too many large ones came at once. Send it again.",
        ))
    })
}

/// Reads JSON strictly. Says where it is wrong, and quotes nothing of it: it may hold secrets.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8], limits: JsonLimits) -> Result<T, Problem> {
    let value = parse_strict(bytes, limits).map_err(|problem| {
        let (code, text) = match problem {
            JsonProblem::TooLarge { limit, .. } => {
                (ApiCode::BodyTooLarge, format!("The body has more than {limit} bytes."))
            }
            JsonProblem::TooDeep { limit, .. } => {
                (ApiCode::BodyInvalid, format!("The body nests deeper than {limit} levels."))
            }
            JsonProblem::NotJson { message, line, column } => (
                ApiCode::BodyInvalid,
                format!("The body is no JSON: {message} in line {line}, column {column}."),
            ),
            JsonProblem::DuplicateKeys { pointers, .. } => {
                let first = pointers.first().map(|pointer| printable(pointer)).unwrap_or_default();
                (ApiCode::BodyInvalid, format!("The body names a key twice, at `{first}`."))
            }
        };
        Problem::new(code, text)
    })?;
    serde_json::from_value(value).map_err(|error| {
        let text = error.to_string();
        // These name keys only; others may quote a value.
        let known = ["unknown field", "missing field", "unknown variant"];
        let text = match known.iter().find(|start| text.starts_with(*start)) {
            Some(_) => printable(&text),
            None => "a value is of another kind than its key wants".to_owned(),
        };
        Problem::new(ApiCode::BodyInvalid, format!("The body does not fit: {text}. See /openapi.json."))
    })
}

/// The beginning of a stranger's text, as text.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
