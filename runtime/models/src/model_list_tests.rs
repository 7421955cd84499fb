use super::{MAX_GOOGLE_PAGES, MAX_LIST_BYTES, MAX_NAME_CHARS};
use crate::providers::OPENAI_MODEL;
use crate::recording::{Node, Recording, Reply, block_on};
use crate::{ModelSettings, transport::TransportError};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::model_test::{MAX_LISTED_MODELS, ModelList, ModelServer};
use redflow_contract::run_error::Failure;
use serde_json::{Value, json};
use std::sync::Arc;

const LOCAL: &str = "http://127.0.0.1:8080/v1";

/// Lists the models of a node whose server gives these answers, with the addresses that were asked.
fn list(
    type_name: &'static str,
    props: Value,
    replies: Vec<Reply>,
) -> (Result<ModelList, Failure>, Vec<String>) {
    let recording = Recording::with_lists(replies);
    let settings =
        ModelSettings { transport: Some(Arc::<Recording>::clone(&recording)), ..ModelSettings::default() };
    let model = Node::new(type_name, props).build(settings).unwrap();
    let list = block_on(model.list_models());
    (list, recording.list_addresses())
}

fn json_reply(body: &Value) -> Reply {
    Reply::new(200, &[("content-type", "application/json")], &body.to_string())
}

/// A server with OpenAI's API.
fn compatible(replies: &[Value]) -> (ModelList, Vec<String>) {
    let (list, asked) =
        list("openai-model", json!({"baseURL": LOCAL}), replies.iter().map(json_reply).collect());
    (list.unwrap(), asked)
}

/// A list as a row: its server, its default model, and its models with their windows.
type Row<'a> = (Option<ModelServer>, Option<&'a str>, Vec<(&'a str, Option<u32>)>);

fn row_of(list: &ModelList) -> Row<'_> {
    let models = list.models.iter().map(|model| (model.id.as_str(), model.context_window));
    (list.server, list.default_model.as_deref(), models.collect())
}

#[test]
fn recognises_llama_cpp_and_takes_the_window_of_a_slot() {
    // As the server of October 2026 answers.
    let model = json!({"id": "/m/tiny.gguf", "object": "model", "created": 1, "owned_by": "llamacpp",
        "meta": {"n_ctx": 4096, "n_ctx_train": 8192, "n_params": 134515008}});
    let props = json!({"default_generation_settings": {"n_ctx": 2048}, "total_slots": 2});
    let (list, asked) = compatible(&[json!({"data": [model]}), props]);
    let expected = (Some(ModelServer::LlamaCpp), Some("/m/tiny.gguf"), vec![("/m/tiny.gguf", Some(2048))]);
    assert_eq!(row_of(&list), expected);
    assert_eq!(asked, [format!("{LOCAL}/models"), "http://127.0.0.1:8080/props".to_owned()]);
    // Without `/props`, and by its header alone.
    let bare = Reply::new(200, &[("server", "llama.cpp")], r#"{"data":[{"id":"a","meta":{"n_ctx":4096}}]}"#);
    let (list, _) =
        self::list("openai-model", json!({"baseURL": LOCAL}), vec![bare, Reply::new(404, &[], "")]);
    assert_eq!(row_of(&list.unwrap()), (Some(ModelServer::LlamaCpp), Some("a"), vec![("a", Some(4096))]));
}

#[test]
fn recognises_vllm_lm_studio_and_ollama() {
    let models = json!({"data": [{"id": "base", "owned_by": "vllm", "max_model_len": 32768}, {"id": "lora", "owned_by": "vllm"}]});
    let (list, asked) = compatible(&[models]);
    let all = vec![("base", Some(32_768)), ("lora", None)];
    assert_eq!((row_of(&list), asked.len()), ((Some(ModelServer::Vllm), Some("base"), all), 1));

    let models =
        json!({"data": [{"id": "embed", "owned_by": "organization_owner"}, {"id": "a"}, {"id": "b"}]});
    let own = json!({"data": [
        {"id": "embed", "type": "embeddings", "state": "loaded", "max_context_length": 2048},
        {"id": "a", "type": "llm", "state": "not-loaded", "max_context_length": 131072},
        {"id": "b", "type": "llm", "state": "loaded", "max_context_length": 131072, "loaded_context_length": 4096},
    ]});
    let (list, asked) = compatible(&[models, own]);
    let all = vec![("embed", Some(2048)), ("a", Some(131_072)), ("b", Some(4096))];
    assert_eq!(row_of(&list), (Some(ModelServer::LmStudio), Some("b"), all));
    assert_eq!(asked[1], "http://127.0.0.1:8080/api/v0/models");

    let models =
        json!({"data": [{"id": "qwen3:8b", "owned_by": "library"}, {"id": "x:1b", "owned_by": "me"}]});
    let loaded = json!({"models": [{"name": "x:1b", "context_length": 8192}]});
    let (list, asked) = compatible(&[models, loaded.clone()]);
    let all = vec![("qwen3:8b", None), ("x:1b", Some(8192))];
    assert_eq!(row_of(&list), (Some(ModelServer::Ollama), Some("x:1b"), all.clone()));
    assert_eq!(asked[1], "http://127.0.0.1:8080/api/ps");
    let tags = json!({"models": [{"name": "qwen3:8b"}, {"name": "x:1b"}]});
    let (list, asked) = self::list("ollama-model", json!({}), vec![json_reply(&tags), json_reply(&loaded)]);
    assert_eq!(row_of(&list.unwrap()), (Some(ModelServer::Ollama), Some("x:1b"), all));
    assert_eq!(asked[0], "http://127.0.0.1:11434/api/tags");
}

#[test]
fn lists_the_models_of_the_providers() {
    let models = json_reply(&json!({"data": [{"id": "gpt-a", "owned_by": "openai"}, {"id": "gpt-b"}]}));
    let (list, asked) = self::list("openai-model", json!({}), vec![models]);
    let all = vec![("gpt-a", None), ("gpt-b", None)];
    assert_eq!(row_of(&list.unwrap()), (Some(ModelServer::Openai), None, all));
    assert_eq!(asked, ["https://api.openai.com/v1/models"]);
    let models = json_reply(&json!({"data": [{"id": "claude-x", "max_input_tokens": 200000}]}));
    let (list, asked) = self::list("anthropic-model", json!({}), vec![models]);
    let all = vec![("claude-x", Some(200_000))];
    assert_eq!(row_of(&list.unwrap()), (Some(ModelServer::Anthropic), Some("claude-x"), all));
    assert_eq!(asked, ["https://api.anthropic.com/v1/models"]);
    let all = ["generateContent", "countTokens"];
    let pages = [
        json!({"models": [
            {"name": "models/gemini-a", "inputTokenLimit": 1048576, "supportedGenerationMethods": all},
            {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/odd", "supportedGenerationMethods": 5},
            5,
        ], "nextPageToken": "a b&c"}),
        json!({"models": [{"name": "gemini-b", "supportedGenerationMethods": all}]}),
    ];
    let (list, asked) = self::list("google-model", json!({}), pages.iter().map(json_reply).collect());
    let all = vec![("gemini-a", Some(1_048_576)), ("gemini-b", None)];
    assert_eq!(row_of(&list.unwrap()), (Some(ModelServer::Google), None, all));
    let address = "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000";
    assert_eq!(asked, [address.to_owned(), format!("{address}&pageToken=a+b%26c")]);
    let azure = json!({"endpoint": "https://x.openai.azure.com", "deployment": "d"});
    let (list, asked) = self::list("model.azure.openai", azure, vec![]);
    assert!(list.unwrap_err().message.contains("Azure lists no deployments"));
    assert_eq!(asked, [] as [String; 0]);
}

#[test]
fn an_unknown_server_is_named_by_no_product() {
    let (list, asked) =
        compatible(&[json!({"data": [{"id": "only", "owned_by": "someone", "context_window": 1000}]})]);
    assert_eq!((row_of(&list), asked.len()), ((None, Some("only"), vec![("only", Some(1000))]), 1));
    let (list, _) = compatible(&[json!({"data": [{"id": "a"}, {"id": "b"}]})]);
    assert_eq!(list.default_model, None);
    for nonsense in
        [json!([]), json!({"data": 5}), json!({"data": [{"id": 5}, {}, {"id": ""}, {"id": "a\u{7}"}]})]
    {
        let (list, _) = compatible(&[nonsense]);
        assert_eq!(list, ModelList::default());
    }
}

/// A server that always has one more page.
#[test]
fn the_pages_of_a_list_are_bounded() {
    let page = json!({"models": [{"name": "models/a", "supportedGenerationMethods": ["generateContent"]}],
                      "nextPageToken": "more"});
    let replies = (0..MAX_GOOGLE_PAGES + 5).map(|_| json_reply(&page)).collect();
    let (list, asked) = list("google-model", json!({}), replies);
    assert_eq!((list.unwrap().models.len(), asked.len()), (MAX_GOOGLE_PAGES, MAX_GOOGLE_PAGES));
    // A list without models is no error.
    let (list, asked) =
        self::list("google-model", json!({"baseURL": LOCAL}), vec![json_reply(&json!({"models": {}}))]);
    assert_eq!((list.unwrap().models.len(), asked), (0, vec![format!("{LOCAL}/models?pageSize=1000")]));
}

#[test]
fn a_list_is_bounded() {
    let long = "x".repeat(MAX_NAME_CHARS + 1);
    let mut models = vec![json!({ "id": long })];
    models.extend((0..MAX_LISTED_MODELS + 5).map(|number| json!({"id": format!("m{number}")})));
    let (list, _) = compatible(&[json!({ "data": models })]);
    assert_eq!((list.models.len(), list.models[0].id.as_str()), (MAX_LISTED_MODELS, "m0"));
    let large = Reply::new(200, &[], &" ".repeat(MAX_LIST_BYTES + 1));
    for (reply, code, words) in [
        (large, RunErrorCode::ModelError, "has more than"),
        (Reply::Hang, RunErrorCode::Timeout, "did not answer within"),
        (Reply::Error(TransportError::Refused), RunErrorCode::ProviderUnavailable, "nothing listens there"),
        (Reply::new(404, &[], ""), RunErrorCode::ModelError, "lists no models at this address"),
        (Reply::new(401, &[], ""), RunErrorCode::InvalidCredentials, "refused the key"),
        (Reply::new(200, &[], "<html>"), RunErrorCode::ModelError, "is not JSON"),
    ] {
        let (list, _) = self::list("openai-model", json!({"baseURL": LOCAL}), vec![reply]);
        let failure = list.unwrap_err();
        assert_eq!(failure.code, code, "{failure:?}");
        assert!(failure.message.contains(words), "{failure:?}");
    }
}

#[test]
fn a_found_model_that_the_server_no_longer_has_is_looked_for_again() {
    let models = |name: &str| json_reply(&json!({"data": [{"id": name, "owned_by": "vllm"}]}));
    let recording = Recording::with_lists([models("first"), models("second")]);
    recording.script.lock().unwrap().push_back(Reply::new(404, &[], "{}"));
    let settings =
        ModelSettings { transport: Some(Arc::<Recording>::clone(&recording)), ..ModelSettings::default() };
    let model = Node::new("openai-model", json!({"baseURL": LOCAL})).build(settings).unwrap();
    let transcript = redflow_contract::transcript::Transcript::default();
    let call = || block_on(model.call(redflow_ports::ModelRequest::for_text(&transcript)));
    assert_eq!(call().unwrap_err().code, RunErrorCode::ModelNotFound);
    call().unwrap();
    let asked: Vec<Value> =
        recording.requests().into_iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(asked, [json!("first"), json!("second")]);
}

#[test]
fn a_node_without_a_model_uses_the_one_of_the_server_and_asks_once() {
    let models = || json_reply(&json!({"data": [{"id": "tiny", "owned_by": "vllm"}]}));
    let call = |props: Value, replies: Vec<Reply>| {
        let recording = Recording::with_lists(replies);
        let settings = ModelSettings {
            transport: Some(Arc::<Recording>::clone(&recording)),
            ..ModelSettings::default()
        };
        let model = Node::new("openai-model", props).build(settings).unwrap();
        let transcript = redflow_contract::transcript::Transcript::default();
        for _ in 0..2 {
            let _ = block_on(model.call(redflow_ports::ModelRequest::for_text(&transcript)));
        }
        let models = recording.requests().into_iter().map(|request| request.body["model"].clone());
        (models.collect::<Vec<_>>(), recording.list_addresses().len())
    };
    assert_eq!(call(json!({"baseURL": LOCAL}), vec![models()]), (vec![json!("tiny"); 2], 1));
    // The node names one, or the server has the default model.
    assert_eq!(call(json!({"baseURL": LOCAL, "model": "m"}), vec![]), (vec![json!("m"); 2], 0));
    let both = json_reply(&json!({"data": [{"id": "tiny", "owned_by": "vllm"}, {"id": OPENAI_MODEL}]}));
    assert_eq!(call(json!({"baseURL": LOCAL}), vec![both]), (vec![json!(OPENAI_MODEL); 2], 1));
    // A server without a list gets the default name, as before. One that is offline is asked again.
    let none = Reply::new(404, &[], "");
    assert_eq!(call(json!({"baseURL": LOCAL}), vec![none]), (vec![json!(OPENAI_MODEL); 2], 1));
    let offline = Reply::Error(TransportError::Refused);
    let (names, asked) = call(json!({"baseURL": LOCAL}), vec![offline, models()]);
    assert_eq!((names, asked), (vec![json!(OPENAI_MODEL), json!("tiny")], 2));
}
