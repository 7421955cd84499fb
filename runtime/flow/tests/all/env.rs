//! `${NAME}` in an agent's own properties and in tools.

use crate::kit::{agent, check, checked, lines, model, node, with};
use redflow_contract::flow::Profile;
use redflow_flow::{ProcessSecrets, Verdict};
use serde_json::{Value, json};

fn flow(agent_extra: Value, tool_extra: Value, tab_env: Value) -> Value {
    json!([
        {"id": "t", "type": "tab", "label": "Home", "env": tab_env},
        {"id": "g1", "type": "group", "z": "t", "env": [{"name": "WHO", "type": "str", "value": "the group"}]},
        {"id": "gc", "type": "global-config", "env": [{"name": "FAR", "type": "str", "value": "away"}]},
        with(agent("a", json!([["m"], ["c"]])), agent_extra),
        with(model("m", json!([])), json!({"replies": ["${SERVICE_API_KEY}"]})),
        with(node("c", "calculator-tool", json!([])), tool_extra),
    ])
}

fn spec(flow: &Value) -> redflow_contract::plan::AgentSpec {
    let checked = checked(flow);
    match &checked.agents[0].verdict {
        Verdict::Ready(ready) => (*ready.spec).clone(),
        refused => panic!("{refused:#?}"),
    }
}

#[test]
fn resolves_typed_variables_from_the_nearest_scope() {
    let env = json!([
        {"name": "N", "type": "num", "value": "7"},
        {"name": "B", "type": "bool", "value": "TRUE"},
        {"name": "LIST", "type": "json", "value": "[\"calc\"]"},
        {"name": "INDIRECT", "type": "env", "value": "N"},
        {"name": "N", "type": "num", "value": "8"},
    ]);
    let flow = flow(
        json!({"maxIterations": "${INDIRECT}", "debug": "$(B)", "allowedTools": "${LIST}"}),
        json!({"toolName": "calc", "description": "${WHO}", "g": "g1"}),
        env,
    );
    let spec = spec(&flow);
    assert_eq!((spec.max_iterations, spec.debug), (8, true));
    assert_eq!((spec.tools[0].name.as_str(), spec.tools[0].description.as_str()), ("calc", "the group"));
}

#[test]
fn resolves_variables_of_the_process_and_of_the_flow() {
    let plain = |description: &str| {
        spec(&flow(
            json!({"allowedTools": ["${TOOL_NAME}"]}),
            json!({"toolName": "${TOOL_NAME}", "description": description}),
            json!([]),
        ))
        .tools
        .remove(0)
    };
    assert_eq!(plain("${FAR}").name, "sums");
    assert_eq!(plain("${FAR}").description, "away");
    assert_eq!(plain("${NR_FLOW_NAME}").description, "Home");
    assert_eq!(plain("${NR_NODE_ID}").description, "c");
    assert_eq!(plain("a ${FAR} b").description, "a ${FAR} b", "only whole properties");
    assert_eq!(plain("${UNKNOWN}").description, "${UNKNOWN}", "what is not known stays");
}

#[test]
fn checks_resolved_values() {
    let env = json!([{"name": "N", "type": "str", "value": "7"}]);
    check(flow(json!({"maxIterations": "${N}"}), json!({}), env), &["CONFIG_INVALID a /maxIterations"]);
    let circle =
        json!([{"name": "A", "type": "env", "value": "B"}, {"name": "B", "type": "env", "value": "A"}]);
    check(flow(json!({"maxIterations": "${A}"}), json!({}), circle), &["CONFIG_INVALID a /maxIterations"]);
}

// SECURITY: secret-variables
#[test]
fn resolves_a_process_secret_only_in_a_secret_property() {
    let model = with(
        model("m", json!([])),
        json!({"replies": ["${SERVICE_API_KEY}", {"text": "${SERVICE_API_KEY}"}], "apiKey": "${SERVICE_API_KEY}", "headers": {"Authorization": "${SERVICE_API_KEY}"}}),
    );
    let checked = checked(&json!([model]));
    let props = checked.flow.resolved_props(0, &crate::kit::process_env, ProcessSecrets::InSecretProperties);
    assert_eq!(props["replies"], json!(["${SERVICE_API_KEY}", {"text": "${SERVICE_API_KEY}"}]));
    assert_eq!(
        (&props["apiKey"], &props["headers"]["Authorization"]),
        (&json!("sk-secret"), &json!("sk-secret"))
    );
    let ordinary = checked.flow.resolved_props(0, &crate::kit::process_env, ProcessSecrets::Hidden);
    assert!(!json!(ordinary).to_string().contains("sk-secret"));
}

/// A variable is secret by its name, or by the form of its value.
const SECRET_VARIABLES: [&str; 5] =
    ["SERVICE_API_KEY", "GITHUB_PAT", "SECRET_KEY_BASE", "DATABASE_URL", "PLACE"];

// SECURITY: secret-variables
#[test]
fn a_secret_by_its_value_is_resolved_only_in_credentials_and_secret_properties() {
    for name in SECRET_VARIABLES {
        let reference = json!(format!("${{{name}}}"));
        let value = json!(crate::kit::process_env(name).unwrap());
        let props = json!({
            "replies": [reference], "url": reference, "apiKey": reference,
            "credentials": {"url": reference, "options": [{"text": reference}]}, "open": "${REDIS_URL}",
        });
        let expected = json!({
            "replies": [reference], "url": reference, "apiKey": value,
            "credentials": {"url": value, "options": [{"text": value}]}, "open": "redis://cache.example",
        });
        let checked = checked(&json!([with(model("m", json!([])), props.clone())]));
        let resolved =
            checked.flow.resolved_props(0, &crate::kit::process_env, ProcessSecrets::InSecretProperties);
        let alone = redflow_flow::resolve_process_env(props.as_object().unwrap(), &crate::kit::process_env);
        for (key, expected) in expected.as_object().unwrap() {
            assert_eq!((&resolved[key], &alone[key]), (expected, expected), "{name} in {key}");
        }
        let hidden = checked.flow.resolved_props(0, &crate::kit::process_env, ProcessSecrets::Hidden);
        assert!(!json!(hidden).to_string().contains("sk-secret"), "{name}");
    }
}

// SECURITY: secret-variables
#[test]
fn process_secrets_never_enter_prompts_or_plans() {
    for name in SECRET_VARIABLES {
        let flow = flow(json!({}), json!({"description": format!("${{{name}}}")}), json!([]));
        assert_eq!(lines(&flow, Profile::Strict), ["CONFIG_INVALID c /description"], "{name}");
    }
    // In other properties the reference stays unresolved.
    let checked = checked(&self::flow(json!({"apiKey": "sk-plain"}), json!({}), json!([])));
    let Verdict::Ready(ready) = &checked.agents[0].verdict else { panic!("{:#?}", checked.report) };
    assert_eq!(ready.plan.model.config["replies"], json!(["${SERVICE_API_KEY}"]));
    assert_eq!(ready.plan.agent.config["apiKey"], "[redacted]");
}
