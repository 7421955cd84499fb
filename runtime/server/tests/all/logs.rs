//! What is logged, however much that is: nothing that lets anybody in.

use crate::client::Socket;
use crate::kit::{Setup, TOKEN, plain};
use redflow_contract::event::RunEventKind;
use redflow_contract::stream::{EventsMessage, StreamEvent};
use serde_json::json;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Everything that is said on this thread, and where.
#[derive(Clone, Default)]
pub(crate) struct Log(pub(crate) Arc<Mutex<String>>);

impl Log {
    fn line(&self, about: &Metadata<'_>, record: impl FnOnce(&mut Line)) {
        let mut line = Line(about.target().to_owned());
        record(&mut line);
        self.0.lock().unwrap().push_str(&(line.0 + "\n"));
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        self.line(span.metadata(), |line| span.record(line));
        span::Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        self.line(event.metadata(), |line| event.record(line));
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn is_end(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::Run { event } if matches!(event.event, RunEventKind::RunFinished { .. }))
}

#[tokio::test]
async fn nothing_that_lets_anybody_in_is_logged_told_or_counted() {
    const WRONG: &str = "a-token-that-is-wrong-here";
    let log = Log::default();
    // One thread drives the test and the sidecar.
    let _listening = tracing::subscriber::set_default(log.clone());
    let world = Setup::default().start(Some(plain())).await;

    let answer = world.request("GET", &world.sign_in).send().await;
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = cookie.split_once('=').unwrap().1.to_owned();
    let code = world.sign_in.split_once('=').unwrap().1.to_owned();
    world.request("GET", "/api/flows").header("cookie", &cookie).send().await.ok(200);
    world.request("GET", &world.sign_in).send().await.refused(401, "SIGN_IN_REFUSED");
    world.request("GET", "/api/flows").token(WRONG).send().await.refused(401, "UNAUTHORIZED");
    let protocols = format!("redflow.events.v1, redflow.token.{TOKEN}");
    let mut socket =
        Socket::try_open(world.addr, &[("sec-websocket-protocol", &protocols)]).await.ok().unwrap();
    assert!(matches!(socket.hear().await, EventsMessage::Hello { .. }));
    socket.subscribe(Some("0")).await;
    world.run(json!({"payload": "?"})).await;

    let metrics = String::from_utf8(world.get("/metrics").await.body).unwrap();
    let said = log.0.lock().unwrap().clone();
    assert!(said.contains("redflow_server") && said.contains("/api/flows"), "{said}");
    let events = format!("{:?}", socket.until(is_end).await);
    for secret in [TOKEN, WRONG, &code, &session] {
        for (what, text) in [("log", &said), ("metrics", &metrics), ("events", &events)] {
            assert!(!text.contains(secret), "{secret} is in the {what}: {text}");
        }
    }
}

/// Credentials that are stored, used and tried are in no line either.
#[tokio::test]
async fn no_stored_credential_is_logged() {
    const SECRET: &str = "azure-key-that-nobody-logs-0123456789";
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let azure = crate::azure_server::Azure::start([]).await;
    let mut nodes = plain();
    nodes[3] = json!({"id": "model", "type": "model.azure.openai", "z": "tab", "endpoint": azure.endpoint(),
                      "deployment": "d", "apiVersion": "2024-12-01-preview", "wires": [["agent"]]});
    let world = Setup::default().start(Some(nodes)).await;
    let stored = json!({"node-credentials:model": {"apiKey": SECRET}});
    world.post("/redflow/persistent-storage", stored).await.ok(200);
    world.run(json!({"payload": "?"})).await;
    for endpoint in [azure.endpoint(), "ftp://127.0.0.1".to_owned(), "http://127.0.0.1:9".to_owned()] {
        let body = json!({"endpoint": endpoint, "deployment": "d", "apiVersion": "v1", "apiKey": SECRET});
        world.post("/azure-openai/test-connection", body).await;
    }
    assert_eq!(azure.keys(), vec![Some(SECRET.to_owned()); 2]);
    let said = log.0.lock().unwrap().clone();
    assert!(said.contains("/azure-openai/test-connection") && said.contains("/redflow/persistent-storage"));
    assert!(!said.contains(SECRET), "{said}");
}
