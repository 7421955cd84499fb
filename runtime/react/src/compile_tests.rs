use super::{CompileError, CompiledAgent, compile_schema};
use redflow_contract::id::{InstanceId, NodeRef};
use redflow_contract::limits::RunLimits;
use redflow_contract::node_config::OnUnknown;
use redflow_contract::plan::{AgentSpec, ToolSpec};
use redflow_contract::transcript::ChatRole;
use serde_json::{Value, json};
use std::sync::Arc;

/// An agent with these tools: name, description, schema.
pub(crate) fn spec(tools: &[(&str, &str, Option<Value>)]) -> Arc<AgentSpec> {
    let tools = tools.iter().map(|(name, description, input_schema)| ToolSpec {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        input_schema: input_schema.clone(),
        node: (*name).into(),
        effect: None,
        timeout_ms: 1_000,
        on_unknown: OnUnknown::Wait,
    });
    Arc::new(AgentSpec {
        agent: NodeRef { instance: InstanceId::local(), node_id: "agent".into() },
        type_name: "agent-core".to_owned(),
        name: String::new(),
        max_iterations: 5,
        tools: tools.collect(),
        stop_conditions: Vec::new(),
        debug: false,
        timeout_ms: 60_000,
        memory: false,
        model_response_wired: false,
        limits: RunLimits::default(),
    })
}

/// The calculator's schema.
pub(crate) fn expression_schema() -> Value {
    json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"], "additionalProperties": false})
}

#[test]
fn an_agent_begins_with_its_system_message() {
    let agent = CompiledAgent::compile(spec(&[("calculator", "Adds.", Some(expression_schema()))])).unwrap();
    assert_eq!(agent.system().role, ChatRole::System);
    assert_eq!(agent.prefix().segments(), [Arc::clone(agent.system())]);
    assert!(agent.tool("calculator").is_some_and(|(_, validator)| validator.is_some()));
    assert!(agent.tool("Calculator").is_none());
}

#[test]
fn a_bad_schema_names_its_tool() {
    let error =
        CompiledAgent::compile(spec(&[("a", "", None), ("b", "", Some(json!({"type": 5})))])).unwrap_err();
    assert_eq!(error.tool, "b");
    assert!(error.to_string().starts_with("the input schema of tool `b` cannot be used: at `/type`, "));
    let CompileError { reason, .. } = error;
    assert!(!reason.contains('\n'));
}

#[test]
fn schemas_that_fetch_hang_or_make_no_sense_are_refused() {
    for (schema, place) in [
        (json!({"properties": {"a": {"pattern": "(?=x)y"}}}), "at `/properties/a/pattern`"),
        (json!({"properties": {"a": {"pattern": "(a)\\1"}}}), "at `/properties/a/pattern`"),
        (json!({"patternProperties": {"(?!x)": true}}), "at `/patternProperties/(?!x)`"),
        (json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"}), "at `/pattern`"),
        (json!({"pattern": "("}), "at `/pattern`"),
        (json!({"$ref": "https://example.com/x.json"}), "Resource"),
        (json!({"$ref": "file:///etc/passwd"}), "Resource"),
        (json!({"$ref": "#/$defs/none"}), "Pointer"),
        (json!({"$schema": "https://example.com/none"}), "Unknown meta-schema"),
        (json!("text"), "\"text\""),
    ] {
        let reason = compile_schema(&schema).err();
        assert!(reason.as_ref().is_some_and(|text| text.starts_with(place)), "{schema}: {reason:?}");
    }
}

#[test]
fn schemas_that_name_themselves_come_to_an_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}}),
        json!({"properties": {"a": {"$ref": "#"}}, "type": "object"}),
    ] {
        let validator = compile_schema(&schema).unwrap();
        assert!(validator.is_valid(&json!({"a": {"a": {}}})), "{schema}");
    }
}
