use super::{BridgeSession, Delivery, MAX_DELAY, MAX_UNACKNOWLEDGED, STATUS_INTERVAL};
use redflow_contract::Message;
use redflow_contract::bridge::{BridgeMessage, ToolReply};
use redflow_contract::digest::Digest;
use redflow_contract::id::CallId;
use redflow_contract::node::EffectClass;
use redflow_ports::ToolOutcome;
use std::time::Duration;

/// A call, or a query for its outcome if the call is `known`.
struct TestCall {
    known: bool,
}

fn tool_call(TestCall { known }: TestCall) -> BridgeMessage {
    BridgeMessage::ToolCall {
        seq: 0,
        run: "r".into(),
        call: "r:1".into(),
        agent: "a".into(),
        node: "t".into(),
        tool: "t".to_owned(),
        iteration: 1,
        input: Message::new(),
        timeout_ms: 1,
        idempotency_key: Digest::ZERO,
        effect: EffectClass::AtMostOnce,
        known,
        operation: None,
    }
}

fn new_session() -> BridgeSession {
    BridgeSession::new("session".to_owned())
}

fn streamed(seq: u32) -> BridgeMessage {
    let message = [("payload".to_owned(), seq.into())].into_iter().collect();
    BridgeMessage::Stream { node: "a".into(), port: 1, start: None, message }
}

#[test]
fn streamed_text_goes_before_a_result_and_the_oldest_is_dropped() {
    let session = new_session();
    session.send_unnumbered(&streamed(0));
    let socket = session.join("boot", None, 0).unwrap().socket;
    for seq in 1..=300 {
        session.send_unnumbered(&streamed(seq));
    }
    drop(session.deliver(&BridgeMessage::StartDone { seq: 0, start: "s".to_owned() }, Delivery::Result));
    assert!(session.has_more());
    let texts = session.next_batch(socket, Duration::ZERO).unwrap().texts;
    assert_eq!(texts.len(), 256 + 1);
    assert!(texts[0].contains(r#""payload":45"#), "the oldest are dropped: {}", texts[0]);
    assert!(texts[255].contains(r#""payload":300"#) && texts[256].contains("start_done"));
    // A closed socket has lost what waited for it.
    session.send_unnumbered(&streamed(301));
    session.leave(socket);
    let socket = session.join("boot", Some("session"), 0).unwrap().socket;
    let texts = session.next_batch(socket, Duration::ZERO).unwrap().texts;
    assert!(texts.iter().all(|text| !text.contains("stream")), "{texts:?}");
}

/// A query asks for a call that an earlier process made, so its outcome stays unknown.
#[tokio::test]
async fn a_call_that_was_not_sent_fails_and_a_query_stays_unknown() {
    let fill = |session: &BridgeSession| {
        let start = "x".repeat(super::super::outbox::MAX_WAITING_BYTES - 100);
        drop(session.deliver(&BridgeMessage::StartDone { seq: 0, start }, Delivery::Result));
    };
    for is_full in [false, true] {
        for known in [false, true] {
            let session = new_session();
            if is_full {
                fill(&session);
            }
            let timeout = Duration::from_millis(5);
            let call =
                session.call("r:1".into(), tool_call(TestCall { known }), EffectClass::AtMostOnce, timeout);
            match call.await {
                ToolOutcome::Returned(result) => {
                    assert!(!known && result.error.is_some_and(|error| error.contains("was not made")));
                }
                ToolOutcome::Unknown { reason } => assert!(known && reason == ToolOutcome::INTERRUPTED),
            }
            assert_eq!(session.counts(), (usize::from(is_full), 0));
        }
    }
}

#[tokio::test]
async fn a_result_that_the_full_outbox_dropped_is_sent_again_later() {
    let session = new_session();
    let socket = session.join("b", None, 0).unwrap().socket;
    let start = "x".repeat(super::super::outbox::MAX_WAITING_BYTES / 2);
    let big = BridgeMessage::StartDone { seq: 0, start };
    let first = session.deliver(&big, Delivery::Result);
    let second = session.deliver(&big, Delivery::Result);
    assert!(second.await.is_err(), "the outbox is full");
    assert!(!session.take_dropped_result(), "the outbox is still full");
    session.next_batch(socket, STATUS_INTERVAL).unwrap();
    session.acknowledge(socket, 1).unwrap();
    assert_eq!(first.await, Ok(true));
    assert!(session.take_dropped_result() && !session.take_dropped_result());
}

#[test]
fn ignores_numbers_of_an_earlier_epoch_or_a_replaced_socket() {
    let session = new_session();
    let first = session.join("b", None, 0).unwrap();
    assert!(session.receive(first.socket, 1).unwrap());
    // The same process has lost its session, so numbers start again.
    let second = session.join("b", None, 0).unwrap();
    assert!(!session.receive(first.socket, 1).unwrap());
    assert!(session.receive(second.socket, 1).unwrap());
    session.next_batch(second.socket, STATUS_INTERVAL).unwrap();
    session.mark_processed(first.epoch, 1);
    assert!(!session.has_delayed(), "nothing is processed");
    assert!(session.acknowledge(first.socket, 99).is_ok() && session.acknowledge(second.socket, 99).is_err());
    session.mark_processed(second.epoch, 1);
    assert!(session.has_delayed());
}

/// An acknowledgement waits for another message, for its delay, or until there are many.
#[test]
fn sends_acknowledgements_with_other_messages() {
    let session = new_session();
    let super::JoinedSocket { socket, epoch, .. } = session.join("b", None, 0).unwrap();
    let process = |seq| {
        assert!(session.receive(socket, seq).unwrap());
        session.mark_processed(epoch, seq);
    };
    let sent_after = |since| {
        session.next_batch(socket, since).unwrap().texts.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    process(1);
    assert!(sent_after(STATUS_INTERVAL).is_empty() && !session.has_more());
    assert_eq!(sent_after(MAX_DELAY), [r#"{"type":"ack","seq":1}"#]);
    process(2);
    drop(session.deliver(&BridgeMessage::StartDone { seq: 0, start: "s".to_owned() }, Delivery::ModelAnswer));
    let expected = [r#"{"type":"start_done","seq":1,"start":"s"}"#, r#"{"type":"ack","seq":2}"#];
    assert_eq!(sent_after(STATUS_INTERVAL), expected);
    assert!(!session.has_delayed());
    (3..3 + MAX_UNACKNOWLEDGED).for_each(process);
    assert!(session.has_more());
    assert_eq!(sent_after(STATUS_INTERVAL), [r#"{"type":"ack","seq":66}"#]);
}

#[tokio::test]
async fn a_model_answer_does_not_wait_for_a_disconnected_node_red() {
    let session = new_session();
    let message = BridgeMessage::StartDone { seq: 0, start: "s".to_owned() };
    assert_eq!(session.deliver(&message, Delivery::ModelAnswer).await, Ok(true));
    let socket = session.join("b", None, 0).unwrap().socket;
    let arrival = session.deliver(&message, Delivery::ModelAnswer);
    session.leave(socket);
    assert_eq!(arrival.await, Ok(true));
    assert_eq!(session.counts().0, 2, "both messages still wait");
}

#[tokio::test]
async fn a_reply_completes_an_open_call_only() {
    let session = new_session();
    let reply = || ToolReply::Failed { error: "no".to_owned() };
    let call = session.call(
        "r:1".into(),
        tool_call(TestCall { known: false }),
        EffectClass::Read,
        Duration::from_secs(60),
    );
    let answer = async {
        tokio::task::yield_now().await;
        session.complete_call(&CallId::from("r:1"), reply()).unwrap();
    };
    let (outcome, ()) = tokio::join!(call, answer);
    assert!(matches!(outcome, ToolOutcome::Returned(result) if result.error.as_deref() == Some("no")));
    assert_eq!(session.complete_call(&CallId::from("r:1"), reply()), Err(reply()));
}
