use super::{MAX_REQUEST_BYTES, MAX_TEXT_BYTES, next_batch};
use crate::ModelSettings;
use crate::embed::{EmbedderSettings, build_embedder};
use crate::price::Price;
use crate::recording::{Recording, Reply, RetryLog, block_on};
use crate::transport::TransportError;
use pretty_assertions::assert_eq;
use redflow_contract::code::ArchiveCode;
use redflow_contract::node::Embeddings;
use redflow_ports::{ArchiveError, EmbedPurpose, Embedded, Embedder};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::sync::Arc;

const KEY: &str = "sk-secret-key-123456";

fn settings(choice: Embeddings) -> EmbedderSettings {
    EmbedderSettings {
        choice,
        api_key: Some(SecretString::from(KEY)),
        dimensions: Some(2),
        ..EmbedderSettings::default()
    }
}

fn shared(recording: &Arc<Recording>, meter: &Arc<RetryLog>) -> ModelSettings {
    let price = Price { input: 2.0, ..Price::default() };
    ModelSettings {
        transport: Some(Arc::<Recording>::clone(recording)),
        prices: [("text-embedding-3-small".to_owned(), price)].into(),
        meter: Arc::<RetryLog>::clone(meter),
        ..ModelSettings::default()
    }
}

fn embedder(settings: &EmbedderSettings, recording: &Arc<Recording>) -> Arc<dyn Embedder> {
    build_embedder(settings, &shared(recording, &Arc::default()), &|_| None, &|_| ()).unwrap()
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply::new(status, &[("content-type", "application/json")], &body.to_string())
}

/// An answer with this many vectors, the last text first.
fn vectors(count: usize) -> Reply {
    let item = |index: usize| json!({"index": index, "embedding": [index + 1, 0]});
    let data: Vec<Value> = (0..count).rev().map(item).collect();
    reply(200, &json!({"data": data, "usage": {"prompt_tokens": count, "total_tokens": count}}))
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text {number}")).collect()
}

fn embed(recording: &Arc<Recording>, count: usize) -> Result<Embedded, ArchiveError> {
    let embedder = embedder(&settings(Embeddings::Openai), recording);
    block_on(embedder.embed(&texts(count), EmbedPurpose::Document))
}

#[test]
fn many_texts_take_several_requests_and_their_costs_are_added() {
    let recording = Recording::new([vectors(96), vectors(96), vectors(8)]);
    let embedded = embed(&recording, 200).unwrap();
    assert_eq!((embedded.vectors.len(), embedded.tokens), (200, 200));
    assert!((embedded.cost.unwrap() - 200.0 * 2.0 / 1e6).abs() < 1e-12);
    let sent: Vec<Value> =
        recording.requests().iter().map(|request| request.body["input"][0].clone()).collect();
    assert_eq!(sent, ["text 0", "text 96", "text 192"]);
    // No text, no request.
    let recording = Recording::new([]);
    assert_eq!(embed(&recording, 0).unwrap().vectors.len(), 0);
    assert_eq!(recording.requests().len(), 0);
}

#[test]
fn requests_are_bounded_by_bytes_and_texts_are_cut_between_characters() {
    let long = vec!["é".repeat(MAX_TEXT_BYTES); 70];
    let batch = next_batch(&long);
    assert!(batch.iter().all(|text| text.len() == MAX_TEXT_BYTES && text.ends_with('é')));
    assert_eq!(batch.len(), MAX_REQUEST_BYTES / MAX_TEXT_BYTES);
    let odd = vec![format!("a{}", "é".repeat(MAX_TEXT_BYTES))];
    assert_eq!(next_batch(&odd)[0].len(), MAX_TEXT_BYTES - 1);
    assert_eq!(next_batch(&[String::new()]), [" "]);
}

#[test]
fn passing_failures_are_retried_as_those_of_chat_models() {
    let busy = || Reply::new(429, &[("retry-after", "3")], "");
    let recording = Recording::new([busy(), reply(503, &json!({})), vectors(1)]);
    let meter = Arc::new(RetryLog::default());
    let shared = shared(&recording, &meter);
    let embedder = build_embedder(&settings(Embeddings::Openai), &shared, &|_| None, &|_| ()).unwrap();
    block_on(embedder.embed(&texts(1), EmbedPurpose::Query)).unwrap();
    assert_eq!(recording.waits()[0], 3_000);
    assert_eq!(*meter.0.lock().unwrap(), ["openai RATE_LIMIT", "openai PROVIDER_UNAVAILABLE"]);
    // Two retries, then the error.
    let recording = Recording::new(vec![busy(); 5]);
    let error = embed(&recording, 1).unwrap_err();
    assert_eq!((error.code, recording.requests().len()), (ArchiveCode::EmbeddingsFailed, 3));
    assert!(error.message.contains("asks for fewer requests (HTTP 429)"), "{error}");
    assert!(error.message.ends_with("(after 3 attempts)"), "{error}");
    // A refusal is final.
    let recording = Recording::new([reply(401, &json!({}))]);
    assert!(embed(&recording, 1).unwrap_err().message.contains("refused the key"));
    assert_eq!(recording.requests().len(), 1);
}

#[test]
fn somebody_who_searches_does_not_wait_for_ever() {
    let embedder = embedder(&settings(Embeddings::Openai), &Recording::new([Reply::Hang]));
    let error = block_on(embedder.embed(&texts(1), EmbedPurpose::Query)).unwrap_err();
    assert_eq!(error.message, "OpenAI's interface (api.openai.com) did not answer within 60000 ms");
}

/// Failures, and a part of what is said about each. None quotes the key or the words of the provider.
#[test]
fn failures_say_what_to_do_and_quote_nothing() {
    let error = |status: u16, code: &str| {
        let message = format!("the key {KEY} or the text `private words` is wrong");
        reply(status, &json!({"error": {"message": message, "type": "a_type", "code": code}}))
    };
    let html = Reply::new(200, &[("content-type", "text/html")], "<html>private words");
    let huge = Reply::new(200, &[], &" ".repeat(300_000));
    let rows = [
        (error(401, "invalid_api_key"), "refused the key"),
        (error(404, "model_not_found"), "does not know the model `text-embedding-3-small`"),
        (error(404, ""), "the request went to https://api.openai.com/v1/embeddings"),
        (error(400, "private words"), "check the model of the embeddings and `dimensions`"),
        (error(400, KEY), "refused the request (HTTP 400, a_type"),
        (error(400, "context_length_exceeded"), "a text is longer than"),
        (error(400, "content_filter"), "refused one of the texts"),
        (error(402, ""), "is used up"),
        (Reply::Error(TransportError::NotHttp), "could not be reached: what it sends is not HTTP"),
        (html, "it is a web page"),
        (huge, "has more than"),
        (vectors(2), "sent an invalid answer: it has not one vector for each text"),
        (reply(200, &json!({"data": [{"embedding": [1, 2, 3]}]})), "another number of dimensions"),
    ];
    for (reply, expected) in rows {
        let error = embed(&Recording::new(vec![reply; 3]), 1).unwrap_err();
        assert!(matches!(error.code, ArchiveCode::EmbeddingsFailed | ArchiveCode::TextRefused), "{error}");
        assert!(error.message.contains(expected), "{error} is not {expected}");
        assert!(!error.message.contains(KEY) && !error.message.contains("private"), "{error}");
    }
}

/// Whether another document may work: a refused text is not a refused key.
#[test]
fn a_refused_text_differs_from_other_refusals() {
    let error = |status: u16, code: &str| reply(status, &json!({"error": {"message": "", "code": code}}));
    let rows = [
        (error(400, ""), true),
        (error(400, "context_length_exceeded"), true),
        (error(400, "content_filter"), true),
        (error(413, ""), true),
        (error(422, ""), true),
        (error(400, "model_not_found"), false),
        (error(400, "insufficient_quota"), false),
        (error(401, ""), false),
        (error(402, ""), false),
        (error(403, ""), false),
        (error(404, ""), false),
        (error(429, ""), false),
        (error(500, ""), false),
        (error(503, ""), false),
        (Reply::Error(TransportError::NotHttp), false),
        (vectors(2), false),
        (Reply::Hang, false),
    ];
    for (number, (reply, expected)) in rows.into_iter().enumerate() {
        let error = embed(&Recording::new(vec![reply; 3]), 1).unwrap_err();
        assert_eq!(error.code == ArchiveCode::TextRefused, expected, "{number}: {error}");
    }
}

#[test]
fn the_length_of_vectors_is_learned_and_must_stay() {
    let settings = EmbedderSettings { dimensions: None, ..settings(Embeddings::Ollama) };
    let answer = |vector: &[f32]| reply(200, &json!({"embeddings": [vector]}));
    let recording = Recording::new([answer(&[1.0, 2.0, 2.0]), answer(&[1.0])]);
    let embedder = embedder(&settings, &recording);
    assert_eq!(embedder.info().dimensions, 0);
    let embedded = block_on(embedder.embed(&texts(1), EmbedPurpose::Query)).unwrap();
    assert_eq!((embedded.vectors[0].len(), embedded.tokens, embedded.cost), (3, 0, None));
    assert_eq!(embedder.info().dimensions, 3);
    let error = block_on(embedder.embed(&texts(1), EmbedPurpose::Query)).unwrap_err();
    assert!(error.message.contains("vectors of 1 dimensions, and 3 before"), "{error}");
}
