//! Answers: JSON, text, and errors with their codes.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::{ApiCode, RunErrorCode};
use redflow_ports::{FileStoreError, StoreError};
use serde::Serialize;

/// Why a request was not done.
#[derive(Debug)]
pub(crate) struct Problem(pub(crate) Box<ApiError>);

impl Problem {
    pub(crate) fn new(code: ApiCode, message: impl Into<String>) -> Self {
        ApiError::new(code, message).into()
    }

    /// Something went wrong here, not there.
    pub(crate) fn internal() -> Self {
        let code = ProblemCode::Run(RunErrorCode::Internal);
        let message = "The sidecar failed at this request; its log says more.".to_owned();
        ApiError { code, message, report: None, revision: None }.into()
    }

    pub(crate) fn stopping() -> Self {
        Self::new(ApiCode::Stopping, "The sidecar is stopping. Try again when it is back.")
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
        let Self(error) = self;
        let status = error.code.status();
        let mut response = json(status, &*error);
        let headers = response.headers_mut();
        match status {
            401 => drop(headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            408 => drop(headers.insert(header::CONNECTION, HeaderValue::from_static("close"))),
            429 | 503 => drop(headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"))),
            _ => {}
        }
        response
    }
}

/// What a handler gives.
pub(crate) type Answer = Result<Response, Problem>;

/// JSON of something that can always be written.
pub(crate) fn json<T: Serialize>(status: u16, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => bytes_of(status, "application/json", bytes),
        Err(_) => bytes_of(500, "application/json", br#"{"code":"INTERNAL","message":""}"#.to_vec()),
    }
}

/// Something that is text already.
pub(crate) fn bytes_of(status: u16, kind: &'static str, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Goes elsewhere.
pub(crate) fn redirect(to: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(to));
    response
}

/// What every answer carries: nothing here is to be kept, framed, guessed at or run.
pub(crate) fn harden(headers: &mut HeaderMap) {
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
