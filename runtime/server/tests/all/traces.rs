//! The decision trace of a run: as JSON, and as a stream that can be continued.

use crate::client::{PATIENCE, Request};
use crate::kit::{TOKEN, TestSidecar, plain_flow, token, tool_flow};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use redflow_contract::trace::RunTrace;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Parses the steps of a stream, and what its last event says.
fn steps(body: &[u8]) -> (Vec<Value>, Option<Value>) {
    let text = String::from_utf8_lossy(body);
    let (mut steps, mut end) = (Vec::new(), None);
    for part in text.split("\n\n") {
        if let Some(data) = part.strip_prefix("event: end\ndata: ") {
            end = Some(serde_json::from_str(data).unwrap());
        } else if let Some((id, data)) =
            part.strip_prefix("id: ").and_then(|part| part.split_once("\ndata: "))
        {
            let step: Value = serde_json::from_str(data).unwrap();
            assert_eq!(step["number"].to_string(), id);
            assert_eq!(end, None, "a step follows the end");
            steps.push(step);
        }
    }
    (steps, end)
}

fn stream(sidecar: &TestSidecar, run: &str) -> Request {
    let path = format!("/api/runs/{run}/trace");
    sidecar.request("GET", &path).token(TOKEN).header("accept", "text/event-stream")
}

async fn run_once(sidecar: &TestSidecar) -> Value {
    sidecar.run(json!({"payload": "?"})).await["runs"][0].clone()
}

fn kinds(steps: &[Value]) -> Vec<&str> {
    steps.iter().map(|step| step["step"]["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn gives_the_trace_as_json_and_as_a_stream() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let run = run_once(&sidecar).await["runId"].as_str().unwrap().to_owned();
    let path = format!("/api/runs/{run}/trace");
    let trace = sidecar.get(&path).await.ok(200);
    let all = trace["steps"].as_array().unwrap().clone();
    assert_eq!(kinds(&all), ["decide", "call", "return", "decide", "end"]);
    assert_eq!((&trace["runId"], &trace["ended"]), (&json!(run), &json!(true)));
    assert_eq!(all[4]["step"], json!({"type": "end", "ending": {"type": "completed"}}));
    serde_json::from_value::<RunTrace>(trace.clone()).unwrap();

    let answer = stream(&sidecar, &run).send().await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    let (streamed, end) = steps(&answer.body);
    assert_eq!(streamed, all);
    assert_eq!(
        end,
        Some(json!({"runId": run, "steps": [], "provenance": trace["provenance"], "ended": true}))
    );
    let rest = stream(&sidecar, &run).header("last-event-id", "3").send().await;
    assert_eq!(steps(&rest.body).0, all[3..]);
    let after = sidecar.get(&format!("{path}?after=4")).await.ok(200);
    assert_eq!(after["steps"].as_array().unwrap(), &all[4..]);
    for wrong in ["after=x", "after=-1", "other=1"] {
        sidecar.get(&format!("{path}?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
    stream(&sidecar, &run).header("last-event-id", "x").send().await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn an_unknown_run_and_an_unknown_token_are_refused() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    sidecar.get("/api/runs/none/trace").await.refused(404, "RUN_UNKNOWN");
    stream(&sidecar, "none").send().await.refused(404, "RUN_UNKNOWN");
    let run = run_once(&sidecar).await["runId"].as_str().unwrap().to_owned();
    let path = format!("/api/runs/{run}/trace");
    for refused in [sidecar.request("GET", &path), sidecar.request("GET", &path).token("wrong")] {
        refused.send().await.refused(401, "UNAUTHORIZED");
    }
    // Every scope includes `read`, so the weakest token is enough.
    let reader = token(sidecar.dir.path(), "reader", &[Scope::Read], 1);
    crate::kit::eventually("the token is known", || async {
        let answer = sidecar.request("GET", &path).token(&reader).send().await;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_stream_follows_a_run_to_its_end() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let waiting = run_once(&sidecar).await;
    let run = waiting["runId"].as_str().unwrap();
    let open = sidecar.get(&format!("/api/runs/{run}/trace")).await.ok(200);
    assert_eq!((&open["ended"], open["steps"].as_array().unwrap().len()), (&json!(false), 3));
    assert_eq!(open["steps"][2]["step"]["success"], Value::Null);
    let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
    tcp.write_all(&stream(&sidecar, run).text()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\"type\":\"return\"") {
        assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
    }
    let answer = json!({"callId": waiting["waiting"]["callId"], "result": {"success": true, "output": 42}});
    sidecar.post(&format!("/api/runs/{run}/resolve"), answer).await.ok(200);
    timeout(PATIENCE, tcp.read_to_end(&mut seen)).await.unwrap().unwrap();
    let trace = sidecar.get(&format!("/api/runs/{run}/trace")).await.ok(200);
    let (streamed, end) = steps(&crate::client::reply(&seen).body);
    assert_eq!(streamed, *trace["steps"].as_array().unwrap());
    assert_eq!(kinds(&streamed).last(), Some(&"end"));
    assert_eq!(end.unwrap()["ended"], true);
}

/// The words of a run stay in its journal, however many there are.
#[tokio::test]
async fn a_large_journal_has_a_small_trace() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let words = "xylophone ".repeat(50_000);
    let run = sidecar.run(json!({"payload": words})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let journal = sidecar.get(&format!("/api/runs/{run}/journal")).await;
    assert!(journal.body.len() > words.len());
    let trace = sidecar.get(&format!("/api/runs/{run}/trace")).await;
    assert_eq!((trace.status, trace.body.len() < 2_000), (200, true));
    assert!(!String::from_utf8_lossy(&trace.body).contains("xylophone"));
}

#[tokio::test]
async fn the_number_of_streams_is_limited() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let run = run_once(&sidecar).await["runId"].as_str().unwrap().to_owned();
    let mut streams = Vec::new();
    for _ in 0..64 {
        let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
        tcp.write_all(&stream(&sidecar, &run).text()).await.unwrap();
        let mut head = [0; 12];
        timeout(PATIENCE, tcp.read_exact(&mut head)).await.unwrap().unwrap();
        assert_eq!(head, *b"HTTP/1.1 200");
        streams.push(tcp);
    }
    stream(&sidecar, &run).send().await.refused(503, "TOO_MANY_CONNECTIONS");
    // The trace itself can still be read, and the place of a client that left is free again.
    sidecar.get(&format!("/api/runs/{run}/trace")).await.ok(200);
    streams.clear();
    crate::kit::eventually("a stream is free", || async {
        let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
        tcp.write_all(&stream(&sidecar, &run).text()).await.unwrap();
        let mut head = [0; 12];
        tcp.read_exact(&mut head).await.unwrap();
        (head == *b"HTTP/1.1 200").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_stream_ends_when_the_sidecar_stops() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let started = sidecar.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    let run = started["runs"][0]["runId"].as_str().unwrap();
    let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
    tcp.write_all(&stream(&sidecar, run).text()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\"type\":\"call\"") {
        assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
    }
    let ((), end) =
        tokio::join!(async { drop(sidecar.stop().await) }, timeout(PATIENCE, tcp.read_to_end(&mut seen)));
    assert!(end.is_ok());
    assert_eq!(steps(&crate::client::reply(&seen).body).1, None);
}
