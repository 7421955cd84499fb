//! Helpers: short flows, and diagnostics as one line each.

use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_flow::{CheckOptions, CheckedFlow, check_bytes};
use serde_json::{Value, json};

pub(crate) fn runs(type_name: &str) -> bool {
    const NATIVE: [&str; 17] = [
        "agent-core",
        "ai-agent",
        "ai-simple-agent",
        "ai-extractor",
        "ai-classifier",
        "ai-summarizer",
        "scripted-model",
        "calculator-tool",
        "http-request-tool",
        "knowledge-base-tool",
        "inject",
        "debug",
        "comment",
        "junction",
        "link in",
        "link out",
        "catch",
    ];
    NATIVE.contains(&type_name)
}

/// The process environment of these tests.
pub(crate) fn process_env(name: &str) -> Option<String> {
    match name {
        "TOOL_NAME" => Some("sums".to_owned()),
        "SERVICE_API_KEY" => Some("sk-secret".to_owned()),
        "GITHUB_PAT" | "SECRET_KEY_BASE" => Some("sk-secret".to_owned()),
        "DATABASE_URL" | "PLACE" => Some("postgres://ada:sk-secret@db.example/app".to_owned()),
        "REDIS_URL" => Some("redis://cache.example".to_owned()),
        _ => None,
    }
}

pub(crate) fn options(profile: Profile) -> CheckOptions<'static> {
    CheckOptions {
        profile,
        limits: FlowLimits::default(),
        run_limits: RunLimits::default(),
        run_budget: redflow_contract::node::Budget::default(),
        instance: InstanceId::local(),
        provides_tools: &|_| false,
        can_run: &runs,
        env: &process_env,
    }
}

pub(crate) fn check_with(flow: &Value, options: &CheckOptions<'_>) -> Result<CheckedFlow, CheckReport> {
    check_bytes(flow.to_string().as_bytes(), options)
}

pub(crate) fn checked(flow: &Value) -> CheckedFlow {
    check_with(flow, &options(Profile::Strict)).unwrap_or_else(|report| panic!("refused: {report:#?}"))
}

pub(crate) fn report(flow: &Value, profile: Profile) -> CheckReport {
    match check_with(flow, &options(profile)) {
        Ok(checked) => checked.report,
        Err(report) => report,
    }
}

/// `CODE node:port -> target pointer`, without the parts that a diagnostic does not have.
pub(crate) fn line(diagnostic: &Diagnostic) -> String {
    let mut out = diagnostic.code.to_string();
    if let Some(node) = &diagnostic.node {
        out += &format!(" {}", node.id);
    }
    if let Some(port) = diagnostic.port {
        out += &format!(":{port}");
    }
    if let Some(target) = &diagnostic.target {
        out += &format!(" -> {}", target.id);
    }
    if let Some(pointer) = &diagnostic.pointer {
        out += &format!(" {pointer}");
    }
    out
}

/// The diagnostics without the notes on types for Node-RED.
pub(crate) fn lines(flow: &Value, profile: Profile) -> Vec<String> {
    let report = report(flow, profile);
    let lines: Vec<String> = report.diagnostics.iter().map(line).collect();
    for diagnostic in &report.diagnostics {
        assert!(!diagnostic.message.is_empty() && !diagnostic.help.is_empty(), "{diagnostic:?}");
        assert!(diagnostic.help.ends_with('.'), "the help is a sentence: {}", diagnostic.help);
        let has_phrases = diagnostic.message_phrase.is_some() && diagnostic.help_phrase.is_some();
        assert!(has_phrases, "put these texts into contract/src/phrases.rs: {diagnostic:?}");
    }
    lines.into_iter().filter(|line| !line.starts_with("NEEDS_NODE_RED")).collect()
}

/// Checks a flow in the strict profile and compares all diagnostics.
#[track_caller]
pub(crate) fn check(flow: Value, expected: &[&str]) {
    pretty_assertions::assert_eq!(lines(&flow, Profile::Strict), expected, "{flow}");
}

/// A node with coordinates on tab `t`.
pub(crate) fn node(id: &str, type_name: &str, wires: Value) -> Value {
    json!({"id": id, "type": type_name, "z": "t", "name": id, "x": 1, "y": 1, "wires": wires})
}

pub(crate) fn with(mut node: Value, extra: Value) -> Value {
    for (key, value) in extra.as_object().unwrap() {
        node[key] = value.clone();
    }
    node
}

/// An agent-core that allows the calculator.
pub(crate) fn agent(id: &str, wires: Value) -> Value {
    let config = json!({"strategy": "react", "maxIterations": 5, "allowedTools": ["calculator"]});
    with(node(id, "agent-core", wires), config)
}

pub(crate) fn model(id: &str, wires: Value) -> Value {
    with(node(id, "scripted-model", wires), json!({"replies": [{"action": "final", "message": "hi"}]}))
}

pub(crate) fn calculator(id: &str, wires: Value) -> Value {
    node(id, "calculator-tool", wires)
}

/// A flow without problems: inject → agent with model `m` and calculator `c`, result to debug `d`.
/// `agent_wires` replaces the agent's wires.
pub(crate) fn good(agent_wires: Value, more: Vec<Value>) -> Value {
    let mut nodes = vec![
        node("i", "inject", json!([["a"]])),
        agent("a", agent_wires),
        model("m", json!([[]])),
        calculator("c", json!([[]])),
        node("d", "debug", json!([])),
    ];
    nodes.extend(more);
    Value::Array(nodes)
}
