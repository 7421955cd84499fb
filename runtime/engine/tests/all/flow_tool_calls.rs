//! Calls of flow tools outside a run.

use crate::kit::{
    EngineTest, Setup, adapters, agent_with_tool, build, calculator, check_flow, debug, ends, inject, model,
    node, process_env, with,
};
use crate::registry::{define, tool};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::limits::RunLimits;
use redflow_contract::manifest::Manifest;
use redflow_contract::node::{Budget, EffectClass};
use redflow_contract::tool::ToolInvocation;
use redflow_engine::{Engine, EngineLimits, FlowToolRequest, InvokeError, Registry, build_flow};
use redflow_ports::{BoxFuture, NodeConfig, Tool, ToolOutcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An agent whose tool `t` is an ordinary node with a wire back.
fn flow(props: Value) -> Value {
    let schema = json!({"type": "object", "required": ["x"]});
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([crate::kit::final_answer("done")])),
        with(
            with(node("t", "node.double", json!([["a"]])), json!({"effect": "read", "inputSchema": schema})),
            props
        ),
        debug("d", "payload"),
    ])
}

fn request(node: &str, input: Value) -> FlowToolRequest {
    let input = input.as_object().unwrap().clone();
    FlowToolRequest { node: node.into(), input, by: Some("token:ci".into()), key: None }
}

async fn call(test: &EngineTest, request: FlowToolRequest) -> Result<ToolInvocation, InvokeError> {
    let called = test.engine.call_flow_tool(request, &test.cancel);
    tokio::time::timeout(Duration::from_secs(86_400), called).await.unwrap()
}

/// The messages that the node has received.
fn received(test: &EngineTest) -> Vec<Value> {
    let lines = test.recorder.calls().into_iter();
    lines.filter_map(|line| serde_json::from_str(line.strip_prefix("node ")?).ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_flow_gets_a_message_and_its_reply_is_the_result() {
    let test = EngineTest::new(&flow(json!({"payload": {"sum": 3}})));
    let made = call(&test, request("t", json!({"x": 1}))).await.unwrap();
    assert_eq!((made.success, &made.output, made.tries), (true, &Some(json!({"sum": 3})), 1));
    assert_eq!((made.id.as_str(), made.tool.as_str(), made.run_id.is_none()), ("flow.t", "t", true));
    assert_eq!(made.by.unwrap().as_str(), "token:ci");
    assert_eq!(made.input["x"], 1);
    let sent = &received(&test)[0];
    assert_eq!((&sent["payload"], &sent["_agentCore"]["tool"]), (&json!({"x": 1}), &json!("t")));
    assert_eq!(sent["_agentCore"]["callId"], made.call_id.as_str());
    assert_eq!(test.recorder.flow_lines(), [] as [&str; 0], "no run has begun, and no reply was dropped");
    // Agents can be used at the same time.
    assert_eq!(ends(&test.fire().await).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_key_of_the_same_caller_gives_the_same_idempotency_key() {
    let test = EngineTest::new(&flow(json!({})));
    let keyed = |by: &str, key: Option<&str>| FlowToolRequest {
        by: Some(by.into()),
        key: key.map(str::to_owned),
        ..request("t", json!({"x": 1}))
    };
    for (by, key) in
        [("a", Some("k")), ("a", Some("k")), ("b", Some("k")), ("a", Some("l")), ("a", None), ("a", None)]
    {
        call(&test, keyed(by, key)).await.unwrap();
    }
    let keys: Vec<Value> =
        received(&test).iter().map(|sent| sent["_agentCore"]["idempotencyKey"].clone()).collect();
    assert_eq!(keys[0], keys[1]);
    let mut different = keys[1..].to_vec();
    different.sort_by_key(Value::to_string);
    different.dedup();
    assert_eq!(different.len(), 5, "{keys:?}");
}

#[tokio::test(start_paused = true)]
async fn only_flow_tools_of_agents_can_be_called() {
    let mut flow = flow(json!({}));
    flow[1]["wires"] = json!([["m"], ["t", "calc"], [], ["d"]]);
    flow[1]["allowedTools"] = json!(["*"]);
    flow.as_array_mut().unwrap().push(calculator());
    let test = EngineTest::new(&flow);
    for node in ["a", "calc", "d", "nothing"] {
        let refused = call(&test, request(node, json!({"x": 1}))).await.unwrap_err();
        assert!(matches!(&refused, InvokeError::Unavailable(text) if text.contains(node)), "{refused}");
        assert_eq!(refused.code().as_str(), "TOOL_UNAVAILABLE");
    }
    let refused = call(&test, request("t", json!({}))).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "The input breaks the tool's schema. At `/x`, the value is missing (rule `required`)."
    );
    assert_eq!(received(&test).len(), 0);
    assert!(call(&test, request("t", json!({"x": 1}))).await.unwrap().success);
}

#[tokio::test(start_paused = true)]
async fn failures_refusals_and_timeouts_are_failed_results() {
    let ended = "the flow that is the tool ended without an answer";
    let large = json!({"payload": "x".repeat(300_000)});
    let rows = [
        (json!({"fails": "no such room"}), "no such room"),
        (json!({"times": 0}), ended),
        (json!({"times": 0, "effect": "at_most_once"}), "It is unknown whether the call took effect"),
        (large, "the tool's result has"),
    ];
    for (props, text) in rows {
        let test = EngineTest::new(&flow(props));
        let made = call(&test, request("t", json!({"x": 1}))).await.unwrap();
        let error = made.error.unwrap();
        assert!(!made.success && made.output.is_none() && error.starts_with(text), "{error}");
    }
    let test = EngineTest::new(&flow(json!({})));
    let manifest: Manifest = serde_json::from_value(json!({
        "tools": [tool("a.one", json!({}))], "policy": [{"deny": ["flow.t"], "roles": ["bots"]}, {"limit": ["flow.*"], "rate": "1/h"}],
        "roles": {"bots": {"tokens": ["bot"]}},
    }))
    .unwrap();
    define(&test.registry, &manifest);
    let denied = FlowToolRequest { by: Some("token:bot".into()), ..request("t", json!({"x": 1})) };
    let made = call(&test, denied).await.unwrap();
    assert_eq!((made.success, made.code.unwrap().as_str(), made.tries), (false, "TOOL_DENIED", 0));
    assert!(call(&test, request("t", json!({"x": 1}))).await.unwrap().success);
    let made = call(&test, request("t", json!({"x": 1}))).await.unwrap();
    assert_eq!(made.code.unwrap().as_str(), "TOOL_RATE_LIMITED");
}

/// The flow of the tool leads to another agent, whose model never answers.
fn slow_flow() -> Value {
    let mut flow = flow(json!({"wires": [["b"]], "timeout": 5_000}));
    let own =
        with(agent_with_tool("b", "n", &["r"]), json!({"allowedTools": [], "wires": [["n"], [], [], ["r"]]}));
    let hangs =
        crate::kit::model_double("n", json!([crate::kit::final_answer("x")]), json!({"hangs": "model"}));
    let back = node("r", "node.double", json!([["a"]]));
    flow.as_array_mut().unwrap().extend([own, hangs, back]);
    flow
}

/// No wire leads back but through the other agent, so the check takes the node for no tool.
#[tokio::test(start_paused = true)]
async fn a_flow_that_ends_in_another_agent_is_no_tool() {
    let test = EngineTest::new(&slow_flow());
    let called = test.engine.call_flow_tool(request("t", json!({"x": 1})), &test.cancel);
    let refused = tokio::time::timeout(Duration::from_secs(60), called).await.expect("it ends in time");
    let text = "The flow has no flow tool `t` that an agent uses. See `redflow tools list`.";
    assert_eq!(refused, Err(InvokeError::Unavailable(text.to_owned())));
    assert_eq!(received(&test).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_and_a_stop_end_the_call() {
    let test = EngineTest::new(&flow(json!({})));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let refused = test.engine.call_flow_tool(request("t", json!({"x": 1})), &cancel).await;
    assert_eq!(refused, Err(InvokeError::Cancelled));
    assert_eq!(InvokeError::Cancelled.code().as_str(), "CANCELLED");
    test.engine.shutdown(Duration::from_secs(1)).await;
    let refused = call(&test, request("t", json!({"x": 1}))).await;
    assert!(matches!(refused, Err(InvokeError::Unavailable(_))), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deploy_changes_what_can_be_called() {
    let test = EngineTest::new(&flow(json!({"payload": 1})));
    assert_eq!(call(&test, request("t", json!({"x": 1}))).await.unwrap().output, Some(json!(1)));
    test.engine.deploy(build(&flow(json!({"payload": 2})))).await;
    assert_eq!(call(&test, request("t", json!({"x": 1}))).await.unwrap().output, Some(json!(2)));
    test.engine.deploy(build(&json!([inject(&[])]))).await;
    let refused = call(&test, request("t", json!({"x": 1}))).await;
    assert!(matches!(refused, Err(InvokeError::Unavailable(_))), "{refused:?}");
}

/// Stands for the tool of a Node-RED: it returns the agent and the node of a call, or never returns.
struct HostTool {
    hangs: bool,
}

impl Tool for HostTool {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            ToolOutcome::Returned(ToolResult::ok(json!([call.agent, call.node, call.input])))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_flow_of_a_host_is_called_by_the_tool_of_the_host() {
    let flow = flow(json!({"timeout": 5_000}));
    let test = EngineTest::new(&flow);
    for hangs in [false, true] {
        let mut adapters = adapters();
        let build = move |_: NodeConfig<'_>| Ok(Arc::new(HostTool { hangs }) as Arc<dyn Tool>);
        adapters.flow_tools = Some(Arc::new(build));
        let checked =
            check_flow(&flow, RunLimits::default(), Budget::default(), &adapters, &Registry::default());
        let built = build_flow(checked, &adapters, redflow_strategies::strategies(), &process_env);
        let engine = Engine::new(Some(built), test.ports(), EngineLimits::default());
        let made = engine.call_flow_tool(request("t", json!({"x": 1})), &test.cancel).await.unwrap();
        if hangs {
            let text = "the tool did not answer within 5000 ms";
            assert_eq!((made.success, made.error.as_deref()), (false, Some(text)));
            let dropped = engine.call_flow_tool(request("t", json!({"x": 1})), &test.cancel);
            assert!(tokio::time::timeout(Duration::from_secs(1), dropped).await.is_err());
            let cancels = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                test.cancel.cancel();
            };
            let called = engine.call_flow_tool(request("t", json!({"x": 1})), &test.cancel);
            assert_eq!(tokio::join!(called, cancels).0, Err(InvokeError::Cancelled));
        } else {
            assert_eq!(made.output, Some(json!(["a", "t", {"x": 1}])));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_of_the_flow_are_not_in_the_result() {
    let secret = "k-12345678901234567890";
    let mut flow = flow(json!({"payload": {"echo": secret}}));
    flow[2] =
        crate::kit::model_double("m", json!([crate::kit::final_answer("x")]), json!({"apiKey": secret}));
    let test = Setup::default().start_engine(&flow);
    let made = call(&test, request("t", json!({"x": 1}))).await.unwrap();
    assert!(made.success && !made.output.unwrap().to_string().contains(secret));
}
