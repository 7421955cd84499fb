use super::CompiledAgent;
use redflow_contract::id::{InstanceId, NodeRef};
use redflow_contract::limits::RunLimits;
use redflow_contract::node::OnUnknown;
use redflow_contract::plan::{AgentSpec, ToolSpec};
use redflow_contract::transcript::ChatRole;
use redflow_json_schema::SchemaRules;
use redflow_machine::{CompileError, compile_schema};
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
        id: None,
        operation: None,
        digest: None,
        output_schema: None,
        retry: None,
        strict: None,
    });
    Arc::new(AgentSpec {
        agent: NodeRef { instance: InstanceId::local(), node_id: "agent".into() },
        type_name: "agent-core".to_owned(),
        name: String::new(),
        strategy: None,
        converse: None,
        budget: None,
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

/// This schema compiles, but needs two to the power of `levels` steps to validate a value.
fn doubling_schema(levels: u32) -> Value {
    let link = |number: u32| json!({"$ref": format!("#/$defs/a{}", number + 1)});
    let mut defs: serde_json::Map<String, Value> = (0..40)
        .map(|number| (format!("a{number}"), json!({"allOf": [link(number), link(number)]})))
        .collect();
    defs.insert(format!("a{levels}"), json!({"type": "object"}));
    json!({"$ref": "#/$defs/a0", "$defs": defs})
}

#[test]
fn an_agent_starts_with_its_system_message() {
    let agent = CompiledAgent::compile(spec(&[("calculator", "Adds.", Some(expression_schema()))])).unwrap();
    let [system] = agent.prefix().segments() else { panic!() };
    assert_eq!(system.role, ChatRole::System);
    assert!(agent.tool("calculator").is_some());
    assert!(agent.tool("Calculator").is_none());
}

#[test]
fn a_bad_schema_names_its_tool() {
    let error =
        CompiledAgent::compile(spec(&[("a", "", None), ("b", "", Some(json!({"type": 5})))])).unwrap_err();
    assert!(error.to_string().starts_with("the input schema of tool `b` cannot be used: at `/type`, "));
    let CompileError::InputSchema { tool, reason } = error else { panic!("{error}") };
    assert!(tool == "b" && !reason.contains('\n'));
}

#[test]
fn refuses_schemas_that_fetch_block_or_are_invalid() {
    for (schema, place) in [
        (json!({"properties": {"a": {"pattern": "(?=x)y"}}}), "at `/properties/a/pattern`"),
        (json!({"properties": {"a": {"pattern": "(a)\\1"}}}), "at `/properties/a/pattern`"),
        (json!({"patternProperties": {"(?!x)": true}}), "at `/patternProperties/(?!x)`"),
        (json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"}), "its patterns repeat too much"),
        (json!({"pattern": "("}), "at `/pattern`"),
        (json!({"$ref": "https://example.com/x.json"}), "a reference in it leads to nothing inside it"),
        (json!({"$ref": "file:///etc/passwd"}), "a reference in it leads to nothing inside it"),
        (json!({"$ref": "#/$defs/none"}), "a reference in it leads to nothing inside it"),
        (doubling_schema(20), "it applies too many schemas to one value"),
        (doubling_schema(40), "it applies too many schemas to one value"),
        (json!({"allOf": [{"$ref": "#"}]}), "it comes back to itself in more than one way"),
        (
            json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}),
            "it comes back to itself in more than one way",
        ),
        (json!({"$schema": "https://example.com/none"}), "Unknown meta-schema"),
        (json!("text"), "\"text\""),
    ] {
        let reason = compile_schema(&schema, SchemaRules::Current).err();
        assert!(reason.as_ref().is_some_and(|text| text.starts_with(place)), "{schema}: {reason:?}");
    }
}

#[test]
fn a_schema_may_refer_to_itself_in_a_part_of_the_value() {
    let compiled =
        compile_schema(&json!({"properties": {"a": {"$ref": "#"}}, "type": "object"}), SchemaRules::Current)
            .unwrap();
    let validator = compiled.unbounded();
    assert!(validator.is_valid(&json!({"a": {"a": {}}})));
    assert!(!validator.is_valid(&json!({"a": {"a": 1}})));
}

/// The deepest allowed schemas on the deepest allowed answers must neither overflow the stack nor take long.
#[test]
fn the_deepest_schemas_fit_on_a_stack() {
    let answer = (0..64).fold(json!("wrong"), |value, _| json!({"a": value}));
    let links: [fn(Value) -> Value; 5] = [
        |inner| json!({"anyOf": [inner]}),
        |inner| json!({"oneOf": [inner, {"const": 1}]}),
        |inner| json!({"if": {"type": "object"}, "then": inner, "else": false}),
        |inner| json!({"not": inner}),
        |inner| json!({"allOf": [inner], "minProperties": 1}),
    ];
    for link in links {
        for part in [json!({"$ref": "#"}), json!({"type": "string"})] {
            let core = json!({"type": "object", "properties": {"a": part}});
            let nested = |depth| (0..depth).fold(core.clone(), |schema, _| link(schema));
            let deepest = (0..80)
                .rev()
                .find_map(|depth| compile_schema(&nested(depth), SchemaRules::Current).ok())
                .unwrap();
            let deepest = deepest.unbounded();
            assert_eq!(deepest.violations(&answer).count() == 0, deepest.is_valid(&answer));
        }
    }
}
