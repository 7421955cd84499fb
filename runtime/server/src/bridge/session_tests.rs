use super::BridgeSession;
use redflow_contract::Message;
use redflow_contract::bridge::{BridgeMessage, ToolReply};
use redflow_contract::digest::Digest;
use redflow_contract::id::CallId;
use redflow_contract::node_config::EffectClass;
use redflow_ports::ToolOutcome;
use std::time::Duration;

fn call(known: bool) -> BridgeMessage {
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
    }
}

fn link() -> BridgeSession {
    BridgeSession::new("session".to_owned())
}

/// A call that was made before this process began was made, whether or not anybody can be asked.
#[tokio::test]
async fn what_was_never_sent_was_not_made_unless_it_was_made_before() {
    let fill = |link: &BridgeSession| {
        let start = "x".repeat(super::super::outbox::MAX_WAITING_BYTES - 100);
        drop(link.deliver(&BridgeMessage::StartDone { seq: 0, start }, true, true));
    };
    for is_full in [false, true] {
        for known in [false, true] {
            let link = link();
            if is_full {
                fill(&link);
            }
            let asked =
                link.call("r:1".into(), call(known), EffectClass::AtMostOnce, Duration::from_millis(5));
            match asked.await {
                ToolOutcome::Returned(result) => {
                    assert!(!known && result.error.is_some_and(|why| why.contains("was not made")));
                }
                ToolOutcome::Unknown { reason } => assert!(known && reason == ToolOutcome::INTERRUPTED),
            }
            assert_eq!(link.counts(), (usize::from(is_full), 0));
        }
    }
}

#[tokio::test]
async fn a_result_that_found_no_room_is_sent_again_when_there_is_some() {
    let link = link();
    let socket = link.join("b", None, 0).unwrap().socket;
    let start = "x".repeat(super::super::outbox::MAX_WAITING_BYTES / 2);
    let big = BridgeMessage::StartDone { seq: 0, start };
    let first = link.deliver(&big, true, true);
    let second = link.deliver(&big, true, true);
    assert!(second.await.is_err(), "there is no room for it");
    assert!(!link.take_lost(), "and none yet");
    link.next(socket, super::PACE).unwrap();
    link.acknowledged(socket, 1).unwrap();
    assert_eq!(first.await, Ok(true));
    assert!(link.take_lost() && !link.take_lost());
}

/// Numbers of an earlier beginning, and of a socket that has been replaced, mean nothing.
#[test]
fn old_numbers_do_not_count() {
    let link = link();
    let first = link.join("b", None, 0).unwrap();
    assert!(link.receive(first.socket, 1).unwrap());
    // The same process has lost its session, and counts anew.
    let second = link.join("b", None, 0).unwrap();
    assert!(!link.receive(first.socket, 1).unwrap());
    assert!(link.receive(second.socket, 1).unwrap());
    link.next(second.socket, super::PACE).unwrap();
    link.done(first.epoch, 1);
    assert!(!link.has_patience(), "nothing is acknowledged");
    assert!(link.acknowledged(first.socket, 99).is_ok() && link.acknowledged(second.socket, 99).is_err());
    link.done(second.epoch, 1);
    assert!(link.has_patience());
}

/// An acknowledgement waits for something else to be said, or for its time, or until there are many.
#[test]
fn acknowledgements_ride_along() {
    let link = link();
    let super::Joined { socket, epoch, .. } = link.join("b", None, 0).unwrap();
    let take = |seq| {
        assert!(link.receive(socket, seq).unwrap());
        link.done(epoch, seq);
    };
    let said = |is_time| {
        let since = if is_time { super::PATIENCE } else { super::PACE };
        link.next(socket, since).unwrap().texts.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    take(1);
    assert!(said(false).is_empty() && !link.has_more());
    assert_eq!(said(true), [r#"{"type":"ack","seq":1}"#]);
    take(2);
    drop(link.deliver(&BridgeMessage::StartDone { seq: 0, start: "s".to_owned() }, false, true));
    assert_eq!(said(false), [r#"{"type":"start_done","seq":1,"start":"s"}"#, r#"{"type":"ack","seq":2}"#]);
    assert!(!link.has_patience());
    (3..3 + super::MANY_ACKS).for_each(take);
    assert!(link.has_more());
    assert_eq!(said(false), [r#"{"type":"ack","seq":66}"#]);
}

#[tokio::test]
async fn an_answer_of_a_model_never_waits_for_nobody() {
    let link = link();
    let message = BridgeMessage::StartDone { seq: 0, start: "s".to_owned() };
    assert_eq!(link.deliver(&message, false, true).await, Ok(true));
    let socket = link.join("b", None, 0).unwrap().socket;
    let waits = link.deliver(&message, false, true);
    link.leave(socket);
    assert_eq!(waits.await, Ok(true));
    assert_eq!(link.counts().0, 2, "both are still there to be taken");
}

#[tokio::test]
async fn a_reply_is_for_who_waits() {
    let link = link();
    let reply = || ToolReply::Failed { error: "no".to_owned() };
    let asked = link.call("r:1".into(), call(false), EffectClass::Read, Duration::from_secs(60));
    let answer = async {
        tokio::task::yield_now().await;
        link.answered(&CallId::from("r:1"), reply()).unwrap();
    };
    let (outcome, ()) = tokio::join!(asked, answer);
    assert!(matches!(outcome, ToolOutcome::Returned(result) if result.error.as_deref() == Some("no")));
    assert_eq!(link.answered(&CallId::from("r:1"), reply()), Err(reply()));
}
