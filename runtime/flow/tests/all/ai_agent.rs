//! AI Agents: their properties, their bindings and their specs.

use crate::kit::{calculator, check, checked, model, node, with};
use pretty_assertions::assert_eq;
use redflow_contract::node::{Budget, OutputFormat, ToolChoice};
use redflow_contract::plan::ConverseSpec;
use redflow_flow::{ReadyAgent, Verdict};
use serde_json::{Value, json};

fn ai_agent(extra: Value) -> Value {
    with(node("a", "ai-agent", json!([["d"], []])), extra)
}

fn flow(agent: Value, more: Value) -> Value {
    let mut flow = vec![agent, model("m", json!([])), node("d", "debug", json!([]))];
    flow.extend(more.as_array().unwrap().clone());
    json!(flow)
}

fn ready(flow: &Value) -> ReadyAgent {
    let checked = checked(flow);
    match { checked.agents }.remove(0).verdict {
        Verdict::Ready(ready) => *ready,
        Verdict::Refused { error, .. } => panic!("refused: {error:?}"),
    }
}

fn converse(agent: Value) -> ConverseSpec {
    ready(&flow(agent, json!([]))).spec.converse.clone().unwrap()
}

#[test]
fn a_fresh_agent_has_the_defaults() {
    let ready = ready(&flow(ai_agent(json!({"model": "m"})), json!([])));
    let spec = &ready.spec;
    assert_eq!(spec.strategy.as_deref(), Some("converse"));
    assert_eq!((spec.max_iterations, spec.timeout_ms, spec.debug, spec.budget), (10, 300_000, false, None));
    let defaults = ConverseSpec {
        system_prompt: "You are a helpful AI assistant.".to_owned(),
        user_message: String::new(),
        tool_choice: ToolChoice::Auto,
        output_format: OutputFormat::Text,
        output_schema: None,
        parallel_tools: 8,
        images: Some("{{msg.images}}".to_owned()),
        task: None,
    };
    assert_eq!(spec.converse.as_ref(), Some(&defaults));
    assert_eq!((spec.tools.len(), ready.fallback_models.len(), ready.stream_wired), (0, 0, false));
}

#[test]
fn images_are_a_template_or_none() {
    let images = |agent: Value| converse(ai_agent(agent)).images;
    assert_eq!(images(json!({"model": "m", "images": "{{json.photo}}"})).as_deref(), Some("{{json.photo}}"));
    assert_eq!(
        images(json!({"model": "m", "options": {"images": "{{msg.a}}"}})).as_deref(),
        Some("{{msg.a}}")
    );
    assert_eq!(images(json!({"model": "m", "images": ""})), None);
}

#[test]
fn properties_may_be_options_blank_or_text() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let agent = ai_agent(json!({
        "model": "m", "systemPrompt": "", "userMessage": "{{json.q}}", "maxIterations": "20", "parallelTools": "", "images": " ",
        "budget": r#"{"tokens": 5000, "toolCalls": 3}"#, "outputSchema": schema.to_string(), "fallbackModels": [],
        "options": {"toolChoice": "required", "outputFormat": "full", "sessionId": "{{json.user}}", "timeout": 1000},
    }));
    let ready = ready(&flow(agent, json!([])));
    let budget = Budget { tokens: Some(5_000), tool_calls: Some(3), ..Budget::default() };
    assert_eq!(
        (ready.spec.max_iterations, ready.spec.timeout_ms, ready.spec.budget),
        (20, 1_000, Some(budget))
    );
    assert_eq!(ready.session_id.as_deref(), Some("{{json.user}}"));
    let expected = ConverseSpec {
        system_prompt: String::new(),
        user_message: "{{json.q}}".to_owned(),
        tool_choice: ToolChoice::Required,
        output_format: OutputFormat::Full,
        output_schema: Some(schema),
        parallel_tools: 8,
        images: None,
        task: None,
    };
    assert_eq!(ready.spec.converse.as_ref(), Some(&expected));
    // Numbers may be written as floats.
    let agent = ai_agent(json!({"model": "m", "budget": {"modelCalls": 1.0, "tokens": 2.0, "cost": 3}}));
    let budget = Budget { model_calls: Some(1), tokens: Some(2), cost: Some(3.0), tool_calls: None };
    assert_eq!(self::ready(&flow(agent, json!([]))).spec.budget, Some(budget));
    // Blanks inside `options` are blanks too, and do not hide what is outside.
    let options =
        json!({"maxIterations": "3", "debug": "true", "budget": "", "timeout": "", "userMessage": "in"});
    let agent = ai_agent(json!({"model": "m", "userMessage": " ", "options": options}));
    let spec = self::ready(&flow(agent, json!([]))).spec;
    assert_eq!((spec.max_iterations, spec.debug, spec.timeout_ms), (3, true, 300_000));
    assert_eq!(spec.converse.as_ref().unwrap().user_message, "in");
    // A property outside `options` wins.
    let agent = ai_agent(json!({"model": "m", "toolChoice": "none", "options": {"toolChoice": "required"}}));
    assert_eq!(converse(agent).tool_choice, ToolChoice::None);
}

#[test]
fn reports_every_wrong_property() {
    let agent = ai_agent(json!({
        "model": "m", "systemPrompt": 4, "maxIterations": 101, "toolChoice": "always", "outputFormat": "xml",
        "parallelTools": 0, "debug": "maybe", "budget": {"tokens": 0, "runs": 1}, "timeout": 0,
    }));
    check(
        flow(agent, json!([])),
        &[
            "CONFIG_INVALID a /budget/runs",
            "CONFIG_INVALID a /budget/tokens",
            "CONFIG_INVALID a /timeout",
            "CONFIG_INVALID a /debug",
            "CONFIG_INVALID a /maxIterations",
            "CONFIG_INVALID a /outputFormat",
            "CONFIG_INVALID a /parallelTools",
            "CONFIG_INVALID a /systemPrompt",
            "CONFIG_INVALID a /toolChoice",
        ],
    );
    let bad_schemas = [
        json!("{"),
        json!({"type": "array"}),
        json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/a"}}}),
    ];
    for schema in bad_schemas {
        let agent = ai_agent(json!({"model": "m", "outputSchema": schema}));
        check(flow(agent, json!([])), &["CONFIG_INVALID a /outputSchema"]);
    }
    let agent = ai_agent(json!({"model": "m", "systemPrompt": "${SERVICE_API_KEY}"}));
    check(flow(agent, json!([])), &["CONFIG_INVALID a /systemPrompt"]);
}

#[test]
fn binds_by_wires_to_its_input_and_by_properties() {
    let memory = with(node("mem", "buffer-memory", json!([["a"]])), json!({"sessionId": "x"}));
    let by_wire = json!([
        node("a", "ai-agent", json!([["d"], ["d"]])),
        model("m", json!([["a"]])),
        calculator("c", json!([["a"]])),
        memory,
        node("d", "debug", json!([])),
    ]);
    let bound = checked(&by_wire);
    let agent = &bound.agents[0].verdict;
    // The memory of these tests needs Node-RED; the bindings are right all the same.
    assert!(matches!(agent, Verdict::Refused { error, .. } if error.message.contains("buffer-memory")));
    let mut without_memory = by_wire.as_array().unwrap().clone();
    without_memory.remove(3);
    let bound = ready(&json!(without_memory));
    let tools: Vec<&str> = bound.spec.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((tools.as_slice(), bound.stream_wired), (["calculator"].as_slice(), true));
    let agent = ai_agent(json!({"model": "m", "tools": ["c"]}));
    let bound = ready(&flow(agent, json!([calculator("c", json!([]))])));
    assert_eq!(bound.spec.tools[0].name, "calculator");
    // A wire from the agent to a service is no binding.
    let agent = node("a", "ai-agent", json!([["m"], []]));
    check(flow(agent, json!([])), &["EDGE_KIND_MISMATCH a:0 -> m /wires/0/0", "MODEL_MISSING a"]);
}

#[test]
fn fallback_models_are_bound_in_their_order() {
    let agent = ai_agent(json!({"fallbackModels": ["m3", "m2"]}));
    let more = |wire: &str| json!([model("m2", json!([[wire]])), model("m3", json!([]))]);
    let mut bound_by_wire = flow(agent, more("a"));
    bound_by_wire[1]["wires"] = json!([["a"]]);
    let ready = ready(&bound_by_wire);
    let models: Vec<&str> = ready.plan.fallback_models.iter().map(|model| model.node.id.as_str()).collect();
    assert_eq!((ready.plan.model.node.id.as_str(), models), ("m", vec!["m3", "m2"]));
    assert_eq!(ready.fallback_models.len(), 2);
    let wrong = ai_agent(json!({"model": "m", "fallbackModels": ["m", "gone", "d", "m2", "m2"]}));
    check(
        flow(wrong, json!([model("m2", json!([]))])),
        &[
            "EDGE_DUPLICATE a /fallbackModels/0",
            "EDGE_TARGET_MISSING a /fallbackModels/1",
            "EDGE_KIND_MISMATCH a -> d /fallbackModels/2",
            "EDGE_DUPLICATE a /fallbackModels/4",
        ],
    );
    // A model that is neither bound nor a fallback model must not reply.
    let foreign = ai_agent(json!({"model": "m", "fallbackModels": ["m2"]}));
    let more = json!([model("m2", json!([["a"]])), model("m3", json!([["a"]]))]);
    check(flow(foreign, more), &["EDGE_FOREIGN_REPLY m3:0 -> a /wires/0/0"]);
    // A fallback model with an error refuses the agent.
    let agent = ai_agent(json!({"model": "m", "fallbackModels": ["m2"]}));
    let broken = with(model("m2", json!([])), json!({"replies": 4}));
    check(flow(agent, json!([broken])), &["CONFIG_INVALID m2 /replies"]);
}

#[test]
fn no_tool_may_have_the_name_of_the_finishing_tool() {
    let tool = with(calculator("c", json!([])), json!({"toolName": "Final_Answer"}));
    let schema = json!({"type": "object", "properties": {}});
    let agent = ai_agent(json!({"model": "m", "tools": ["c"], "outputSchema": schema}));
    check(flow(agent, json!([tool])), &["TOOL_NAME_DUPLICATE a -> c"]);
    let agent = ai_agent(json!({"model": "m", "tools": ["c"]}));
    check(flow(agent, json!([tool])), &[]);
}

#[test]
fn a_flow_tool_of_an_ai_agent_needs_a_return_node() {
    let tool = |wires: Value| {
        let config = json!({"toolName": "look", "inputSchema": {"type": "object"}, "effect": "read"});
        with(node("f", "flow-tool", wires), config)
    };
    let agent = ai_agent(json!({"model": "m"}));
    check(flow(agent.clone(), json!([tool(json!([["a"]]))])), &["TOOL_CHAIN_OPEN f:0"]);
    let back = node("r", "flow-tool-return", json!([]));
    check(flow(agent, json!([tool(json!([["r", "a"]])), back])), &[]);
}

#[test]
fn a_budget_and_fallback_models_may_be_on_agent_core_too() {
    let agent = with(
        crate::kit::agent("a", json!([["m"], ["c"]])),
        json!({"fallbackModels": ["m2"], "budget": {"modelCalls": 3}}),
    );
    let flow = json!([agent, model("m", json!([])), model("m2", json!([])), calculator("c", json!([]))]);
    let ready = ready(&flow);
    assert_eq!(ready.spec.budget, Some(Budget { model_calls: Some(3), ..Budget::default() }));
    assert_eq!(ready.fallback_models.len(), 1);
}
