//! Agents for one thing with every provider: they give their results by the finishing tool, as JSON or as text.

use crate::aimock::Aimock;
use crate::binary::{run_flow, set_address};
use crate::provider_api::{KEY, ProviderApi};
use crate::world::{World, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::path::Path;

/// A preset: its properties, the text it gets, and the payload of the result.
struct Case {
    name: &'static str,
    props: Value,
    text: &'static str,
    result: Value,
    /// A wrong answer, and a part of what the agent says about it; none for an agent that calls a tool first.
    wrong: Option<(&'static str, &'static str)>,
}

/// Longer than the text of the summarizer.
const LONG: &str = "The pump stopped at nine in the morning, nobody knows why, and it runs again since noon.";

fn cases() -> [Case; 4] {
    let total = json!({"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"],
                       "additionalProperties": false});
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
                      "additionalProperties": false});
    [
        Case {
            name: "ai-simple-agent",
            props: json!({"tools": ["c"], "outputSchema": total}),
            text: "What does the order cost?",
            result: json!({"total": 116.7}),
            wrong: None,
        },
        Case {
            name: "ai-extractor",
            props: json!({"outputSchema": city}),
            text: "I live in Oslo.",
            result: json!({"city": "Oslo"}),
            wrong: Some((r#"{"result": 4}"#, "wrong type. Answer again")),
        },
        Case {
            name: "ai-classifier",
            props: json!({"categories": ["fault", "praise"], "multiple": true}),
            text: "It broke, but the service is great.",
            result: json!(["fault", "praise"]),
            wrong: Some((r#"{"result": 4}"#, "The only categories")),
        },
        Case {
            name: "ai-summarizer",
            props: json!({"length": "short"}),
            text: "The pump stopped at nine, and it runs again since noon.",
            result: json!("It runs again."),
            wrong: Some((LONG, "Write a shorter one")),
        },
    ]
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"toolCalls": [{"id": id, "name": name, "arguments": arguments}]})
}

/// The answer that gives a result to an agent without tools.
fn answer(agent: &str, result: &Value) -> Value {
    let is_text = agent.ends_with("summarizer");
    let text = result.as_str().filter(|_| is_text);
    json!({ "content": text.map_or_else(|| json!({ "result": result }).to_string(), str::to_owned) })
}

/// The simple agent calculates first. The others give a wrong result first, and are told so.
fn fixtures(cases: &[Case]) -> Vec<Value> {
    let mut fixtures = Vec::new();
    for Case { name, text, result, wrong, .. } in cases {
        let (second, last, first) = match wrong {
            None => (
                json!({"userMessage": text, "hasToolResult": true}),
                call("call_last", "finish_step", json!({ "result": result })),
                call("call_sum", "calculator", json!({"expression": "12 * 4.75 + 3 * 19.90"})),
            ),
            Some((wrong, told)) => {
                (json!({"userMessage": told}), answer(name, result), json!({"content": wrong}))
            }
        };
        fixtures.push(json!({"match": second, "response": last}));
        fixtures.push(json!({"match": {"userMessage": text}, "response": first}));
    }
    fixtures
}

fn flow(case: &Case, model: &Value) -> Value {
    let node = |id: &str, props: Value| with(json!({"id": id, "z": "t", "x": 1, "y": 1, "wires": []}), props);
    let agent = with(json!({"type": case.name, "model": "m", "wires": [["d"], []]}), case.props.clone());
    json!([
        node("a", agent),
        node("m", model.clone()),
        node("c", json!({"type": "calculator-tool"})),
        node("d", json!({"type": "debug"})),
    ])
}

#[tokio::test]
async fn every_preset_gives_its_result_with_every_provider() {
    let cases = cases();
    let mock = Aimock::start(&fixtures(&cases));
    for api in ProviderApi::ALL {
        for (case, stream) in cases.iter().zip([false, true].into_iter().cycle()) {
            let model = with(api.model(&mock.address()), json!({"stream": stream}));
            let world = World::with_flow(&flow(case, &model));
            let message = world.ask(case.text).await;
            assert_eq!(message["payload"], case.result, "{} {}: {message:#}", api.name(), case.name);
            assert_eq!(message["agentResult"]["iterations"], 2, "{message:#}");
            let requests = mock.requests();
            assert_eq!(requests.len(), 2);
            // The second request has the first call with its result, or what is wrong with the first answer.
            let body = requests[1].json().unwrap().to_string();
            match case.wrong {
                None => assert!(body.contains("finish_step") && body.contains("success"), "{body}"),
                Some((_, told)) => assert!(body.contains(told) && !body.contains("finish_step"), "{body}"),
            }
        }
    }
    assert!(mock.statuses().iter().all(|status| *status == 200));
}

/// The examples, only with another address.
#[test]
fn every_live_example_of_a_preset_gives_its_result() {
    // The name of the example, a part of its text, and the result.
    let results = [
        ("simple-agent", "12 boxes", json!({"total": 116.7})),
        ("extractor", "Ada Berg", json!({"name": "Ada Berg", "count": 3})),
        ("classifier", "E7", json!("fault")),
        ("summarizer", "line 2", json!("The pump runs again.")),
    ];
    let fixtures: Vec<Value> = results
        .iter()
        .map(|(name, part, result)| {
            let last = match *name {
                "simple-agent" => call("call_last", "finish_step", json!({ "result": result })),
                name => answer(name, result),
            };
            json!({"match": {"userMessage": part}, "response": last})
        })
        .collect();
    let mock = Aimock::start(&fixtures);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    for (name, _, result) in results {
        let text = std::fs::read_to_string(folder.join(format!("live-ai-{name}.json"))).unwrap();
        let mut flow: Value = serde_json::from_str(&text).unwrap();
        set_address(&mut flow, &mock.address());
        let output = run_flow(&flow, Some(KEY));
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let message: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(message["payload"], result, "{name}: {message:#}");
        mock.requests();
    }
}
