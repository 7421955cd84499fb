//! The events of one run: as a list, and as a stream that is cut and taken up again.

use crate::client::{PATIENCE, Request};
use crate::kit::{TOKEN, World, calling, plain};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The events in a stream, in the order of their ids.
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

fn stream(world: &World, run: &str) -> Request {
    world
        .request("GET", &format!("/api/runs/{run}/events"))
        .token(TOKEN)
        .header("accept", "text/event-stream")
}

#[tokio::test]
async fn what_has_been_is_a_list_and_a_stream_that_ends() {
    let world = World::with(calling("calculator-tool")).await;
    let run = world.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let list = world.get(&format!("/api/runs/{run}/events")).await.ok(200);
    let all = list.as_array().unwrap().clone();
    assert_eq!(all.last().unwrap()["event"]["type"], "run_finished");
    let answer = stream(&world, &run).send().await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(events(&answer.body), all);
    let rest = stream(&world, &run).header("last-event-id", "3").send().await;
    assert_eq!(events(&rest.body), all[3..]);
    let after = world.get(&format!("/api/runs/{run}/events?after=4")).await.ok(200);
    assert_eq!(after.as_array().unwrap(), &all[4..]);
    for wrong in ["after=x", "after=-1", "other=1"] {
        world.get(&format!("/api/runs/{run}/events?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
    stream(&world, &run).header("last-event-id", "x").send().await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn a_stream_follows_a_run_to_its_end() {
    let world = World::with(calling("tool.lost")).await;
    let waiting = world.run(json!({"payload": "?"})).await["runs"][0].clone();
    let run = waiting["runId"].as_str().unwrap();
    let mut tcp = TcpStream::connect(world.addr).await.unwrap();
    tcp.write_all(&stream(&world, run).text()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("waiting_for_outcome") {
        assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
    }
    let answer = json!({"callId": waiting["waiting"]["callId"], "result": {"success": true, "output": 42}});
    world.post(&format!("/api/runs/{run}/resolve"), answer).await.ok(200);
    timeout(PATIENCE, tcp.read_to_end(&mut seen)).await.unwrap().unwrap();
    let list = world.get(&format!("/api/runs/{run}/events")).await.ok(200);
    assert_eq!(events(&crate::client::reply(&seen).body), *list.as_array().unwrap());
}

#[tokio::test]
async fn a_stream_ends_when_the_sidecar_stops() {
    let world = World::with(calling("tool.slow")).await;
    let started = world.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    let run = started["runs"][0]["runId"].as_str().unwrap();
    let mut tcp = TcpStream::connect(world.addr).await.unwrap();
    tcp.write_all(&stream(&world, run).text()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("tool_called") {
        assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
    }
    let ((), end) =
        tokio::join!(async { drop(world.stop().await) }, timeout(PATIENCE, tcp.read_to_end(&mut seen)));
    assert!(end.is_ok());
}

#[tokio::test]
async fn a_run_of_another_flow_has_events_too() {
    let world = World::with(plain()).await;
    let run = world.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let revision = world.revision().await;
    world.post("/api/deployment", json!({"flows": [], "revision": revision})).await.ok(200);
    assert_eq!(
        world.get(&format!("/api/runs/{run}/events")).await.ok(200)[0]["event"]["type"],
        "run_started"
    );
}

#[tokio::test]
async fn a_stream_does_not_outlive_its_token() {
    let world = World::with(calling("tool.lost")).await;
    let run = world.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let token = crate::kit::token(world.dir.path(), "guest", &[redflow_contract::api::Scope::Read], 1);
    let request = || stream(&world, &run).token(&token);
    let mut tcp = crate::kit::eventually("the token is known", || async {
        let mut tcp = TcpStream::connect(world.addr).await.unwrap();
        tcp.write_all(&request().text()).await.unwrap();
        let mut head = [0; 12];
        tcp.read_exact(&mut head).await.unwrap();
        (head == *b"HTTP/1.1 200").then_some(tcp)
    })
    .await;
    redflow_access::tokens::remove(world.dir.path(), "guest").unwrap();
    // Whatever happens elsewhere wakes it.
    let ended = timeout(PATIENCE, async {
        let mut seen = Vec::new();
        loop {
            match timeout(std::time::Duration::from_millis(50), tcp.read_buf(&mut seen)).await {
                Ok(Ok(0)) => return,
                Ok(_) => {}
                Err(_) => drop(world.post("/api/runs", json!({"node": "ask"})).await.ok(202)),
            }
        }
    });
    ended.await.unwrap();
}
