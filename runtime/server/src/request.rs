//! Reads the path and the query of a request.

use crate::response::{Problem, printable};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use redflow_contract::code::ApiCode;
use serde::de::DeserializeOwned;

/// The variable part of a path, or several. Unlike axum's extractor it refuses invalid UTF-8 with a code.
pub(crate) struct Path<T = String>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        found
            .map(|axum::extract::Path(part)| Self(part))
            .map_err(|_| invalid("The path decodes to bytes that are not UTF-8 text."))
    }
}

/// The names and values of a query string.
pub(crate) fn query_pairs(query: Option<&str>) -> Vec<(String, String)> {
    let query = query.unwrap_or_default().as_bytes();
    form_urlencoded::parse(query).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

pub(crate) fn invalid(text: impl Into<String>) -> Problem {
    Problem::new(ApiCode::RequestInvalid, text)
}

pub(crate) fn unknown_parameter(name: &str) -> Problem {
    invalid(format!("There is no parameter `{}`. See /openapi.json.", printable(name)))
}
