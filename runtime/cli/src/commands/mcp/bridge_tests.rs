use super::bridge_within;
use crate::exit::Exit;
use crate::sidecar::SidecarClient;
use redflow_models::transport::HttpSettings;
use redflow_testkit::HttpRequest;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

const PATIENCE: Duration = Duration::from_secs(20);

/// The answer of a sidecar to a message; none if it does not answer. It keeps the connection open.
type Respond = fn(&Value) -> Option<String>;

/// A sidecar that answers as it is told, and nothing else.
async fn start_sidecar(respond: Respond) -> SidecarClient {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, respond));
        }
    });
    SidecarClient::new(url, &"a-token-of-the-test".into(), &HttpSettings::default()).unwrap()
}

async fn answer(mut stream: TcpStream, respond: Respond) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(request) = HttpRequest::parse(&bytes).ok()? else { continue };
        bytes.clear();
        if let Some(answer) = respond(&request.json().unwrap_or_default()) {
            stream.write_all(answer.as_bytes()).await.ok()?;
        }
    }
}

fn result(message: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": {}})
}

fn json_answer(message: &Value) -> String {
    let body = result(message).to_string();
    format!(
        "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn next(lines: &mut BufReader<DuplexStream>) -> Value {
    let mut line = String::new();
    timeout(PATIENCE, lines.read_line(&mut line)).await.expect("no answer").unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Sends `initialize`, a notification and a request, and gives the answers until the client closes its side.
async fn exchange(respond: Respond) -> Vec<Value> {
    let sidecar = start_sidecar(respond).await;
    let (mut input, reader) = duplex(4_096);
    let (writer, output) = duplex(4_096);
    let bridge = tokio::spawn(bridge_within(sidecar, reader, writer, Duration::from_millis(200)));
    let mut lines = BufReader::new(output);
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ] {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let answers = vec![next(&mut lines).await, next(&mut lines).await];
    drop(input);
    let end = timeout(PATIENCE, bridge).await.expect("it does not see the end of the client").unwrap();
    assert!(matches!(end, Ok(Exit::Success)));
    let mut rest = String::new();
    lines.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "", "each request has one answer");
    answers
}

#[tokio::test]
async fn a_sidecar_that_does_not_answer_does_not_hold_up_the_next_messages() {
    let answers = exchange(|message| (message["method"] == "tools/list").then(|| json_answer(message))).await;
    assert_eq!(
        (&answers[0]["id"], &answers[0]["error"]["data"]["code"]),
        (&json!(0), &json!("SIDECAR_UNREACHABLE"))
    );
    assert_eq!((&answers[1]["id"], &answers[1]["result"]), (&json!(1), &json!({})));
}

#[tokio::test]
async fn an_answer_that_never_ends_does_not_hold_up_the_next_messages() {
    let answers = exchange(|message| match message["method"].as_str().unwrap_or_default() {
        "initialize" => Some(format!(
            "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n\n",
            result(message)
        )),
        "tools/list" => Some(json_answer(message)),
        _ => Some("HTTP/1.1 202 X\r\ncontent-length: 9\r\n\r\n".to_owned()),
    })
    .await;
    assert_eq!(answers.iter().map(|answer| &answer["id"]).collect::<Vec<_>>(), [0, 1]);
    assert!(answers.iter().all(|answer| answer["error"].is_null()), "{answers:?}");
}
