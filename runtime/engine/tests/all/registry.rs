//! Tools of the registry: binding, policy, tries, schemas, and what happens when they change.

use crate::kit::{
    EngineTest, Setup, agent, agent_with_tool, debug, ends, final_answer, inject, model, model_double, node,
    only_message, order, tool_call, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::Fact;
use redflow_contract::id::{InstanceId, Principal, RunId};
use redflow_contract::limits::RunLimits;
use redflow_contract::manifest::{Manifest, ManifestTool, NodeTools};
use redflow_contract::policy::Policy;
use redflow_contract::tool::{MAX_AGENT_TOOLS, ToolState};
use redflow_engine::{Definitions, InvokeError, Registry, ToolRequest};
use redflow_ports::NoMeter;
use serde_json::{Value, json};

/// A tool of the manifest that behaves as its body says.
pub(crate) fn tool(id: &str, extra: Value) -> Value {
    let known = json!({
        "id": id, "kind": "http", "description": format!("Does {id}."), "url": "https://example.org/",
        "inputSchema": {"type": "object"}, "body": {"result": {"ok": true}},
    });
    with(known, extra)
}

pub(crate) fn manifest(tools: &[Value]) -> Manifest {
    serde_json::from_value(json!({"tools": tools})).unwrap()
}

/// Replaces the manifest of a registry.
pub(crate) fn define(registry: &Registry, manifest: &Manifest) {
    define_with(registry, manifest, &[]);
}

fn define_with(registry: &Registry, manifest: &Manifest, registered: &[ManifestTool]) {
    let adapters = crate::kit::adapters();
    registry.define(Definitions {
        manifest,
        registered,
        added_servers: &redflow_contract::mcp::McpServers::new(),
        policy: Policy::new(&manifest.policy, &manifest.roles).unwrap(),
        build: adapters.manifest_tool.as_ref(),
        env: &|_| None,
    });
}

/// An engine whose manifest has these tools. The doubles need a recorder, so the manifest comes after the engine.
fn start(flow: &Value, manifest: &Manifest) -> EngineTest {
    let setup = Setup::default();
    let test = setup.start_engine(flow);
    define(&test.registry, manifest);
    test
}

/// An agent with a `registry-tool` that calls these tools one after the other.
pub(crate) fn flow(ids: Value, calls: &[(&str, Value)]) -> Value {
    let mut replies: Vec<Value> = calls.iter().map(|(tool, input)| tool_call(tool, input.clone())).collect();
    replies.push(final_answer("done"));
    json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"allowedTools": ["*"], "maxIterations": 20})),
        model("m", Value::Array(replies)),
        with(node("t", "registry-tool", json!([])), json!({"ids": ids})),
        debug("d", "payload"),
    ])
}

/// The tool calls of the only run.
pub(crate) async fn calls(test: &EngineTest) -> Vec<Value> {
    let message = only_message(&test.fire().await);
    assert_eq!(message["payload"], "done", "{message:#}");
    message["envelope"]["tools"]["history"].as_array().unwrap().clone()
}

pub(crate) fn codes(test: &EngineTest) -> Vec<String> {
    let events = test.recorder.run_events().into_iter();
    let code = events.filter_map(|event| match event.event {
        RunEventKind::ToolReturned { code, success, tries, .. } => {
            let code = code.map_or(if success { "ok" } else { "failed" }, |code| code.as_str());
            Some(format!("{code} {}", tries.unwrap_or(1)))
        }
        _ => None,
    });
    code.collect()
}

/// The first fact of a run.
pub(crate) fn first_fact(test: &EngineTest, run: &str) -> Value {
    let journal = test.store.journal(&RunId::from(run));
    let started = journal.lines().find(|line| line.contains("\"run_started\"")).unwrap();
    let line: Value = serde_json::from_str(started).unwrap();
    line["record"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_agent_calls_a_tool_of_the_manifest_by_its_provider_name() {
    let flow = flow(json!(["weather.current"]), &[("weather__current", json!({"city": "Graz"}))]);
    let weather = tool("weather.current", json!({"body": {"result": {"temperature": 21}}}));
    let test = start(&flow, &manifest(&[weather, tool("weather.other", json!({}))]));
    let history = calls(&test).await;
    assert_eq!(history[0]["output"], json!({"temperature": 21}));
    let fact = first_fact(&test, "run-1");
    let tools = fact["fact"]["spec"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "only what the node names");
    assert_eq!(
        (&tools[0]["id"], &tools[0]["name"], &tools[0]["node"]),
        (&json!("weather.current"), &json!("weather__current"), &json!("t"))
    );
    assert_eq!(
        (&tools[0]["effect"], tools[0]["digest"].as_str().unwrap().len() > 40),
        (&json!("read"), true)
    );
}

#[tokio::test(start_paused = true)]
async fn patterns_are_resolved_as_a_run_begins_and_a_run_keeps_its_tools() {
    let flow = flow(json!(["a.*"]), &[("a__one", json!({}))]);
    let names = |test: &EngineTest, run: &str| -> Vec<String> {
        let fact = first_fact(test, run);
        let tools = fact["fact"]["spec"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let test = start(&flow, &manifest(&[tool("a.one", json!({})), tool("b.two", json!({}))]));
    calls(&test).await;
    define(&test.registry, &manifest(&[tool("a.one", json!({})), tool("a.zero", json!({}))]));
    calls(&test).await;
    assert_eq!(
        (names(&test, "run-1"), names(&test, "run-2")),
        (vec!["a__one".to_owned()], vec!["a__one".to_owned(), "a__zero".to_owned()])
    );
    // The tool is gone, and the pattern finds nothing: no error, but the model cannot call it.
    define(&test.registry, &manifest(&[]));
    assert_eq!(ends(&test.fire().await), ["run-3 a failed TOOL_NOT_ALLOWED"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changes_under_a_run_stays_the_same_for_it() {
    let replies = json!([tool_call("a__one", json!({})), final_answer("done")]);
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &[]), json!({"allowedTools": ["a.one"]})),
        model("m", replies),
        with(node("t", "registry-tool", json!([])), json!({"ids": ["a.*"]})),
    ]);
    let test =
        start(&flow, &manifest(&[tool("a.one", json!({"body": {"hangs": "tool", "ownEffect": "read"}}))]));
    let fire = test.fire_unchecked();
    tokio::pin!(fire);
    let waited = tokio::time::timeout(std::time::Duration::from_secs(1), fire.as_mut()).await;
    assert!(waited.is_err(), "the call hangs");
    define(&test.registry, &manifest(&[tool("a.one", json!({"body": {"result": "new"}}))]));
    let message = only_message(&fire.await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!(call["error"], "the tool did not answer within 30000 ms");
    assert_eq!(test.recorder.calls().iter().filter(|line| line.starts_with("tool a.one")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_missing_exact_name_ends_the_run_before_it_begins() {
    let rows = [
        (json!(["no.such"]), json!(["*"]), "The registry has no tool `no.such`. See `redflow tools list`."),
        (
            json!(["a.*"]),
            json!(["a.one", "a.missing"]),
            "`allowedTools` names `a.missing`, but the agent's providers have no such tool. See `redflow tools list`.",
        ),
    ];
    for (ids, allowed, text) in rows {
        let mut flow = flow(ids, &[]);
        flow[1]["allowedTools"] = allowed;
        let test = start(&flow, &manifest(&[tool("a.one", json!({}))]));
        let reports = test.fire().await;
        assert_eq!(ends(&reports), ["run-1 a refused TOOL_UNAVAILABLE"]);
        assert_eq!(only_message(&reports)["payload"]["message"], text);
    }
}

#[tokio::test(start_paused = true)]
async fn allowed_tools_name_nodes_and_tools_of_the_registry_alike() {
    let rows = [
        (json!(["*"]), vec!["calculator", "a__one"]),
        (json!(["a.*", "builtin.*"]), vec!["a__one", "calculator"]),
        (json!(["builtin.calculator"]), vec!["calculator"]),
        (json!(["a__one", "calculator"]), vec!["a__one", "calculator"]),
    ];
    for (allowed, expected) in rows {
        let flow = json!([
            inject(&["a"]),
            with(
                agent("a", "m", &["d"]),
                json!({"allowedTools": allowed, "wires": [["m"], ["calc", "t"], [], ["d"]]})
            ),
            model("m", json!([final_answer("done")])),
            crate::kit::calculator(),
            with(node("t", "registry-tool", json!([])), json!({"ids": ["a.*"], "name": ""})),
            debug("d", "payload"),
        ]);
        let test = start(&flow, &manifest(&[tool("a.one", json!({}))]));
        calls(&test).await;
        let fact = first_fact(&test, "run-1");
        let tools = fact["fact"]["spec"]["tools"].as_array().unwrap().iter();
        assert_eq!(
            tools.map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(),
            expected,
            "{allowed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn names_that_collide_and_too_many_tools_are_refused() {
    // Both ids have the name `a__b__c`.
    let colliding = [tool("a.b__c", json!({})), tool("a__b.c", json!({}))];
    let test = start(&flow(json!(["*"]), &[]), &manifest(&colliding));
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a refused CONFIG_INVALID"]);
    let text = only_message(&reports)["payload"]["message"].as_str().unwrap().to_owned();
    assert!(text.starts_with("Two tools of the agent are called `a__b__c`."), "{text}");
    let many =
        |count: usize| -> Vec<Value> { (0..count).map(|n| tool(&format!("n.t{n}"), json!({}))).collect() };
    define(&test.registry, &manifest(&many(MAX_AGENT_TOOLS)));
    assert_eq!(ends(&test.fire().await), ["run-2 a completed"]);
    define(&test.registry, &manifest(&many(MAX_AGENT_TOOLS + 1)));
    assert_eq!(ends(&test.fire().await), ["run-3 a refused CONFIG_INVALID"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_be_built_is_blocked_and_its_calls_say_why() {
    let blocked = tool("a.one", json!({"body": {"cannotBuild": "the variable KEY is not set"}}));
    let test = start(&flow(json!(["a.one"]), &[("a__one", json!({}))]), &manifest(&[blocked]));
    let history = calls(&test).await;
    assert_eq!(history[0]["error"], "The tool `a.one` cannot be used: the variable KEY is not set.");
    assert_eq!(codes(&test), ["TOOL_UNAVAILABLE 1"]);
    let entries = test.registry.snapshot().entries();
    assert_eq!(
        (entries[0].state, entries[0].reason.as_deref()),
        (ToolState::Blocked, Some("the variable KEY is not set"))
    );
}

#[tokio::test(start_paused = true)]
async fn calls_are_tried_again_only_if_they_may_be() {
    // (properties, what comes of the call)
    let retry = json!({"max": 2, "backoffMs": 10});
    let rows = [
        (json!({"retry": retry, "body": {"failsTimes": 2, "result": 1}}), "ok 3"),
        (json!({"retry": retry, "body": {"failsTimes": 9, "result": 1}}), "failed 3"),
        (json!({"retry": retry, "method": "PUT", "body": {"unknown": "lost"}}), "failed 3"),
        (json!({"retry": retry, "method": "POST", "body": {"failsTimes": 2, "result": 1}}), "failed 1"),
        (json!({"body": {"failsTimes": 1, "result": 1}}), "failed 1"),
        (json!({"retry": retry, "timeoutMs": 5, "body": {"failsTimes": 9}}), "failed 1"),
    ];
    for (extra, expected) in rows {
        let test = start(
            &flow(json!(["a.one"]), &[("a__one", json!({}))]),
            &manifest(&[tool("a.one", extra.clone())]),
        );
        calls(&test).await;
        assert_eq!(codes(&test), [expected], "{extra}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_that_breaks_the_schema_is_not_given_to_the_model() {
    let schema = json!({"type": "object", "required": ["temperature"]});
    for (result, expected) in
        [(json!({"temperature": 1}), "ok 1"), (json!({"html": "<p>"}), "TOOL_OUTPUT_INVALID 1")]
    {
        let weather = tool("a.one", json!({"outputSchema": schema, "body": {"result": result}}));
        let test = start(&flow(json!(["a.one"]), &[("a__one", json!({}))]), &manifest(&[weather]));
        let history = calls(&test).await;
        assert_eq!(codes(&test), [expected]);
        if expected != "ok 1" {
            let text = "The call was made, but its output breaks the tool's schema. At `/temperature`, the value is \
                        missing (rule `required`).";
            assert_eq!((&history[0]["error"], &history[0]["output"]), (&json!(text), &Value::Null));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn keys_of_the_manifest_do_not_reach_a_journal() {
    let secret = "k-12345678901234567890";
    let leaking = tool("a.one", json!({"body": {"secret": secret, "result": {"echo": secret}}}));
    let test = start(&flow(json!(["a.one"]), &[("a__one", json!({}))]), &manifest(&[leaking]));
    let history = calls(&test).await;
    assert_ne!(history[0]["output"]["echo"], secret);
    assert!(!test.store.journal(&RunId::from("run-1")).contains(secret));
}

/// A policy about the tools of one agent, and the codes of two calls under it.
async fn codes_under(policy: Value, roles: Value, principal: Option<&str>) -> Vec<String> {
    let setup = Setup { principal: principal.map(Principal::from), ..Setup::default() };
    let calls = [("a__one", json!({})), ("a__two", json!({})), ("a__one", json!({}))];
    let test = setup.start_engine(&flow(json!(["a.*"]), &calls));
    let tools = [tool("a.one", json!({})), tool("a.two", json!({"method": "POST"}))];
    let manifest = serde_json::from_value(json!({"tools": tools, "policy": policy, "roles": roles})).unwrap();
    define(&test.registry, &manifest);
    let _ = test.fire().await;
    codes(&test).into_iter().map(|code| code[..code.len() - 2].to_owned()).collect()
}

// SECURITY: policy
#[tokio::test(start_paused = true)]
async fn the_policy_allows_asks_denies_and_limits_in_every_dimension() {
    const OK: &str = "ok";
    const NO: &str = "TOOL_DENIED";
    const LATER: &str = "TOOL_RATE_LIMITED";
    let roles =
        json!({"staff": {"tokens": ["ci"]}, "robots": {"agents": ["a"]}, "plants": {"instances": ["local"]}});
    let rows = [
        (json!([]), [OK, OK, OK]),
        (json!([{"deny": ["a.one"]}]), [NO, OK, NO]),
        (json!([{"deny": ["a__two"]}]), [OK, NO, OK]),
        (json!([{"deny": ["a.*"]}]), [NO, NO, NO]),
        (json!([{"ask": ["a.two"]}]), [OK, NO, OK]),
        (json!([{"deny": ["*"], "agents": ["a"]}]), [NO, NO, NO]),
        (json!([{"deny": ["*"], "agents": ["another"]}]), [OK, OK, OK]),
        (json!([{"deny": ["*"], "nodes": ["t"]}]), [NO, NO, NO]),
        (json!([{"deny": ["*"], "nodes": ["registry-tool"]}]), [NO, NO, NO]),
        (json!([{"deny": ["*"], "nodes": ["x"]}]), [OK, OK, OK]),
        (json!([{"deny": ["*"], "servers": ["github"]}]), [OK, OK, OK]),
        (json!([{"deny": ["*"], "effect": ["at_most_once"]}]), [OK, NO, OK]),
        (json!([{"deny": ["*"], "permissions": ["network.hosts"]}]), [NO, NO, NO]),
        (json!([{"deny": ["*"], "permissions": ["process"]}]), [OK, OK, OK]),
        (json!([{"deny": ["*"], "roles": ["staff"]}]), [NO, NO, NO]),
        (json!([{"deny": ["*"], "roles": ["robots"]}]), [NO, NO, NO]),
        (json!([{"deny": ["*"], "roles": ["plants"]}]), [NO, NO, NO]),
        (json!([{"allow": ["a.two"], "agents": ["another"]}]), [OK, NO, OK]),
        (json!([{"allow": ["a.two"], "roles": ["staff"]}]), [OK, OK, OK]),
        (json!([{"limit": ["a.one"], "rate": "1/h"}]), [OK, OK, LATER]),
        (json!([{"limit": ["*"], "per": "agent", "rate": "2/h"}]), [OK, OK, LATER]),
        (json!([{"limit": ["*"], "per": "session", "rate": "2/h"}]), [OK, OK, LATER]),
        (json!([{"limit": ["*"], "per": "principal", "rate": "1/h"}]), [OK, LATER, LATER]),
        (json!([{"limit": ["*"], "concurrent": 1}]), [OK, OK, OK]),
    ];
    for (policy, expected) in rows {
        let found = codes_under(policy.clone(), roles.clone(), Some("token:ci")).await;
        assert_eq!(found, expected, "{policy}");
    }
    let staff = json!([{"allow": ["*"], "roles": ["staff"]}]);
    assert_eq!(codes_under(staff, roles, Some("token:guest")).await, [NO, NO, NO]);
}

#[tokio::test(start_paused = true)]
async fn limits_go_on_counting_unless_the_policy_changes() {
    let policy = json!([{"limit": ["a.one"], "rate": "1/d"}]);
    let with_tools = |count: usize, policy: &Value| -> Manifest {
        let tools: Vec<Value> = ["a.one", "a.two"][..count].iter().map(|id| tool(id, json!({}))).collect();
        serde_json::from_value(json!({"tools": tools, "policy": policy})).unwrap()
    };
    let test = start(&flow(json!(["a.one"]), &[("a__one", json!({}))]), &with_tools(1, &policy));
    calls(&test).await;
    define(&test.registry, &with_tools(2, &policy));
    calls(&test).await;
    define(&test.registry, &with_tools(2, &json!([{"limit": ["a.one"], "rate": "2/d"}])));
    calls(&test).await;
    assert_eq!(codes(&test), ["ok 1", "TOOL_RATE_LIMITED 0", "ok 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_counts_for_no_limit() {
    let policy = json!([
        {"limit": ["*"], "per": "agent", "rate": "2/d"},
        {"limit": ["a.one"], "rate": "1/d"},
    ]);
    let one = ("a__one", json!({}));
    let script = [one.clone(), one.clone(), one.clone(), ("a__two", json!({}))];
    let tools = [tool("a.one", json!({})), tool("a.two", json!({}))];
    let manifest = serde_json::from_value(json!({"tools": tools, "policy": policy})).unwrap();
    let test = start(&flow(json!(["a.*"]), &script), &manifest);
    calls(&test).await;
    assert_eq!(codes(&test), ["ok 1", "TOOL_RATE_LIMITED 0", "TOOL_RATE_LIMITED 0", "ok 1"]);
}

// SECURITY: policy
#[tokio::test(start_paused = true)]
async fn a_refused_call_is_never_made_and_the_run_goes_on() {
    let test = start(
        &flow(json!(["a.one"]), &[("a__one", json!({}))]),
        &serde_json::from_value(json!({
            "tools": [tool("a.one", json!({"method": "POST"}))], "policy": [{"deny": ["a.one"]}],
        }))
        .unwrap(),
    );
    let history = calls(&test).await;
    assert_eq!(history[0]["error"], "The policy does not allow this call of `a.one` (rule 1).");
    assert!(
        test.recorder.calls().iter().all(|line| !line.starts_with("tool")),
        "{:?}",
        test.recorder.calls()
    );
    assert_eq!(codes(&test), ["TOOL_DENIED 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_holds_for_tools_that_are_nodes_too() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["d"]),
        model("m", json!([tool_call("calculator", json!({"expression": "1+1"})), final_answer("done")])),
        crate::kit::calculator(),
        debug("d", "payload"),
    ]);
    let rules = [
        json!({"deny": ["builtin.calculator"]}),
        json!({"deny": ["calculator"]}),
        json!({"deny": ["builtin.*"]}),
        json!({"deny": ["*"], "nodes": ["calculator-tool"]}),
    ];
    for rule in rules {
        let manifest = serde_json::from_value(json!({"policy": [rule]})).unwrap();
        let test = start(&flow, &manifest);
        calls(&test).await;
        assert_eq!(codes(&test), ["TOOL_DENIED 0"], "{rule}");
        // Outside a run the same rule holds.
        let own = crate::kit::build(&flow).tools().remove(0);
        assert_eq!(
            (own.entry.id.as_str(), own.entry.node_type.as_deref()),
            ("builtin.calculator", Some("calculator-tool"))
        );
        let provided = redflow_ports::ProvidedTool { entry: own.entry, tool: own.tool.unwrap() };
        let request = ToolRequest {
            tool: &provided,
            input: json!({"expression": "1+1"}).as_object().unwrap().clone(),
            by: None,
            limits: &RunLimits::default(),
            scrubber: &std::sync::Arc::default(),
        };
        let made = test.registry.invoke(request, &*test.recorder, &NoMeter).await.unwrap();
        assert_eq!((made.success, made.tries), (false, 0), "{rule}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_at_the_same_time_share_a_limit_and_give_their_place_back() {
    let replies = json!([
        {"toolCalls": [{"name": "a__one", "arguments": {"n": 1}}, {"name": "a__one", "arguments": {"n": 2}}]},
        {"toolCalls": [{"name": "a__one", "arguments": {"n": 3}}]},
        "done",
    ]);
    let flow = json!([
        inject(&["a"]),
        with(node("a", "ai-agent", json!([[], []])), json!({"model": "m", "tools": ["t"]})),
        model("m", replies),
        with(node("t", "registry-tool", json!([])), json!({"ids": ["a.*"]})),
    ]);
    let manifest = serde_json::from_value(json!({
        "tools": [tool("a.one", json!({}))], "policy": [{"limit": ["a.one"], "concurrent": 1}],
    }));
    let test = start(&flow, &manifest.unwrap());
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let mut found = codes(&test);
    found.sort();
    assert_eq!(found, ["TOOL_RATE_LIMITED 0", "ok 1", "ok 1"]);
}

#[tokio::test(start_paused = true)]
async fn the_principal_is_in_the_first_fact_and_goes_along_the_cascade() {
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &["b"]), json!({})),
        with(agent("b", "m2", &[]), json!({})),
        model("m", json!([final_answer("on")])),
        model("m2", json!([final_answer("done")])),
        crate::kit::calculator(),
    ]);
    let setup = Setup { principal: Some("cli".into()), ..Setup::default() };
    let test = setup.start_engine(&flow);
    test.fire().await;
    let mut start = order(Some("a"), Some(json!("go")), None);
    start.by = Some("token:ci".into());
    test.start(start).await.unwrap().reports.await.unwrap();
    let by = |run: &str| first_fact(&test, run)["fact"]["by"].clone();
    assert_eq!(
        ["run-1", "run-2", "run-3", "run-4"].map(by),
        [json!("cli"), json!("cli"), json!("token:ci"), json!("token:ci")]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_resumed_run_sets_off_has_its_principal() {
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &[]), json!({"wires": [["m"], ["calc"], [], [], ["b"]]})),
        agent("b", "m2", &[]),
        model_double("m", json!([final_answer("on")]), json!({"hangs": "model"})),
        model("m2", json!([final_answer("done")])),
        crate::kit::calculator(),
    ]);
    let setup = Setup { principal: Some("token:ci".into()), ..Setup::default() };
    let store = setup.start_engine(&flow).crash_after(1, crate::kit::Buffered::Survives).await;
    let test = Setup::default().restart(&flow, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed", "run-2 b completed"]);
    assert_eq!(first_fact(&test, "run-2")["fact"]["by"], "token:ci");
}

/// A node with two operations, wired back to its agent.
fn node_flow(calls: &[(&str, Value)]) -> Value {
    let mut replies: Vec<Value> = calls.iter().map(|(tool, input)| tool_call(tool, input.clone())).collect();
    replies.push(final_answer("done"));
    json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"allowedTools": ["node-double.*"]})),
        model("m", Value::Array(replies)),
        node("t", "node.double", json!([["a"]])),
        debug("d", "payload"),
    ])
}

fn operations() -> NodeTools {
    let operation =
        |extra: Value| with(json!({"description": "d", "inputSchema": {"type": "object"}}), extra);
    serde_json::from_value(json!({"node.double": {
        "create": operation(json!({"msg": {"payload": {"record": "{{input.name}}"}, "topic": "create"}, "result": "payload.record"})),
        "list": operation(json!({"effect": "read", "msg": {"topic": "list"}, "result": "topic"})),
    }}))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn operations_of_a_node_are_tools() {
    let setup = Setup::default();
    setup.registry.set_node_tools(&InstanceId::local(), operations());
    let flow =
        node_flow(&[("node-double__create", json!({"name": "Ada"})), ("node-double__list", json!({}))]);
    let test = setup.start_engine(&flow);
    let history = calls(&test).await;
    assert_eq!((&history[0]["output"], &history[1]["output"]), (&json!("Ada"), &json!("list")));
    let sent: Value = serde_json::from_str(test.recorder.calls()[0].strip_prefix("node ").unwrap()).unwrap();
    assert_eq!((&sent["payload"], &sent["topic"]), (&json!({"record": "Ada"}), &json!("create")));
    assert_eq!(sent["_agentCore"]["tool"], "node-double__create");
    let fact = first_fact(&test, "run-1");
    let tools = &fact["fact"]["spec"]["tools"];
    assert_eq!((&tools[0]["id"], &tools[0]["operation"]), (&json!("node-double.create"), &json!("create")));
    assert_eq!((&tools[0]["effect"], &tools[1]["effect"]), (&json!("at_most_once"), &json!("read")));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_fails_is_tried_again_under_another_call_id() {
    let setup = Setup::default();
    let mut nodes = operations();
    let list = nodes.get_mut("node.double").unwrap().get_mut("list").unwrap();
    list.retry = Some(redflow_contract::tool::ToolRetry { max: 2, backoff_ms: 1 });
    setup.registry.set_node_tools(&InstanceId::local(), nodes);
    let mut flow = node_flow(&[("node-double__list", json!({}))]);
    flow[3]["fails"] = json!("not today");
    let test = setup.start_engine(&flow);
    calls(&test).await;
    assert_eq!(codes(&test), ["failed 3"]);
    let ids = test.recorder.calls().into_iter().filter_map(|line| {
        let sent: Value = serde_json::from_str(line.strip_prefix("node ")?).ok()?;
        Some(sent["_agentCore"]["callId"].as_str()?.to_owned())
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["run-1:1", "run-1:1:2", "run-1:1:3"]);
}

#[tokio::test(start_paused = true)]
async fn the_manifest_replaces_the_operations_of_a_package() {
    let setup = Setup::default();
    setup.registry.set_node_tools(&InstanceId::local(), operations());
    let test = setup.start_engine(&node_flow(&[("node-double__list", json!({}))]));
    let mut nodes = operations();
    nodes.get_mut("node.double").unwrap().get_mut("list").unwrap().msg =
        json!({"topic": "mine"}).as_object().cloned();
    define(&test.registry, &Manifest { nodes, ..Manifest::default() });
    assert_eq!(calls(&test).await[0]["output"], "mine");
    let entries = test.registry.snapshot().entries();
    let entries: Vec<_> = entries.iter().map(|entry| (entry.id.as_str(), entry.instance.is_some())).collect();
    assert_eq!(entries, [("node-double.create", false), ("node-double.list", false)]);
}

#[tokio::test(start_paused = true)]
async fn a_node_may_provide_tools_of_its_own() {
    let test = start(&flow(json!(["*"]), &[]), &manifest(&[]));
    let provided = |test: &EngineTest, tools: &[Value]| {
        define(&test.registry, &manifest(tools));
        test.registry.snapshot().tools().to_vec()
    };
    crate::doubles::provider().set(provided(&test, &[tool("many.one", json!({}))]));
    let names = |run: &str, test: &EngineTest| -> Vec<String> {
        let fact = first_fact(test, run);
        let tools = fact["fact"]["spec"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["id"].as_str().unwrap().to_owned()).collect()
    };
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"allowedTools": ["many.*"]})),
        model("m", json!([tool_call("many__one", json!({})), final_answer("done")])),
        with(node("t", "tool.provider", json!([])), json!({"name": ""})),
        debug("d", "payload"),
    ]);
    let test = Setup::default().start_engine(&flow);
    assert_eq!(calls(&test).await[0]["output"], json!({"ok": true}));
    crate::doubles::provider()
        .set(provided(&test, &[tool("many.one", json!({})), tool("many.two", json!({}))]));
    calls(&test).await;
    assert_eq!((names("run-1", &test), names("run-2", &test).len()), (vec!["many.one".to_owned()], 2));
    // The provider has no tool any more.
    crate::doubles::provider().set(provided(&test, &[]));
    assert_eq!(ends(&test.fire().await), ["run-3 a failed TOOL_NOT_ALLOWED"]);
}

/// Runs until the first tool call hangs, crashes, changes the manifest, and resumes.
async fn after_a_crash(first: &Manifest, second: &Manifest) -> (Vec<String>, String) {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"allowedTools": ["a.one"]})),
        model_double("m", json!([tool_call("a__one", json!({})), final_answer("done")]), json!({})),
        with(node("t", "registry-tool", json!([])), json!({"ids": ["a.*"]})),
        debug("d", "payload"),
    ]);
    let test = start(&flow, first);
    let store = test.crash_after(1, crate::kit::Buffered::Survives).await;
    let setup = Setup::default();
    let test = setup.restart(&flow, &store);
    define(&test.registry, second);
    let reports = test.recover().await;
    let message = only_message(&reports);
    let call = &message["envelope"]["tools"]["history"][0];
    let text = call["error"].as_str().map_or_else(|| call["output"].to_string(), str::to_owned);
    (codes(&test), format!("{}: {text}", ends(&reports)[0]))
}

// SECURITY: same-tool
#[tokio::test(start_paused = true)]
async fn a_resumed_run_calls_only_the_tool_that_it_began_with() {
    let hangs = json!({"hangs": "tool", "ownEffect": "read", "result": "made"});
    let first = manifest(&[tool("a.one", json!({"body": hangs}))]);
    let changed = manifest(&[tool("a.one", json!({"body": hangs, "url": "https://example.net/"}))]);
    let rows = [
        (first.clone(), "ok 1", "\"made\""),
        (changed, "TOOL_CHANGED 1", "The tool `a.one` has changed since the run began."),
        (manifest(&[]), "TOOL_UNAVAILABLE 1", "The tool `a.one` is no longer there."),
    ];
    for (second, code, text) in rows {
        let found = after_a_crash(&first, &second).await;
        assert_eq!(found, (vec![code.to_owned()], format!("run-1 a completed: {text}")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_can_be_called_outside_a_run() {
    let test = start(&flow(json!(["*"]), &[]), &manifest(&[]));
    let schema = json!({"type": "object", "required": ["city"]});
    let tools = [
        tool("a.ok", json!({"inputSchema": schema})),
        tool("a.denied", json!({})),
        tool("a.never", json!({"body": {"hangs": "tool"}})),
        tool("a.panics", json!({"body": {"panics": "tool"}})),
        tool("a.lost", json!({"method": "POST", "body": {"unknown": "the line broke"}})),
        tool("a.large", json!({"body": {"result": "x".repeat(2_000_000)}})),
    ];
    let manifest =
        serde_json::from_value(json!({"tools": tools, "policy": [{"deny": ["a.denied"]}]})).unwrap();
    define(&test.registry, &manifest);
    let call = async |id: &str, input: Value| {
        let snapshot = test.registry.snapshot();
        let request = ToolRequest {
            tool: snapshot.find(id).unwrap(),
            input: input.as_object().unwrap().clone(),
            by: Some("token:main".into()),
            limits: &RunLimits::default(),
            scrubber: &std::sync::Arc::default(),
        };
        test.registry.invoke(request, &*test.recorder, &NoMeter).await
    };
    let made = call("a.ok", json!({"city": "Graz"})).await.unwrap();
    assert_eq!((made.success, &made.output, made.tries), (true, &Some(json!({"ok": true})), 1));
    assert_eq!((made.by.as_ref().unwrap().as_str(), made.tool.as_str()), ("token:main", "a__ok"));
    let wrong = call("a.ok", json!({})).await;
    assert_eq!(
        wrong,
        Err(InvokeError::InputInvalid("At `/city`, the value is missing (rule `required`).".to_owned()))
    );
    let failures = [
        ("a.denied", 0, "The policy does not allow this call of `a.denied` (rule 1)."),
        ("a.never", 1, "the tool did not answer within 30000 ms"),
        ("a.panics", 1, "the tool crashed while it was asked"),
        ("a.lost", 1, "It is unknown whether the call took effect: the line broke."),
        ("a.large", 1, "the tool's result has 2000028 bytes; the limit is 262144"),
    ];
    for (id, tries, text) in failures {
        let made = call(id, json!({})).await.unwrap();
        assert_eq!((made.success, made.tries, made.error.as_deref()), (false, tries, Some(text)), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_the_manifest_replaces_a_registered_one() {
    let test = start(&flow(json!(["*"]), &[]), &manifest(&[]));
    let registered: Vec<ManifestTool> =
        vec![serde_json::from_value(tool("a.one", json!({"title": "mine"}))).unwrap()];
    define_with(&test.registry, &manifest(&[]), &registered);
    let entry = |registry: &Registry| registry.snapshot().tool("a.one").unwrap().entry.clone();
    assert_eq!(
        (entry(&test.registry).provider.as_str(), entry(&test.registry).title.as_str()),
        ("registered", "mine")
    );
    define_with(&test.registry, &manifest(&[tool("a.one", json!({"title": "theirs"}))]), &registered);
    assert_eq!(
        (entry(&test.registry).provider.as_str(), entry(&test.registry).title.as_str()),
        ("manifest", "theirs")
    );
}

/// The journal says how often a tool was tried, and old journals do not.
#[test]
fn a_fact_without_tries_is_one_try() {
    let fact =
        json!({"type": "tool_returned", "at": 1, "effect": 2, "result": {"success": true, "output": 1}});
    let read: Fact = serde_json::from_value(fact.clone()).unwrap();
    assert!(matches!(read, Fact::ToolReturned { tries: 1, .. }));
    assert_eq!(serde_json::to_value(&read).unwrap(), fact);
}
