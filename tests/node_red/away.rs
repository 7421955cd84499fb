//! A sidecar that is away, or not to be talked to.

use crate::kit::cable::Cable;
use crate::kit::eventually;
use crate::kit::flow::{Flow, says};
use crate::kit::line::Line;
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
    a_queue_that_is_full
    a_wait_that_is_over
    a_wrong_token
    another_version_of_the_protocol
}

fn flow(scene: &Scene) -> Flow {
    scene.flow().usual(&scene.witness, &[], &[]).scripted(&[says("At last.")])
}

async fn messages_wait_for_the_sidecar(line: Line) {
    let mut scene = Scene::without_sidecar(line).await;
    scene.deploy(&flow(&scene)).await;
    let away = |status: &Value| status["text"].as_str().is_some_and(|text| text.contains("sidecar away"));
    let shown = scene.node_red.comms.status("agent", away).await;
    assert_eq!((&shown["fill"], &shown["shape"]), (&json!("grey"), &json!("ring")));
    scene.ask().await;
    scene.ask().await;
    scene.sidecar.come();
    let results = scene.witness.bodies("/results", 2).await;
    assert!(results.iter().all(|result| result["payload"] == "At last."), "{results:#?}");
    // It goes, as it does for an update, and comes again.
    scene.sidecar.stop().await;
    scene.node_red.comms.status("agent", away).await;
    scene.ask().await;
    scene.sidecar.come();
    scene.witness.bodies("/results", 3).await;
    scene.answer().await;
    assert_eq!(scene.count("/caught"), 0);
    assert_eq!(scene.sidecar.runs().await.len(), 4);
}

async fn a_queue_that_is_full(line: Line) {
    let mut scene = Scene::without_sidecar(line).await;
    scene.deploy(&flow(&scene).changed("runtime", json!({"maxQueued": 2}))).await;
    for _ in 0..4 {
        scene.ask().await;
    }
    let caught = scene.witness.bodies("/caught", 2).await;
    assert!(caught.iter().all(|caught| caught["error"]["code"] == "QUEUE_FULL"), "{caught:#?}");
    scene.sidecar.come();
    scene.witness.bodies("/results", 2).await;
    scene.answer().await;
    assert_eq!((scene.count("/caught"), scene.sidecar.runs().await.len()), (2, 3));
}

async fn a_wait_that_is_over(line: Line) {
    let mut scene = Scene::without_sidecar(line).await;
    // Nothing at all listens there.
    let nowhere = Cable::new().await.url();
    scene.deploy(&flow(&scene).changed("runtime", json!({"url": nowhere, "queueSeconds": 1}))).await;
    scene.ask().await;
    let caught = scene.witness.bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "RUNTIME_UNREACHABLE", "{caught:#}");
    // What got this error is never begun.
    scene.sidecar.come();
    scene.deploy(&flow(&scene).again().changed("runtime", json!({"url": scene.sidecar.url()}))).await;
    scene.answer().await;
    assert_eq!((scene.count("/results"), scene.sidecar.runs().await.len()), (1, 1));
}

async fn a_wrong_token(line: Line) {
    let scene = Scene::start(line).await;
    let wrong = "a-token-that-is-not-the-right-one";
    let runtime = json!({"credentials": {"token": wrong}, "queueSeconds": 1});
    scene.deploy(&flow(&scene).changed("runtime", runtime)).await;
    let shown = scene.node_red.comms.status("agent", |status| status["fill"] == "red").await;
    assert!(shown["text"].as_str().unwrap().contains("UNAUTHORIZED"), "{shown}");
    scene.ask().await;
    let caught = scene.witness.bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "RUNTIME_UNREACHABLE", "{caught:#}");
    assert!(!scene.node_red.log().contains(wrong) && !scene.sidecar.log().contains(wrong));
    // Mended, it works.
    scene.deploy(&flow(&scene).changed("runtime", json!({"credentials": {"token": TOKEN}}))).await;
    assert_eq!(scene.answer().await["payload"], "At last.");
}

async fn another_version_of_the_protocol(line: Line) {
    let scene = Scene::without_sidecar(line).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // As a sidecar of the future: it takes the socket, hears the hello, and says what it does not like.
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
    scene.deploy(&flow(&scene).changed("runtime", runtime)).await;
    let shown = scene.node_red.comms.status("agent", |status| status["fill"] == "red").await;
    assert!(shown["text"].as_str().unwrap().contains("PROTOCOL_MISMATCH"), "{shown}");
    eventually("the sentence in the log", async || {
        (scene.node_red.logged("Update the palette module.") > 0).then_some(())
    })
    .await;
    scene.ask().await;
    let caught = scene.witness.bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "RUNTIME_UNREACHABLE", "{caught:#}");
    serving.abort();
}
