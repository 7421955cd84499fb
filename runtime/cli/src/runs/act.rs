//! What a person asks of a run: `redflow runs cancel`, and the way there that `resolve` shares.
//!
//! Owns the choice of who does it: the process that drives the runs, if there is one, else this one. Never
//! drives a run any further.

use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::args_runs::CancelOptions;
use crate::data_dir::DataOption;
use crate::drive::{engine, runtime};
use crate::stored::Stored;
use crate::terminal::{json, refuse, refuse_with, talk};
use crate::timeline::Timeline;
use crate::wiring;
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::id::RunId;
use redflow_contract::run::RunRequest;
use redflow_ports::{RunStore, StoreError};
use redflow_store::{Reader, RequestOutcome, Store, request_outcome, submit_request};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long the process that drives the runs may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often is looked for its answer.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn cancel(options: &CancelOptions, data: &DataOption) -> Exit {
    let run = RunId::from(options.run.as_str());
    let kept = match Stored::sound_run(data, &run) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    if kept.summary.status.is_over() {
        return refuse_over(&run, Advice::of(data));
    }
    let wish = RunRequest::Cancel { reason: options.reason.clone() };
    let done = match (Request { run: &run, wish: &wish, dir: &kept.dir, data }).make(&kept.reader) {
        Ok(done) => done,
        Err(exit) => return exit,
    };
    let (id, advice) = (shown_id(&run), Advice::of(data));
    let now = kept.reader.summary(&run).ok().flatten();
    let is_over = now.as_ref().is_none_or(|now| now.status.is_over());
    let is_cancelled = now.is_none_or(|now| now.code == Some(RunErrorCode::Cancelled));
    let (outcome, text) = match done {
        Done::Left => ("asked", left(&run)),
        // The answer was there before; only a memory had still to take it.
        _ if is_over && !is_cancelled => {
            ("recorded", format!("run {id} had its answer already and is over: {}", advice.show(&run)))
        }
        Done::Here if !is_over => {
            ("recorded", format!("run {id} had its answer already; let it end: {}", advice.resume(&run)))
        }
        Done::ByDriver => ("cancelled", format!("run {id} is cancelled by the process that drives it")),
        Done::Here => {
            let deliver = advice.deliver(&kept.summary);
            ("cancelled", format!("run {id} is cancelled; its result leaves with the next {deliver}"))
        }
    };
    say(&run, outcome, &text, options.json)
}

/// Says what was done.
pub(crate) fn say(run: &RunId, outcome: &str, text: &str, as_json: bool) -> Exit {
    if as_json {
        return json(&json!({"runId": run, "outcome": outcome}));
    }
    talk(text);
    Exit::Well
}

/// That nobody has done it yet.
pub(crate) fn left(run: &RunId) -> String {
    format!("the request is left for run {}: whoever drives the runs next will do it", shown_id(run))
}

pub(crate) fn refuse_over(run: &RunId, advice: Advice<'_>) -> Exit {
    let error = StoreError::new(StoreCode::RunOver, format!("Run {} is over already.", shown_id(run)));
    refuse_with(&error, &[advice.show(run)])
}

/// What is asked of a run.
pub(crate) struct Request<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) wish: &'a RunRequest,
    pub(crate) dir: &'a Path,
    pub(crate) data: &'a DataOption,
}

/// Who did it.
pub(crate) enum Done {
    /// This process.
    Here,
    /// The process that drives the runs.
    ByDriver,
    /// Nobody yet: the request is there for whoever drives the runs.
    Left,
}

impl Request<'_> {
    /// Does it, or has it done.
    pub(crate) fn make(&self, reader: &Reader) -> Result<Done, Exit> {
        let runtime = runtime()?;
        if reader.is_driven() {
            return runtime.block_on(self.ask(reader));
        }
        match Store::open(self.dir) {
            Ok(store) => runtime.block_on(self.act(store)),
            // Somebody was faster.
            Err(error) if error.code == StoreCode::DataLocked => runtime.block_on(self.ask(reader)),
            Err(error) => Err(refuse(&error)),
        }
    }

    async fn act(&self, store: Store) -> Result<Done, Exit> {
        let store: Arc<dyn RunStore> = Arc::new(store);
        let engine = engine(None, Arc::clone(&store), Arc::new(Timeline::new(true, false)));
        let run = self.run.clone();
        let asked = async {
            match self.wish.clone() {
                RunRequest::Cancel { reason } => engine.cancel(run, reason).await,
                RunRequest::Resolve { call_id, result } => engine.resolve(run, call_id, result).await,
            }
        };
        // Told to stop while the run is only being read: it is kept what was said, and nothing is done with it.
        let (done, ()) = tokio::join!(biased; asked, engine.shutdown(Duration::ZERO));
        done.map(|()| Done::Here).map_err(|error| refuse(&error))
    }

    async fn ask(&self, reader: &Reader) -> Result<Done, Exit> {
        let now = wiring::clock().now();
        let id = submit_request(self.dir, self.run, self.wish, now).map_err(|error| refuse(&error))?;
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        loop {
            // In this order: an answer that comes with the end of the process is seen.
            let driven = reader.is_driven();
            match request_outcome(self.dir, id).map_err(|error| refuse(&error))? {
                Some(RequestOutcome::Done) => return Ok(Done::ByDriver),
                Some(RequestOutcome::Refused(code)) => return Err(self.refused(code)),
                None => {}
            }
            let over = tokio::select! {
                biased;
                () = &mut patience => true,
                () = tokio::time::sleep(LOOK) => !driven,
            };
            if over {
                return Ok(Done::Left);
            }
        }
    }

    fn refused(&self, code: StoreCode) -> Exit {
        let text = format!("The process that drives the runs refused: {}", code.summary());
        refuse_with(&StoreError::new(code, text), &[Advice::of(self.data).show(self.run)])
    }
}
