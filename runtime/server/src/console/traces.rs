//! `/api/runs/{id}/trace`: the decision trace of a run, as JSON or as a stream that ends with the run.
//!
//! A trace is folded from the journal. While a run goes on, the event log tells when to fold again; the number of a
//! step never changes, so no step is missing or sent twice.

use crate::app::{App, MAX_TRACE_STREAMS};
use crate::log_stream::{LogPart, LogStream, wants_stream};
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, raw};
use crate::runs::find_run;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use futures::stream;
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use redflow_contract::id::RunId;
use redflow_contract::trace::{RunTrace, TraceStep};
use redflow_ports::RunRecord;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a stream lasts. The client then reconnects and goes on after its last step.
const MAX_DURATION: Duration = Duration::from_secs(60 * 60);

/// How long a client may take to read a part. A slower one is disconnected.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The shortest time between two reads of a journal by one stream.
const PAUSE: Duration = Duration::from_millis(200);

/// Parts that wait for the client.
const MAX_WAITING: usize = 16;

pub(crate) async fn trace(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> ApiResult {
    let last_seen = last_seen(query.as_deref(), &headers)?;
    let run = RunId::from(run);
    if !wants_stream(&headers) {
        let mut trace = fold(&app, &caller, &run).await?;
        trace.steps.retain(|step| step.number > last_seen);
        return Ok(json(200, &trace));
    }
    let permit = Arc::clone(&app.trace_streams).try_acquire_owned().map_err(|_| {
        let text =
            format!("{MAX_TRACE_STREAMS} traces are streamed already, which is the limit. Close some.");
        Problem::new(ApiCode::TooManyConnections, text)
    })?;
    // Taken before the journal is read, so that the log has all events which the journal lacks.
    let position = app.hub.log.bounds().newest;
    let first = fold(&app, &caller, &run).await?;
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let log = LogStream { app, caller, position };
    let follower = TraceFollower { run, sent: last_seen, log, sender };
    tokio::spawn(async move {
        follower.follow(first).await;
        drop(permit);
    });
    let parts = stream::unfold(receiver, |mut receiver| async {
        let part: Bytes = receiver.recv().await?;
        Some((Ok::<_, Infallible>(part), receiver))
    });
    Ok(raw(200, "text/event-stream", Body::from_stream(parts)))
}

/// The number of the last step that the client has.
fn last_seen(query: Option<&str>, headers: &HeaderMap) -> Result<u32, Problem> {
    let mut after = 0;
    for (name, value) in query_pairs(query) {
        match name.as_str() {
            "after" => {
                after = value.parse().map_err(|_| invalid("`after` must be the number of a step."))?;
            }
            other => return Err(unknown_parameter(other)),
        }
    }
    // A client that reconnects sends it as a header, which counts more than the query.
    match headers.get("last-event-id") {
        None => Ok(after),
        Some(id) => {
            let number = id.to_str().ok().and_then(|id| id.parse().ok());
            number.ok_or_else(|| invalid("`Last-Event-ID` must be the number of a step."))
        }
    }
}

/// Folds the journal of a run on another thread.
pub(crate) async fn fold(app: &App, caller: &Caller, run: &RunId) -> Result<RunTrace, Problem> {
    let slot = app.work_slots.computation(&caller.name).await?;
    let RunRecord { summary, journal, problem } = find_run(app, run).await?;
    if let Some(problem) = problem {
        // A client could not tell half a trace from a whole one.
        return Err(problem.into());
    }
    let run = run.clone();
    let fold = move || {
        let trace = redflow_strategies::run_trace(run, &journal);
        RunTrace { ended: trace.ended || summary.status.is_over(), ..trace }
    };
    Ok(slot.run_blocking(fold).await?.0)
}

/// Sends the steps of one run to one client.
struct TraceFollower {
    run: RunId,
    /// The number of the last step that was sent.
    sent: u32,
    log: LogStream,
    sender: mpsc::Sender<Bytes>,
}

impl TraceFollower {
    /// Ends with the run, with the client, and after the longest duration.
    async fn follow(mut self, first: RunTrace) {
        let end = Instant::now() + MAX_DURATION;
        let mut trace = first;
        loop {
            let new = trace.steps.iter().filter(|step| step.number > self.sent);
            let parts: Vec<(u32, Bytes)> = new.map(|step| (step.number, sse_step(step))).collect();
            for (number, part) in parts {
                if !self.send(part).await {
                    return;
                }
                self.sent = number;
            }
            if trace.ended {
                self.send(sse_end(trace)).await;
                return;
            }
            match timeout_at(end, self.wait_for_change()).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
            tokio::time::sleep(PAUSE).await;
            // If the run cannot be read any more, the client learns why when it reconnects.
            match fold(&self.log.app, &self.log.caller, &self.run).await {
                Ok(next) => trace = next,
                Err(_) => return,
            }
        }
    }

    /// Waits for an event of the run; false at the end of the stream.
    async fn wait_for_change(&mut self) -> bool {
        loop {
            let part = tokio::select! {
                () = self.sender.closed() => return false,
                part = self.log.next() => part,
            };
            match part {
                None => return false,
                Some(LogPart::Heartbeat) => {
                    if !self.send(LogPart::HEARTBEAT).await {
                        return false;
                    }
                }
                Some(LogPart::Events(events)) => {
                    if events.iter().any(|event| event.run.as_ref() == Some(&self.run)) {
                        return true;
                    }
                }
            }
        }
    }

    /// Whether the client took the part in time.
    async fn send(&self, part: Bytes) -> bool {
        matches!(timeout(READ_TIMEOUT, self.sender.send(part)).await, Ok(Ok(())))
    }
}

/// A step in the format of server-sent events.
fn sse_step(step: &TraceStep) -> Bytes {
    let json = serde_json::to_string(step).unwrap_or_default();
    Bytes::from(format!("id: {}\ndata: {json}\n\n", step.number))
}

/// The last event of a stream: the trace without its steps.
fn sse_end(trace: RunTrace) -> Bytes {
    let rest = RunTrace { steps: Vec::new(), ..trace };
    let json = serde_json::to_string(&rest).unwrap_or_default();
    Bytes::from(format!("event: end\ndata: {json}\n\n"))
}
