//! Follows the events of a run at a sidecar: each event once, also over several connections.
//!
//! After a lost connection it continues after the last `seq`. It waits for an unreachable sidecar, but not
//! forever.

use super::client::{SidecarClient, run_path};
use super::events::EventReader;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::ApiCode;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::id::RunId;
use redflow_contract::replay::RunDetail;
use redflow_contract::run::RunStatus;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time for which a sidecar can be unreachable.
const MAX_OUTAGE: Duration = Duration::from_secs(30);
/// The first pause before a retry. It doubles up to the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(crate) struct Follower<'a> {
    sidecar: &'a SidecarClient,
    run: &'a RunId,
    /// The `seq` of the last event.
    seq: u32,
    /// Whether to continue while the run waits for a person.
    through_waiting: bool,
    /// Whether the last event of the run has arrived.
    finished: bool,
}

/// Why a stream ended.
enum StreamEnd {
    /// The run has ended, or it waits.
    RunStopped,
    /// The connection was lost. `progress` tells whether an event arrived on it.
    Lost { progress: bool, why: Option<ApiError> },
}

impl<'a> Follower<'a> {
    pub(crate) fn new(sidecar: &'a SidecarClient, run: &'a RunId) -> Self {
        Self { sidecar, run, seq: 0, through_waiting: false, finished: false }
    }

    /// Continues while the run waits for a person.
    pub(crate) fn through_waiting(self) -> Self {
        Self { through_waiting: true, ..self }
    }

    /// Whether the last event of the run has arrived.
    pub(crate) fn has_finished(&self) -> bool {
        self.finished
    }

    /// Passes every event to `print` until the run has ended or waits.
    pub(crate) async fn follow(&mut self, print: &mut (dyn FnMut(&RunEvent) + Send)) -> Result<(), ApiError> {
        let mut pause = FIRST_PAUSE;
        let mut last_contact = Instant::now();
        loop {
            let (progress, why) = match self.read_stream(print).await {
                Ok(StreamEnd::RunStopped) => return Ok(()),
                Ok(StreamEnd::Lost { progress, why }) => (progress, why),
                Err(error) => (false, Some(error)),
            };
            match why {
                Some(error) if !is_temporary(&error) || last_contact.elapsed() > MAX_OUTAGE && !progress => {
                    return Err(error);
                }
                Some(_) => {}
                // The stream ended before the run: perhaps no process drives the run.
                None if !progress && self.has_stopped().await? => return Ok(()),
                None => last_contact = Instant::now(),
            }
            if progress {
                (pause, last_contact) = (FIRST_PAUSE, Instant::now());
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Reads one connection. It is an error if the connection cannot be opened.
    async fn read_stream(
        &mut self,
        print: &mut (dyn FnMut(&RunEvent) + Send),
    ) -> Result<StreamEnd, ApiError> {
        let path = run_path(self.run, &["events"])?;
        let mut stream = self.sidecar.open_stream(&path, &[("after", self.seq.to_string())]).await?;
        let (mut reader, mut progress) = (EventReader::new(), false);
        loop {
            let piece = match stream.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(StreamEnd::Lost { progress, why: None }),
                Err(error) => return Ok(StreamEnd::Lost { progress, why: Some(error) }),
            };
            let events =
                reader.push(&piece).map_err(|_| self.sidecar.incompatible("an event is too large"))?;
            // Only a heartbeat arrived: perhaps no process drives the run.
            if events.is_empty() && reader.is_between_events() && self.has_stopped().await? {
                return Ok(StreamEnd::RunStopped);
            }
            for data in events {
                let event = match serde_json::from_str::<RunEvent>(&data) {
                    Ok(event) => event,
                    // The sidecar sends an error before it closes the connection.
                    Err(_) => match serde_json::from_str::<ApiError>(&data) {
                        Ok(error) => return Ok(StreamEnd::Lost { progress, why: Some(error) }),
                        Err(_) => return Err(self.sidecar.incompatible("an event is not an event of a run")),
                    },
                };
                if event.seq <= self.seq {
                    continue;
                }
                (self.seq, progress) = (event.seq, true);
                print(&event);
                match event.event {
                    RunEventKind::RunFinished { .. } => {
                        self.finished = true;
                        return Ok(StreamEnd::RunStopped);
                    }
                    RunEventKind::WaitingForOutcome { .. }
                        if !self.through_waiting && self.has_stopped().await? =>
                    {
                        return Ok(StreamEnd::RunStopped);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Gets the run. It waits for an unreachable sidecar too.
    pub(crate) async fn detail(&self) -> Result<RunDetail, ApiError> {
        let path = run_path(self.run, &[])?;
        let (started, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match self.sidecar.get(&path, &[]).await {
                Err(error) if is_temporary(&error) && started.elapsed() < MAX_OUTAGE => sleep(pause).await,
                answer => return answer,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Whether no more events are to come for now.
    async fn has_stopped(&self) -> Result<bool, ApiError> {
        Ok(match self.detail().await?.summary.status {
            RunStatus::Running => false,
            RunStatus::Waiting => !self.through_waiting,
            _ => true,
        })
    }
}

/// Whether the same request can succeed a little later.
fn is_temporary(error: &ApiError) -> bool {
    let ProblemCode::Api(code) = error.code else { return false };
    matches!(
        code,
        ApiCode::SidecarUnreachable
            | ApiCode::Stopping
            | ApiCode::TooManyConnections
            | ApiCode::RateLimited
            | ApiCode::ReaderTooSlow
    )
}
