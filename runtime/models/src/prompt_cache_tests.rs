//! Whether requests ask for the provider's cache.

use crate::recording::{Node, reply};
use crate::samples;
use pretty_assertions::assert_eq;
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

/// The digest of the agent of [`Node`] and the session `flow:ada`.
const KEY: &str = "dc8aa6bbb578e1db98b72e3653d4be5c3a7b27a4306b724ca36e1e3b83e7a630";

/// What a request says about the cache.
fn sent(type_name: &'static str, props: &Value, has_tools: bool, session: Option<&'static str>) -> Value {
    let tools = if has_tools { samples::two_tools() } else { Vec::new() };
    let mut node = Node::new(type_name, props.clone());
    (node.tools, node.session) = (tools, session);
    let body = node.request_for(&reply(ToolChoice::Auto)).body;
    let names = ["cache_control", "prompt_cache_key", "prompt_cache_retention"];
    names.into_iter().filter_map(|name| Some((name.to_owned(), body.get(name)?.clone()))).collect()
}

#[test]
fn requests_to_anthropic_ask_for_the_cache() {
    let control = |ttl: &str| json!({"cache_control": {"type": "ephemeral", "ttl": ttl}});
    let gateway = json!({"baseURL": "https://gateway.example"});
    let with = |props: &Value, cache: &str| {
        let mut props = props.clone();
        props["promptCache"] = json!(cache);
        props
    };
    let own = json!({});
    for (props, has_tools, expected) in [
        (own.clone(), true, control("5m")),
        (own.clone(), false, json!({})),
        (with(&own, "auto"), true, control("5m")),
        (with(&own, "auto"), false, json!({})),
        (with(&own, "5m"), false, control("5m")),
        (with(&own, "1h"), false, control("1h")),
        (with(&own, "1h"), true, control("1h")),
        (with(&own, "off"), true, json!({})),
        // A gateway may refuse what it does not know.
        (gateway.clone(), true, json!({})),
        (with(&gateway, "auto"), true, json!({})),
        (with(&gateway, "5m"), true, control("5m")),
    ] {
        for session in [None, Some("flow:ada")] {
            assert_eq!(sent("anthropic-model", &props, has_tools, session), expected, "{props}");
        }
    }
}

#[test]
fn requests_to_openai_have_the_key_of_the_agent_and_the_session() {
    let key = json!({"prompt_cache_key": KEY});
    let day = json!({"prompt_cache_key": KEY, "prompt_cache_retention": "24h"});
    let local = "http://127.0.0.1:8000/v1";
    for api in ["chat", "responses"] {
        for (props, has_tools, expected) in [
            (json!({}), true, &key),
            (json!({}), false, &json!({})),
            (json!({"promptCache": "5m"}), false, &key),
            (json!({"promptCache": "1h"}), false, &day),
            (json!({"promptCache": "off"}), true, &json!({})),
            (json!({"baseURL": local}), true, &json!({})),
            (json!({"baseURL": local, "promptCache": "auto"}), true, &json!({})),
            (json!({"baseURL": local, "promptCache": "5m"}), true, &key),
        ] {
            let mut props = props;
            props["api"] = json!(api);
            assert_eq!(sent("openai-model", &props, has_tools, Some("flow:ada")), *expected, "{props}");
        }
        // Outside a run there is no key.
        let props = json!({"api": api, "promptCache": "1h"});
        let expected = json!({"prompt_cache_retention": "24h"});
        assert_eq!(sent("openai-model", &props, true, None), expected);
    }
}

#[test]
fn requests_to_others_do_not() {
    let azure = json!({"endpoint": "https://mine.openai.azure.com", "deployment": "prod"});
    for (type_name, props) in [("model.azure.openai", azure), ("ollama-model", json!({}))] {
        assert_eq!(sent(type_name, &props, true, Some("flow:ada")), json!({}));
    }
}
