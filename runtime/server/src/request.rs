//! Reads the path and the query of a request, and checks what several requests share.

use crate::response::{Problem, printable};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use redflow_contract::archive::{MAX_HITS, MAX_TAGS};
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

pub(crate) fn no_parameters(query: Option<&str>) -> Result<(), Problem> {
    query_pairs(query).first().map_or(Ok(()), |(name, _)| Err(unknown_parameter(name)))
}

/// Checks a search in a knowledge base or a long memory.
pub(crate) fn check_search(
    text: &str,
    limit: Option<u32>,
    min_score: Option<f32>,
    tags: &[String],
) -> Result<(), Problem> {
    if text.trim().is_empty() {
        return Err(invalid("There is nothing to search for: `text` must have words."));
    }
    if limit.is_some_and(|limit| !(1..=MAX_HITS).contains(&(limit as usize))) {
        return Err(invalid(format!("`limit` must be a number from 1 to {MAX_HITS}.")));
    }
    if min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
        return Err(invalid("`minScore` must be a number from 0 to 1."));
    }
    if tags.len() > MAX_TAGS {
        return Err(invalid(format!("`tags` may have {MAX_TAGS} tags.")));
    }
    Ok(())
}
