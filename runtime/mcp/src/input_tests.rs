use super::{AskError, InputRounds, MAX_INPUT_REQUESTS, MAX_INPUT_ROUNDS, MAX_REQUEST_STATE_BYTES};
use crate::warnings::Warnings;
use pretty_assertions::assert_eq;
use redflow_contract::code::ToolCode;
use rmcp::model::InputRequiredResult;
use serde_json::{Map, Value, json};

fn input_required(requests: &Value, state: &str) -> InputRequiredResult {
    let sent = json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
    serde_json::from_value(sent).unwrap()
}

fn question() -> Value {
    json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema":
        {"type": "object", "properties": {"name": {"type": "string"}}}}})
}

async fn decline(requests: &Value, state: &str) -> Result<super::InputAnswers, AskError> {
    InputRounds::default().decline(&Warnings::new("files"), input_required(requests, state)).await
}

#[tokio::test]
async fn a_person_declines_and_no_folder_is_named() {
    let answer = decline(&json!({"a": question(), "b": {"method": "roots/list"}}), "s").await.unwrap();
    assert_eq!(json!(answer.responses.unwrap()), json!({"a": {"action": "decline"}, "b": {"roots": []}}));
    assert_eq!(answer.state.as_deref(), Some("s"));
    let again = decline(&json!({}), "s").await.unwrap();
    assert_eq!((again.responses, again.state.as_deref()), (None, Some("s")));
}

#[tokio::test]
async fn a_call_of_the_model_is_refused() {
    let sampling = json!({"a": question(), "b": {"method": "sampling/createMessage", "params": {"maxTokens": 5,
        "messages": [{"role": "user", "content": {"type": "text", "text": "spend"}}]}}});
    let error = decline(&sampling, "s").await.unwrap_err();
    assert_eq!(error.code, Some(ToolCode::McpInputRequired));
    assert!(error.text.contains("`files` asks for a call of your model"), "{}", error.text);
}

#[tokio::test]
async fn questions_are_bounded() {
    let mut rounds = InputRounds::default();
    for _ in 0..MAX_INPUT_ROUNDS {
        rounds
            .decline(&Warnings::new("files"), input_required(&json!({"a": question()}), "s"))
            .await
            .unwrap();
    }
    let error = rounds
        .decline(&Warnings::new("files"), input_required(&json!({"a": question()}), "s"))
        .await
        .unwrap_err();
    assert_eq!(error.code, Some(ToolCode::McpInputRequired));
    assert!(error.text.contains("again and again"), "{}", error.text);
    let many = |count: usize| {
        Value::Object((0..count).map(|index| (index.to_string(), question())).collect::<Map<_, _>>())
    };
    assert!(decline(&many(MAX_INPUT_REQUESTS), "s").await.is_ok());
    assert!(decline(&many(MAX_INPUT_REQUESTS + 1), "s").await.is_err());
    let long = "x".repeat(MAX_REQUEST_STATE_BYTES);
    assert!(decline(&many(1), &long).await.is_ok());
    assert!(decline(&many(1), &(long + "x")).await.is_err());
}
