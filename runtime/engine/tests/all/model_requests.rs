//! What the engine tells a model about the call, and which models an agent may have.

use crate::kit::{
    EngineTest, agent_with_tool, ends, final_answer, inject, model_double, node, only_message, tool_double,
    with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn model_calls(test: &EngineTest) -> Vec<String> {
    test.recorder.calls().into_iter().filter(|call| call.starts_with("model ")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_names_its_agent_and_its_session() {
    for (extra, session, raw) in [
        (json!({}), "None", ""),
        (json!({"debug": true}), "None", ", keeps raw"),
        (json!({"memory": "mem", "sessionId": "ada"}), "Some(\"t:ada\")", ""),
    ] {
        let flow = json!([
            inject(&["a"]),
            with(node("a", "ai-agent", json!([[], []])), with(json!({"model": "m"}), extra)),
            model_double("m", json!(["done"]), json!({"showsRequest": true})),
            node("mem", "buffer-memory", json!([])),
        ]);
        let test = EngineTest::new(&flow);
        assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
        assert_eq!(model_calls(&test), [format!("model m 1 for a in {session}{raw}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_tools_needs_models_that_take_them() {
    let takes_none = || json!({"takesTools": false});
    let ai_agent = |extra: Value| {
        let agent = with(node("a", "ai-agent", json!([[], []])), json!({"model": "m"}));
        with(agent, extra)
    };
    let simple_agent = |extra: Value| {
        let agent = with(node("a", "ai-simple-agent", json!([[], []])), json!({"model": "m"}));
        with(agent, extra)
    };
    let with_tools = || ai_agent(json!({"tools": ["t"]}));
    let with_fallback = ai_agent(json!({"tools": ["t"], "fallbackModels": ["n"]}));
    for (agent, main, fallback, refused) in [
        (with_tools(), takes_none(), json!({}), Some("m")),
        (with_fallback, json!({}), takes_none(), Some("n")),
        (with_tools(), json!({}), takes_none(), None),
        (ai_agent(json!({})), takes_none(), json!({}), None),
        // An agent for one thing needs no tools for its result.
        (simple_agent(json!({})), takes_none(), json!({}), None),
        (simple_agent(json!({"tools": ["t"]})), takes_none(), json!({}), Some("m")),
        // Agent Core describes its tools in the prompt.
        (agent_with_tool("a", "m", &[]), takes_none(), json!({}), None),
    ] {
        let flow = json!([
            inject(&["a"]),
            agent,
            model_double("m", json!([final_answer("done")]), main),
            model_double("n", json!(["done"]), fallback),
            tool_double(json!({})),
        ]);
        let test = EngineTest::new(&flow);
        let reports = test.fire().await;
        let Some(model) = refused else {
            assert_eq!(ends(&reports), ["run-1 a completed"]);
            continue;
        };
        assert_eq!(ends(&reports), ["run-1 a refused CONFIG_INVALID"]);
        let text = only_message(&reports)["error"]["message"].as_str().unwrap().to_owned();
        let expected = format!(
            "the agent has tools, but the model `{model}` takes none; choose another model, or set `capabilities` \
             of its node to {{\"tools\": true}} if it does"
        );
        assert!(text.contains(&expected), "{text}");
        assert_eq!(model_calls(&test), [""; 0]);
    }
}
