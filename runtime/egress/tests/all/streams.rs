//! Streams of events: they may go on for ever, and hold up no call.

use crate::kit::{OTHER, Reply, Server, after_answer, client, get, net, policy, post, read, reply, rule_of};
use redflow_egress::{
    Egress, EgressError, EgressRequest, EgressResponse, MAX_CALLS, MAX_CALLS_PER_HOST, Rule,
};
use std::time::Duration;

const IDLE: Duration = Duration::from_millis(200);
const HEAD: &str = "HTTP/1.1 200 X\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\n";

/// A request whose whole time is over soon.
fn short(request: EgressRequest) -> EgressRequest {
    EgressRequest { timeout: IDLE, max_body_bytes: 10, ..request }
}

async fn open(egress: &Egress, url: &str) -> EgressResponse {
    egress.send_for_stream(get(url), Duration::from_secs(60)).await.unwrap()
}

#[tokio::test]
async fn a_stream_has_an_idle_time_instead_of_a_whole_one_and_no_whole_size() {
    let endless = format!("{HEAD}\r\n").into_bytes();
    let server = Server::start(move |_| Reply::Endless(endless.clone(), b": ping\n\n".to_vec())).await;
    let (egress, _) = client(policy(|settings| settings.max_body_bytes = 10), net(&server));
    let mut answer = egress.send_for_stream(short(post("http://api.example.org/", "x")), IDLE).await.unwrap();
    let begin = std::time::Instant::now();
    let mut received = 0;
    while begin.elapsed() < 2 * IDLE || received < 1_000 {
        received += answer.body.chunk().await.unwrap().unwrap().len();
    }
    // The same answer has both bounds for a caller that expects no stream.
    let mut answer = egress.send(short(post("http://api.example.org/", "x"))).await.unwrap();
    let error = loop {
        if let Err(error) = answer.body.chunk().await {
            break error;
        }
    };
    assert!(matches!(error, EgressError::TooLarge { limit: 10 } | EgressError::TimedOut { .. }), "{error:?}");
}

#[tokio::test]
async fn a_silent_stream_ends() {
    let silent = format!("{HEAD}\r\ndata: a\n\n").into_bytes();
    let server = Server::start(move |_| Reply::Hang(silent.clone())).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    let mut answer = egress.send_for_stream(get("http://api.example.org/"), IDLE).await.unwrap();
    assert_eq!(answer.body.chunk().await.unwrap().unwrap(), "data: a\n\n");
    assert_eq!(answer.body.chunk().await, Err(EgressError::TimedOut { sent: true }));
    assert_eq!(answer.body.chunk().await, Ok(None));
}

#[tokio::test]
async fn streams_hold_up_no_call() {
    let stream = format!("{HEAD}\r\ndata: a\n\n").into_bytes();
    let server = Server::start(move |request| match request.path.as_str() {
        "/stream" => Reply::Hang(stream.clone()),
        _ => reply(200, "", b"ok"),
    })
    .await;
    let net = net(&server).answer("www.example.net", &[OTHER]).lead((OTHER, 80).into(), server.port);
    let (egress, _) = client(policy(|_| ()), net);
    let mut streams = Vec::new();
    for _ in 0..=MAX_CALLS.max(MAX_CALLS_PER_HOST) {
        streams.push(open(&egress, "http://api.example.org/stream").await);
    }
    for url in ["http://api.example.org/", "http://www.example.net/"] {
        assert_eq!(read(egress.send(short(get(url))).await.unwrap()).await.unwrap(), b"ok");
    }
}

#[tokio::test]
async fn other_answers_have_the_bounds_of_a_call() {
    let server = Server::start(|request| match request.path.as_str() {
        "/large" => reply(200, "content-type: application/json\r\n", &[b'x'; 11]),
        "/error" => reply(500, "content-type: text/event-stream\r\n", &[b'x'; 11]),
        _ => Reply::Hang(b"HTTP/1.1 200 X\r\ncontent-length: 4\r\n\r\nx".to_vec()),
    })
    .await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    for (path, expected) in [
        ("large", EgressError::TooLarge { limit: 10 }),
        ("error", EgressError::TooLarge { limit: 10 }),
        ("slow", EgressError::TimedOut { sent: true }),
    ] {
        let request = short(get(&format!("http://api.example.org/{path}")));
        let answer = egress.send_for_stream(request, Duration::from_secs(60)).await.unwrap();
        assert_eq!(read(answer).await, Err(expected), "{path}");
    }
}

#[tokio::test]
async fn the_rules_hold_for_streams() {
    let server = Server::start(|_| reply(302, "location: http://127.0.0.1/\r\n", b"")).await;
    let (egress, _) =
        client(policy(|_| ()), net(&server).answer("inward.example.org", &["10.0.0.1".parse().unwrap()]));
    for url in ["http://api.example.org/", "http://127.0.0.1/", "http://inward.example.org/"] {
        let error = egress.send_for_stream(get(url), IDLE).await.err().unwrap();
        let (_, error) = after_answer(error);
        assert!(matches!(error, EgressError::Refused(refusal) if refusal.rule == Rule::Address), "{url}");
        assert_eq!(rule_of(&egress, get(url)).await, Rule::Address);
    }
}
