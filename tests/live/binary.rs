//! The real binary with every provider.

use crate::aimock::Aimock;
use crate::conversations::{FIRST, final_answer, fixture, fixtures};
use crate::provider_api::{KEY, ProviderApi};
use crate::world::{actions, flow, with};
use pretty_assertions::assert_eq;
use redflow_testkit::redflow_binary;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn run(model: &Value, key: Option<&str>) -> Output {
    run_flow(&flow(FIRST, model, None), key)
}

pub(crate) fn run_flow(flow: &Value, key: Option<&str>) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("flow.json"), flow.to_string()).unwrap();
    let mut command = Command::new(redflow_binary().unwrap());
    command.args(["run", "flow.json", "--ephemeral", "--json"]).current_dir(folder.path());
    command.env("REDFLOW_DATA", folder.path().join("data")).env("NO_COLOR", "1");
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "GEMINI_API_KEY"] {
        command.env_remove(name);
        if let Some(key) = key {
            command.env(name, key);
        }
    }
    command.output().unwrap()
}

#[test]
fn runs_with_every_provider() {
    let mock = Aimock::start(&fixtures());
    for api in ProviderApi::ALL {
        for stream in [false, true] {
            let output = run(&with(api.model(&mock.address()), json!({"stream": stream})), Some(KEY));
            let (code, stderr) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
            assert_eq!(code, Some(0), "{}: {stderr}", api.name());
            let message: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(message["payload"], "4", "{message:#}");
            let expected = ["model_response", "tool_request", "tool_response", "model_response", "completed"];
            assert_eq!(actions(&message), expected);
            let requests = mock.requests();
            let (header, key) = api.key_header();
            let sent: Vec<_> = requests.iter().map(|request| request.header(header)).collect();
            assert_eq!(sent, [Some(key.as_str()); 2]);
            assert!(!stderr.contains(KEY) && !String::from_utf8_lossy(&output.stdout).contains(KEY));
        }
    }
}

#[test]
fn a_refusal_of_the_provider_fails_the_run() {
    let mock = Aimock::start(&[fixture("something else", final_answer("never"))]);
    let model = with(ProviderApi::Anthropic.model(&mock.address()), json!({"maxRetries": 0}));
    let output = run(&model, Some(KEY));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(message["error"]["code"], "PROVIDER_UNAVAILABLE");
    mock.requests();
    // Without a key the runtime sends no request to OpenAI.
    let output = run(&json!({"type": "openai-model"}), None);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("OPENAI_API_KEY"), "{output:?}");
}

/// Gives the node `model` of an example the address of the mock.
pub(crate) fn set_address(flow: &mut Value, address: &str) {
    let model = flow.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "model").unwrap();
    let here = match model["type"].as_str().unwrap() {
        "openai-model" => json!({"baseURL": format!("{address}/v1")}),
        "model.azure.openai" => json!({"endpoint": address}),
        _ => json!({"baseURL": address}),
    };
    *model = with(model.clone(), here);
}

/// The examples, only with another address.
#[test]
fn every_live_example_answers() {
    let mock = Aimock::start(&fixtures());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let names =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // Those of agents for one thing have other answers, see `presets.rs`.
    let is_sum = |name: &String| name.starts_with("live-") && !name.starts_with("live-ai-");
    let live: Vec<String> = names.filter(is_sum).collect();
    assert!(live.len() >= 6, "{live:?}");
    for name in live {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let mut flow: Value = serde_json::from_str(&text).unwrap();
        set_address(&mut flow, &mock.address());
        let output = run_flow(&flow, Some(KEY));
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let message: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(message["payload"], "4", "{name}: {message:#}");
        mock.requests();
    }
}
