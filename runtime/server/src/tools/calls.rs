//! `/api/tools/{id}/calls`: the calls of one tool, as a list or as a stream.
//!
//! The log has an event for every call that has ended. The journal of its run has the input and the output, who
//! started the run, and the class of the call.

use super::find::{Lookup, find_tool};
use crate::app::App;
use crate::cursor::{cursor, position};
use crate::log_stream::{LogPart, LogStream, wants_stream};
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, raw};
use axum::body::{Body, Bytes};
use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use futures::stream;
use redflow_access::Caller;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::RunId;
use redflow_contract::replay::{RunDetail, StoreProblem};
use redflow_contract::stream::StreamEvent;
use redflow_contract::tool::ToolInvocation;
use redflow_contract::tool_api::{MAX_CALLS_PAGE, ToolCallList};
use redflow_ports::{LoggedEvent, RunRecord, StoreError, ToolCallQuery};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

/// Calls on a page, unless the client says otherwise.
const PAGE: usize = 50;

/// Bytes of calls after which a page ends. Inputs and outputs can be large.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

pub(crate) async fn calls(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> ApiResult {
    let (limit, before) = parse_query(query.as_deref())?;
    let tool = find_tool(&app, &id);
    if wants_stream(&headers) {
        let after = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default());
        let log = &*app.hub.log;
        let position = after.map_or(Ok(log.bounds().newest), |after| position(log, after))?;
        let log = LogStream { app, caller, position };
        let calls = CallStream { tool: tool.or_unknown(&id)?, ready: VecDeque::new(), log };
        let body = Body::from_stream(stream::unfold(calls, CallStream::next));
        return Ok(raw(200, "text/event-stream", body));
    }
    let before = match before.map(|before| position(&*app.hub.log, &before)).transpose() {
        // The log has dropped all older calls.
        Err(error) if error.code == ProblemCode::Api(ApiCode::EventsGone) => Some(0),
        before => before?,
    };
    let tool = if before.is_none() && !has_calls(&app, &tool).await? { tool.or_unknown(&id)? } else { tool };
    let mut reader = CallReader { app: &app, caller: &caller, detail: None };
    Ok(json(200, &reader.read_page(&tool, limit, before).await?))
}

async fn has_calls(app: &App, tool: &Lookup) -> Result<bool, Problem> {
    Ok(!app.hub.log.read_calls(call_query(tool, None, 1)).await?.is_empty())
}

fn call_query(tool: &Lookup, before: Option<u64>, most: usize) -> ToolCallQuery {
    ToolCallQuery { id: tool.id().to_owned(), name: tool.name().to_owned(), before, most }
}

fn parse_query(query: Option<&str>) -> Result<(usize, Option<String>), Problem> {
    let (mut limit, mut before) = (PAGE, None);
    for (name, value) in query_pairs(query) {
        match name.as_str() {
            "before" => before = Some(value),
            "limit" => {
                let parsed = value.parse().ok().filter(|limit| (1..=MAX_CALLS_PAGE).contains(limit));
                limit = parsed.ok_or_else(|| {
                    invalid(format!("`limit` must be a number from 1 to {MAX_CALLS_PAGE}."))
                })?;
            }
            other => return Err(unknown_parameter(other)),
        }
    }
    Ok((limit, before))
}

/// Makes calls of events and journals. Calls of one run follow each other often, so it keeps the last run.
struct CallReader<'a> {
    app: &'a App,
    caller: &'a Caller,
    detail: Option<(RunId, Option<RunDetail>)>,
}

impl CallReader<'_> {
    async fn read_page(
        &mut self,
        tool: &Lookup,
        limit: usize,
        mut before: Option<u64>,
    ) -> Result<ToolCallList, Problem> {
        let (mut calls, mut bytes, mut scanned) = (Vec::new(), 0, 0);
        loop {
            let events = self.app.hub.log.read_calls(call_query(tool, before, limit)).await?;
            if events.is_empty() {
                return Ok(ToolCallList { calls, next: None });
            }
            for event in &events {
                if calls.len() >= limit || scanned >= MAX_CALLS_PAGE || bytes >= MAX_PAGE_BYTES {
                    let next = before.map(|before| cursor(self.app.hub.log.id(), before));
                    return Ok(ToolCallList { calls, next });
                }
                if let Some(call) = self.read(event, tool).await? {
                    bytes += serde_json::to_vec(&call).map_or(0, |json| json.len());
                    calls.push(call);
                }
                (before, scanned) = (Some(event.position), scanned + 1);
            }
        }
    }

    /// The call that an event ended; none if another tool has the same name.
    async fn read(&mut self, logged: &LoggedEvent, tool: &Lookup) -> Result<Option<ToolInvocation>, Problem> {
        let call = match serde_json::from_str(&logged.json) {
            Ok(StreamEvent::Flow { event: FlowEvent::ToolInvoked { call }, .. }) => Some(*call),
            Ok(StreamEvent::Run { event }) => {
                let (run, mut call) = (event.run_id.clone(), event.ended_call(tool.id()));
                if let (Some(call), Some(detail)) = (&mut call, self.detail(run).await?) {
                    detail.complete(call);
                }
                call
            }
            _ => None,
        };
        Ok(call.filter(|call| call.id == tool.id()))
    }

    /// The run, as far as its journal can be read; none if it was removed.
    async fn detail(&mut self, run: RunId) -> Result<Option<&RunDetail>, Problem> {
        if self.detail.as_ref().is_none_or(|(known, _)| *known != run) {
            let slot = self.app.work_slots.computation(&self.caller.name).await?;
            let detail = match self.app.run_reader.read(&run).await? {
                Some(RunRecord { summary, journal, problem }) => {
                    let problem = problem.map(|StoreError { code, message }| StoreProblem { code, message });
                    let read = move || redflow_strategies::run_detail(summary, &journal, problem);
                    Some(slot.run_blocking(read).await?.0)
                }
                None => None,
            };
            self.detail = Some((run, detail));
        }
        Ok(self.detail.as_ref().and_then(|(_, detail)| detail.as_ref()))
    }
}

/// The state of one stream.
struct CallStream {
    tool: Lookup,
    ready: VecDeque<Bytes>,
    log: LogStream,
}

impl CallStream {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some((Ok(bytes), self));
            }
            match self.log.next().await? {
                LogPart::Heartbeat => return Some((Ok(LogPart::HEARTBEAT), self)),
                LogPart::Events(events) => self.add(events).await?,
            }
        }
    }

    /// Adds the calls among some events. None if a run cannot be read; the client reconnects.
    async fn add(&mut self, events: Vec<LoggedEvent>) -> Option<()> {
        let LogStream { app, caller, .. } = &self.log;
        let mut reader = CallReader { app, caller, detail: None };
        let query = call_query(&self.tool, None, events.len());
        for event in events.iter().filter(|event| query.matches(event)) {
            if let Some(call) = reader.read(event, &self.tool).await.ok()? {
                let id = cursor(app.hub.log.id(), event.position);
                let json = serde_json::to_string(&call).ok()?;
                self.ready.push_back(Bytes::from(format!("id: {id}\ndata: {json}\n\n")));
            }
        }
        Some(())
    }
}
