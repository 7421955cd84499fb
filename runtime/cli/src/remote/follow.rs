//! Following a run at a sidecar: its events as they come in, each once, whatever happens to the connection.
//!
//! Owns where to go on: after the last `seq` that was seen. A sidecar that is away is waited for, but not for ever.

use super::client::{Sidecar, run_path};
use super::sse::Events;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::ApiCode;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::id::RunId;
use redflow_contract::replay::RunDetail;
use redflow_contract::run::RunStatus;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a sidecar may be away.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long is waited before it is asked again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A run that is followed.
pub(super) struct Follow<'a> {
    sidecar: &'a Sidecar,
    run: &'a RunId,
    /// The last event that was seen.
    seq: u32,
    /// Whether a run that waits for a person is followed on.
    through_waiting: bool,
    /// Whether its end was seen.
    finished: bool,
}

/// Why a stream ended.
enum Ended {
    /// There is nothing more to see.
    Rested,
    /// The connection did; whether anything was seen on it.
    Lost { moved: bool, why: Option<ApiError> },
}

impl<'a> Follow<'a> {
    pub(super) fn new(sidecar: &'a Sidecar, run: &'a RunId) -> Self {
        Self { sidecar, run, seq: 0, through_waiting: false, finished: false }
    }

    /// Also while it waits for a person.
    pub(super) fn through_waiting(self) -> Self {
        Self { through_waiting: true, ..self }
    }

    /// Whether the run is over as far as events tell.
    pub(super) fn is_over(&self) -> bool {
        self.finished
    }

    /// Shows every event until the run has come to rest.
    pub(super) async fn until_rest(
        &mut self,
        show: &mut (dyn FnMut(&RunEvent) + Send),
    ) -> Result<(), ApiError> {
        let mut pause = PAUSES.0;
        let mut heard = Instant::now();
        loop {
            let (moved, why) = match self.stream(show).await {
                Ok(Ended::Rested) => return Ok(()),
                Ok(Ended::Lost { moved, why }) => (moved, why),
                Err(error) => (false, Some(error)),
            };
            match why {
                Some(error) if !is_passing(&error) || heard.elapsed() > PATIENCE && !moved => {
                    return Err(error);
                }
                Some(_) => {}
                // It ended well without an end of the run: nobody may be driving it.
                None if !moved && self.rests().await? => return Ok(()),
                None => heard = Instant::now(),
            }
            if moved {
                (pause, heard) = (PAUSES.0, Instant::now());
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// One connection. An error if there is none at all.
    async fn stream(&mut self, show: &mut (dyn FnMut(&RunEvent) + Send)) -> Result<Ended, ApiError> {
        let path = run_path(self.run, &["events"])?;
        let mut stream = self.sidecar.stream(&path, &[("after", self.seq.to_string())]).await?;
        let (mut events, mut moved) = (Events::default(), false);
        loop {
            let piece = match stream.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(Ended::Lost { moved, why: None }),
                Err(error) => return Ok(Ended::Lost { moved, why: Some(error) }),
            };
            let whole = events.push(&piece).map_err(|_| self.sidecar.foreign("an event has no end"))?;
            // A sign of life and no more: nobody may be driving the run any more.
            if whole.is_empty() && events.is_between() && self.rests().await? {
                return Ok(Ended::Rested);
            }
            for data in whole {
                let event = match serde_json::from_str::<RunEvent>(&data) {
                    Ok(event) => event,
                    // The sidecar's last word on this connection.
                    Err(_) => match serde_json::from_str::<ApiError>(&data) {
                        Ok(error) => return Ok(Ended::Lost { moved, why: Some(error) }),
                        Err(_) => return Err(self.sidecar.foreign("an event is not one of a run")),
                    },
                };
                if event.seq <= self.seq {
                    continue;
                }
                (self.seq, moved) = (event.seq, true);
                show(&event);
                match event.event {
                    RunEventKind::RunFinished { .. } => {
                        self.finished = true;
                        return Ok(Ended::Rested);
                    }
                    RunEventKind::WaitingForOutcome { .. }
                        if !self.through_waiting && self.rests().await? =>
                    {
                        return Ok(Ended::Rested);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The run as it is now. A sidecar that is away is waited for here too.
    pub(super) async fn detail(&self) -> Result<RunDetail, ApiError> {
        let path = run_path(self.run, &[])?;
        let (begun, mut pause) = (Instant::now(), PAUSES.0);
        loop {
            match self.sidecar.get(&path, &[]).await {
                Err(error) if is_passing(&error) && begun.elapsed() < PATIENCE => sleep(pause).await,
                answer => return answer,
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Whether no more is to come for now.
    async fn rests(&self) -> Result<bool, ApiError> {
        Ok(match self.detail().await?.summary.status {
            RunStatus::Running => false,
            RunStatus::Waiting => !self.through_waiting,
            _ => true,
        })
    }
}

/// Whether the same question may be answered a little later.
fn is_passing(error: &ApiError) -> bool {
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
