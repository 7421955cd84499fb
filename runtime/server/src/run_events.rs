//! `/api/runs/{id}/events`: the events of one run, as a list or as a stream that ends with the run.
//!
//! Past events are computed from the journal, new ones come from the event log. `seq` counts without gaps, so
//! no event is missing or sent twice where the two meet.

use crate::app::App;
use crate::log_stream::{LogPart, LogStream, wants_stream};
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, raw};
use crate::runs::{find_run, parse_limit};
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
    let EventQuery { last_seen, page } = EventQuery::parse(query.as_deref(), &headers)?;
    let slot = app.work_slots.computation(&caller.name).await?;
    // Taken before the journal is read, so that the log has all events which the journal lacks.
    let position = app.hub.log.bounds().newest;
    let record = find_run(&app, &run).await?;
    let is_over = record.summary.status.is_over() || record.problem.is_some();
    let replay = move || {
        let (mut events, _) = redflow_strategies::replay_events(&record.journal);
        events.retain(|event| event.seq > last_seen);
        events
    };
    if !wants_stream(&headers) {
        let list = move || {
            let mut events = replay();
            if let Some(page) = page {
                page.keep(&mut events);
            }
            json(200, &events)
        };
        return Ok(slot.run_blocking(list).await?.0);
    }
    let past = move || {
        let events = replay();
        let seq = events.last().map_or(last_seen, |event| event.seq);
        (seq, events.iter().map(sse_event).collect())
    };
    let ((seq, ready), _) = slot.run_blocking(past).await?;
    let stream = RunEventStream { run, seq, ready, is_over, log: LogStream { app, caller, position } };
    let body = Body::from_stream(stream::unfold(stream, RunEventStream::next));
    Ok(raw(200, "text/event-stream", body))
}

/// Events on a page: the maximum, and the default with `before`.
const MAX_PAGE: usize = 1000;

/// Which events a client asks for.
struct EventQuery {
    /// The `seq` of the last event that the client has.
    last_seen: u32,
    /// None for all events after `last_seen`, because a list cannot say that more follow.
    page: Option<EventPage>,
}

impl EventQuery {
    fn parse(query: Option<&str>, headers: &HeaderMap) -> Result<Self, Problem> {
        let (mut after, mut before, mut limit) = (None, None, None);
        for (name, value) in query_pairs(query) {
            let seq =
                || value.parse().map_err(|_| invalid(format!("`{name}` must be the `seq` of an event.")));
            match name.as_str() {
                "after" => after = Some(seq()?),
                "before" => before = Some(seq()?),
                "limit" => limit = Some(parse_limit(&name, &value, MAX_PAGE)?),
                other => return Err(unknown_parameter(other)),
            }
        }
        let page = match (before, limit) {
            (Some(before), limit) => Some(EventPage::Before(before, limit.unwrap_or(MAX_PAGE))),
            (None, limit) => limit.map(EventPage::First),
        };
        if page.is_some() && wants_stream(headers) {
            return Err(invalid("A stream has no pages. Leave out `before` and `limit`."));
        }
        if after.is_some() && before.is_some() {
            return Err(invalid("Only one of `after` and `before` can be given."));
        }
        // A client that reconnects sends it as a header, which counts more than the query.
        let header = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(|id| id.parse().ok()));
        let last_seen = match header {
            None => after.unwrap_or_default(),
            Some(Some(last)) => last,
            Some(None) => return Err(invalid("`Last-Event-ID` must be the `seq` of an event.")),
        };
        Ok(Self { last_seen, page })
    }
}

/// Some of the events of a run.
enum EventPage {
    /// The first ones, at most this many.
    First(usize),
    /// The last ones before this `seq`, at most this many.
    Before(u32, usize),
}

impl EventPage {
    fn keep(self, events: &mut Vec<RunEvent>) {
        match self {
            Self::First(most) => events.truncate(most),
            Self::Before(seq, most) => {
                events.retain(|event| event.seq < seq);
                events.drain(..events.len().saturating_sub(most));
            }
        }
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
