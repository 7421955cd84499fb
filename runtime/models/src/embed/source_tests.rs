use super::{EmbedderFactory, embedder_sources};
use crate::build::ModelSettings;
use crate::recording::{Recording, block_on};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::id::NodeSummary;
use redflow_ports::{EmbedPurpose, NodeConfig};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The id of the embedder that a node has for a collection, or the error, and the secrets that were announced.
fn embedder(node: &Value, kept: &Value, env: &dyn Fn(&str) -> Option<String>) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let factory = EmbedderFactory::new(Arc::new(ModelSettings::default()), folder.path().to_owned());
    let sources = embedder_sources(Arc::new(factory));
    let summary =
        NodeSummary { id: "t".into(), type_name: "knowledge-base-tool".to_owned(), name: String::new() };
    let secrets = Mutex::new(Vec::new());
    let on_secret = |secret: &str| secrets.lock().unwrap().push(secret.to_owned());
    let props: &Message = node.as_object().unwrap();
    let source = sources(NodeConfig::new(&summary, props, env, &on_secret)).unwrap();
    let built = source(kept.as_object().unwrap());
    let id = built.map_or_else(|error| error.message, |embedder| embedder.info().id.clone());
    (id, secrets.into_inner().unwrap())
}

#[test]
fn a_node_replaces_what_its_collection_keeps() {
    let none = |_: &str| None;
    let id = |node: Value, kept: Value| embedder(&node, &kept, &none).0;
    let kept = json!({"embeddings": "openai", "embeddingModel": "big", "baseURL": "http://127.0.0.1:9/v1"});
    assert_eq!(id(json!({}), json!({})), "hash");
    assert_eq!(id(json!({}), json!({"embeddings": "hash"})), "hash");
    assert_eq!(id(json!({}), kept.clone()), "openai-compatible/127.0.0.1:9/v1/big");
    assert_eq!(
        id(json!({"embeddings": "auto", "embeddingModel": " "}), kept.clone()),
        "openai-compatible/127.0.0.1:9/v1/big"
    );
    assert_eq!(
        id(json!({"embeddingModel": "small"}), kept.clone()),
        "openai-compatible/127.0.0.1:9/v1/small"
    );
    assert_eq!(id(json!({"options": {"embeddings": "hash"}}), kept), "hash");
    assert_eq!(
        id(json!({"embeddings": "ollama", "embeddingModel": "m", "baseURL": ""}), json!({})),
        "ollama/m"
    );
    let missing = id(json!({}), json!({"embeddings": "minilm"}));
    assert!(missing.contains("redflow embeddings install"), "{missing}");
}

#[test]
fn keys_are_announced_and_used() {
    let env = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-env".to_owned());
    let openai = json!({"embeddings": "openai"});
    let (id, secrets) = embedder(&json!({}), &openai, &env);
    assert_eq!((id.as_str(), secrets), ("openai/text-embedding-3-small@512", vec!["sk-env".to_owned()]));
    let own = json!({"credentials": {"apiKey": "sk-own"}});
    let (_, secrets) = embedder(&own, &openai, &env);
    assert_eq!(secrets, ["sk-own", "sk-env"]);
    let (problem, _) = embedder(&json!({}), &openai, &|_| None);
    assert!(problem.contains("no key"), "{problem}");
}

/// The header with the key, as the embedder of a node sends it for a collection.
fn sent_key(node: &Value, kept: &Value) -> Option<String> {
    let recording = Recording::new([]);
    let shared =
        ModelSettings { transport: Some(Arc::<Recording>::clone(&recording)), ..ModelSettings::default() };
    let folder = tempfile::tempdir().unwrap();
    let factory = EmbedderFactory::new(Arc::new(shared), folder.path().to_owned());
    let sources = embedder_sources(Arc::new(factory));
    let summary =
        NodeSummary { id: "t".into(), type_name: "knowledge-base-tool".to_owned(), name: String::new() };
    let (props, env) = (node.as_object().unwrap(), |name: &str| {
        (name == "OPENAI_API_KEY").then(|| "sk-of-the-environment".to_owned())
    });
    let source = sources(NodeConfig::new(&summary, props, &env, &|_| ())).unwrap();
    let embedder = source(kept.as_object().unwrap()).unwrap();
    let _ = block_on(embedder.embed(&["hi".to_owned()], EmbedPurpose::Query));
    recording.requests()[0].header("authorization").map(str::to_owned)
}

/// The user who fills a collection chooses the address that it keeps.
#[test]
fn the_key_of_a_node_goes_only_where_the_node_says() {
    let own = json!({"credentials": {"apiKey": "sk-of-the-node"}});
    let kept = json!({"embeddings": "openai", "baseURL": "http://models.example/v1"});
    assert_eq!(sent_key(&own, &kept), None, "neither the key of the node nor that of the environment");
    let ollama = json!({"embeddings": "ollama", "baseURL": "http://models.example"});
    assert_eq!(sent_key(&own, &ollama), None);
    let named =
        json!({"credentials": {"apiKey": "sk-of-the-node"}, "options": {"baseURL": "http://own.example/v1"}});
    assert_eq!(sent_key(&named, &kept).as_deref(), Some("Bearer sk-of-the-node"));
    assert_eq!(sent_key(&own, &json!({"embeddings": "openai"})).as_deref(), Some("Bearer sk-of-the-node"));
    assert_eq!(
        sent_key(&json!({}), &json!({"embeddings": "openai"})).as_deref(),
        Some("Bearer sk-of-the-environment")
    );
}
