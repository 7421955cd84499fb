//! Refusals of MCP requests: JSON-RPC errors with our codes.

use crate::response::Problem;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::ApiCode;
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::json;

/// The error of a request. Its data has our code.
pub(super) fn error_data(Problem(error): Problem) -> ErrorData {
    let ApiError { code, message, .. } = *error;
    let kind = match (code, code.status()) {
        (ProblemCode::Api(ApiCode::NotFound), _) | (_, 400 | 404 | 409 | 410 | 413 | 422) => {
            ErrorCode::INVALID_PARAMS
        }
        (_, 401 | 403 | 429) => ErrorCode::INVALID_REQUEST,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(kind, message, Some(json!({"code": code.as_str()})))
}

/// The error of parameters that cannot be used.
pub(super) fn invalid_params(text: impl Into<String>) -> ErrorData {
    error_data(Problem::new(ApiCode::RequestInvalid, text))
}
