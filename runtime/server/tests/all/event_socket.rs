//! `ws /events`: every event once and in order, also after a reconnect.

use crate::client::Socket;
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, plain_flow, tool_flow};
use futures::StreamExt as _;
use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use redflow_contract::event::{FlowEvent, RunEventKind};
use redflow_contract::id::RunId;
use redflow_contract::stream::{EventsMessage, EventsRequest, StreamEvent};
use redflow_store::EventLogSettings;
use serde_json::json;
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;

fn is_debug(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::Flow { event: FlowEvent::Debug { .. }, .. })
}

fn is_deployed(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::Flow { event: FlowEvent::Deployed { .. }, .. })
}

fn run_of(event: &StreamEvent) -> Option<&RunId> {
    match event {
        StreamEvent::Run { event } => Some(&event.run_id),
        StreamEvent::Flow { .. } => None,
    }
}

/// Reads until the socket is closed, and gives the code and the cursor.
async fn close_reason(socket: &mut Socket) -> (ProblemCode, Option<String>) {
    loop {
        match socket.hear().await {
            EventsMessage::Closing { code, cursor, .. } => {
                assert!(socket.next().await.is_none());
                return (code, cursor);
            }
            EventsMessage::Event { .. } | EventsMessage::CaughtUp { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn sends_events_in_order_and_again_to_later_readers() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let mut early = sidecar.socket().await;
    early.subscribe(Some("0")).await;
    early.until(is_deployed).await;
    let run = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let live = early.until(is_debug).await;
    let seqs: Vec<u32> = live
        .iter()
        .filter_map(|(_, event)| match event {
            StreamEvent::Run { event } => Some(event.seq),
            StreamEvent::Flow { .. } => None,
        })
        .collect();
    assert_eq!(seqs, (1..=u32::try_from(seqs.len()).unwrap()).collect::<Vec<_>>());
    // The list from the journal has the same events.
    let list = sidecar.get(&format!("/api/runs/{run}/events")).await.ok(200);
    let sent: Vec<_> = live
        .iter()
        .filter_map(|(_, event)| match event {
            StreamEvent::Run { event } => Some(serde_json::to_value(event).unwrap()),
            StreamEvent::Flow { .. } => None,
        })
        .collect();
    assert_eq!(sent, *list.as_array().unwrap());

    let mut late = sidecar.socket().await;
    late.subscribe(Some("0")).await;
    let all = late.until(is_debug).await;
    assert!(matches!(
        &all[0].1,
        StreamEvent::Flow { event: FlowEvent::Deployed { agents: 1, refused: 0, .. }, .. }
    ));
    assert_eq!(all[1..], live);
    // From every position on exactly the rest.
    for at in 0..live.len() {
        let mut socket = sidecar.socket().await;
        socket.subscribe(Some(&live[at].0)).await;
        for expected in &live[at + 1..] {
            assert_eq!(socket.event().await, *expected);
        }
        match socket.hear().await {
            EventsMessage::CaughtUp { cursor } => assert_eq!(cursor, live.last().unwrap().0),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_cursor_works_after_a_restart() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    sidecar.run(json!({"payload": "?"})).await;
    let mut socket = sidecar.socket().await;
    socket.subscribe(Some("0")).await;
    let before = socket.until(is_debug).await;
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    sidecar.run(json!({"payload": "?"})).await;
    let mut socket = sidecar.socket().await;
    socket.subscribe(Some(&before[2].0)).await;
    let rest = socket.until(is_debug).await;
    assert_eq!(rest, before[3..]);
    let more = socket.until(is_debug).await;
    assert!(is_deployed(&more[0].1));
}

#[tokio::test]
async fn sends_only_the_subscribed_runs() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let start = || sidecar.post("/api/runs", json!({"payload": "?"}));
    let wanted = start().await.ok(202)["runs"][0]["runId"].as_str().unwrap().to_owned();
    start().await.ok(202);
    let mut socket = sidecar.socket().await;
    let runs = Some(vec![RunId::from(wanted.as_str())]);
    socket
        .say(&EventsRequest::Subscribe { after: Some("0".to_owned()), runs, types: None, deltas: false })
        .await;
    start().await.ok(202);
    sidecar.post(&format!("/api/runs/{wanted}/cancel"), json!({})).await.ok(200);
    let is_end = |event: &StreamEvent| matches!(event, StreamEvent::Run { event } if matches!(event.event, RunEventKind::RunFinished { .. }));
    let events = socket.until(is_end).await;
    assert!(events.len() >= 4);
    assert!(events.iter().all(|(_, event)| run_of(event).is_some_and(|run| run.as_str() == wanted)));
}

#[tokio::test]
async fn sends_only_the_subscribed_types() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    sidecar.run(json!({"payload": "?"})).await;
    let subscribe = async |types: &[&str]| {
        let mut socket = sidecar.socket().await;
        let (after, types) =
            (Some("0".to_owned()), Some(types.iter().map(|&name| name.to_owned()).collect()));
        socket.say(&EventsRequest::Subscribe { after, runs: None, types, deltas: false }).await;
        socket
    };
    let mut socket = subscribe(&["tool_returned", "debug", "unknown"]).await;
    let events = socket.until(is_debug).await;
    let type_of = |event: &StreamEvent| {
        let json = serde_json::to_string(event).unwrap();
        StreamEvent::type_in(&json).unwrap().into_owned()
    };
    let types: Vec<String> = events.iter().map(|(_, event)| type_of(event)).collect();
    assert_eq!(types, ["tool_returned", "debug"]);
    let mut none = subscribe(&[]).await;
    assert!(matches!(none.hear().await, EventsMessage::CaughtUp { .. }));
    for types in [vec!["x"; 101], vec![&*"x".repeat(101)]] {
        let mut refused = subscribe(&types).await;
        assert_eq!(close_reason(&mut refused).await.0, ProblemCode::Api(ApiCode::MessageInvalid));
    }
}

#[tokio::test]
async fn sends_the_position_to_a_reader_of_few_events() {
    let mut nodes = plain_flow();
    nodes[1]["wires"] = json!([["result"]]);
    let sidecar = TestSidecar::start(nodes).await;
    let mut socket = sidecar.socket().await;
    let runs = Some(vec![RunId::from("none of these")]);
    socket.say(&EventsRequest::Subscribe { after: None, runs, types: None, deltas: false }).await;
    let EventsMessage::CaughtUp { cursor: first } = socket.hear().await else { panic!("not caught up") };
    for _ in 0..1100 {
        sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    }
    // No wanted event came, but its position has moved.
    let EventsMessage::CaughtUp { cursor } = socket.hear().await else { panic!("no position") };
    assert_ne!(cursor, first);
}

#[tokio::test]
async fn sends_deltas_only_on_request_and_without_a_cursor() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut with_deltas = sidecar.socket().await;
    with_deltas.say(&EventsRequest::Subscribe { after: None, runs: None, types: None, deltas: true }).await;
    assert!(matches!(with_deltas.hear().await, EventsMessage::CaughtUp { .. }));
    let mut other = sidecar.socket().await;
    other.subscribe(None).await;
    assert!(matches!(other.hear().await, EventsMessage::CaughtUp { .. }));
    let run = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let mut text = String::new();
    loop {
        match with_deltas.hear().await {
            EventsMessage::Delta { delta } => {
                assert_eq!((delta.run_id.as_str(), delta.iteration, delta.attempt), (run.as_str(), 1, 1));
                text += &delta.text;
            }
            EventsMessage::Event { event, .. } if is_debug(&event) => break,
            EventsMessage::Event { .. } => {}
            unexpected => panic!("{unexpected:?}"),
        }
    }
    assert!(text.contains("42"), "{text}");
    // `until` refuses anything but events.
    other.until(is_debug).await;
}

#[tokio::test]
async fn answers_a_ping() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut socket = sidecar.socket().await;
    socket.say(&EventsRequest::Ping { id: "7".to_owned() }).await;
    assert_eq!(socket.hear().await, EventsMessage::Pong { id: "7".to_owned() });
    socket.send(Message::Ping("x".into())).await;
    let Some(Ok(Message::Pong(same))) = socket.stream.next().await else { panic!("no pong") };
    assert_eq!(same, "x");
}

#[tokio::test]
async fn answers_a_close_frame() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut socket = sidecar.socket().await;
    socket.stream.close(None).await.unwrap();
    let last = tokio::time::timeout(crate::client::PATIENCE, socket.stream.next()).await.unwrap();
    assert!(matches!(last, Some(Ok(Message::Close(_)))), "{last:?}");
}

// SECURITY: message-limit
#[tokio::test]
async fn closes_the_socket_after_an_invalid_message_with_a_code() {
    let mut settings = Setup::default();
    settings.settings.max_message_bytes = 2000;
    let sidecar = settings.start(Some(plain_flow())).await;
    let cases: [(Message, ApiCode); 10] = [
        (Message::text("no json"), ApiCode::MessageInvalid),
        (Message::text("[]"), ApiCode::MessageInvalid),
        (Message::text(r#"["ping","1"]"#), ApiCode::MessageInvalid),
        (Message::text(r#"{"type":"deploy"}"#), ApiCode::MessageInvalid),
        (Message::text(r#"{"type":"ping","id":"1","id":"2"}"#), ApiCode::MessageInvalid),
        (Message::text(r#"{"type":"ping","id":"1","more":1}"#), ApiCode::MessageInvalid),
        (Message::binary("x"), ApiCode::MessageInvalid),
        (
            Message::text(format!(r#"{{"type":"ping","id":"{}"}}"#, "x".repeat(3000))),
            ApiCode::MessageTooLarge,
        ),
        (Message::text(r#"{"type":"subscribe","after":"nonsense"}"#), ApiCode::CursorUnknown),
        (
            Message::text(r#"{"type":"subscribe","after":"00000000000000000000000000000000.1"}"#),
            ApiCode::CursorUnknown,
        ),
    ];
    for (message, code) in cases {
        let mut socket = sidecar.socket().await;
        socket.send(message.clone()).await;
        assert_eq!(close_reason(&mut socket).await, (ProblemCode::Api(code), None), "{message:?}");
    }
    let mut socket = sidecar.socket().await;
    let runs = Some((0..1001).map(|n| RunId::from(n.to_string())).collect());
    let text =
        serde_json::to_string(&EventsRequest::Subscribe { after: None, runs, types: None, deltas: false })
            .unwrap();
    assert!(text.len() > 2000);
    socket.send(Message::text(text)).await;
    assert_eq!(close_reason(&mut socket).await.0, ProblemCode::Api(ApiCode::MessageTooLarge));
}

#[tokio::test]
async fn refuses_a_future_cursor_and_one_of_dropped_events() {
    let log = EventLogSettings { max_events: 8, ..EventLogSettings::default() };
    let sidecar = Setup { log, ..Setup::default() }.start(Some(plain_flow())).await;
    let mut socket = sidecar.socket().await;
    socket.subscribe(None).await;
    let EventsMessage::CaughtUp { cursor } = socket.hear().await else { panic!("not caught up") };
    let (id, place) = cursor.rsplit_once('.').unwrap();
    let place = u64::from_str_radix(place, 16).unwrap();
    let mut early = sidecar.socket().await;
    early.subscribe(Some(&format!("{id}.{:x}", place + 1000))).await;
    assert_eq!(close_reason(&mut early).await.0, ProblemCode::Api(ApiCode::CursorUnknown));
    // The log drops the oldest events some time after there are too many.
    let code = eventually("the first event is dropped", || async {
        sidecar.run(json!({"payload": "?"})).await;
        let mut late = sidecar.socket().await;
        late.subscribe(Some(&cursor)).await;
        match late.hear().await {
            EventsMessage::Closing { code, .. } => Some(code),
            _ => None,
        }
    })
    .await;
    assert_eq!(code, ProblemCode::Api(ApiCode::EventsGone));
    // A reader that asks for all events gets those that are left.
    let mut all = sidecar.socket().await;
    all.subscribe(Some("0")).await;
    all.event().await;
}

// SECURITY: slow-reader
#[tokio::test]
async fn disconnects_a_blocked_reader_that_can_continue_later() {
    /// More than the buffers of the operating system hold.
    const MANY: usize = 1000;
    let mut setup = Setup::default();
    setup.settings.send_timeout = Duration::from_secs(1);
    let mut nodes = plain_flow();
    nodes[1]["payload"] = json!("x".repeat(15_000));
    nodes[1]["wires"] = json!([["result"]]);
    let sidecar = setup.start(Some(nodes)).await;
    let mut blocked = sidecar.socket().await;
    blocked.subscribe(None).await;
    let EventsMessage::CaughtUp { cursor } = blocked.hear().await else { panic!("not caught up") };
    // It does not read any more. Meanwhile other readers get many events.
    let mut reading = sidecar.socket().await;
    reading.subscribe(Some(&cursor)).await;
    let counting = tokio::spawn(async move {
        for _ in 0..MANY {
            reading.until(is_debug).await;
        }
    });
    for _ in 0..MANY {
        sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    }
    counting.await.unwrap();
    // The socket is closed, whether or not the client reads the buffered messages.
    crate::kit::eventually("its socket is closed", || async {
        let metrics = sidecar.get("/metrics").await;
        String::from_utf8_lossy(&metrics.body).contains("closed READER_TOO_SLOW").then_some(())
    })
    .await;
    let (mut last, mut seen) = (cursor, 0);
    while let Some(message) = blocked.next().await {
        match message {
            EventsMessage::Event { cursor, .. } => (last, seen) = (cursor, seen + 1),
            EventsMessage::Closing { code, cursor, .. } => {
                assert_eq!(code, ProblemCode::Api(ApiCode::ReaderTooSlow));
                assert!(cursor.is_some());
            }
            other => panic!("{other:?}"),
        }
    }
    // After a reconnect it continues after its last event.
    let mut reconnected = sidecar.socket().await;
    reconnected.subscribe(Some(&last)).await;
    for _ in seen..MANY {
        assert!(is_debug(&reconnected.event().await.1));
    }
}

/// A reader that has subscribed and then reads too slowly for the log.
#[tokio::test]
async fn a_live_reader_learns_that_its_next_events_are_gone() {
    let log = EventLogSettings { max_events: 8, ..EventLogSettings::default() };
    let mut setup = Setup { log, ..Setup::default() };
    setup.settings.send_timeout = Duration::from_secs(300);
    let mut nodes = plain_flow();
    // More than the buffers of the operating system hold, with many events for each start.
    let debugs: Vec<String> = (0..30).map(|number| format!("d{number}")).collect();
    nodes[1]["payload"] = json!("x".repeat(15_000));
    nodes[1]["wires"] = json!([debugs]);
    let tab = nodes[1]["z"].clone();
    let debug = |id: &String| json!({"id": id, "type": "debug", "z": tab, "name": "", "wires": []});
    nodes.as_array_mut().unwrap().extend(debugs.iter().map(debug));
    let sidecar = setup.start(Some(nodes)).await;
    let mut reader = sidecar.socket().await;
    reader.subscribe(None).await;
    let EventsMessage::CaughtUp { .. } = reader.hear().await else { panic!("not caught up") };
    for _ in 0..100 {
        sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    }
    let (mut last, mut seen) = (None, 0);
    let (code, cursor) = loop {
        match reader.hear().await {
            EventsMessage::Event { cursor, .. } => (last, seen) = (Some(cursor), seen + 1),
            EventsMessage::Closing { code, cursor, .. } => break (code, cursor),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, ProblemCode::Api(ApiCode::EventsGone), "after {seen} events");
    assert_eq!(cursor, last, "the position of its last event");
}

#[tokio::test]
async fn tells_readers_that_the_sidecar_stops_and_their_position() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut socket = sidecar.socket().await;
    // The deploy at the start is the last event.
    socket.subscribe(Some("0")).await;
    let (cursor, _) = socket.event().await;
    sidecar.begin_to_stop();
    assert_eq!(close_reason(&mut socket).await, (ProblemCode::Api(ApiCode::Stopping), Some(cursor)));
}

// SECURITY: rate-limit
#[tokio::test]
async fn closes_a_socket_that_sends_too_many_messages() {
    let mut setup = Setup::default();
    setup.settings.access.requests_per_second = 1;
    setup.settings.access.request_burst = 20;
    let sidecar = setup.start(Some(plain_flow())).await;
    let mut socket = sidecar.socket().await;
    for _ in 0..50 {
        let text = serde_json::to_string(&EventsRequest::Ping { id: "x".to_owned() }).unwrap();
        use futures::SinkExt as _;
        if socket.stream.send(Message::text(text)).await.is_err() {
            break;
        }
    }
    loop {
        match socket.hear().await {
            EventsMessage::Pong { .. } => {}
            EventsMessage::Closing { code, .. } => {
                break assert_eq!(code, ProblemCode::Api(ApiCode::RateLimited));
            }
            other => panic!("{other:?}"),
        }
    }
}

// SECURITY: token-removed
#[tokio::test]
async fn a_socket_does_not_outlive_its_token() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = Duration::from_millis(300);
    let sidecar = setup.start(Some(plain_flow())).await;
    let token = crate::kit::token(sidecar.dir.path(), "guest", &[redflow_contract::api::Scope::Read], 1);
    let mut socket = eventually("the token is known", || async {
        let bearer = format!("Bearer {token}");
        Socket::try_open(sidecar.addr, &[("authorization", &bearer)]).await.ok()
    })
    .await;
    assert!(matches!(socket.hear().await, EventsMessage::Hello { .. }));
    socket.subscribe(None).await;
    redflow_access::tokens::remove(sidecar.dir.path(), "guest").unwrap();
    assert_eq!(close_reason(&mut socket).await.0, ProblemCode::Api(ApiCode::Unauthorized));
    // A socket with another token stays open.
    let mut other = Socket::open(sidecar.addr, TOKEN).await;
    other.say(&EventsRequest::Ping { id: "1".to_owned() }).await;
    assert_eq!(other.hear().await, EventsMessage::Pong { id: "1".to_owned() });
}

// SECURITY: token-removed
#[tokio::test]
async fn a_busy_socket_does_not_outlive_its_token() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let token = crate::kit::token(sidecar.dir.path(), "guest", &[redflow_contract::api::Scope::Read], 1);
    let mut socket = eventually("the token is known", || async {
        let bearer = format!("Bearer {token}");
        Socket::try_open(sidecar.addr, &[("authorization", &bearer)]).await.ok()
    })
    .await;
    assert!(matches!(socket.hear().await, EventsMessage::Hello { .. }));
    redflow_access::tokens::remove(sidecar.dir.path(), "guest").unwrap();
    let end = tokio::time::Instant::now() + crate::client::PATIENCE;
    loop {
        assert!(tokio::time::Instant::now() < end, "the socket is still open");
        socket.say(&EventsRequest::Ping { id: "1".to_owned() }).await;
        match socket.hear().await {
            EventsMessage::Pong { .. } => tokio::time::sleep(Duration::from_millis(50)).await,
            EventsMessage::Closing { code, .. } => {
                return assert_eq!(code, ProblemCode::Api(ApiCode::Unauthorized));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn sends_events_while_a_pong_is_pending() {
    use tokio::io::AsyncReadExt as _;
    let mut setup = Setup::default();
    setup.settings.heartbeat = Duration::from_secs(2);
    let sidecar = setup.start(Some(plain_flow())).await;
    let mut socket = sidecar.socket().await;
    socket.subscribe(None).await;
    assert!(matches!(socket.hear().await, EventsMessage::CaughtUp { .. }));
    // Reads raw bytes, because the library would answer the ping.
    let (mut bytes, tcp) = (Vec::new(), socket.stream.get_mut());
    while !bytes.ends_with(&[0x89, 0]) {
        assert_ne!(tcp.read_buf(&mut bytes).await.unwrap(), 0);
    }
    sidecar.run(json!({"node": "agent", "payload": "1"})).await;
    while !String::from_utf8_lossy(&bytes).contains("run_started") {
        assert_ne!(tcp.read_buf(&mut bytes).await.unwrap(), 0, "the socket was closed without the event");
    }
}
