use super::{EventFormatter, format_event};
use redflow_contract::action::ActionKind;
use redflow_contract::archive::{SourceKind, Trust};
use redflow_contract::code::ToolCode;
use redflow_contract::event::RunEvent;
use redflow_contract::event::RunEventKind;
use redflow_contract::id::NodeRef;
use redflow_contract::source::Source;
use redflow_ports::ModelWait;

#[test]
fn a_wait_for_a_model_has_one_line() {
    let mut formatter = EventFormatter::default();
    let mut line = |iteration, reason| formatter.format_wait(&"r".into(), iteration, reason);
    let loading = line(1, ModelWait::Loading);
    assert_eq!(loading.as_deref(), Some("   1 –      waits while the server loads the model"));
    assert_eq!(line(1, ModelWait::Loading), None);
    let busy = line(2, ModelWait::Busy);
    assert_eq!(busy.as_deref(), Some("   2 –      waits for other calls of the model (`maxConcurrent`)"));
    assert!(line(3, ModelWait::Busy).is_some());
}

fn line(error: Option<&str>, code: Option<ToolCode>, tries: Option<u32>, sources: Vec<Source>) -> String {
    let event = RunEventKind::ToolReturned {
        iteration: 1,
        tool: "mail".to_owned(),
        id: None,
        call_id: "c".into(),
        success: error.is_none(),
        error: error.map(str::to_owned),
        code,
        tries,
        duration_ms: 5,
        preview: None,
        sources,
        image_bytes: Vec::new(),
    };
    let agent = NodeRef { instance: "local".into(), node_id: "a".into() };
    let text = format_event(&RunEvent { run_id: "r".into(), seq: 1, at: 0, agent, event }).unwrap();
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn an_answer_names_the_fields_that_the_provider_refused() {
    let line = |refused: &[&str]| {
        let event = RunEventKind::ModelAnswered {
            iteration: 1,
            action: ActionKind::Final,
            tool: None,
            tools: Vec::new(),
            confidence: None,
            duration_ms: 5,
            usage: None,
            refused: refused.iter().map(|field| (*field).to_owned()).collect(),
            preview: None,
        };
        let agent = NodeRef { instance: "local".into(), node_id: "a".into() };
        let text = format_event(&RunEvent { run_id: "r".into(), seq: 1, at: 0, agent, event }).unwrap();
        anstream::adapter::strip_str(&text).to_string()
    };
    assert!(!line(&[]).contains('\n'));
    let shown = line(&["temperature", "tool_choice\u{1b}"]);
    assert!(shown.ends_with("\n       refused by the provider: temperature, tool_choice\\u{1b}"), "{shown}");
}

#[test]
fn a_failed_call_has_its_code_and_its_tries() {
    assert_eq!(line(None, None, None, Vec::new()), "     └ mail ok  5 ms");
    assert_eq!(line(None, None, Some(3), Vec::new()), "     └ mail ok  5 ms, 3 tries");
    let denied = line(Some("no"), Some(ToolCode::ToolDenied), Some(0), Vec::new());
    assert_eq!(denied, "     └ mail failed TOOL_DENIED: no  5 ms, not tried");
}

#[test]
fn a_result_names_its_sources_in_one_line() {
    let source = |reference: &str, score| Source {
        kind: SourceKind::Knowledge,
        reference: reference.to_owned(),
        version: None,
        digest: None,
        score,
        trust: Trust::External,
    };
    let sources = vec![source("docs/a.md#1", Some(0.756)), source("docs/b\n\u{1b}[31m.md#2", None)];
    let text = line(None, None, None, sources);
    let (first, second) = text.split_once('\n').unwrap();
    assert_eq!(first, "     └ mail ok  5 ms");
    assert!(second.starts_with("       from: docs/a.md#1 (0.76), docs/b"), "{second:?}");
    assert!(!second.contains(['\n', '\u{1b}']), "{second:?}");
    assert!(line(None, None, None, vec![source("x", None); 400]).chars().count() < 260);
}
