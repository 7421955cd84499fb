//! The export of long memories: one line for each entry, read page by page.

use super::{finish, named};
use crate::app::App;
use crate::request::{Path, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, raw};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use futures::stream;
use redflow_access::Caller;
use redflow_contract::memory_api::{MemoryExportLine, MemoryFilter};
use redflow_contract::route::EXPORT_TYPE;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Entries that are in memory at once.
const EXPORT_PAGE: usize = 50;

pub(crate) async fn export_one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let filter = parse_filter(query.as_deref())?;
    export(app, caller, VecDeque::from([name]), filter).await
}

pub(crate) async fn export_all(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let filter = parse_filter(query.as_deref())?;
    let memories = {
        let _slot = app.work_slots.search(&caller.name).await?;
        finish(&app, app.memories.list()).await?
    };
    export(app, caller, memories.into_iter().map(|memory| memory.name).collect(), filter).await
}

fn parse_filter(query: Option<&str>) -> Result<MemoryFilter, Problem> {
    let mut filter = MemoryFilter::default();
    for (name, value) in query_pairs(query) {
        match name.as_str() {
            "user" => filter.user = Some(named(&name, value)?),
            "session" => filter.session = Some(named(&name, value)?),
            other => return Err(unknown_parameter(other)),
        }
    }
    Ok(filter)
}

/// Reads the first page before it answers, so that an unknown memory has its error.
async fn export(
    app: Arc<App>,
    caller: Caller,
    memories: VecDeque<String>,
    filter: MemoryFilter,
) -> ApiResult {
    let mut export = Export { app, caller, memories, filter, after: None };
    let first = export.next_page().await?;
    let rest = |state: Option<(Option<Bytes>, Export)>| async move {
        let (page, mut export) = state?;
        let page = page?;
        Some(match export.next_page().await {
            Ok(next) => (Ok(page), Some((next, export))),
            // The answer ends without its end, so that a client cannot take a part for the whole.
            Err(_) => (Err(io::Error::other("the export stopped")), None),
        })
    };
    let body = Body::from_stream(stream::unfold(Some((first, export)), rest));
    Ok(raw(200, EXPORT_TYPE, body))
}

/// What is still to be exported.
struct Export {
    app: Arc<App>,
    caller: Caller,
    memories: VecDeque<String>,
    filter: MemoryFilter,
    /// The last key of the first memory that was read.
    after: Option<String>,
}

impl Export {
    /// The lines of the next page that has entries; none at the end.
    async fn next_page(&mut self) -> Result<Option<Bytes>, Problem> {
        while let Some(memory) = self.memories.front().cloned() {
            // A stream outlives its request.
            self.app.access.recheck(&self.caller, self.app.clock.now())?;
            let _slot = self.app.work_slots.search(&self.caller.name).await?;
            let page = self.app.memories.entries(&memory, &self.filter, self.after.as_deref(), EXPORT_PAGE);
            let page = finish(&self.app, page).await?;
            self.after = page.next;
            if self.after.is_none() {
                self.memories.pop_front();
            }
            if !page.entries.is_empty() {
                let mut lines = Vec::new();
                for entry in page.entries {
                    let line = MemoryExportLine { memory: memory.clone(), entry };
                    serde_json::to_writer(&mut lines, &line).map_err(|_| Problem::internal())?;
                    lines.push(b'\n');
                }
                return Ok(Some(Bytes::from(lines)));
            }
        }
        Ok(None)
    }
}
