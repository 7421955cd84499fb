//! HTTP responses: JSON, text, and errors with their codes.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::{ApiCode, RunErrorCode, Severity};
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::secret::mask_secrets;
use redflow_ports::{FileStoreError, StoreError};
use serde::Serialize;
use std::sync::Arc;

/// Characters of a text from outside that are searched for secrets.
const MAX_SEARCHED: usize = 4_000;

/// Why a request failed: the error that its response carries.
#[derive(Debug)]
pub(crate) struct Problem(pub(crate) Box<ApiError>);

impl Problem {
    pub(crate) fn new(code: ApiCode, message: impl Into<String>) -> Self {
        ApiError::new(code, message).into()
    }

    /// A failure of the sidecar, not of the request.
    pub(crate) fn internal() -> Self {
        let code = ProblemCode::Run(RunErrorCode::Internal);
        let message = "The sidecar failed while it handled this request. See its log.".to_owned();
        ApiError { code, message, report: None, revision: None }.into()
    }

    /// The error of a flow that is not deployed because of its problems.
    pub(crate) fn flow_refused(report: CheckReport) -> Self {
        // The first error comes first, because some clients show only the beginning of the text.
        let first = report.diagnostics.iter().find(|problem| problem.severity == Severity::Error);
        let first = first.map(|first| format!("{}: {}. ", first.code, first.message)).unwrap_or_default();
        let text =
            format!("{first}The flow has errors. `report` lists each with its remedy. Nothing was changed.");
        ApiError { report: Some(report), ..ApiError::new(ApiCode::FlowRefused, text) }.into()
    }

    pub(crate) fn stopping() -> Self {
        Self::new(ApiCode::Stopping, "The sidecar is stopping. Try again when it has restarted.")
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self(Box::new(error))
    }
}

impl From<StoreError> for Problem {
    fn from(StoreError { code, message }: StoreError) -> Self {
        ApiError { code: ProblemCode::Store(code), message, report: None, revision: None }.into()
    }
}

impl From<FileStoreError> for Problem {
    fn from(FileStoreError { code, message }: FileStoreError) -> Self {
        ApiError { code, message, report: None, revision: None }.into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let error: Arc<ApiError> = self.0.into();
        let status = error.code.status();
        let mut response = json(status, &*error);
        // The guard looks for tokens in its text.
        response.extensions_mut().insert(error);
        let headers = response.headers_mut();
        match status {
            401 => drop(headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            // The rest of the body is not read, so no other request can follow it.
            408 | 413 => drop(headers.insert(header::CONNECTION, HeaderValue::from_static("close"))),
            429 | 503 => drop(headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"))),
            _ => {}
        }
        response
    }
}

/// The result of a request handler.
pub(crate) type ApiResult = Result<Response, Problem>;

/// A JSON response. A value that cannot be serialised becomes an internal error.
pub(crate) fn json<T: Serialize>(status: u16, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => raw(status, "application/json", bytes),
        Err(_) => raw(500, "application/json", br#"{"code":"INTERNAL","message":""}"#.to_vec()),
    }
}

/// A response with a ready body.
pub(crate) fn raw(status: u16, content_type: &'static str, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Sends a browser to another page.
pub(crate) fn redirect(to: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(to));
    response
}

/// Forbids browsers to cache, frame, sniff or execute a response.
pub(crate) fn add_security_headers(headers: &mut HeaderMap) {
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in fixed {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let name = header::HeaderName::from_static("cross-origin-resource-policy");
    headers.entry(name).or_insert(HeaderValue::from_static("same-origin"));
}

/// The beginning of a text from outside, without control characters and without what can be a secret: safe to
/// quote in a response or a log line.
pub(crate) fn printable(text: &str) -> String {
    let start: String = text.chars().take(MAX_SEARCHED).collect();
    mask_secrets(&start).chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
