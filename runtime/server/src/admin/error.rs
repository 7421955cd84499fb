//! Errors of Node-RED's Admin API, with Node-RED's own codes where tools expect them.

use crate::response::{Problem, json};
use axum::response::{IntoResponse, Response};
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use serde_json::json as value;

/// Why a request to Node-RED's Admin API failed.
pub(crate) enum AdminError {
    /// The request asks for an unknown version of the API.
    UnknownApiVersion,
    Problem(Problem),
}

/// The result of a handler of Node-RED's Admin API.
pub(crate) type AdminResult = Result<Response, AdminError>;

impl AdminError {
    pub(crate) fn new(code: ApiCode, message: impl Into<String>) -> Self {
        Self::Problem(Problem::new(code, message))
    }
}

impl From<Problem> for AdminError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        let Self::Problem(problem) = self else {
            let message = "`Node-RED-API-Version` must be `v1` or `v2`.";
            return json(400, &value!({"code": "invalid_api_version", "message": message}));
        };
        match problem.0.code {
            ProblemCode::Api(ApiCode::RevisionConflict) => {
                json(409, &value!({"code": "version_mismatch", "message": problem.0.message}))
            }
            // Node-RED does not use 422. There an invalid flow is a bad request.
            ProblemCode::Api(ApiCode::FlowRefused) => json(400, &*problem.0),
            _ => problem.into_response(),
        }
    }
}
