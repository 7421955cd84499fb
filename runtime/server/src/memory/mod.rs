//! `/api/memory`: lists, searches, changes and exports long memories, and forgets the data of people.
//!
//! Owns what a request may ask for. A client that disconnects stops its request, but not a forget.

mod condition;
mod export;
mod forget;

pub(crate) use export::{export_all, export_one};
pub(crate) use forget::forget;

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::{Path, check_search, invalid, no_parameters, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, printable};
use crate::runs::parse_limit;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use condition::Condition;
use redflow_access::Caller;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::archive::{Entry, MAX_ENTRY_META, MAX_ENTRY_TEXT};
use redflow_contract::code::{ApiCode, ArchiveCode};
use redflow_contract::memory_api::{
    MAX_ENTRIES_PAGE, MemoryFilter, MemoryList, MemoryPut, MemoryReview, MemoryReviewed, MemorySearch,
    MemorySearchResult,
};
use redflow_contract::secret::mask_secrets;
use redflow_ports::MemoriesAnswer;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// Entries on a page, unless the client says otherwise.
const ENTRIES_PAGE: usize = 50;

/// Bytes of a body that holds a search, or says what to forget.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Bytes of a body that holds an entry: its text and its metadata, with every character escaped, and the rest.
const MAX_ENTRY_BYTES: usize = (MAX_ENTRY_TEXT + MAX_ENTRY_META) * 6 + MAX_BODY_BYTES;

/// Bytes of a body that holds a review: the keys of a page.
const MAX_REVIEW_BYTES: usize = 1024 * 1024;

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    let _slot = app.work_slots.search(&caller.name).await?;
    let memories = finish(&app, app.memories.list()).await?;
    Ok(json(200, &MemoryList { memories }))
}

pub(crate) async fn entries(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let (mut limit, mut after, mut filter) = (ENTRIES_PAGE, None, MemoryFilter::default());
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "user" => filter.user = Some(named(&name, value)?),
            "session" => filter.session = Some(named(&name, value)?),
            "state" => filter.state = Some(parse_word(&name, value)?),
            "kind" => filter.kind = Some(parse_word(&name, value)?),
            "limit" => limit = parse_limit(&name, &value, MAX_ENTRIES_PAGE)?,
            "after" => after = Some(value),
            other => return Err(unknown_parameter(other)),
        }
    }
    let _slot = app.work_slots.search(&caller.name).await?;
    let page = finish(&app, app.memories.entries(&name, &filter, after.as_deref(), limit)).await?;
    Ok(json(200, &page))
}

pub(crate) async fn entry(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((name, key)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    let _slot = app.work_slots.search(&caller.name).await?;
    let detail = finish(&app, app.memories.show(&name, &key)).await?;
    Ok(with_version(json(200, &detail), &detail.entry))
}

pub(crate) async fn search(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    let (search, _): (MemorySearch, _) = body::read_limited(&headers, body, &app, MAX_BODY_BYTES).await?;
    check_search(&search.text, search.limit, search.min_score, &search.tags)?;
    let _slot = app.work_slots.search(&caller.name).await?;
    let results = finish(&app, app.memories.search(&name, search)).await?;
    Ok(json(200, &MemorySearchResult { results }))
}

pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((name, key)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    let condition = Condition::from_headers(&headers)?;
    let (put, _): (MemoryPut, _) = body::read_limited(&headers, body, &app, MAX_ENTRY_BYTES).await?;
    let _slot = app.work_slots.knowledge_change(&caller.name).await?;
    log(&caller, &name, "an entry is stored in a long memory");
    let expected = match condition {
        Condition::None => None,
        Condition::Absent => Some(0),
        Condition::Version(version) => Some(version),
        Condition::Present => Some(version_of(&app, &name, &key).await?),
    };
    let stored = finish(&app, app.memories.put(&name, &key, put, expected)).await?;
    Ok(with_version(json(200, &stored), &stored))
}

/// The version of an entry that must exist.
async fn version_of(app: &App, memory: &str, key: &str) -> Result<u32, Problem> {
    let detail = finish(app, app.memories.show(memory, key)).await;
    detail.map(|detail| detail.entry.version).map_err(|problem| if_missing(problem, key))
}

/// An entry that is missing contradicts the condition of the request. Other problems stay as they are.
fn if_missing(problem: Problem, key: &str) -> Problem {
    if problem.0.code != ProblemCode::Api(ApiCode::NotFound) {
        return problem;
    }
    let code = ProblemCode::Archive(ArchiveCode::MemoryConflict);
    let message = format!("The entry `{}` does not exist: leave out `If-Match` to store it.", printable(key));
    ApiError { code, message, report: None, revision: None }.into()
}

pub(crate) async fn remove_entry(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((name, key)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    body: RequestBody,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    body::expect_none(body, &app).await?;
    let _slot = app.work_slots.knowledge_change(&caller.name).await?;
    log(&caller, &name, "an entry is removed from a long memory");
    finish(&app, app.memories.remove_entry(&name, &key)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
    body: RequestBody,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    body::expect_none(body, &app).await?;
    let _slot = app.work_slots.knowledge_change(&caller.name).await?;
    log(&caller, &name, "a long memory is removed");
    finish(&app, app.memories.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn review(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    let (review, _): (MemoryReview, _) = body::read_limited(&headers, body, &app, MAX_REVIEW_BYTES).await?;
    let MemoryReview { memory, keys, decision } = review;
    if !(1..=MAX_ENTRIES_PAGE).contains(&keys.len()) {
        return Err(invalid(format!("`keys` must have from 1 to {MAX_ENTRIES_PAGE} keys.")));
    }
    let _slot = app.work_slots.knowledge_change(&caller.name).await?;
    log(&caller, &memory, "entries of a long memory are reviewed");
    let decided = finish(&app, app.memories.review(&memory, keys, decision)).await?;
    Ok(json(200, &MemoryReviewed { decided }))
}

/// Waits for work, unless the sidecar stops. Errors may quote names of the request, which can be secrets.
async fn finish<T>(app: &App, work: MemoriesAnswer<'_, T>) -> Result<T, Problem> {
    let done = tokio::select! {
        done = work => done,
        () = app.stop.cancelled() => return Err(Problem::stopping()),
    };
    done.map_err(|error| masked(error).into())
}

fn masked(error: ApiError) -> ApiError {
    let message = mask_secrets(&error.message).into_owned();
    ApiError { message, ..error }
}

/// Logs who changes what. Keys can be names of people, so they are not logged.
fn log(caller: &Caller, name: &str, what: &str) {
    tracing::info!(by = principal(caller).as_str(), name = printable(name), "{what}");
}

/// A filter without a name would show the entries of all.
fn named(name: &str, value: String) -> Result<String, Problem> {
    if value.trim().is_empty() {
        return Err(invalid(format!("`{name}` is empty: give a name, or leave it out.")));
    }
    Ok(value)
}

/// A word that JSON would write for this type.
fn parse_word<T: DeserializeOwned>(name: &str, value: String) -> Result<T, Problem> {
    serde_json::from_value(Value::String(value))
        .map_err(|_| invalid(format!("`{name}` has no such value. See /openapi.json.")))
}

/// Adds the version of an entry as `ETag`.
fn with_version(mut response: Response, entry: &Entry) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", entry.version)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::if_missing;
    use crate::response::Problem;
    use redflow_contract::code::ApiCode;

    #[test]
    fn only_a_missing_entry_is_a_conflict() {
        let missing = if_missing(Problem::new(ApiCode::NotFound, "There is no entry."), "tea");
        assert_eq!(missing.0.code.as_str(), "MEMORY_CONFLICT");
        assert!(missing.0.message.contains("`tea` does not exist"), "{}", missing.0.message);
        for (other, code) in [(Problem::stopping(), "STOPPING"), (Problem::internal(), "INTERNAL")] {
            let message = other.0.message.clone();
            let other = if_missing(other, "tea");
            assert_eq!((other.0.code.as_str(), &other.0.message), (code, &message));
        }
    }
}
