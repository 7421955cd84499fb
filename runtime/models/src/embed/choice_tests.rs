use super::{EmbedderSettings, build_embedder};
use crate::ModelSettings;
use crate::recording::{RecordedRequest, Recording, block_on};
use pretty_assertions::assert_eq;
use redflow_contract::node::Embeddings;
use redflow_ports::EmbedPurpose;
use secrecy::SecretString;
use serde_json::json;
use std::sync::{Arc, Mutex};

const ENV: [(&str, &str); 2] =
    [("OPENAI_API_KEY", "sk-of-the-environment"), ("AZURE_OPENAI_API_KEY", "az-of-the-environment")];

fn env(name: &str) -> Option<String> {
    ENV.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
}

fn settings(choice: Embeddings) -> EmbedderSettings {
    EmbedderSettings { choice, ..EmbedderSettings::default() }
}

/// The id of the embedder of these settings, and its request.
fn request(settings: &EmbedderSettings) -> (String, RecordedRequest) {
    let recording = Recording::new([]);
    let shared =
        ModelSettings { transport: Some(Arc::<Recording>::clone(&recording)), ..ModelSettings::default() };
    let embedder = build_embedder(settings, &shared, &env, &|_| ()).unwrap();
    let _ = block_on(embedder.embed(&["hi".to_owned()], EmbedPurpose::Query));
    (embedder.info().id.clone(), recording.requests().remove(0))
}

fn error(settings: &EmbedderSettings, env: &dyn Fn(&str) -> Option<String>) -> String {
    match build_embedder(settings, &ModelSettings::default(), env, &|_| ()) {
        Ok(_) => panic!("built from {settings:?}"),
        Err(error) => error.message,
    }
}

#[test]
fn openai_is_asked_for_short_vectors() {
    let (id, request) = request(&settings(Embeddings::Openai));
    assert_eq!(
        (id.as_str(), request.url.as_str()),
        ("openai/text-embedding-3-small@512", "https://api.openai.com/v1/embeddings")
    );
    assert_eq!(request.header("authorization"), Some("Bearer sk-of-the-environment"));
    let expected = json!({"model": "text-embedding-3-small", "input": ["hi"], "encoding_format": "float", "dimensions": 512});
    assert_eq!(request.body, expected);
    let old =
        EmbedderSettings { model: Some("text-embedding-ada-002".to_owned()), ..settings(Embeddings::Openai) };
    let (id, request) = self::request(&old);
    assert_eq!((id.as_str(), request.body.get("dimensions")), ("openai/text-embedding-ada-002", None));
}

#[test]
fn compatible_servers_get_no_key_of_the_environment() {
    let at = |url: &str| EmbedderSettings {
        base_url: Some(url.to_owned()),
        model: Some("bge-m3".to_owned()),
        ..settings(Embeddings::Auto)
    };
    let (id, remote) = request(&at("http://models.example/v1/embeddings/"));
    assert_eq!(
        (id.as_str(), remote.url.as_str()),
        ("openai-compatible/models.example:80/v1/bge-m3", "http://models.example/v1/embeddings")
    );
    assert_eq!(remote.header("authorization"), None);
    let (id, local) = request(&at("http://127.0.0.1:8080/v1"));
    assert_eq!(id, "openai-compatible/127.0.0.1:8080/v1/bge-m3");
    assert_eq!(local.header("authorization"), Some("Bearer sk-of-the-environment"));
    let own =
        EmbedderSettings { api_key: Some(SecretString::from(" own ")), ..at("http://models.example/v1") };
    assert_eq!(request(&own).1.header("authorization"), Some("Bearer own"));
}

#[test]
fn azure_has_its_path_and_header() {
    let azure = EmbedderSettings {
        base_url: Some("https://x.openai.azure.com/openai/".to_owned()),
        deployment: Some("my embeddings".to_owned()),
        ..settings(Embeddings::Azure)
    };
    let (id, dated) = request(&azure);
    assert_eq!(id, "azure/x.openai.azure.com/my embeddings");
    assert_eq!(
        dated.url,
        "https://x.openai.azure.com/openai/deployments/my%20embeddings/embeddings?api-version=2024-12-01-preview"
    );
    assert_eq!(dated.header("api-key"), Some("az-of-the-environment"));
    assert_eq!(dated.body, json!({"input": ["hi"], "encoding_format": "float"}));
    let newer = EmbedderSettings {
        api_version: Some("v1".to_owned()),
        model: Some("text-embedding-3-large".to_owned()),
        ..azure
    };
    let (id, request) = request(&newer);
    assert_eq!(
        (id.as_str(), request.url.as_str()),
        ("azure/x.openai.azure.com/my embeddings@512", "https://x.openai.azure.com/openai/v1/embeddings")
    );
    assert_eq!(
        (request.body["model"].as_str(), request.body["dimensions"].as_u64()),
        (Some("my embeddings"), Some(512))
    );
}

#[test]
fn ollama_has_its_own_api() {
    let (id, request) = request(&settings(Embeddings::Ollama));
    assert_eq!(
        (id.as_str(), request.url.as_str()),
        ("ollama/nomic-embed-text", "http://127.0.0.1:11434/api/embed")
    );
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.body, json!({"model": "nomic-embed-text", "input": ["hi"]}));
}

/// Two servers can have different models of the same name, so they must not share vectors.
#[test]
fn the_id_names_the_server_without_its_query() {
    let id = |choice: Embeddings, url: &str| {
        let settings = EmbedderSettings {
            base_url: Some(url.to_owned()),
            model: Some("m".to_owned()),
            deployment: Some("m".to_owned()),
            ..settings(choice)
        };
        request(&settings).0
    };
    let rows = [
        (Embeddings::Openai, "https://API.openai.com/v1/", "openai/m"),
        (Embeddings::Openai, "https://a.example/v1/?tenant=7", "openai-compatible/a.example/v1/m"),
        (Embeddings::Openai, "https://a.example", "openai-compatible/a.example/m"),
        (Embeddings::Openai, "http://a.example", "openai-compatible/a.example:80/m"),
        (Embeddings::Openai, "http://[::1]:9/v1", "openai-compatible/[::1]:9/v1/m"),
        (Embeddings::Ollama, "http://localhost:11434/v1", "ollama/m"),
        (Embeddings::Ollama, "http://127.0.0.1:11435", "ollama/127.0.0.1:11435/m"),
        (Embeddings::Ollama, "http://gpu.example:11434/api", "ollama/gpu.example:11434/m"),
        (Embeddings::Azure, "https://y.openai.azure.com", "azure/y.openai.azure.com/m"),
    ];
    for (choice, url, expected) in rows {
        assert_eq!(id(choice, url), expected, "{url}");
    }
}

#[test]
fn auto_takes_the_best_that_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let auto = EmbedderSettings { models_dir: Some(dir.path().to_owned()), ..settings(Embeddings::Auto) };
    assert_eq!(auto.resolve(&env), Embeddings::Openai);
    assert_eq!(auto.resolve(&|_| Some(" ".to_owned())), Embeddings::Hash);
    let own = EmbedderSettings { api_key: Some(SecretString::from("k")), ..auto.clone() };
    assert_eq!(own.resolve(&|_| None), Embeddings::Openai);
    let built = build_embedder(&auto, &ModelSettings::default(), &|_| None, &|_| ()).unwrap();
    assert_eq!((built.info().id.as_str(), built.info().finds_meaning), ("hash", false));
    std::fs::create_dir(dir.path().join("minilm")).unwrap();
    for file in ["model.safetensors", "tokenizer.json"] {
        std::fs::write(dir.path().join("minilm").join(file), "{}").unwrap();
    }
    assert_eq!(auto.resolve(&|_| None), Embeddings::Minilm);
    assert!(error(&auto, &|_| None).contains("`model.safetensors` is not that of all-MiniLM-L6-v2"));
}

#[test]
fn every_choice_has_a_name() {
    for choice in Embeddings::ALL {
        assert_eq!(Embeddings::parse(choice.as_str()), Some(choice));
    }
    assert_eq!(Embeddings::parse("Hash"), None);
}

#[test]
fn the_key_is_told_so_that_it_is_never_shown() {
    let told = Mutex::new(Vec::new());
    let tell = |secret: &str| told.lock().unwrap().push(secret.to_owned());
    build_embedder(&settings(Embeddings::Openai), &ModelSettings::default(), &env, &tell).unwrap();
    let own = EmbedderSettings { api_key: Some(SecretString::from("own")), ..settings(Embeddings::Ollama) };
    build_embedder(&own, &ModelSettings::default(), &env, &tell).unwrap();
    assert_eq!(*told.lock().unwrap(), ["sk-of-the-environment", "own"]);
    assert!(!format!("{own:?}").contains("own"));
}

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let openai = settings(Embeddings::Openai);
    let azure = settings(Embeddings::Azure);
    let at = |url: &str| EmbedderSettings { base_url: Some(url.to_owned()), ..openai.clone() };
    let rows = [
        (openai.clone(), "set the environment variable OPENAI_API_KEY"),
        (at("http://user:hidden@host/v1"), "must not hold a user or a password"),
        (at("http://host/v1?api_key=hidden"), "must not hold a key"),
        (at("ftp://host"), "must begin with http"),
        (at(&format!("http://host/{}", "p".repeat(1_000))), "`baseURL` has more than 1000 bytes"),
        (EmbedderSettings { dimensions: Some(0), ..at("http://host") }, "from 1 to 4096"),
        (EmbedderSettings { dimensions: Some(4097), ..at("http://host") }, "from 1 to 4096"),
        (EmbedderSettings { model: Some("a\nb".to_owned()), ..at("http://host") }, "not the name of a model"),
        (
            EmbedderSettings { api_key: Some(SecretString::from("hidden\u{1}")), ..at("http://host") },
            "characters that no key has",
        ),
        (azure.clone(), "need its address"),
        (EmbedderSettings { base_url: Some("http://host".to_owned()), ..azure }, "no `deployment`"),
        (settings(Embeddings::Minilm), "no folder for models"),
        (
            EmbedderSettings { models_dir: Some("/does/not/exist".into()), ..settings(Embeddings::Minilm) },
            "MiniLM is not installed",
        ),
    ];
    for (settings, expected) in rows {
        let error = error(&settings, &|_| None);
        assert!(error.contains(expected), "{error} is not {expected}");
        assert!(!error.contains("hidden"), "{error}");
    }
}
