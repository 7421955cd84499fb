use super::{CalledTools, JoinedSecrets, MAX_KEPT};
use redflow_contract::digest::Digest;
use redflow_contract::manifest::NodeOperation;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{ToolEntry, ToolState};
use serde_json::{Value, json};
use std::sync::Arc;

fn entry(input_schema: &Value) -> Arc<ToolEntry> {
    let operation: NodeOperation =
        serde_json::from_value(json!({"description": "d", "inputSchema": input_schema})).unwrap();
    Arc::new(super::super::entry_of_operation("pump", "start", &operation, "pump"))
}

#[test]
fn a_schema_is_compiled_once_and_few_are_kept() {
    let tools = CalledTools::default();
    let of_type = |kind: &str| entry(&json!({"type": "object", "properties": {"n": {"type": kind}}}));
    let first = tools.compile(&of_type("number")).unwrap();
    assert!(Arc::ptr_eq(&first, &tools.compile(&of_type("number")).unwrap()));
    assert!(first.input_violation(&json!({"n": "x"})).is_some());
    let text = tools.compile(&of_type("string")).unwrap();
    assert_eq!(text.input_violation(&json!({"n": "x"})), None);
    for most in 0..2 * MAX_KEPT {
        tools.compile(&entry(&json!({"type": "object", "maxProperties": most}))).unwrap();
        assert!(tools.kept().len() <= MAX_KEPT);
    }
}

#[test]
fn a_schema_that_cannot_be_used_is_not_kept() {
    let tools = CalledTools::default();
    let usable = entry(&json!({"type": "object"}));
    for (input_schema, output_schema) in [(json!({"type": 7}), None), (json!({}), Some(json!({"type": 7})))] {
        let wrong = ToolEntry {
            input_schema: Some(input_schema),
            output_schema,
            digest: Digest::of(b"another"),
            ..(*usable).clone()
        };
        assert!(tools.compile(&Arc::new(wrong)).is_err());
    }
    assert!(tools.kept().is_empty());
}

/// An MCP tool that is not approved has the digest of its definition, but not the schemas.
#[test]
fn a_tool_that_is_not_ready_is_not_kept() {
    let tools = CalledTools::default();
    let ready = entry(&json!({"type": "object", "required": ["n"]}));
    let any = Some(json!({"type": "object"}));
    for state in [ToolState::Changed, ToolState::Blocked, ToolState::Offline] {
        let other = ToolEntry { state, input_schema: any.clone(), ..(*ready).clone() };
        assert_eq!(tools.compile(&Arc::new(other)).unwrap().input_violation(&json!({})), None);
    }
    assert!(tools.compile(&ready).unwrap().input_violation(&json!({})).is_some());
}

#[test]
fn the_secrets_are_joined_again_when_the_flow_or_the_registry_has_changed() {
    let scrubber = |secret: &str| {
        let mut scrubber = Scrubber::default();
        scrubber.add(secret);
        Arc::new(scrubber)
    };
    let hidden = |scrubber: &Scrubber| {
        let mut text = "flow-key-1 flow-key-2 tool-key-1 tool-key-2".to_owned();
        scrubber.text(&mut text);
        text
    };
    let joined = JoinedSecrets::default();
    let [flow, other] = ["flow-key-1", "flow-key-2"].map(scrubber);
    let first = joined.join(&flow, &scrubber("tool-key-1"), 1);
    assert_eq!(hidden(&first), "[redacted] flow-key-2 [redacted] tool-key-2");
    assert!(Arc::ptr_eq(&first, &joined.join(&flow, &scrubber("tool-key-1"), 1)));
    assert_eq!(
        hidden(&joined.join(&flow, &scrubber("tool-key-2"), 2)),
        "[redacted] flow-key-2 tool-key-1 [redacted]"
    );
    assert_eq!(
        hidden(&joined.join(&other, &scrubber("tool-key-2"), 2)),
        "flow-key-1 [redacted] tool-key-1 [redacted]"
    );
    let (none, registry) = (Arc::<Scrubber>::default(), scrubber("tool-key-1"));
    assert!(Arc::ptr_eq(&flow, &joined.join(&flow, &none, 3)));
    assert!(Arc::ptr_eq(&registry, &joined.join(&none, &registry, 3)));
}
