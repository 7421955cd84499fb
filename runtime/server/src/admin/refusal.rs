//! Why something was not done, in Node-RED's words where tools look for those.

use crate::answer::{Problem, json};
use axum::response::{IntoResponse, Response};
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use serde_json::json as value;

/// Why a request to Node-RED's Admin API was not done.
pub(crate) enum Refusal {
    /// It is in a version of the API that there is not.
    ApiVersion,
    /// What is ours to say.
    Ours(Problem),
}

/// What a handler of Node-RED's Admin API gives.
pub(crate) type Answer = Result<Response, Refusal>;

impl Refusal {
    pub(crate) fn new(code: ApiCode, message: impl Into<String>) -> Self {
        Self::Ours(Problem::new(code, message))
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Ours(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self::Ours(problem) = self else {
            let message = "`Node-RED-API-Version` is `v1` or `v2`.";
            return json(400, &value!({"code": "invalid_api_version", "message": message}));
        };
        match problem.0.code {
            ProblemCode::Api(ApiCode::RevisionConflict) => {
                json(409, &value!({"code": "version_mismatch", "message": problem.0.message}))
            }
            // Node-RED knows no 422: whatever is wrong with a flow is a bad request.
            ProblemCode::Api(ApiCode::FlowRefused) => json(400, &*problem.0),
            _ => problem.into_response(),
        }
    }
}
