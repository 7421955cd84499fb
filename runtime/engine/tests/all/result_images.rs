//! Images of tool results: the journal has those that the model of the agent gets, and only those.

use crate::kit::{
    EngineTest, agent_with_tool, ends, final_answer, inject, model_double, node, tool_call, tool_double, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const GIF: &str = "R0lGODlhAQABAIAAAA==";

fn tool(images: usize) -> Value {
    let images = vec![json!({"mime": "image/gif", "data": GIF}); images];
    tool_double(json!({"result": 1, "images": images}))
}

fn sees(vision: bool) -> Value {
    json!({ "vision": vision })
}

/// The result of the call in the journal of the run.
async fn result(flow: Value) -> Value {
    let test = EngineTest::new(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let journal = test.store.journal(&"run-1".into());
    let line = journal.lines().find(|line| line.contains("\"tool_returned\"")).unwrap();
    serde_json::from_str::<Value>(line).unwrap()["record"]["fact"]["result"].take()
}

#[tokio::test(start_paused = true)]
async fn a_result_keeps_the_images_only_if_every_model_takes_them() {
    const NONE: &str = ", because this agent or one of its models takes no images.";
    const LIMIT: &str = ", because the images of one result are too many or too large.";
    let rows = [
        (2, true, true, 2, None),
        (2, false, true, 0, Some(format!("Images left out: 2{NONE}"))),
        (1, true, false, 0, Some(format!("Images left out: 1{NONE}"))),
        (7, true, true, 4, Some(format!("Images left out: 3{LIMIT}"))),
    ];
    for (images, first, fallback, kept, note) in rows {
        let replies = json!([{"toolCalls": [{"name": "t"}]}, "done"]);
        let properties = json!({"model": "m", "tools": ["t"], "fallbackModels": ["f"]});
        let result = result(json!([
            inject(&["a"]),
            with(node("a", "ai-agent", json!([[], []])), properties),
            model_double("m", replies.clone(), sees(first)),
            model_double("f", replies, sees(fallback)),
            tool(images),
        ]))
        .await;
        assert_eq!(result["images"].as_array().map_or(0, Vec::len), kept, "{result}");
        assert_eq!(result["note"], json!(note));
        assert_eq!(result["output"], 1);
    }
}

/// A provider refuses a request with an image of another format, and so every later step of the run.
#[tokio::test(start_paused = true)]
async fn a_result_keeps_no_images_of_formats_that_the_model_does_not_take() {
    let image = |mime: &str| json!({"mime": mime, "data": GIF});
    let tool = tool_double(json!({"result": 1, "images": [image("image/gif"), image("image/png")]}));
    let model = json!({"vision": true, "refusedImages": ["image/gif"]});
    let result = result(json!([
        inject(&["a"]),
        with(node("a", "ai-agent", json!([[], []])), json!({"model": "m", "tools": ["t"]})),
        model_double("m", json!([{"toolCalls": [{"name": "t"}]}, "done"]), model),
        tool,
    ]))
    .await;
    assert_eq!(result["images"], json!([image("image/png")]));
    assert_eq!(
        result["note"],
        "Images left out: 1, because the model or a fallback model takes no image/gif."
    );
}

/// Its model reads texts only.
#[tokio::test(start_paused = true)]
async fn an_agent_core_gets_no_images() {
    let replies = json!([tool_call("t", json!({})), final_answer("done")]);
    let flow = json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &[]),
        model_double("m", replies, sees(true)),
        tool(1),
    ]);
    let result = result(flow).await;
    assert_eq!(result["images"], Value::Null);
    assert!(result["note"].as_str().unwrap().starts_with("Images left out: 1"), "{result}");
}
