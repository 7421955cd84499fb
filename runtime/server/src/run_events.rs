//! `/api/runs/{id}/events`: the events of one run, as a list or as a stream that ends with the run.
//!
//! Past events are computed from the journal, new ones come from the event log. `seq` counts without gaps, so
//! no event is missing or sent twice where the two meet.

use crate::app::App;
use crate::log_stream::{LogPart, LogStream, wants_stream};
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, raw};
use crate::runs::find_run;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use futures::stream;
use redflow_access::Caller;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::id::RunId;
use redflow_contract::stream::StreamEvent;
use redflow_ports::LoggedEvent;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> ApiResult {
    let run = RunId::from(run);
    let last_seen = last_seen_seq(query.as_deref(), &headers)?;
    let slot = app.work_slots.computation(&caller.name).await?;
    // Taken before the journal is read, so that the log has all events which the journal lacks.
    let position = app.hub.log.bounds().newest;
    let record = find_run(&app, &run).await?;
    let is_over = record.summary.status.is_over() || record.problem.is_some();
    let replay = move || redflow_strategies::replay_events(&record.journal).0;
    let (events, _) = slot.run_blocking(replay).await?;
    let events: Vec<RunEvent> = events.into_iter().filter(|event| event.seq > last_seen).collect();
    if !wants_stream(&headers) {
        return Ok(json(200, &events));
    }
    let stream = RunEventStream {
        run,
        seq: events.last().map_or(last_seen, |event| event.seq),
        ready: events.iter().map(sse_event).collect(),
        is_over,
        log: LogStream { app, caller, position },
    };
    let body = Body::from_stream(stream::unfold(stream, RunEventStream::next));
    Ok(raw(200, "text/event-stream", body))
}

/// The `seq` of the last event that the client has. A client that reconnects sends it as a header, which
/// counts more than the query.
fn last_seen_seq(query: Option<&str>, headers: &HeaderMap) -> Result<u32, Problem> {
    let mut after = 0;
    for (name, value) in query_pairs(query) {
        match name.as_str() {
            "after" => {
                after = value.parse().map_err(|_| invalid("`after` must be the `seq` of an event."))?
            }
            other => return Err(unknown_parameter(other)),
        }
    }
    match headers.get("last-event-id").map(|id| id.to_str().ok().and_then(|id| id.parse().ok())) {
        None => Ok(after),
        Some(Some(last)) => Ok(last),
        Some(None) => Err(invalid("`Last-Event-ID` must be the `seq` of an event.")),
    }
}

/// An event in the format of server-sent events.
fn sse_event(event: &RunEvent) -> Bytes {
    let json = serde_json::to_string(event).unwrap_or_default();
    Bytes::from(format!("id: {}\ndata: {json}\n\n", event.seq))
}

/// The state of one stream.
struct RunEventStream {
    run: RunId,
    /// The `seq` of the last event that was sent or is ready.
    seq: u32,
    ready: VecDeque<Bytes>,
    is_over: bool,
    log: LogStream,
}

impl RunEventStream {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some((Ok(bytes), self));
            }
            if self.is_over {
                return None;
            }
            // A client that reconnects gets what it missed from the journal.
            match self.log.next().await? {
                LogPart::Heartbeat => return Some((Ok(LogPart::HEARTBEAT), self)),
                LogPart::Events(events) => events.iter().for_each(|event| self.add(event)),
            }
        }
    }

    fn add(&mut self, logged: &LoggedEvent) {
        if logged.run.as_ref() != Some(&self.run) {
            return;
        }
        let Ok(StreamEvent::Run { event }) = serde_json::from_str(&logged.json) else { return };
        if event.seq > self.seq {
            self.seq = event.seq;
            self.is_over = matches!(event.event, RunEventKind::RunFinished { .. });
            self.ready.push_back(sse_event(&event));
        }
    }
}
