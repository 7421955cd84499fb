//! A sidecar that is not running, or that refuses the connection.

use crate::kit::cable::Cable;
use crate::kit::eventually;
use crate::kit::flow::{Flow, final_answer};
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::Scene;
use crate::kit::sidecar::TOKEN;
use crate::kit::{on_both_lines, on_the_newer_line};
use futures::{SinkExt as _, StreamExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

on_both_lines! {
    messages_wait_for_the_sidecar
}

on_the_newer_line! {
    refuses_messages_when_the_queue_is_full
    refuses_a_message_that_waited_too_long
    reports_a_wrong_token
    reports_another_version_of_the_protocol
}

fn flow(scene: &Scene) -> Flow {
    scene.flow().standard_agent(&scene.witness, &[], &[]).scripted(&[final_answer("At last.")])
}

async fn messages_wait_for_the_sidecar(line: ReleaseLine) {
    let mut scene = Scene::without_sidecar(line).await;
    scene.deploy(&flow(&scene)).await;
    let offline =
        |status: &Value| status["text"].as_str().is_some_and(|text| text.contains("sidecar offline"));
    let status = scene.node_red.comms.wait_for_status("agent", offline).await;
    assert_eq!((&status["fill"], &status["shape"]), (&json!("grey"), &json!("ring")));
    scene.send_question().await;
    scene.send_question().await;
    scene.sidecar.start();
    let results = scene.witness.wait_for_bodies("/results", 2).await;
    assert!(results.iter().all(|result| result["payload"] == "At last."), "{results:#?}");
    // It stops and starts again, as for an update.
    scene.sidecar.stop().await;
    scene.node_red.comms.wait_for_status("agent", offline).await;
    scene.send_question().await;
    scene.sidecar.start();
    scene.witness.wait_for_bodies("/results", 3).await;
    scene.ask().await;
    assert_eq!(scene.count_requests("/caught"), 0);
    assert_eq!(scene.sidecar.runs().await.len(), 4);
}

async fn refuses_messages_when_the_queue_is_full(line: ReleaseLine) {
    let mut scene = Scene::without_sidecar(line).await;
    scene.deploy(&flow(&scene).change("runtime", json!({"maxQueued": 2}))).await;
    for _ in 0..4 {
        scene.send_question().await;
    }
    let caught = scene.witness.wait_for_bodies("/caught", 2).await;
    assert!(caught.iter().all(|caught| caught["error"]["code"] == "QUEUE_FULL"), "{caught:#?}");
    scene.sidecar.start();
    scene.witness.wait_for_bodies("/results", 2).await;
    scene.ask().await;
    assert_eq!((scene.count_requests("/caught"), scene.sidecar.runs().await.len()), (2, 3));
}

async fn refuses_a_message_that_waited_too_long(line: ReleaseLine) {
    let mut scene = Scene::without_sidecar(line).await;
    // No server listens at this address.
    let unused = Cable::new().await.url();
    scene.deploy(&flow(&scene).change("runtime", json!({"url": unused, "queueSeconds": 1}))).await;
    scene.send_question().await;
    let caught = scene.witness.wait_for_bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "RUNTIME_UNREACHABLE", "{caught:#}");
    // A message that got this error starts no run later.
    scene.sidecar.start();
    scene
        .deploy(&flow(&scene).without_credentials().change("runtime", json!({"url": scene.sidecar.url()})))
        .await;
    scene.ask().await;
    assert_eq!((scene.count_requests("/results"), scene.sidecar.runs().await.len()), (1, 1));
}

async fn reports_a_wrong_token(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let wrong = "a-token-that-is-not-the-right-one";
    let runtime = json!({"credentials": {"token": wrong}, "queueSeconds": 1});
    scene.deploy(&flow(&scene).change("runtime", runtime)).await;
    let status = scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "red").await;
    assert!(status["text"].as_str().unwrap().contains("UNAUTHORIZED"), "{status}");
    scene.send_question().await;
    let caught = scene.witness.wait_for_bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "RUNTIME_UNREACHABLE", "{caught:#}");
    assert!(!scene.node_red.log().contains(wrong) && !scene.sidecar.log().contains(wrong));
    // With the right token it works.
    scene.deploy(&flow(&scene).change("runtime", json!({"credentials": {"token": TOKEN}}))).await;
    assert_eq!(scene.ask().await["payload"], "At last.");
}

async fn reports_another_version_of_the_protocol(line: ReleaseLine) {
    let scene = Scene::without_sidecar(line).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // As a newer sidecar does: it accepts the socket, reads `hello` and closes with a reason.
            #[allow(clippy::result_large_err, reason = "the library's type")]
            let agree = |request: &Request, mut response: Response| {
                let asked = request.headers().get("sec-websocket-protocol").cloned();
                response
                    .headers_mut()
                    .extend(asked.map(|asked| (http::header::SEC_WEBSOCKET_PROTOCOL, asked)));
                Ok(response)
            };
            let mut socket = accept_hdr_async(stream, agree).await.unwrap();
            let hello = socket.next().await.unwrap().unwrap().into_text().unwrap();
            let hello: Value = serde_json::from_str(&hello).unwrap();
            assert_eq!((&hello["type"], &hello["protocol"]), (&json!("hello"), &json!("redflow.bridge.v1")));
            let closing = json!({"type": "closing", "code": "PROTOCOL_MISMATCH",
                                 "message": "This sidecar speaks redflow.bridge.v2. Update the palette module."});
            let _ = socket.send(Message::text(closing.to_string())).await;
            let _ = socket.close(None).await;
            while let Some(Ok(_)) = socket.next().await {}
        }
    });
    let runtime = json!({"url": format!("http://{addr}"), "queueSeconds": 1});
    scene.deploy(&flow(&scene).change("runtime", runtime)).await;
    let status = scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "red").await;
    assert!(status["text"].as_str().unwrap().contains("PROTOCOL_MISMATCH"), "{status}");
    eventually("the reason in the log", async || {
        (scene.node_red.count_log_lines("Update the palette module.") > 0).then_some(())
    })
    .await;
    scene.send_question().await;
    let caught = scene.witness.wait_for_bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "RUNTIME_UNREACHABLE", "{caught:#}");
    serving.abort();
}
