//! An image of a server that is not ours reaches a model that takes images.

use crate::kit::{Home, agent, json_output, server, stdio_server};
use crate::strict_openai::StrictOpenAi;
use serde_json::{Value, json};

/// Runs an agent whose model calls the image tool of the everything server. Gives the second request to the model.
async fn second_request(vision: bool) -> Value {
    let model = StrictOpenAi::start("mcp__all__get-tiny-image", json!({})).await;
    let servers = json!({"all": stdio_server(&[&server("everything")], json!({}))});
    let mut flow = agent("all", &[], "");
    let node = flow.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "model").unwrap();
    *node = json!({"id": "model", "type": "openai-model", "z": "tab", "x": 300, "y": 160, "wires": [], "api": "chat",
                   "model": "gpt-4.1", "apiKey": "key-of-the-mock", "baseURL": model.url(), "stream": false,
                   "capabilities": {"vision": vision}});
    let home = Home::new(servers, &flow);
    let command = home.redflow(&["run", "flow.json", "--json", "--quiet"]);
    let message = tokio::task::spawn_blocking(move || json_output(command)).await.unwrap();
    assert!(message["payload"]["response"].as_str().unwrap().starts_with("The tool says"), "{message:#}");
    let mut requests = model.requests();
    assert_eq!(requests.len(), 2, "{requests:#?}");
    requests.remove(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_sees_gets_the_image_after_the_result() {
    let request = second_request(true).await;
    let [.., result, images] = request["messages"].as_array().unwrap().as_slice() else {
        panic!("{request:#}")
    };
    assert_eq!((&result["role"], &images["role"]), (&json!("tool"), &json!("user")), "{request:#}");
    assert!(!result["content"].to_string().contains("iVBORw0KGgo"), "{result:#}");
    let shown = images["content"].to_string();
    assert!(shown.contains("data:image/png;base64,iVBORw0KGgo"), "{shown}");
    assert!(shown.contains("Picture 1 is from the result of `mcp__all__get-tiny-image`."), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_learns_that_an_image_was_left_out() {
    let request = second_request(false).await;
    let result = request["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(result["role"], "tool", "{request:#}");
    assert!(result["content"].as_str().unwrap().contains("Images left out: 1"), "{result:#}");
    assert!(!request.to_string().contains("iVBORw0KGgo"));
}
