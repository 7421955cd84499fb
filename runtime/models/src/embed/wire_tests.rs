use super::{Answer, EmbedWire, MAX_TEXTS, max_answer_bytes};
use crate::wire::WireError;
use pretty_assertions::assert_eq;
use proptest::prelude::{any, prop, prop_assert, proptest};
use redflow_contract::archive::MAX_DIMENSIONS;
use serde_json::{Value, json};

fn decode(wire: EmbedWire, body: &Value, texts: usize) -> Result<Answer, WireError> {
    wire.decode(body.to_string().as_bytes(), texts, None)
}

#[test]
fn requests_have_the_documented_form() {
    let body = |wire: EmbedWire, model, dimensions| {
        serde_json::from_slice::<Value>(&wire.encode(model, &["a", "b\n"], dimensions).unwrap()).unwrap()
    };
    assert_eq!(
        body(EmbedWire::Openai, Some("text-embedding-3-small"), Some(512)),
        json!({"model": "text-embedding-3-small", "input": ["a", "b\n"], "encoding_format": "float", "dimensions": 512})
    );
    assert_eq!(
        body(EmbedWire::Openai, None, None),
        json!({"input": ["a", "b\n"], "encoding_format": "float"})
    );
    assert_eq!(
        body(EmbedWire::Ollama, Some("nomic-embed-text"), None),
        json!({"model": "nomic-embed-text", "input": ["a", "b\n"]})
    );
}

#[test]
fn answers_are_read_in_the_order_of_the_texts() {
    let body = json!({
        "object": "list", "model": "text-embedding-3-small",
        "data": [
            {"object": "embedding", "index": 1, "embedding": [0, 2.5]},
            {"object": "embedding", "index": 0, "embedding": [3e0, -4]},
        ],
        "usage": {"prompt_tokens": 8, "total_tokens": 9},
    });
    let expected = Answer { vectors: vec![vec![0.6, -0.8], vec![0.0, 1.0]], tokens: Some(8) };
    assert_eq!(decode(EmbedWire::Openai, &body, 2).unwrap(), expected);
    // Some servers number nothing, or count only the total.
    let body = json!({"data": [{"embedding": [1]}, {"embedding": [-2]}], "usage": {"total_tokens": 3}});
    let expected = Answer { vectors: vec![vec![1.0], vec![-1.0]], tokens: Some(3) };
    assert_eq!(decode(EmbedWire::Openai, &body, 2).unwrap(), expected);
    let body = json!({"model": "all-minilm", "embeddings": [[0.0, 1.0], [2.0, 0.0]],
        "total_duration": 14143917, "load_duration": 1019500, "prompt_eval_count": 8});
    let expected = Answer { vectors: vec![vec![0.0, 1.0], vec![1.0, 0.0]], tokens: Some(8) };
    assert_eq!(decode(EmbedWire::Ollama, &body, 2).unwrap(), expected);
    let body = json!({"embeddings": [[1.0]], "prompt_eval_count": "many"});
    assert_eq!(decode(EmbedWire::Ollama, &body, 1).unwrap().tokens, None);
}

/// Answers of a hostile or broken server for two texts, and what is said about each.
#[test]
fn hostile_answers_are_refused() {
    let item = |index: Value, embedding: Value| json!({"index": index, "embedding": embedding});
    let data = |items: Vec<Value>| json!({"data": items}).to_string();
    let two = |embedding: Value| data(vec![item(json!(0), json!([1, 0])), item(json!(1), embedding)]);
    let rows = [
        ("[]".to_owned(), "not a JSON object"),
        (String::new(), "not a JSON object"),
        ("{\"data\":".to_owned(), "documented form"),
        ("{}".to_owned(), "one vector for each text"),
        (data(vec![item(json!(0), json!([1]))]), "one vector for each text"),
        (data(vec![item(json!(0), json!([1])); 3]), "one vector for each text"),
        (data(vec![item(json!(0), json!([1])); 100_000]), "one vector for each text"),
        (data(vec![item(json!(0), json!([1])); 2]), "not numbered"),
        (data(vec![item(json!(1), json!([1])), item(json!(2), json!([1]))]), "not numbered"),
        (data(vec![item(json!(0), json!([1])), item(Value::Null, json!([1]))]), "not numbered"),
        (data(vec![item(json!(0), json!([1])), item(json!(u64::MAX), json!([1]))]), "not numbered"),
        (data(vec![item(json!(0), json!([1])), item(json!(-1), json!([1]))]), "documented form"),
        (two(json!([1])), "different numbers of dimensions"),
        (two(json!([])), "different numbers of dimensions"),
        (two(json!([0, 0])), "only zeros"),
        (two(json!([1, 1e39])), "documented form"),
        (two(json!([1, "NaN"])), "documented form"),
        (two(json!([1, null])), "documented form"),
        (two(json!("AACAPwAAAAA=")), "documented form"),
        (data(vec![item(json!(0), json!([])), item(json!(1), json!([]))]), "only zeros"),
        (
            data((0..2).map(|i| item(json!(i), json!(vec![1; MAX_DIMENSIONS + 1]))).collect()),
            "more than 4096",
        ),
        (data((0..2).map(|i| item(json!(i), json!(vec![1; 90_000]))).collect()), "more than 4096"),
        (format!("{{\"data\":{}1", "[".repeat(100_000)), "documented form"),
        (two(json!([1, 0])).replace("[1,0]", "[1,1e999]"), "documented form"),
    ];
    for (body, expected) in rows {
        match EmbedWire::Openai.decode(body.as_bytes(), 2, None) {
            Err(WireError::Malformed(why)) => assert!(why.contains(expected), "{why} is not {expected}"),
            other => panic!("{other:?} for {}", &body[..body.len().min(200)]),
        }
    }
    let body = two(json!([0, 1]));
    assert!(EmbedWire::Openai.decode(body.as_bytes(), 2, Some(2)).is_ok());
    assert!(EmbedWire::Openai.decode(body.as_bytes(), 2, Some(512)).is_err());
    for body in ["{\"embeddings\":[[1]]}", "{\"embeddings\":[[1],[1,2]]}", "{\"embeddings\":{}}"] {
        assert!(EmbedWire::Ollama.decode(body.as_bytes(), 2, None).is_err(), "{body}");
    }
}

#[test]
fn an_error_with_a_status_of_success_is_an_error() {
    let body = json!({"error": {"message": "no", "type": "invalid_request_error"}});
    for wire in [EmbedWire::Openai, EmbedWire::Ollama] {
        let Err(WireError::Provider(error)) = decode(wire, &body, 1) else { panic!("{wire:?}") };
        assert_eq!(error.kind, "invalid_request_error");
    }
}

#[test]
fn the_largest_answer_of_a_provider_is_read_and_no_larger_one() {
    // Numbers with all digits, on lines of their own.
    let number = format!("{:e}", -1.234_567_890_123_456_7e-300);
    let most = MAX_TEXTS * MAX_DIMENSIONS * (number.len() + 8);
    assert!(max_answer_bytes(MAX_TEXTS) > most);
    assert!(max_answer_bytes(MAX_TEXTS) < 16 * 1024 * 1024);
}

proptest! {
    #[test]
    fn no_bytes_make_it_fail_otherwise(bytes in prop::collection::vec(any::<u8>(), 0..200), texts in 0_usize..4) {
        for wire in [EmbedWire::Openai, EmbedWire::Ollama] {
            if let Ok(answer) = wire.decode(&bytes, texts, None) {
                prop_assert!(answer.vectors.len() == texts);
            }
        }
    }

    #[test]
    fn all_vectors_have_the_length_1(numbers in prop::collection::vec(any::<f32>(), 1..20)) {
        let body = json!({"embeddings": [numbers]});
        if let Ok(answer) = decode(EmbedWire::Ollama, &body, 1) {
            let length: f64 = answer.vectors[0].iter().map(|x| f64::from(*x).powi(2)).sum();
            prop_assert!((length - 1.0).abs() < 1e-5);
        }
    }
}
