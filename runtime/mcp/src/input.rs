//! What a server asks for before it gives a result: it is declined.

use crate::warnings::{DeclinedRequest, Warnings};
use redflow_contract::code::ToolCode;
use redflow_contract::fact::ToolResult;
use rmcp::model::{InputRequest, InputRequiredResult, InputResponses};
use serde_json::json;
use std::time::Duration;

/// How often a request is repeated with answers. A server that asks again and again gets none.
pub(crate) const MAX_INPUT_ROUNDS: usize = 4;

/// The most questions of one answer.
pub(crate) const MAX_INPUT_REQUESTS: usize = 32;

/// The most bytes of the state that a server gets back.
pub(crate) const MAX_REQUEST_STATE_BYTES: usize = 65_536;

/// The pause before a request is repeated for a server that asks nothing and only wants it again.
const PAUSE: Duration = Duration::from_millis(250);

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskError {
    /// The code of the failure; none if the server itself says that it failed.
    pub(crate) code: Option<ToolCode>,
    /// What happened, for people.
    pub(crate) text: String,
}

impl AskError {
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { code: None, text: text.into() }
    }

    fn input_required(text: impl Into<String>) -> Self {
        Self { code: Some(ToolCode::McpInputRequired), text: text.into() }
    }

    /// The error as the result of a call.
    pub(crate) fn result(self) -> ToolResult {
        ToolResult { code: self.code, ..ToolResult::failed(self.text) }
    }
}

/// The answers that a request is repeated with.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct InputAnswers {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

/// Counts the questions of a server in one request.
#[derive(Default)]
pub(crate) struct InputRounds(usize);

impl InputRounds {
    /// Declines what a server asks for: questions to a person are declined, and no folder is named.
    ///
    /// # Errors
    /// When something cannot be declined, or the server asks too often.
    pub(crate) async fn decline(
        &mut self,
        warnings: &Warnings,
        asked: InputRequiredResult,
    ) -> Result<InputAnswers, AskError> {
        let server = warnings.server();
        self.0 += 1;
        let requests = asked.input_requests.unwrap_or_default();
        let state_bytes = asked.request_state.as_ref().map_or(0, String::len);
        if self.0 > MAX_INPUT_ROUNDS
            || requests.len() > MAX_INPUT_REQUESTS
            || state_bytes > MAX_REQUEST_STATE_BYTES
        {
            return Err(AskError::input_required(format!(
                "The MCP server `{server}` asks for something again and again, which the sidecar declines."
            )));
        }
        if requests.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let answer = match request {
                InputRequest::Elicitation(_) => {
                    warnings.warn_declined(DeclinedRequest::Elicitation);
                    json!({"action": "decline"})
                }
                InputRequest::ListRoots(_) => json!({"roots": []}),
                _ => {
                    warnings.warn_declined(DeclinedRequest::Sampling);
                    return Err(AskError::input_required(format!(
                        "The MCP server `{server}` asks for a call of your model, which the sidecar refuses."
                    )));
                }
            };
            responses.insert(key, answer);
        }
        let responses = (!responses.is_empty()).then_some(responses);
        Ok(InputAnswers { responses, state: asked.request_state })
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
