use super::keep_alive;
use crate::response::{Problem, json as json_response};
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::Response;
use futures::StreamExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const INTERVAL: Duration = Duration::from_secs(10);
const COMMENT: &str = ": keep-alive\n\n";

/// The parts of the body, each with the second in which it came.
async fn parts(response: Response, began: Instant) -> Vec<(u64, String)> {
    let parts = response
        .into_body()
        .into_data_stream()
        .map(|part| (began.elapsed().as_secs(), String::from_utf8(part.unwrap().to_vec()).unwrap()));
    parts.collect().await
}

async fn answer_after(seconds: u64, response: Response) -> Response {
    sleep(Duration::from_secs(seconds)).await;
    response
}

#[tokio::test(start_paused = true)]
async fn a_fast_answer_stays_as_it_is() {
    let response = json_response(404, &json!({"jsonrpc": "2.0", "id": 1}));
    let kept = keep_alive(answer_after(9, response), INTERVAL, None).await;
    assert_eq!(
        (kept.status().as_u16(), &kept.headers()[header::CONTENT_TYPE]),
        (404, &"application/json".parse().unwrap())
    );
    assert_eq!(parts(kept, Instant::now()).await[0].1, r#"{"jsonrpc":"2.0","id":1}"#);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_a_stream_with_a_comment_at_each_interval() {
    let began = Instant::now();
    let response = json_response(200, &json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let kept = keep_alive(answer_after(35, response), INTERVAL, Some("1".to_owned())).await;
    assert_eq!(kept.headers()[header::CONTENT_TYPE], "text/event-stream");
    let comment = |second: u64| (second, COMMENT.to_owned());
    let message = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n".to_owned();
    assert_eq!(parts(kept, began).await, [comment(10), comment(20), comment(30), (35, message)]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_goes_on_as_it_is() {
    let began = Instant::now();
    let events = ["data: 1\n\n", "data: 2\n\n"].map(|event| Ok::<_, axum::Error>(Bytes::from(event)));
    let mut response = Response::new(Body::from_stream(futures::stream::iter(events)));
    response.headers_mut().insert(header::CONTENT_TYPE, "text/event-stream".parse().unwrap());
    let kept = keep_alive(answer_after(15, response), INTERVAL, None).await;
    let parts = parts(kept, began).await;
    assert_eq!(
        parts.iter().map(|(second, text)| (*second, text.as_str())).collect::<Vec<_>>(),
        [(10, COMMENT), (15, "data: 1\n\n"), (15, "data: 2\n\n")]
    );
}

/// The status is sent before the refusal.
#[tokio::test(start_paused = true)]
async fn a_slow_refusal_is_an_error_of_the_protocol() {
    let began = Instant::now();
    let response = json_response(500, &*Problem::internal().0);
    let kept = keep_alive(answer_after(15, response), INTERVAL, Some("\"a\"".to_owned())).await;
    let parts = parts(kept, began).await;
    let event = parts.last().unwrap().1.strip_prefix("data: ").unwrap().to_owned();
    let message: serde_json::Value = serde_json::from_str(&event).unwrap();
    assert_eq!((&message["id"], &message["error"]["code"]), (&json!("a"), &json!(-32603)));
    assert_eq!(message["error"]["message"], Problem::internal().0.message);
    assert_eq!(message["error"]["data"], json!({"code": "INTERNAL"}));
}
