//! The events of one run, as a list or as a stream that goes on until the run is over.
//!
//! What has been is read from the journal, of which events are a function; what comes is taken from the log. `seq`
//! counts without gaps, so that nothing is missing or doubled where the two meet.

use crate::answer::{Answer, Problem, bytes_of, json};
use crate::hub::Frame;
use crate::routes::Path;
use crate::runs::{invalid, look, pairs, unknown_parameter};
use crate::sidecar::{App, blocking};
use axum::body::{Body, Bytes};
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, header};
use futures::stream;
use redflow_access::Caller;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::id::RunId;
use redflow_contract::stream::{EventsMessage, StreamEvent};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often a stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Events that are taken from the log at once.
const PAGE: usize = 64;

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answer {
    let run = RunId::from(run);
    let after = after(query.as_deref(), &headers)?;
    // From here on the log has whatever the journal does not have yet.
    let newest = app.hub.newest();
    let position = *newest.borrow();
    let found = look(&app, &run).await?;
    let over = found.summary.status.is_over() || found.problem.is_some();
    let told = blocking(move || redflow_react::replay_events(&found.journal, true).0).await?;
    let told: Vec<RunEvent> = told.into_iter().filter(|event| event.seq > after).collect();
    if !wants_stream(&headers) {
        return Ok(json(200, &told));
    }
    let stream = Follow {
        run,
        seq: told.last().map_or(after, |event| event.seq),
        ready: told.iter().map(written).collect(),
        over,
        position,
        newest,
        app,
        caller,
    };
    let body = Body::from_stream(stream::unfold(stream, Follow::next));
    Ok(bytes_of(200, "text/event-stream", body))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// The last event the reader has. A stream that reconnects knows better than its address.
fn after(query: Option<&str>, headers: &HeaderMap) -> Result<u32, Problem> {
    let mut after = 0;
    for (name, value) in pairs(query) {
        match name.as_str() {
            "after" => after = value.parse().map_err(|_| invalid("`after` is the `seq` of an event."))?,
            other => return Err(unknown_parameter(other)),
        }
    }
    match headers.get("last-event-id").map(|id| id.to_str().ok().and_then(|id| id.parse().ok())) {
        None => Ok(after),
        Some(Some(last)) => Ok(last),
        Some(None) => Err(invalid("`Last-Event-ID` is the `seq` of an event.")),
    }
}

fn written(event: &RunEvent) -> Bytes {
    let json = serde_json::to_string(event).unwrap_or_default();
    Bytes::from(format!("id: {}\ndata: {json}\n\n", event.seq))
}

/// A reader of one run.
struct Follow {
    run: RunId,
    /// The last event that was sent or waits to be.
    seq: u32,
    ready: VecDeque<Bytes>,
    over: bool,
    position: u64,
    newest: watch::Receiver<u64>,
    app: Arc<App>,
    caller: Caller,
}

impl Follow {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some((Ok(bytes), self));
            }
            // A stream outlives the request that opened it: who is no longer let in is told so when coming back.
            if self.over || self.app.access.recheck(&self.caller, self.app.clock.now()).is_err() {
                return None;
            }
            // The log could not be read, or has forgotten what comes next: the reader comes back and gets the rest
            // from the journal.
            let frames = self.app.hub.after(self.position, PAGE).await.ok()?;
            if frames.first().is_some_and(|first| first.position > self.position + 1) {
                return None;
            }
            if frames.is_empty() {
                let stop = self.app.stop.clone();
                tokio::select! {
                    () = stop.cancelled() => return None,
                    changed = self.newest.changed() => changed.ok()?,
                    () = tokio::time::sleep(HEARTBEAT) => {
                        return Some((Ok(Bytes::from_static(b": still here\n\n")), self));
                    }
                }
            }
            for frame in frames {
                self.position = frame.position;
                self.take(&frame);
            }
        }
    }

    fn take(&mut self, frame: &Frame) {
        if frame.run.as_ref() != Some(&self.run) {
            return;
        }
        let Ok(EventsMessage::Event { event, .. }) = serde_json::from_str(&frame.text) else { return };
        let StreamEvent::Run { event } = *event else { return };
        if event.seq > self.seq {
            self.seq = event.seq;
            self.over = matches!(event.event, RunEventKind::RunFinished { .. });
            self.ready.push_back(written(&event));
        }
    }
}
