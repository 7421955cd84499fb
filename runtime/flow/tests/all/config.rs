//! The schemas of Agent Core and of the other types, in both profiles.

use crate::kit::{agent, check, good, lines, model, node, report, with};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::flow::Profile;
use serde_json::{Value, json};

fn with_config(extra: Value) -> Value {
    let mut flow = good(json!([["m"], ["c"], [], ["d"]]), vec![]);
    flow[1] = with(flow[1].clone(), extra);
    flow
}

#[test]
fn checks_agent_core_against_its_schema() {
    let rows: [(Value, &[&str]); 19] = [
        (json!({"timeout": 1e308}), &["CONFIG_INVALID a /timeout"]),
        (json!({"timeout": 9_007_199_254_740_992_u64}), &["CONFIG_INVALID a /timeout"]),
        (json!({"timeout": 9_007_199_254_740_991_u64}), &[]),
        (json!({"strategy": "plan"}), &["CONFIG_INVALID a /strategy"]),
        (json!({"maxIterations": 0}), &["CONFIG_INVALID a /maxIterations"]),
        (json!({"maxIterations": 21}), &["CONFIG_INVALID a /maxIterations"]),
        (json!({"maxIterations": "5"}), &["CONFIG_INVALID a /maxIterations"]),
        (json!({"maxIterations": 2.5}), &["CONFIG_INVALID a /maxIterations"]),
        (json!({"maxIterations": 5.0}), &[]),
        (json!({"allowedTools": "calculator"}), &["CONFIG_INVALID a /allowedTools"]),
        (json!({"allowedTools": [1, "calculator"]}), &["CONFIG_INVALID a /allowedTools/0"]),
        (json!({"debug": "yes"}), &["CONFIG_INVALID a /debug"]),
        (json!({"stopConditions": [{"value": 1}]}), &["CONFIG_INVALID a /stopConditions/0/type"]),
        (json!({"timeout": 0}), &["CONFIG_INVALID a /timeout"]),
        (json!({"timeout": "soon"}), &["CONFIG_INVALID a /timeout"]),
        (json!({"sessionId": 5}), &["CONFIG_INVALID a /sessionId"]),
        (json!({"tools": "c"}), &["CONFIG_INVALID a /tools"]),
        (json!({"anything": {"else": 1}, "allowedTools": ["calculator", "calculator"]}), &[]),
        (
            json!({"wires": "a"}),
            &["CONFIG_INVALID a /wires", "MODEL_MISSING a:0", "TOOL_NOT_CONNECTED a:1 /allowedTools/0"],
        ),
    ];
    for (extra, expected) in rows {
        check(with_config(extra), expected);
    }
}

#[test]
fn tool_names_that_differ_only_in_case_are_duplicates() {
    let mut flow = good(json!([["m"], ["c", "e"], [], ["d"]]), vec![]);
    flow[1] = with(flow[1].clone(), json!({"allowedTools": ["calc", "CALC"]}));
    flow[3] = with(flow[3].clone(), json!({"toolName": "calc"}));
    let second = with(node("e", "calculator-tool", json!([[]])), json!({"toolName": "CALC"}));
    flow.as_array_mut().unwrap().push(second);
    check(flow.clone(), &["TOOL_NAME_DUPLICATE a:1 -> e"]);
    let report = report(&flow, Profile::Strict);
    let message = "the tools `c` (`calc`) and `e` (`CALC`) differ only in case";
    assert_eq!(report.diagnostics[0].message, message);
}

#[test]
fn checks_the_values_of_stop_conditions() {
    let conditions = json!([
        {"type": "final_answer"},
        {"type": "confidence_threshold", "value": 0.9},
        {"type": "iteration_limit", "value": 3},
        {"type": "final_answer", "value": "ignored"},
    ]);
    check(with_config(json!({"stopConditions": conditions})), &[]);
    let wrong = json!([
        {"type": "confidence_threshold", "value": "0.9"},
        {"type": "confidence_threshold"},
        {"type": "confidence_threshold", "value": 1.5},
        {"type": "iteration_limit", "value": 0},
        {"type": "iteration_limit", "value": 1.5},
        {"type": "iteration_limit", "value": null},
        {"type": "goalAchieved", "value": "x"},
        {"type": "maxIterations", "value": "5"},
    ]);
    let flow = with_config(json!({"stopConditions": wrong}));
    for profile in [Profile::Strict, Profile::Redflow] {
        let mut found = lines(&flow, profile);
        found.sort();
        assert_eq!(
            found,
            [0, 1, 2, 3, 4, 5]
                .map(|place| format!("CONFIG_INVALID a /stopConditions/{place}/value"))
                .into_iter()
                .chain([6, 7].map(|place| format!("CONFIG_INVALID a /stopConditions/{place}/type")))
                .collect::<Vec<_>>()
        );
    }
    let report = report(&flow, Profile::Redflow);
    let name =
        report.diagnostics.iter().find(|d| d.pointer.as_deref() == Some("/stopConditions/6/type")).unwrap();
    for word in ["final_answer", "confidence_threshold", "iteration_limit"] {
        assert!(name.help.contains(word), "{}", name.help);
    }
    assert_eq!(name.found.as_deref(), Some("\"goalAchieved\""));
}

#[test]
fn a_fresh_redflow_node_in_both_profiles() {
    let fresh = |extra: Value| {
        json!([with(node("a", "agent-core", json!([["m"]])), extra), model("m", json!([["a"]]))])
    };
    let strict =
        ["CONFIG_INVALID a /allowedTools", "CONFIG_INVALID a /maxIterations", "CONFIG_INVALID a /strategy"];
    assert_eq!(lines(&fresh(json!({})), Profile::Strict), strict);
    let mercy = [
        "DEFAULT_ASSUMED a /strategy",
        "DEFAULT_ASSUMED a /maxIterations",
        "DEFAULT_ASSUMED a /allowedTools",
    ];
    assert_eq!(lines(&fresh(json!({})), Profile::Redflow), mercy);
    let seed = json!({"strategy": "react", "maxIterations": 5, "allowedTools": [], "stopConditions": [], "debug": false, "modelPromptTemplate": ""});
    assert_eq!(lines(&fresh(seed.clone()), Profile::Strict), ["CONFIG_INVALID a /allowedTools"]);
    assert_eq!(lines(&fresh(seed), Profile::Redflow), ["DEFAULT_ASSUMED a /allowedTools"]);
    // Defaults replace missing properties, never wrong ones.
    let wrong = json!({"strategy": null, "maxIterations": "5", "allowedTools": [""]});
    assert_eq!(
        lines(&fresh(wrong), Profile::Redflow),
        [
            "CONFIG_INVALID a /maxIterations",
            "CONFIG_INVALID a /strategy",
            "TOOL_NOT_CONNECTED a:1 /allowedTools/0"
        ]
    );
}

#[test]
fn reports_each_wrong_property_exactly_once() {
    let agent = |extra: Value| {
        json!([
            with(agent("a", json!([[], ["c"]])), extra),
            model("m", json!([])),
            node("c", "calculator-tool", json!([])),
        ])
    };
    check(agent(json!({"model": "m", "sessionId": 5})), &["CONFIG_INVALID a /sessionId"]);
    check(agent(json!({"model": "m", "timeout": 5e9})), &[]);
    let two =
        json!({"model": "m", "maxIterations": 50, "allowedTools": ["calculator", "calculator", "nope"]});
    check(agent(two), &["CONFIG_INVALID a /maxIterations", "TOOL_NOT_CONNECTED a:1 /allowedTools/2"]);
    let tool = |extra: Value| {
        json!([
            with(super::kit::agent("a", json!([["m"], ["t"]])), json!({"allowedTools": ["x"]})),
            model("m", json!([])),
            with(node("t", "tool.mine", json!([])), with(json!({"toolName": "x", "inputSchema": {}}), extra)),
        ])
    };
    check(tool(json!({"timeout": "abc"})), &["CONFIG_INVALID t /timeout"]);
    check(tool(json!({"timeout": "${UNSET}"})), &["CONFIG_INVALID t /timeout"]);
    check(tool(json!({"timeout": 1e10})), &[]);
    check(
        tool(json!({"toolName": "", "name": "${TOOL_NAME}"})),
        &["TOOL_CONNECTED_NOT_ALLOWED a:1 -> t /allowedTools", "TOOL_NOT_CONNECTED a:1 /allowedTools/0"]
            .iter()
            .rev()
            .copied()
            .collect::<Vec<_>>(),
    );
}

#[test]
fn the_help_matches_the_problem() {
    let first = |extra: Value| report(&with_config(extra), Profile::Strict).diagnostics.remove(0);
    let unset = first(json!({"maxIterations": "${UNSET}"}));
    assert!(unset.help.contains("`UNSET`"), "{}", unset.help);
    let high = first(json!({"stopConditions": [{"type": "confidence_threshold", "value": 2}]}));
    assert_eq!(high.found.as_deref(), Some("2"));
    assert!(high.message.contains("`range`"), "{}", high.message);
}

#[test]
fn a_prompt_template_is_ignored_with_a_warning() {
    check(
        with_config(json!({"modelPromptTemplate": "Be kind."})),
        &["PROMPT_TEMPLATE_IGNORED a /modelPromptTemplate"],
    );
    check(with_config(json!({"modelPromptTemplate": "  "})), &[]);
}

#[test]
fn checks_other_types() {
    let scripted = |extra: Value| with(node("m2", "scripted-model", json!([])), extra);
    let rows: [(Value, &[&str]); 12] = [
        (scripted(json!({})), &["CONFIG_INVALID m2 /replies"]),
        (scripted(json!({"replies": []})), &["CONFIG_INVALID m2 /replies"]),
        (scripted(json!({"replies": ["x"], "delayMs": -1})), &["CONFIG_INVALID m2 /delayMs"]),
        (scripted(json!({"replies": "${REPLIES}"})), &["CONFIG_INVALID m2 /replies"]),
        (
            scripted(json!({"replies": ["x"], "delayMs": "${SERVICE_API_KEY}"})),
            &["CONFIG_INVALID m2 /delayMs"],
        ),
        (
            with(
                node("t", "calculator-tool", json!([])),
                json!({"effect": "write", "onUnknown": "retry", "timeout": 0}),
            ),
            &["CONFIG_INVALID t /effect", "CONFIG_INVALID t /onUnknown", "CONFIG_INVALID t /timeout"],
        ),
        (with(node("x", "inject", json!([])), json!({"props": "payload"})), &["CONFIG_INVALID x /props"]),
        (
            with(node("x", "inject", json!([])), json!({"props": [{"p": ""}]})),
            &["CONFIG_INVALID x /props/0/p"],
        ),
        (with(node("x", "catch", json!([])), json!({"scope": 5})), &["CONFIG_INVALID x /scope"]),
        (with(node("x", "catch", json!([])), json!({"scope": null, "uncaught": false})), &[]),
        (with(node("x", "link out", json!([])), json!({"links": "in"})), &["CONFIG_INVALID x /links"]),
        (with(node("x", "function", json!("anything")), json!({"links": 1})), &[]),
    ];
    for (extra, expected) in rows {
        check(json!([extra]), expected);
    }
}

#[test]
fn checks_tabs_groups_and_subflows() {
    let flow = json!([
        {"id": "t", "type": "tab", "label": "Home", "disabled": "no", "env": [{"name": 5}], "x": 0, "wires": []},
        {"id": "g", "type": "group", "env": {}},
        {"id": "s", "type": "subflow", "in": [{"wires": [{"id": "f", "port": "0"}]}], "out": 3, "env": null},
        {"id": "ok", "type": "subflow", "name": "S", "in": [{"x": 1, "y": 2, "wires": [{"id": "f"}]}],
         "out": [{"x": 1, "wires": [{"id": "f", "port": 0}]}], "env": [{"name": "A", "type": "cred", "ui": {}}]},
        {"id": "gc", "type": "global-config", "env": []},
    ]);
    check(
        flow,
        &[
            "CONFIG_INVALID t /disabled",
            "CONFIG_INVALID t /env/0/name",
            "CONFIG_INVALID g /env",
            "CONFIG_INVALID s /in/0/wires/0/port",
            "CONFIG_INVALID s /out",
        ],
    );
}

// SECURITY: secret-properties
#[test]
fn never_shows_a_value_that_could_be_a_secret() {
    let flow = json!([with(
        agent("a", json!([])),
        json!({"debug": "sk-secret", "timeout": "sk-secret", "sessionId": ["sk-secret"]})
    )]);
    let text = serde_json::to_string(&report(&flow, Profile::Strict)).unwrap();
    assert!(!text.contains("sk-secret"), "{text}");
}

/// The flow with these properties on its model.
fn with_model(extra: Value) -> Value {
    let mut flow = good(json!([["m"], ["c"], [], ["d"]]), vec![]);
    flow[2] = with(node("m", "openai-model", json!([[]])), extra);
    flow
}

#[test]
fn checks_models_and_their_options() {
    let rows: [(Value, &[&str]); 11] = [
        (
            json!({"model": "any-name", "temperature": 2, "maxTokens": 5, "stop": "a,b", "options": {"topP": 1}}),
            &[],
        ),
        (json!({"temperature": "0.7", "maxTokens": "", "seed": null, "api": "", "options": ""}), &[]),
        (json!({"temperature": "hot"}), &["CONFIG_INVALID m /temperature"]),
        (json!({"stop": ["a"], "capabilities": {"sampling": false}, "structuredOutput": "none"}), &[]),
        (json!({"temperature": 3}), &["CONFIG_INVALID m /temperature"]),
        (json!({"maxTokens": 0}), &["CONFIG_INVALID m /maxTokens"]),
        (json!({"options": {"frequencyPenalty": -3}}), &["CONFIG_INVALID m /options/frequencyPenalty"]),
        (json!({"api": "completions"}), &["CONFIG_INVALID m /api"]),
        (json!({"stop": 5}), &["CONFIG_INVALID m /stop"]),
        (json!({"maxRetries": 11}), &["CONFIG_INVALID m /maxRetries"]),
        (json!({"capabilities": {"tools": "yes"}}), &["CONFIG_INVALID m /capabilities/tools"]),
    ];
    for (extra, expected) in rows {
        check(with_model(extra), expected);
    }
}

#[test]
fn reports_a_secret_in_the_file_without_quoting_it() {
    let rows: [(Value, &[&str]); 7] = [
        (json!({"apiKey": "sk-verysecret"}), &["SECRET_IN_FLOW m /apiKey"]),
        (
            json!({"note": "see postgres://ada:s3cret@db/app"}),
            &["SECRET_IN_FLOW m /note", "PROPERTY_UNKNOWN m /note"],
        ),
        (json!({"options": {"apiKey": "sk-verysecret"}}), &["SECRET_IN_FLOW m /options/apiKey"]),
        (json!({"apiKey": "${KEY}"}), &[]),
        (json!({"apiKey": ""}), &[]),
        (json!({"credentials": {"apiKey": "sk-verysecret"}}), &[]),
        (json!({"maxTokens": 5}), &[]),
    ];
    for (extra, expected) in rows {
        let flow = with_model(extra);
        check(flow.clone(), expected);
        let said = serde_json::to_string(&report(&flow, Profile::Strict)).unwrap();
        assert!(!said.contains("sk-verysecret"), "{said}");
    }
}

#[test]
fn warns_about_properties_of_models_that_their_types_do_not_know() {
    let flow = |type_name: &str, props: Value| {
        let mut flow = good(json!([["m"], ["c"], [], ["d"]]), vec![]);
        flow[2] = with(node("m", type_name, json!([[]])), props);
        flow
    };
    let known = json!({
        "model": "x", "maxTokens": 5, "baseUrl": "https://host/v1", "options": {"topP": 0.5}, "credentials": {},
        "_users": [], "icon": "x.svg", "inputLabels": ["a"], "info": "",
    });
    check(flow("openai-model", known), &[]);
    let unknown = json!({
        "max_tokens": 5, "temprature": 0.1, "colour": "red", "options": {"top_p": 1, "topP": 1}, "a/b": 1,
    });
    let expected = [
        "PROPERTY_UNKNOWN m /max_tokens",
        "PROPERTY_UNKNOWN m /temprature",
        "PROPERTY_UNKNOWN m /colour",
        "PROPERTY_UNKNOWN m /a~1b",
        "PROPERTY_UNKNOWN m /options/top_p",
    ];
    let wrong = flow("openai-model", unknown);
    check(wrong.clone(), &expected);
    let report = report(&wrong, Profile::Strict);
    let texts: Vec<&str> = report.diagnostics.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        texts[..3],
        [
            "`openai-model` has no property `max_tokens`, so it has no effect: did you mean `maxTokens`?",
            "`openai-model` has no property `temprature`, so it has no effect: did you mean `temperature`?",
            "`openai-model` has no property `colour`, so it has no effect",
        ]
    );
    assert_eq!(report.diagnostics[0].expected.as_deref(), Some("maxTokens"));
    for type_name in ["anthropic-model", "model.azure.openai", "google-model", "ollama-model"] {
        let required = json!({"endpoint": "https://x.openai.azure.com", "deployment": "d"});
        let props = if type_name == "model.azure.openai" { required } else { json!({}) };
        check(flow(type_name, with(props, json!({"colour": 1}))), &["PROPERTY_UNKNOWN m /colour"]);
    }
    // Types of other palettes have properties that we do not know, and so have other services.
    check(flow("model.other", json!({"colour": 1})), &[]);
}

#[test]
fn counts_the_properties_of_a_model_beyond_the_reported_ones() {
    let mut flow = good(json!([["m"], ["c"], [], ["d"]]), vec![]);
    for n in 0..25 {
        flow[2][format!("colour{n}")] = json!(n);
    }
    let report = report(&flow, Profile::Strict);
    assert_eq!(report.diagnostics.len(), 20);
    assert_eq!(report.omitted.get("PROPERTY_UNKNOWN"), Some(&5));
}

#[test]
fn a_wrong_choice_of_a_model_names_the_right_ones() {
    for (type_name, props, text) in [
        (
            "openai-model",
            json!({"promptCache": "2h"}),
            "`promptCache` must be \"auto\", \"off\", \"5m\" or \"1h\"",
        ),
        (
            "model.azure.openai",
            json!({"endpoint": "https://x.openai.azure.com", "deployment": "d", "authentication": "basic"}),
            "`authentication` must be \"key\" or \"entra\"",
        ),
    ] {
        let mut flow = good(json!([["m"], ["c"], [], ["d"]]), vec![]);
        flow[2] = with(node("m", type_name, json!([[]])), props);
        let report = report(&flow, Profile::Strict);
        assert!(report.diagnostics[0].message.starts_with(text), "{}", report.diagnostics[0].message);
    }
}

#[test]
fn a_property_of_another_type_of_model_is_not_taken_for_a_misspelt_one() {
    let report_of = |type_name: &str, props: Value| {
        let mut flow = good(json!([["m"], ["c"], [], ["d"]]), vec![]);
        flow[2] = with(node("m", type_name, json!([[]])), props);
        report(&flow, Profile::Strict).diagnostics
    };
    let only_others = "so it has no effect: only other types of models have it";
    for name in ["topK", "top_k"] {
        let problem = report_of("openai-model", json!({ (name): 40 })).remove(0);
        assert_eq!(problem.code, DiagnosticCode::PropertyUnknown);
        assert_eq!(problem.message, format!("`openai-model` has no property `{name}`, {only_others}"));
        assert!(problem.help.starts_with(&format!("Remove `{name}`.")), "{}", problem.help);
        assert!(problem.help.contains("`extraBody`"), "{}", problem.help);
        assert_eq!(problem.expected, None);
    }
    // A type without `extraBody` cannot send it.
    let problem = report_of("anthropic-model", json!({"endpoint": "https://x.example"})).remove(0);
    assert_eq!(problem.message, format!("`anthropic-model` has no property `endpoint`, {only_others}"));
    assert_eq!(problem.help, "Remove `endpoint`.");
    // Another spelling of a property that the type has.
    let azure = json!({"endpoint": "https://x.openai.azure.com", "deployment": "d"});
    let problem = report_of("model.azure.openai", with(azure, json!({"top_p": 1}))).remove(0);
    assert_eq!(problem.expected.as_deref(), Some("topP"));
}
