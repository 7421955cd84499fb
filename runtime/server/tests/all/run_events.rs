//! The events of one run: as a list, and as a stream that can be continued.

use crate::client::{PATIENCE, Request};
use crate::kit::{TOKEN, TestSidecar, plain_flow, tool_flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Parses the events of a stream, in the order of their ids.
fn events(body: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(body);
    let parts = text.split("\n\n").filter(|part| part.starts_with("id: "));
    parts
        .map(|part| {
            let (id, data) = part.strip_prefix("id: ").unwrap().split_once("\ndata: ").unwrap();
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(event["seq"].to_string(), id);
            event
        })
        .collect()
}

fn stream(sidecar: &TestSidecar, run: &str) -> Request {
    sidecar
        .request("GET", &format!("/api/runs/{run}/events"))
        .token(TOKEN)
        .header("accept", "text/event-stream")
}

#[tokio::test]
async fn gives_past_events_as_a_list_and_as_a_stream() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let run = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let list = sidecar.get(&format!("/api/runs/{run}/events")).await.ok(200);
    let all = list.as_array().unwrap().clone();
    assert_eq!(all.last().unwrap()["event"]["type"], "run_finished");
    let answer = stream(&sidecar, &run).send().await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(events(&answer.body), all);
    let rest = stream(&sidecar, &run).header("last-event-id", "3").send().await;
    assert_eq!(events(&rest.body), all[3..]);
    let after = sidecar.get(&format!("/api/runs/{run}/events?after=4")).await.ok(200);
    assert_eq!(after.as_array().unwrap(), &all[4..]);
    for wrong in ["after=x", "after=-1", "other=1", "before=x", "limit=0", "limit=1001", "after=1&before=2"] {
        sidecar.get(&format!("/api/runs/{run}/events?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
    let count = all.len();
    for (query, expected) in [
        ("limit=2", &all[..2]),
        ("after=3&limit=1", &all[3..4]),
        ("limit=1000", &all[..]),
        ("before=4", &all[..3]),
        ("before=4&limit=2", &all[1..3]),
        ("before=1", &all[..0]),
        ("before=4294967295&limit=1", &all[count - 1..]),
    ] {
        let page = sidecar.get(&format!("/api/runs/{run}/events?{query}")).await.ok(200);
        assert_eq!(page.as_array().unwrap(), expected, "{query}");
    }
    let path = format!("/api/runs/{run}/events?limit=1");
    let stream_of_page = sidecar.request("GET", &path).token(TOKEN).header("accept", "text/event-stream");
    stream_of_page.send().await.refused(400, "REQUEST_INVALID");
    stream(&sidecar, &run).header("last-event-id", "x").send().await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn a_stream_follows_a_run_to_its_end() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let waiting = sidecar.run(json!({"payload": "?"})).await["runs"][0].clone();
    let run = waiting["runId"].as_str().unwrap();
    let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
    tcp.write_all(&stream(&sidecar, run).text()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("waiting_for_outcome") {
        assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
    }
    let answer = json!({"callId": waiting["waiting"]["callId"], "result": {"success": true, "output": 42}});
    sidecar.post(&format!("/api/runs/{run}/resolve"), answer).await.ok(200);
    timeout(PATIENCE, tcp.read_to_end(&mut seen)).await.unwrap().unwrap();
    let list = sidecar.get(&format!("/api/runs/{run}/events")).await.ok(200);
    assert_eq!(events(&crate::client::reply(&seen).body), *list.as_array().unwrap());
}

#[tokio::test]
async fn a_stream_ends_when_the_sidecar_stops() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let started = sidecar.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    let run = started["runs"][0]["runId"].as_str().unwrap();
    let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
    tcp.write_all(&stream(&sidecar, run).text()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("tool_called") {
        assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
    }
    let ((), end) =
        tokio::join!(async { drop(sidecar.stop().await) }, timeout(PATIENCE, tcp.read_to_end(&mut seen)));
    assert!(end.is_ok());
}

#[tokio::test]
async fn gives_events_of_a_run_of_an_earlier_flow() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let run = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let revision = sidecar.revision().await;
    sidecar.post("/api/deployment", json!({"flows": [], "revision": revision})).await.ok(200);
    assert_eq!(
        sidecar.get(&format!("/api/runs/{run}/events")).await.ok(200)[0]["event"]["type"],
        "run_started"
    );
}

#[tokio::test]
async fn a_stream_does_not_outlive_its_token() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let run = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let token = crate::kit::token(sidecar.dir.path(), "guest", &[redflow_contract::api::Scope::Read], 1);
    let request = || stream(&sidecar, &run).token(&token);
    let mut tcp = crate::kit::eventually("the token is known", || async {
        let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
        tcp.write_all(&request().text()).await.unwrap();
        let mut head = [0; 12];
        tcp.read_exact(&mut head).await.unwrap();
        (head == *b"HTTP/1.1 200").then_some(tcp)
    })
    .await;
    redflow_access::tokens::remove(sidecar.dir.path(), "guest").unwrap();
    // Any new event wakes the stream.
    let ended = timeout(PATIENCE, async {
        let mut seen = Vec::new();
        loop {
            match timeout(std::time::Duration::from_millis(50), tcp.read_buf(&mut seen)).await {
                Ok(Ok(0)) => return,
                Ok(_) => {}
                Err(_) => drop(sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202)),
            }
        }
    });
    ended.await.unwrap();
}
