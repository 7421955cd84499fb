use super::{ELLIPSIS, approximate_bytes, flow_event_json as flow_event, run_event as run_event_json};
use crate::kit::{debug_event, debug_node, deployed_event, run_event};
use redflow_contract::action::ActionKind;
use redflow_contract::archive::{SourceKind, Trust};
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::RunError;
use redflow_contract::source::Source;
use redflow_contract::stream::StreamEvent;
use serde_json::{Value, json};

const LIMITS: [usize; 3] = [1024, 4096, 16 * 1024];

fn read(body: &str) -> StreamEvent {
    serde_json::from_str(body).unwrap()
}

#[test]
fn an_event_within_the_limit_is_unchanged() {
    for event in [debug_event("x"), debug_event(json!({"a": [1, 2.5, null, "ü"]})), deployed_event("r1")] {
        let expected_event = StreamEvent::Flow { at: 7, event: event.clone() };
        assert_eq!(flow_event(7, event, 1024).unwrap(), serde_json::to_string(&expected_event).unwrap());
    }
    let event = run_event("a", 1);
    let expected_event = serde_json::to_string(&StreamEvent::Run { event: event.clone() }).unwrap();
    assert_eq!(run_event_json(&event, expected_event.len()).unwrap(), expected_event, "exactly at the limit");
    assert_eq!(run_event_json(&event, 1024).unwrap(), expected_event);
}

/// The value becomes the beginning of its JSON text, as much of it as fits.
#[test]
fn a_large_debug_value_is_truncated_to_the_limit() {
    let values = [
        json!("x".repeat(100_000)),
        json!("\"\\".repeat(50_000)),
        json!("\u{1}\n\t\u{7f}".repeat(30_000)),
        json!("é€🦀".repeat(30_000)),
        json!(vec![1.5; 50_000]),
        json!({"key": {"deeper": vec![Value::Null; 50_000]}, "ü": "x".repeat(50_000)}),
    ];
    for limit in LIMITS {
        for value in &values {
            let text = value.to_string();
            let body = flow_event(7, debug_event(value.clone()), limit).unwrap();
            assert!(body.len() <= limit && body.len() > limit - 16, "{} of {limit}: {text:.20}", body.len());
            let StreamEvent::Flow { at: 7, event: FlowEvent::Debug { node, property, value: cut } } =
                read(&body)
            else {
                panic!("{body}");
            };
            assert_eq!((node, property.as_str()), (debug_node(), "payload"));
            let beginning = cut.as_str().and_then(|cut| cut.strip_suffix(ELLIPSIS)).unwrap();
            assert!(text.starts_with(beginning) && !beginning.is_empty(), "{beginning:.40}");
        }
    }
}

#[test]
fn long_names_and_sentences_are_shortened() {
    let long = "ü\"".repeat(50_000);
    let node = NodeSummary { id: "n".into(), type_name: "t".into(), name: long.clone() };
    let error = RunError {
        code: RunErrorCode::ToolError,
        message: long.clone(),
        pointer: Some(long.clone()),
        rule: Some(long.clone()),
        iteration: 3,
    };
    for limit in LIMITS {
        let events = [
            FlowEvent::Debug { node: node.clone(), property: long.clone(), value: json!(long) },
            FlowEvent::Uncaught { node: node.clone(), error: error.on_message(&node, 1) },
            FlowEvent::NeedsNodeRed { node: node.clone() },
            FlowEvent::MemoryCleared { node: node.clone() },
            FlowEvent::CascadeCut { node: node.clone(), limit: 5 },
        ];
        for event in events {
            let body = flow_event(7, event.clone(), limit).unwrap();
            assert!(body.len() <= limit, "{} of {limit}: {body:.60}", body.len());
            let StreamEvent::Flow { event: cut, .. } = read(&body) else { panic!("{body}") };
            assert_eq!(std::mem::discriminant(&cut), std::mem::discriminant(&event));
            if let FlowEvent::Uncaught { node: cut, error: shortened } = cut {
                assert!(
                    cut.name.ends_with(ELLIPSIS) && long.starts_with(cut.name.trim_end_matches(ELLIPSIS))
                );
                assert!(
                    shortened.message.ends_with(ELLIPSIS)
                        && (shortened.code, shortened.iteration) == (error.code, 3)
                );
            }
        }
    }
}

#[test]
fn a_large_run_event_loses_its_preview_first_and_then_the_ends_of_its_texts() {
    let event = |event: RunEventKind| RunEvent { event, ..run_event("a", 4) };
    let long = "ü\"".repeat(50_000);
    let returned = |error: Option<String>, preview: Option<String>| {
        event(RunEventKind::ToolReturned {
            iteration: 1,
            tool: "t".into(),
            id: None,
            call_id: "c".into(),
            success: error.is_none(),
            error,
            duration_ms: 5,
            preview,
            code: None,
            tries: None,
            sources: Vec::new(),
            image_bytes: Vec::new(),
        })
    };
    let answered = |preview| {
        event(RunEventKind::ModelAnswered {
            iteration: 1,
            action: ActionKind::Final,
            tool: None,
            tools: Vec::new(),
            confidence: Some(0.5),
            duration_ms: 5,
            usage: None,
            refused: Vec::new(),
            preview,
        })
    };
    let called = |preview| event(RunEventKind::ModelCalled { iteration: 1, preview });
    for limit in LIMITS {
        let without_preview = [
            (returned(None, Some(long.clone())), returned(None, None)),
            (returned(Some("bad".into()), Some(long.clone())), returned(Some("bad".into()), None)),
            (answered(Some(long.clone())), answered(None)),
            (called(Some(long.clone())), called(None)),
        ];
        for (event, expected) in without_preview {
            assert_eq!(read(&run_event_json(&event, limit).unwrap()), StreamEvent::Run { event: expected });
        }
        let body = run_event_json(&returned(Some(long.clone()), Some(long.clone())), limit).unwrap();
        assert!(body.len() <= limit, "{} of {limit}", body.len());
        let StreamEvent::Run { event: cut } = read(&body) else { panic!("{body}") };
        let RunEventKind::ToolReturned { error: Some(error), preview: None, .. } = cut.event else {
            panic!("{body}");
        };
        assert!(error.ends_with(ELLIPSIS) && long.starts_with(error.trim_end_matches(ELLIPSIS)));
        assert_eq!((cut.seq, cut.run_id), (4, "a".into()));
        let recalled = event(RunEventKind::MemoryRecalled { messages: 3, sources: Vec::new() });
        for without_sources in [returned(None, None), recalled] {
            let mut with_sources = without_sources.clone();
            if let RunEventKind::ToolReturned { sources, .. } | RunEventKind::MemoryRecalled { sources, .. } =
                &mut with_sources.event
            {
                sources.extend((0..16).map(|_| Source {
                    kind: SourceKind::Knowledge,
                    reference: "\u{1}".repeat(500),
                    version: None,
                    digest: None,
                    score: None,
                    trust: Trust::External,
                }));
            }
            let (empty, full) = (approximate_bytes(&without_sources), approximate_bytes(&with_sources));
            assert!(full >= empty + 16 * 500, "{empty} {full}");
            let written = read(&run_event_json(&with_sources, limit).unwrap());
            assert_eq!(written, StreamEvent::Run { event: without_sources });
        }
        let reason = event(RunEventKind::WaitingForOutcome {
            iteration: 1,
            tool: "t".into(),
            call_id: "c".into(),
            reason: long.clone(),
        });
        assert!(run_event_json(&reason, limit).unwrap().len() <= limit);
    }
}
