//! `/api/kb`: lists, searches and changes knowledge bases.
//!
//! Owns what a request may ask for, and how many are under way at once. A client that disconnects stops its request.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::{Path, check_search, invalid, no_parameters, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, printable};
use crate::runs::{parse_bool, parse_limit};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use redflow_access::{Caller, bytes_only};
use redflow_contract::api::ApiError;
use redflow_contract::archive::MAX_DIMENSIONS;
use redflow_contract::document_kind::{DOCUMENT_ENDINGS, DocumentKind};
use redflow_contract::knowledge_api::{
    EmbedderChoice, KnowledgeBaseList, KnowledgeSearch, MAX_DOCUMENT_BYTES, MAX_DOCUMENTS_PAGE, MAX_ORIGIN,
    MAX_PASSAGES_PAGE, MAX_RETENTION_DAYS,
};
use redflow_contract::node::Embeddings;
use redflow_contract::secret::mask_secrets;
use redflow_ports::{KnowledgeAnswer, NewDocument};
use std::sync::Arc;

/// Documents on a page, unless the client says otherwise.
const DOCUMENTS_PAGE: usize = 100;

/// Passages on a page, unless the client says otherwise.
const PASSAGES_PAGE: usize = 50;

/// Bytes of a body that holds a search or the choice of an embedder.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Bytes of the name or the address of an embedder.
const MAX_SETTING: usize = 2_048;

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    let _slot = app.work_slots.search(&caller.name).await?;
    let knowledge_bases = finish(&app, app.knowledge.list()).await?;
    Ok(json(200, &KnowledgeBaseList { knowledge_bases }))
}

pub(crate) async fn documents(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let (mut limit, mut after) = (DOCUMENTS_PAGE, None);
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "limit" => limit = parse_limit(&name, &value, MAX_DOCUMENTS_PAGE)?,
            "after" => after = Some(value),
            other => return Err(unknown_parameter(other)),
        }
    }
    let _slot = app.work_slots.search(&caller.name).await?;
    let page = finish(&app, app.knowledge.documents(&name, after.as_deref(), limit)).await?;
    Ok(json(200, &page))
}

pub(crate) async fn passages(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let (mut limit, mut after, mut document) = (PASSAGES_PAGE, 0, None);
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "document" => document = Some(value),
            "limit" => limit = parse_limit(&name, &value, MAX_PASSAGES_PAGE)?,
            "after" => after = parse_number(&name, &value)?,
            other => return Err(unknown_parameter(other)),
        }
    }
    let document = document.ok_or_else(no_document)?;
    let _slot = app.work_slots.search(&caller.name).await?;
    let page = finish(&app, app.knowledge.passages(&name, &document, after, limit)).await?;
    Ok(json(200, &page))
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
    let (search, _): (KnowledgeSearch, _) = body::read_limited(&headers, body, &app, MAX_BODY_BYTES).await?;
    check_search(&search.text, search.limit, search.min_score, &search.tags)?;
    let _slot = app.work_slots.search(&caller.name).await?;
    let found = finish(&app, app.knowledge.search(&name, search)).await?;
    Ok(json(200, &found))
}

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    bytes_only(&headers)?;
    let mut document = parse_document(query.as_deref())?;
    // Before the body is read: a document that waits takes no memory.
    let _slot = app.work_slots.knowledge_change(&caller.name).await?;
    document.bytes = body::read_bytes(&headers, body, &app, MAX_DOCUMENT_BYTES).await?;
    log(&caller, &name, Some(&document.name), "a document is added to a knowledge base");
    let added = finish(&app, app.knowledge.add(&name, document, &mut |_| ())).await?;
    Ok(json(200, &added))
}

/// The document that a query describes, without its bytes.
fn parse_document(query: Option<&str>) -> Result<NewDocument, Problem> {
    let (mut document, mut kind, mut origin, mut retention_days) = (None, None, None, None);
    let (mut tags, mut is_dry_run, mut embedder) = (Vec::new(), false, EmbedderChoice::default());
    for (name, value) in query_pairs(query) {
        match name.as_str() {
            "document" => document = Some(value),
            "kind" => kind = Some(DocumentKind::of_ending(&value).ok_or_else(|| unknown_kind("`kind`"))?),
            "origin" => origin = Some(bounded(&name, value, MAX_ORIGIN)?),
            "tag" => tags.push(value),
            "retentionDays" => retention_days = Some(parse_days(&name, &value)?),
            "dryRun" => is_dry_run = parse_bool(&name, &value)?,
            "embeddings" => embedder.embeddings = Some(parse_embeddings(&value)?),
            "embeddingModel" => embedder.embedding_model = Some(bounded(&name, value, MAX_SETTING)?),
            "dimensions" => embedder.dimensions = Some(parse_number(&name, &value)?),
            "baseURL" => embedder.base_url = Some(bounded(&name, value, MAX_SETTING)?),
            "deployment" => embedder.deployment = Some(bounded(&name, value, MAX_SETTING)?),
            "apiVersion" => embedder.api_version = Some(bounded(&name, value, MAX_SETTING)?),
            other => return Err(unknown_parameter(other)),
        }
    }
    check_embedder(&embedder)?;
    let name = document.ok_or_else(no_document)?;
    let of_name = || DocumentKind::of_name(&name).ok_or_else(|| unknown_kind("The name of the document"));
    let kind = kind.map_or_else(of_name, Ok)?;
    let origin = origin.unwrap_or_else(|| name.clone());
    Ok(NewDocument { name, kind, origin, tags, retention_days, bytes: Vec::new(), embedder, is_dry_run })
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
    log(&caller, &name, None, "a knowledge base is removed");
    finish(&app, app.knowledge.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn remove_document(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
    body: RequestBody,
) -> ApiResult {
    let mut document = None;
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "document" => document = Some(value),
            other => return Err(unknown_parameter(other)),
        }
    }
    let document = document.ok_or_else(no_document)?;
    body::expect_none(body, &app).await?;
    let _slot = app.work_slots.knowledge_change(&caller.name).await?;
    log(&caller, &name, Some(&document), "a document is removed from a knowledge base");
    finish(&app, app.knowledge.remove_document(&name, &document)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn reindex(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    let (embedder, _): (EmbedderChoice, _) = body::read_limited(&headers, body, &app, MAX_BODY_BYTES).await?;
    check_embedder(&embedder)?;
    let _slot = app.work_slots.knowledge_change(&caller.name).await?;
    log(&caller, &name, None, "all vectors of a knowledge base are made again");
    let done = finish(&app, app.knowledge.reindex(&name, embedder, &mut |_| ())).await?;
    Ok(json(200, &done))
}

/// Waits for work, unless the sidecar stops. Errors may quote names of the request, which can be secrets.
async fn finish<T>(app: &App, work: KnowledgeAnswer<'_, T>) -> Result<T, Problem> {
    let done = tokio::select! {
        done = work => done,
        () = app.stop.cancelled() => return Err(Problem::stopping()),
    };
    done.map_err(|error| {
        let message = mask_secrets(&error.message).into_owned();
        ApiError { message, ..error }.into()
    })
}

/// Logs who changes what.
fn log(caller: &Caller, name: &str, document: Option<&str>, what: &str) {
    let (by, name, document) = (principal(caller), printable(name), document.map(printable));
    tracing::info!(by = by.as_str(), name, document, "{what}");
}

fn no_document() -> Problem {
    invalid("`document` is missing: give the name of a document.")
}

fn unknown_kind(what: &str) -> Problem {
    invalid(format!("{what} has no ending of a known kind: {DOCUMENT_ENDINGS}."))
}

fn bounded(name: &str, value: String, most: usize) -> Result<String, Problem> {
    if value.len() > most {
        return Err(invalid(format!("`{name}` has more than {most} bytes.")));
    }
    Ok(value)
}

fn parse_number(name: &str, value: &str) -> Result<u32, Problem> {
    value.parse().map_err(|_| invalid(format!("`{name}` must be a number from 0.")))
}

fn parse_days(name: &str, value: &str) -> Result<u32, Problem> {
    let days = parse_number(name, value).ok().filter(|days| (1..=MAX_RETENTION_DAYS).contains(days));
    days.ok_or_else(|| invalid(format!("`{name}` must be a number from 1 to {MAX_RETENTION_DAYS}.")))
}

fn parse_embeddings(value: &str) -> Result<Embeddings, Problem> {
    Embeddings::parse(value).ok_or_else(|| {
        invalid("`embeddings` must be `auto`, `openai`, `azure`, `ollama`, `minilm` or `hash`.")
    })
}

fn check_embedder(embedder: &EmbedderChoice) -> Result<(), Problem> {
    if embedder.dimensions.is_some_and(|count| !(1..=MAX_DIMENSIONS).contains(&(count as usize))) {
        return Err(invalid(format!("`dimensions` must be a number from 1 to {MAX_DIMENSIONS}.")));
    }
    Ok(())
}
