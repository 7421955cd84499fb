//! Follows the attached Node-RED: reads and checks its flow now and after every deploy.
//!
//! Owns when Node-RED is called, and how often if it does not answer. Reports go to the log, to the event log
//! and to `/api/beside`.

use super::node_red::AttachedNodeRed;
use crate::app::App;
use crate::response::printable;
use redflow_contract::api::ApiError;
use redflow_contract::code::{DiagnosticCode, Severity};
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::event::FlowEvent;
use redflow_flow::RawFlow;
use redflow_node_red::{Comms, CommsEvent, DeployedFlow};
use std::time::Duration;

/// The first and the longest wait before a retry. A deploy in a Node-RED without `/comms` can stay unnoticed
/// for the longest wait.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Problems of one flow that are logged one by one.
const MAX_LOGGED: usize = 20;

/// Follows until the future is dropped.
pub(super) async fn follow(app: &App, attached: &AttachedNodeRed) {
    let mut backoff = Backoff::new();
    loop {
        let error = follow_until_error(app, attached, &mut backoff).await;
        let is_new = {
            let mut state = attached.state();
            let is_new =
                state.connected || state.error.as_ref().map(|last| &last.message) != Some(&error.message);
            (state.connected, state.error) = (false, Some(error.clone()));
            is_new
        };
        // The same error is logged once.
        if is_new {
            tracing::warn!(code = error.code.as_str(), "{}", error.message);
        }
        tokio::time::sleep(backoff.next_delay(random_fraction())).await;
    }
}

/// Listens, reads and checks until an error happens, and gives the error.
async fn follow_until_error(app: &App, attached: &AttachedNodeRed, backoff: &mut Backoff) -> ApiError {
    // It listens before it reads, so that it misses no deploy. Without `/comms` it checks deploys later.
    let comms = attached.node_red.comms().await;
    if let Err(error) = check_flow(app, attached).await {
        return error;
    }
    match comms {
        Ok(comms) => listen(app, attached, comms, backoff).await,
        Err(error) => error,
    }
}

async fn listen(app: &App, attached: &AttachedNodeRed, mut comms: Comms, backoff: &mut Backoff) -> ApiError {
    let version = attached.node_red.version().await;
    {
        let mut state = attached.state();
        (state.connected, state.error) = (true, None);
        state.version = version.or_else(|| state.version.take());
    }
    tracing::info!(url = attached.node_red.url(), "attached to Node-RED; every deploy is checked");
    while let Some(events) = comms.next().await {
        if events.contains(&CommsEvent::Refused) {
            return attached.node_red.comms_refused();
        }
        // The connection worked, so the next error starts with a short delay again.
        backoff.reset();
        let known = attached.state().revision.clone();
        let is_other_flow = |event: &CommsEvent| match event {
            CommsEvent::Deployed(revision) => revision.is_none() || *revision != known,
            _ => false,
        };
        if events.iter().any(is_other_flow)
            && let Err(error) = check_flow(app, attached).await
        {
            return error;
        }
    }
    attached.node_red.comms_closed()
}

/// Reads the flow, and checks it if its revision is new.
async fn check_flow(app: &App, attached: &AttachedNodeRed) -> Result<(), ApiError> {
    let DeployedFlow { flows, rev } = attached.node_red.flows().await?;
    if attached.state().revision.as_ref() == Some(&rev) {
        return Ok(());
    }
    let (flow_builder, limits) = (app.flow_builder.clone(), app.settings.flow_limits);
    let check = move || {
        let raw = RawFlow::from_value(flows, &limits)?;
        flow_builder.check(raw, flow_builder.settings.profile).map(|checked| checked.report)
    };
    // An unreadable flow has a report as well.
    let Ok(checked) = app.run_blocking(check).await else { return Ok(()) };
    let report = checked.unwrap_or_else(|report| report);
    let now = app.clock.now();
    let count = |severity| u32::try_from(count_severity(&report, severity)).unwrap_or(u32::MAX);
    let event = FlowEvent::Checked {
        source: attached.node_red.url().to_owned(),
        revision: rev.clone(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
    };
    log_report(attached.node_red.url(), &rev, &report);
    let mut state = attached.state();
    (state.revision, state.checked_at, state.report) = (Some(rev), Some(now), Some(report));
    drop(state);
    app.hub.log.append(now, event);
    Ok(())
}

/// Counts the problems of a severity, including those that the report omits.
fn count_severity(report: &CheckReport, severity: Severity) -> usize {
    let listed = report.diagnostics.iter().filter(|problem| problem.severity == severity).count();
    let class = |code: &str| DiagnosticCode::parse(code).map_or(Severity::Error, DiagnosticCode::class);
    let omitted = report.omitted.iter().filter(|(code, _)| class(code) == severity);
    listed + omitted.map(|(_, number)| usize::try_from(*number).unwrap_or(usize::MAX)).sum::<usize>()
}

fn log_report(url: &str, revision: &str, report: &CheckReport) {
    let errors = count_severity(report, Severity::Error);
    let warnings = count_severity(report, Severity::Warning);
    tracing::info!(url, revision, errors, warnings, "checked the flow that runs in Node-RED");
    let problems = report.diagnostics.iter().filter(|problem| problem.severity != Severity::Info);
    for problem in problems.take(MAX_LOGGED) {
        let node = problem.node.as_ref().map(|node| printable(node.id.as_str())).unwrap_or_default();
        tracing::warn!(code = problem.code.as_str(), node, "{}", printable(&problem.message));
    }
    if errors + warnings > MAX_LOGGED {
        tracing::warn!("… and {} more; see GET /api/beside", errors + warnings - MAX_LOGGED);
    }
}

/// The delay before a retry: doubles up to a limit, with a random part so that sidecars do not retry in step.
struct Backoff(Duration);

impl Backoff {
    fn new() -> Self {
        Self(FIRST_DELAY)
    }

    fn reset(&mut self) {
        self.0 = FIRST_DELAY;
    }

    /// Between half and all of the current delay. `fraction` is from 0 to 1.
    fn next_delay(&mut self, fraction: f64) -> Duration {
        let longest = self.0;
        self.0 = (longest * 2).min(MAX_DELAY);
        longest.div_f64(2.0) + longest.mul_f64(fraction.clamp(0.0, 1.0) / 2.0)
    }
}

/// A random number from 0 to 1.
fn random_fraction() -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    f64::from(u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Backoff, FIRST_DELAY, MAX_DELAY, random_fraction};

    #[test]
    fn delays_double_up_to_a_limit_and_reset() {
        let mut backoff = Backoff::new();
        let delays: Vec<_> = (0..12).map(|_| backoff.next_delay(1.0)).collect();
        assert_eq!(delays[0], FIRST_DELAY);
        assert!(delays.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(MAX_DELAY)), "{delays:?}");
        assert_eq!(delays[11], MAX_DELAY);
        assert_eq!(backoff.next_delay(0.0), MAX_DELAY / 2);
        backoff.reset();
        assert_eq!(backoff.next_delay(0.0), FIRST_DELAY / 2);
    }

    #[test]
    fn random_fractions_differ() {
        let some: Vec<f64> = (0..8).map(|_| random_fraction()).collect();
        assert!(some.iter().all(|part| (0.0..=1.0).contains(part)), "{some:?}");
        assert!(some.windows(2).any(|pair| pair[0] != pair[1]), "{some:?}");
    }
}
