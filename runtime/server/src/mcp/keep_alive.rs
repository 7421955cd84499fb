//! Signs of life while a call works. A proxy ends a connection on which nothing moves, often after 60 seconds.

use axum::body::{Body, BodyDataStream, Bytes, to_bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::{StreamExt as _, stream};
use redflow_contract::code::RunErrorCode;
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;

/// An event stream that clients ignore.
const COMMENT: &str = ": keep-alive\n\n";

/// The code of JSON-RPC for a failure of the server.
const INTERNAL_ERROR: i32 = -32603;

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The answer to a request. If it takes longer than `interval`, it becomes a stream of events with a comment at each
/// interval. `id` is the id of the request as JSON.
pub(super) async fn keep_alive(
    answer: impl Future<Output = Response> + Send + 'static,
    interval: Duration,
    id: Option<String>,
) -> Response {
    let mut answer: ResponseFuture = Box::pin(answer);
    if let Ok(response) = timeout(interval, &mut answer).await {
        return response;
    }
    let comment = stream::once(std::future::ready(Ok(Bytes::from_static(COMMENT.as_bytes()))));
    let state = SlowAnswer { part: AnswerPart::Waiting(answer), interval, id };
    let rest = stream::unfold(state, |mut state| async { state.next().await.map(|bytes| (bytes, state)) });
    let mut response = Response::new(Body::from_stream(comment.chain(rest)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would hold the comments back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// An answer whose stream has begun before it.
struct SlowAnswer {
    part: AnswerPart,
    interval: Duration,
    id: Option<String>,
}

enum AnswerPart {
    Waiting(ResponseFuture),
    /// The answer is a stream itself, with its own signs of life.
    Streaming(BodyDataStream),
    Complete,
}

impl SlowAnswer {
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            match &mut self.part {
                AnswerPart::Waiting(answer) => match timeout(self.interval, answer).await {
                    Err(_) => return Some(Ok(Bytes::from_static(COMMENT.as_bytes()))),
                    Ok(response) if is_stream(&response) => {
                        self.part = AnswerPart::Streaming(response.into_body().into_data_stream());
                    }
                    Ok(response) => {
                        self.part = AnswerPart::Complete;
                        return Some(Ok(event_of(response, self.id.as_deref()).await));
                    }
                },
                AnswerPart::Streaming(body) => return body.next().await,
                AnswerPart::Complete => return None,
            }
        }
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// An answer of one message as an event. The status is sent already, so an answer without a message becomes an error.
async fn event_of(response: Response, id: Option<&str>) -> Bytes {
    // The body is in memory already.
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
    let mut message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if message.get("jsonrpc").is_none() {
        let text = message["message"].as_str().unwrap_or("The sidecar could not answer.");
        let id: Value = id.and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default();
        let code = message["code"].as_str().unwrap_or(RunErrorCode::Internal.as_str());
        let error = json!({"code": INTERNAL_ERROR, "message": text, "data": {"code": code}});
        message = json!({"jsonrpc": "2.0", "id": id, "error": error});
    }
    format!("data: {message}\n\n").into()
}

#[cfg(test)]
#[path = "keep_alive_tests.rs"]
mod tests;
