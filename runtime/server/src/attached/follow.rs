//! Follows a Node-RED: reads its flow, checks it, and does so again with every deploy.
//!
//! Owns when it is asked, and how often if it does not answer. What is said of a flow goes to the log, the log of events
//! and `/api/beside`.

use super::AttachedNodeRed;
use crate::body::printable;
use crate::sidecar::{App, blocking};
use redflow_contract::api::ApiError;
use redflow_contract::code::{DiagnosticCode, Severity};
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::event::FlowEvent;
use redflow_flow::RawFlow;
use redflow_node_red::{Comms, CommsEvent, DeployedFlow};
use std::time::Duration;

/// How long it waits before it asks again: at first, and at most. The longest is also how long a deploy in a Node-RED
/// without `/comms` may go unseen.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Problems of one flow that are logged one by one.
const MOST_LOGGED: usize = 20;

/// Follows for ever.
pub(super) async fn follow(app: &App, beside: &AttachedNodeRed) {
    let mut wait = Wait::new();
    loop {
        let error = attempt(app, beside, &mut wait).await;
        let is_news = {
            let mut state = beside.state();
            let is_news =
                state.connected || state.error.as_ref().map(|last| &last.message) != Some(&error.message);
            (state.connected, state.error) = (false, Some(error.clone()));
            is_news
        };
        // The same trouble is told once.
        if is_news {
            tracing::warn!(code = error.code.as_str(), "{}", error.message);
        }
        tokio::time::sleep(wait.next(fraction())).await;
    }
}

/// Listens, reads and checks until something goes wrong; gives what.
async fn attempt(app: &App, beside: &AttachedNodeRed, wait: &mut Wait) -> ApiError {
    // It listens first, so that no deploy falls between. A flow can be checked without that, only later.
    let comms = beside.node_red.comms().await;
    if let Err(error) = look(app, beside).await {
        return error;
    }
    match comms {
        Ok(comms) => listen(app, beside, comms, wait).await,
        Err(error) => error,
    }
}

async fn listen(app: &App, beside: &AttachedNodeRed, mut comms: Comms, wait: &mut Wait) -> ApiError {
    let version = beside.node_red.version().await;
    {
        let mut state = beside.state();
        (state.connected, state.error) = (true, None);
        state.version = version.or_else(|| state.version.take());
    }
    tracing::info!(url = beside.node_red.url(), "follows Node-RED: every deploy is checked");
    while let Some(told) = comms.next().await {
        if told.contains(&CommsEvent::Refused) {
            return beside.node_red.comms_refused();
        }
        // It was there and said something: the next trouble is a new one.
        wait.begin_again();
        let known = beside.state().revision.clone();
        let is_new = |heard: &CommsEvent| matches!(heard, CommsEvent::Deployed(revision) if revision.is_none() || *revision != known);
        if told.iter().any(is_new)
            && let Err(error) = look(app, beside).await
        {
            return error;
        }
    }
    beside.node_red.lost()
}

/// Reads the flow, and checks it if it is another one.
async fn look(app: &App, beside: &AttachedNodeRed) -> Result<(), ApiError> {
    let DeployedFlow { flows, rev } = beside.node_red.flows().await?;
    if beside.state().revision.as_ref() == Some(&rev) {
        return Ok(());
    }
    let (flow_builder, limits) = (app.flow_builder.clone(), app.settings.flow_limits);
    let check = move || {
        let raw = RawFlow::from_value(flows, &limits)?;
        flow_builder.check(raw, flow_builder.settings.profile).map(|checked| checked.report)
    };
    // A flow that cannot be read at all has a report as well.
    let Ok(checked) = blocking(check).await else { return Ok(()) };
    let report = checked.unwrap_or_else(|report| report);
    let now = app.clock.now();
    let count = |severity| u32::try_from(of_severity(&report, severity)).unwrap_or(u32::MAX);
    let event = FlowEvent::Checked {
        source: beside.node_red.url().to_owned(),
        revision: rev.clone(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
    };
    tell(beside.node_red.url(), &rev, &report);
    let mut state = beside.state();
    (state.revision, state.checked_at, state.report) = (Some(rev), Some(now), Some(report));
    drop(state);
    app.hub.log.append(now, event);
    Ok(())
}

fn of_severity(report: &CheckReport, severity: Severity) -> usize {
    let told = report.diagnostics.iter().filter(|problem| problem.severity == severity).count();
    let class = |code: &str| DiagnosticCode::parse(code).map_or(Severity::Error, DiagnosticCode::class);
    let cut = report.omitted.iter().filter(|(code, _)| class(code) == severity);
    told + cut.map(|(_, number)| usize::try_from(*number).unwrap_or(usize::MAX)).sum::<usize>()
}

fn tell(url: &str, revision: &str, report: &CheckReport) {
    let (errors, warnings) = (of_severity(report, Severity::Error), of_severity(report, Severity::Warning));
    tracing::info!(url, revision, errors, warnings, "checked the flow that runs in Node-RED");
    let matters = report.diagnostics.iter().filter(|problem| problem.severity != Severity::Info);
    for problem in matters.take(MOST_LOGGED) {
        let node = problem.node.as_ref().map(|node| printable(node.id.as_str())).unwrap_or_default();
        tracing::warn!(code = problem.code.as_str(), node, "{}", printable(&problem.message));
    }
    if errors + warnings > MOST_LOGGED {
        tracing::warn!("… and {} more: GET /api/beside has them", errors + warnings - MOST_LOGGED);
    }
}

/// How long to wait: twice as long each time, up to a bound, and never as long as others do.
struct Wait(Duration);

impl Wait {
    fn new() -> Self {
        Self(FIRST_WAIT)
    }

    fn begin_again(&mut self) {
        self.0 = FIRST_WAIT;
    }

    /// The next wait: between half and all of what it could be. `fraction` is from 0 to 1.
    fn next(&mut self, fraction: f64) -> Duration {
        let most = self.0;
        self.0 = (most * 2).min(LONGEST_WAIT);
        most.div_f64(2.0) + most.mul_f64(fraction.clamp(0.0, 1.0) / 2.0)
    }
}

/// Any number from 0 to 1.
fn fraction() -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    f64::from(u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{FIRST_WAIT, LONGEST_WAIT, Wait, fraction};

    #[test]
    fn waits_grow_to_a_bound_and_begin_again() {
        let mut wait = Wait::new();
        let waits: Vec<_> = (0..12).map(|_| wait.next(1.0)).collect();
        assert_eq!(waits[0], FIRST_WAIT);
        assert!(waits.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(LONGEST_WAIT)), "{waits:?}");
        assert_eq!(waits[11], LONGEST_WAIT);
        assert_eq!(wait.next(0.0), LONGEST_WAIT / 2);
        wait.begin_again();
        assert_eq!(wait.next(0.0), FIRST_WAIT / 2);
    }

    #[test]
    fn no_two_wait_alike() {
        let some: Vec<f64> = (0..8).map(|_| fraction()).collect();
        assert!(some.iter().all(|part| (0.0..=1.0).contains(part)), "{some:?}");
        assert!(some.windows(2).any(|pair| pair[0] != pair[1]), "{some:?}");
    }
}
