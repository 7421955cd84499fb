use super::{CUT, of_flow, of_run};
use crate::kit::{debug, debug_node, deployed, run_event};
use redflow_contract::action::ActionKind;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::RunError;
use redflow_contract::stream::StreamEvent;
use serde_json::{Value, json};

const MOST: [usize; 3] = [1024, 4096, 16 * 1024];

fn read(body: &str) -> StreamEvent {
    serde_json::from_str(body).unwrap()
}

#[test]
fn what_fits_is_kept_as_it_is() {
    for event in [debug("x"), debug(json!({"a": [1, 2.5, null, "ü"]})), deployed("r1")] {
        let whole = StreamEvent::Flow { at: 7, event: event.clone() };
        assert_eq!(of_flow(7, event, 1024).unwrap(), serde_json::to_string(&whole).unwrap());
    }
    let event = run_event("a", 1);
    let whole = serde_json::to_string(&StreamEvent::Run { event: event.clone() }).unwrap();
    assert_eq!(of_run(event.clone(), whole.len()).unwrap(), whole, "just so");
    assert_eq!(of_run(event, 1024).unwrap(), whole);
}

/// The value becomes the beginning of its text, as much of it as has room.
#[test]
fn a_debug_value_is_cut_to_what_fits() {
    let values = [
        json!("x".repeat(100_000)),
        json!("\"\\".repeat(50_000)),
        json!("\u{1}\n\t\u{7f}".repeat(30_000)),
        json!("é€🦀".repeat(30_000)),
        json!(vec![1.5; 50_000]),
        json!({"key": {"deeper": vec![Value::Null; 50_000]}, "ü": "x".repeat(50_000)}),
    ];
    for most in MOST {
        for value in &values {
            let text = value.to_string();
            let body = of_flow(7, debug(value.clone()), most).unwrap();
            assert!(body.len() <= most && body.len() > most - 16, "{} of {most}: {text:.20}", body.len());
            let StreamEvent::Flow { at: 7, event: FlowEvent::Debug { node, property, value: cut } } =
                read(&body)
            else {
                panic!("{body}");
            };
            assert_eq!((node, property.as_str()), (debug_node(), "payload"));
            let beginning = cut.as_str().and_then(|cut| cut.strip_suffix(CUT)).unwrap();
            assert!(text.starts_with(beginning) && !beginning.is_empty(), "{beginning:.40}");
        }
    }
}

#[test]
fn long_names_and_sentences_are_cut() {
    let long = "ü\"".repeat(50_000);
    let node = NodeSummary { id: "n".into(), type_name: "t".into(), name: long.clone() };
    let error = RunError {
        code: RunErrorCode::ToolError,
        message: long.clone(),
        pointer: Some(long.clone()),
        rule: Some(long.clone()),
        iteration: 3,
    };
    for most in MOST {
        let events = [
            FlowEvent::Debug { node: node.clone(), property: long.clone(), value: json!(long) },
            FlowEvent::Uncaught { node: node.clone(), error: error.on_message(&node, 1) },
            FlowEvent::NeedsNodeRed { node: node.clone() },
            FlowEvent::MemoryCleared { node: node.clone() },
            FlowEvent::ChainCut { node: node.clone(), limit: 5 },
        ];
        for event in events {
            let body = of_flow(7, event.clone(), most).unwrap();
            assert!(body.len() <= most, "{} of {most}: {body:.60}", body.len());
            let StreamEvent::Flow { event: cut, .. } = read(&body) else { panic!("{body}") };
            assert_eq!(std::mem::discriminant(&cut), std::mem::discriminant(&event));
            if let FlowEvent::Uncaught { node: cut, error: told } = cut {
                assert!(cut.name.ends_with(CUT) && long.starts_with(cut.name.trim_end_matches(CUT)));
                assert!(told.message.ends_with(CUT) && (told.code, told.iteration) == (error.code, 3));
            }
        }
    }
}

#[test]
fn an_event_of_a_run_first_loses_its_preview_then_the_ends_of_its_texts() {
    let event = |event: RunEventKind| RunEvent { event, ..run_event("a", 4) };
    let long = "ü\"".repeat(50_000);
    let returned = |error: Option<String>, preview: Option<String>| {
        event(RunEventKind::ToolReturned {
            iteration: 1,
            tool: "t".into(),
            call_id: "c".into(),
            success: error.is_none(),
            error,
            duration_ms: 5,
            preview,
        })
    };
    let answered = |preview| {
        event(RunEventKind::ModelAnswered {
            iteration: 1,
            action: ActionKind::Final,
            tool: None,
            confidence: Some(0.5),
            duration_ms: 5,
            usage: None,
            preview,
        })
    };
    let called = |preview| event(RunEventKind::ModelCalled { iteration: 1, preview });
    for most in MOST {
        let without_preview = [
            (returned(None, Some(long.clone())), returned(None, None)),
            (returned(Some("bad".into()), Some(long.clone())), returned(Some("bad".into()), None)),
            (answered(Some(long.clone())), answered(None)),
            (called(Some(long.clone())), called(None)),
        ];
        for (event, expected) in without_preview {
            assert_eq!(read(&of_run(event, most).unwrap()), StreamEvent::Run { event: expected });
        }
        let body = of_run(returned(Some(long.clone()), Some(long.clone())), most).unwrap();
        assert!(body.len() <= most, "{} of {most}", body.len());
        let StreamEvent::Run { event: cut } = read(&body) else { panic!("{body}") };
        let RunEventKind::ToolReturned { error: Some(error), preview: None, .. } = cut.event else {
            panic!("{body}");
        };
        assert!(error.ends_with(CUT) && long.starts_with(error.trim_end_matches(CUT)));
        assert_eq!((cut.seq, cut.run_id), (4, "a".into()));
        let reason = event(RunEventKind::WaitingForOutcome {
            iteration: 1,
            tool: "t".into(),
            call_id: "c".into(),
            reason: long.clone(),
        });
        assert!(of_run(reason, most).unwrap().len() <= most);
    }
}
