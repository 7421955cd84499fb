//! The log contains no token, code, cookie or credential.

use crate::client::Socket;
use crate::kit::{Setup, TOKEN, plain_flow};
use redflow_contract::event::RunEventKind;
use redflow_contract::stream::{EventsMessage, StreamEvent};
use serde_json::json;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Records all log lines of this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(pub(crate) Arc<Mutex<String>>);

impl Log {
    fn line(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Line)) {
        let mut line = Line(metadata.target().to_owned());
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

// SECURITY: log-tokens
#[tokio::test]
async fn no_token_code_or_cookie_is_in_logs_events_or_metrics() {
    const WRONG: &str = "a-token-that-is-wrong-here";
    let log = Log::default();
    // The test and the sidecar run on this thread.
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let sidecar = Setup::default().start(Some(plain_flow())).await;

    let answer = sidecar.request("GET", &sidecar.sign_in).send().await;
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = cookie.split_once('=').unwrap().1.to_owned();
    let code = sidecar.sign_in.split_once('=').unwrap().1.to_owned();
    sidecar.request("GET", "/api/flows").header("cookie", &cookie).send().await.ok(200);
    sidecar.request("GET", &sidecar.sign_in).send().await.refused(401, "SIGN_IN_REFUSED");
    sidecar.request("GET", "/api/flows").token(WRONG).send().await.refused(401, "UNAUTHORIZED");
    let protocols = format!("redflow.events.v1, redflow.token.{TOKEN}");
    let mut socket =
        Socket::try_open(sidecar.addr, &[("sec-websocket-protocol", &protocols)]).await.ok().unwrap();
    assert!(matches!(socket.hear().await, EventsMessage::Hello { .. }));
    socket.subscribe(Some("0")).await;
    sidecar.run(json!({"payload": "?"})).await;

    let metrics = String::from_utf8(sidecar.get("/metrics").await.body).unwrap();
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("redflow_server") && logged.contains("/api/flows"), "{logged}");
    let events = format!("{:?}", socket.until(is_end).await);
    for secret in [TOKEN, WRONG, &code, &session] {
        for (place, text) in [("log", &logged), ("metrics", &metrics), ("events", &events)] {
            assert!(!text.contains(secret), "{secret} is in the {place}: {text}");
        }
    }
}

/// Stored, used and tested credentials are not logged either.
#[tokio::test]
async fn does_not_log_stored_credentials() {
    const SECRET: &str = "azure-key-that-is-never-logged-0123456789";
    let log = Log::default();
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let azure = crate::azure_stand_in::Azure::start([]).await;
    let mut nodes = plain_flow();
    nodes[3] = json!({"id": "model", "type": "model.azure.openai", "z": "tab", "endpoint": azure.endpoint(),
                      "deployment": "d", "apiVersion": "2024-12-01-preview", "wires": [["agent"]]});
    let sidecar = Setup::default().start(Some(nodes)).await;
    let stored = json!({"node-credentials:model": {"apiKey": SECRET}});
    sidecar.post("/redflow/persistent-storage", stored).await.ok(200);
    sidecar.run(json!({"payload": "?"})).await;
    for endpoint in [azure.endpoint(), "ftp://127.0.0.1".to_owned(), "http://127.0.0.1:9".to_owned()] {
        let body = json!({"endpoint": endpoint, "deployment": "d", "apiVersion": "v1", "apiKey": SECRET});
        sidecar.post("/azure-openai/test-connection", body).await;
    }
    assert_eq!(azure.keys(), vec![Some(SECRET.to_owned()); 2]);
    let logged = log.0.lock().unwrap().clone();
    assert!(
        logged.contains("/azure-openai/test-connection") && logged.contains("/redflow/persistent-storage")
    );
    assert!(!logged.contains(SECRET), "{logged}");
}
