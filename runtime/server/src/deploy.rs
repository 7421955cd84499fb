//! Deploys: a new flow is made, checked, stored, and only then active.
//!
//! Owns that order, and that there is one deploy at a time. So a change that starts from the active flow can
//! rely on it. Knows nothing of the HTTP interfaces that ask for a deploy.

use crate::active_flow::{ActiveFlow, FlowBuilder, PreparedFlow};
use crate::app::App;
use crate::response::Problem;
use crate::start_failure::StartFailure;
use crate::work_slots::WorkSlots;
use redflow_contract::api::{AgentState, ApiError, DeployAnswer, DeployRequest};
use redflow_contract::code::{ApiCode, DiagnosticCode, Severity};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::limits::FlowLimits;
use redflow_contract::phrases;
use redflow_engine::BuiltFlow;
use redflow_flow::RawFlow;
use redflow_ports::{Credentials, FlowStore};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

/// What happens to a flow in which an agent has errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tolerance {
    /// The whole flow is refused.
    Strict,
    /// The agent is refused, the rest runs. For editors that cannot show why a deploy was refused.
    RefuseAgents,
}

/// Problems, or agents, that are reported one by one.
const MAX_LISTED: usize = 100;

/// Deploys a flow if it was made from the active revision and no agent has errors.
pub(crate) async fn deploy(app: &App, request: DeployRequest) -> Result<DeployAnswer, Problem> {
    let make = move |before: &ActiveFlow, limits: &FlowLimits| {
        check_revision(&request, before)?;
        RawFlow::from_value(request.flows, limits).map_err(Problem::flow_refused)
    };
    let active = change(app, Tolerance::Strict, make).await?;
    Ok(DeployAnswer { revision: active.revision().to_owned(), report: (*active.report).clone() })
}

/// Makes a new flow from the active one and deploys it. No other deploy comes between.
pub(crate) async fn change<M>(app: &App, tolerance: Tolerance, make: M) -> Result<ActiveFlow, Problem>
where
    M: FnOnce(&ActiveFlow, &FlowLimits) -> Result<RawFlow, Problem> + Send + 'static,
{
    let _lock = app.deploy_lock.lock().await;
    let (before, flow_builder) = (app.active_flow(), app.flow_builder.clone());
    let prepare = move || {
        let raw = make(&before, &flow_builder.settings.flow_limits)?.into_array();
        refuse_invalid_credentials(&raw).map_err(Problem::flow_refused)?;
        let prepared = flow_builder.prepare(raw, &before.credentials).map_err(Problem::flow_refused)?;
        match tolerance {
            Tolerance::Strict if !prepared.active.report.ok => {
                Err(Problem::flow_refused((*prepared.active.report).clone()))
            }
            Tolerance::Strict | Tolerance::RefuseAgents => Ok(prepared),
        }
    };
    let mut prepared = app.work_slots.run_deploy(prepare).await??;
    app.flow_builder.add_notices(&mut prepared).await;
    let PreparedFlow { active, built, stored } = prepared;
    let flow_store = Arc::clone(&app.flow_store);
    app.work_slots.run_deploy(move || flow_store.save(&stored)).await??;
    Ok(activate(app, active, built).await)
}

/// Deploys the stored flow again. Another program may have changed the file.
pub(crate) async fn reload(app: &App) -> Result<ActiveFlow, Problem> {
    let _lock = app.deploy_lock.lock().await;
    let loaded = load_stored(&app.work_slots, &app.flow_builder, &app.flow_store).await;
    let PreparedFlow { active, built, .. } = loaded.map_err(|failure| match failure {
        StartFailure::Flow(report) | StartFailure::Manifest(report) => Problem::flow_refused(report),
        StartFailure::Api(error) => error.into(),
    })?;
    Ok(activate(app, active, built).await)
}

/// Reads and builds the stored flow, or an empty one if none is stored.
pub(crate) async fn load_stored(
    work_slots: &WorkSlots,
    flow_builder: &FlowBuilder,
    flow_store: &Arc<dyn FlowStore>,
) -> Result<PreparedFlow, StartFailure> {
    let (own_builder, flow_store) = (flow_builder.clone(), Arc::clone(flow_store));
    let prepare = move || {
        let flow_builder = own_builder;
        let stored = flow_store.load().map_err(|error| {
            let (code, message) = (error.code, error.message);
            StartFailure::Api(ApiError { code, message, report: None, revision: None })
        })?;
        let (bytes, credentials) = stored.map_or_else(
            || (b"[]".to_vec(), Credentials::new()),
            |stored| (stored.flows, stored.credentials),
        );
        let mut raw =
            RawFlow::parse(&bytes, &flow_builder.settings.flow_limits).map_err(StartFailure::Flow)?;
        let keys = raw.extract_plain_keys(Some(&credentials));
        if keys > 0 {
            tracing::warn!(
                keys,
                "the flow file holds API keys as plain text; responses hide them, and the next deploy moves \
                 them to the encrypted credentials"
            );
        } else if raw.nodes().iter().any(|node| node.props.contains_key("credentials")) {
            tracing::warn!(
                "the flow file holds credentials as plain text; remove them and deploy them once, then they \
                 are stored encrypted"
            );
        }
        flow_builder.prepare(raw, &credentials).map_err(StartFailure::Flow)
    };
    let failed = |Problem(error): Problem| StartFailure::Api(*error);
    let mut prepared = work_slots.run_deploy(prepare).await.map_err(failed)??;
    flow_builder.add_notices(&mut prepared).await;
    Ok(prepared)
}

async fn activate(app: &App, active: ActiveFlow, built: BuiltFlow) -> ActiveFlow {
    let before = replace_active(app, active.clone(), built).await;
    log_deployed(app, &active);
    report_refused_agents(app, &before, &active);
    active
}

/// Lets a flow run in place of the active one, and gives the one before. The caller holds the deploy lock.
/// The frames learn the secrets of the flow before it can send one.
pub(crate) async fn replace_active(app: &App, active: ActiveFlow, built: BuiltFlow) -> ActiveFlow {
    app.frames.add_secrets(built.scrubber());
    app.engine.deploy(built).await;
    let mut active_flow = app.active_flow.write().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut *active_flow, active)
}

/// Appends the event of a deploy to the event log.
pub(crate) fn log_deployed(app: &App, active: &ActiveFlow) {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let event = FlowEvent::Deployed {
        revision: active.revision().to_owned(),
        agents: count(active.agents().count()),
        refused: count(active.agents().filter(|agent| !agent.ready).count()),
        instance: None,
    };
    app.hub.log.append(app.clock.now(), event);
}

/// Reports to the Redflow UI which agents became ready and which became refused.
pub(crate) fn report_changed_agents(app: &App, before: &ActiveFlow, active: &ActiveFlow) {
    report_ready_agents(app, before, active);
    let were_ready = ready_agents(before);
    for (node, code, message) in refusals(active).filter(|(node, ..)| were_ready.contains(&node.id)) {
        app.frames.report_refused(node, code, &message);
    }
}

fn report_ready_agents(app: &App, before: &ActiveFlow, active: &ActiveFlow) {
    let ready = ready_agents(active);
    let were_refused = before.agents().filter(|agent| !agent.ready).map(|agent| &agent.node);
    let were_warned = warnings(before).map(|(node, ..)| node).filter(|node| {
        // One event is enough for an agent, however many warnings it had.
        !warnings(active).any(|(warned, ..)| warned.id == node.id)
    });
    let mut reported = HashSet::new();
    let all = were_refused.chain(were_warned).filter(|node| ready.contains(&node.id));
    for node in all.filter(|node| reported.insert(&node.id)).take(MAX_LISTED) {
        app.frames.report_ready(node);
    }
}

/// Logs and reports all refused agents, because the deploying client may not show the report.
fn report_refused_agents(app: &App, before: &ActiveFlow, active: &ActiveFlow) {
    report_ready_agents(app, before, active);
    for (node, code, message) in refusals(active) {
        tracing::warn!(agent = node.id.as_str(), code, "refused an agent; see /api/flows for the reason");
        app.frames.report_refused(node, code, &message);
    }
    for (node, code, message) in warnings(active) {
        tracing::warn!(agent = node.id.as_str(), code, "an agent has a tool that its model may not call");
        app.frames.report_warning(node, code, &message);
    }
    let rest = active.agents().filter(|agent| !agent.ready).count().saturating_sub(MAX_LISTED);
    if rest > 0 {
        tracing::warn!(rest, "refused more agents; see /api/flows");
    }
}

fn ready_agents(active: &ActiveFlow) -> HashSet<&NodeId> {
    active.agents().filter(|agent| agent.ready).map(|agent| &agent.node.id).collect()
}

/// The first refused agents, each with the code and the text of its worst problem.
pub(crate) fn refusals(active: &ActiveFlow) -> impl Iterator<Item = (&NodeSummary, &str, String)> {
    let refused = active.agents().filter(|agent| !agent.ready).take(MAX_LISTED);
    refused.filter_map(|agent| {
        let worst = worst_problem(agent)?;
        Some((&agent.node, worst.code.as_str(), sentence(worst)))
    })
}

/// The first connected tools and memories that an agent does not use, each with its agent, the code and the text. The
/// page of the UI cannot show them otherwise.
fn warnings(active: &ActiveFlow) -> impl Iterator<Item = (&NodeSummary, &str, String)> {
    let codes = [DiagnosticCode::ToolConnectedNotAllowed, DiagnosticCode::MemoryNotUsed];
    let found = active.report.diagnostics.iter().filter(move |problem| codes.contains(&problem.code));
    found
        .filter_map(|problem| Some((problem.node.as_ref()?, problem.code.as_str(), sentence(problem))))
        .take(MAX_LISTED)
}

/// The first error of an agent, or else its first problem.
pub(crate) fn worst_problem(agent: &AgentState) -> Option<&Diagnostic> {
    let is_error = |problem: &&Diagnostic| problem.severity == Severity::Error;
    agent.problems.iter().find(is_error).or(agent.problems.first())
}

/// A problem and its remedy as one text.
pub(crate) fn sentence(problem: &Diagnostic) -> String {
    format!("{}. {}", problem.message, problem.help)
}

fn check_revision(request: &DeployRequest, before: &ActiveFlow) -> Result<(), Problem> {
    match &request.revision {
        _ if request.force => Ok(()),
        Some(revision) if revision == before.revision() => Ok(()),
        None if before.is_empty => Ok(()),
        Some(_) => Err(revision_conflict(before)),
        None => {
            let text =
                "Send the `revision` that this flow was made from, or `force: true` to replace any flow.";
            Err(conflict(before, text))
        }
    }
}

/// Another deploy came first.
pub(crate) fn revision_conflict(before: &ActiveFlow) -> Problem {
    let text = "Another flow was deployed since that revision. Get it, merge, and deploy with its revision.";
    conflict(before, text)
}

fn conflict(before: &ActiveFlow, text: &str) -> Problem {
    let revision = Some(before.revision().to_owned());
    ApiError { revision, ..ApiError::new(ApiCode::RevisionConflict, text) }.into()
}

/// Refuses credentials that cannot be stored, so that none is dropped silently.
fn refuse_invalid_credentials(raw: &RawFlow) -> Result<(), CheckReport> {
    let diagnostics: Vec<Diagnostic> = raw
        .invalid_credentials()
        .into_iter()
        .take(MAX_LISTED)
        .map(|node| {
            let (message, help) = (phrases::credentials_wrong(), phrases::credentials_wrong_help());
            let pointer = Some("/credentials".to_owned());
            let found = Diagnostic::new(DiagnosticCode::ConfigInvalid, message, help);
            Diagnostic { node: Some(node), pointer, ..found }
        })
        .collect();
    if diagnostics.is_empty() { Ok(()) } else { Err(CheckReport { diagnostics, ..CheckReport::default() }) }
}
