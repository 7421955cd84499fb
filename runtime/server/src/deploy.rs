//! How a flow comes in force: made, checked, kept, and only then running.
//!
//! Owns the order of that, and that it is done by one at a time: whoever makes a flow of the one in force can rely on
//! it still being that one. Who asks, and in whose words, is not its business.

use crate::active_flow::{ActiveFlow, Prepared};
use crate::answer::Problem;
use crate::sidecar::{App, StartFailure, blocking, load};
use redflow_contract::api::{AgentState, ApiError, DeployAnswer, DeployRequest};
use redflow_contract::code::{ApiCode, DiagnosticCode, Severity};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::limits::FlowLimits;
use redflow_engine::BuiltFlow;
use redflow_flow::RawFlow;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

/// What becomes of a flow in which an agent has errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tolerance {
    /// Nothing of it is deployed.
    Strict,
    /// That agent is refused, the rest runs: for editors that cannot show why a deploy was refused.
    RefuseAgents,
}

/// Problems of one kind, or agents, that are told of one by one.
const MAX_LISTED: usize = 100;

impl App {
    /// Puts a flow in force if the revision it was made from still is, and no agent has errors.
    pub(crate) async fn deploy(&self, request: DeployRequest) -> Result<DeployAnswer, Problem> {
        let make = move |before: &ActiveFlow, limits: &FlowLimits| {
            check_revision(&request, before)?;
            RawFlow::from_value(request.flows, limits).map_err(refused)
        };
        let told = self.change(Tolerance::Strict, make).await?;
        Ok(DeployAnswer { revision: told.revision().to_owned(), report: (*told.report).clone() })
    }

    /// Makes a flow of the one in force and puts it in its place. Nobody else deploys between the two.
    pub(crate) async fn change<M>(&self, tolerance: Tolerance, make: M) -> Result<ActiveFlow, Problem>
    where
        M: FnOnce(&ActiveFlow, &FlowLimits) -> Result<RawFlow, Problem> + Send + 'static,
    {
        let _turn = self.deploying.lock().await;
        let (before, flow_builder) = (self.active_flow(), self.flow_builder.clone());
        let prepare = move || {
            let raw = make(&before, &flow_builder.settings.flow_limits)?.into_array();
            refuse_odd_credentials(&raw).map_err(refused)?;
            let prepared = flow_builder.prepare(raw, &before.credentials).map_err(refused)?;
            match tolerance {
                Tolerance::Strict if !prepared.told.report.ok => {
                    Err(refused((*prepared.told.report).clone()))
                }
                Tolerance::Strict | Tolerance::RefuseAgents => Ok(prepared),
            }
        };
        let Prepared { told, built, shelved } = blocking(prepare).await??;
        let shelf = Arc::clone(&self.shelf);
        blocking(move || shelf.save(&shelved)).await??;
        Ok(self.put_in_force(told, built).await)
    }

    /// Puts the flow in force that is on the shelf, whoever put it there.
    pub(crate) async fn reload(&self) -> Result<ActiveFlow, Problem> {
        let _turn = self.deploying.lock().await;
        let loaded = load(&self.flow_builder, &self.shelf).await.map_err(|failure| match failure {
            StartFailure::Flow(report) => refused(report),
            StartFailure::Api(error) => error.into(),
        });
        let Prepared { told, built, .. } = loaded?;
        Ok(self.put_in_force(told, built).await)
    }

    async fn put_in_force(&self, told: ActiveFlow, built: BuiltFlow) -> ActiveFlow {
        let before = self.exchange(told.clone(), built).await;
        self.tell_deployed(&told);
        self.tell_refused(&before, &told);
        told
    }

    /// Lets this flow run in the place of the one before, and gives that. Its secrets are known before it can show
    /// one. Only for who has the turn to deploy.
    pub(crate) async fn exchange(&self, told: ActiveFlow, built: BuiltFlow) -> ActiveFlow {
        self.frames.knows(built.scrubber());
        self.engine.deploy(built).await;
        let mut active_flow = self.active_flow.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *active_flow, told)
    }

    /// Which agents may run now that could not, and the other way round.
    pub(crate) fn tell_changed(&self, before: &ActiveFlow, told: &ActiveFlow) {
        self.tell_mended(before, told);
        let were_ready = ready(before);
        for (node, code, message) in refusals(told).filter(|(node, ..)| were_ready.contains(&node.id)) {
            self.frames.refused(node, code, &message);
        }
    }

    fn tell_mended(&self, before: &ActiveFlow, told: &ActiveFlow) {
        let ready = ready(told);
        let were_refused = agents(before).filter(|agent| !agent.ready).map(|agent| &agent.node);
        for node in were_refused.filter(|node| ready.contains(&node.id)).take(MAX_LISTED) {
            self.frames.mended(node);
        }
    }

    /// Whoever deployed may not look at the report.
    fn tell_refused(&self, before: &ActiveFlow, told: &ActiveFlow) {
        self.tell_mended(before, told);
        for (node, code, message) in refusals(told) {
            tracing::warn!(agent = node.id.as_str(), code, "an agent is refused; /api/flows says why");
            self.frames.refused(node, code, &message);
        }
        let rest = agents(told).filter(|agent| !agent.ready).count().saturating_sub(MAX_LISTED);
        if rest > 0 {
            tracing::warn!(rest, "more agents are refused; /api/flows says which");
        }
    }
}

fn agents(told: &ActiveFlow) -> impl Iterator<Item = &AgentState> {
    told.list.flows.iter().flat_map(|flow| &flow.agents)
}

/// The agents that may run.
fn ready(told: &ActiveFlow) -> HashSet<&NodeId> {
    agents(told).filter(|agent| agent.ready).map(|agent| &agent.node.id).collect()
}

/// The agents that are refused, the first of them, each with the worst there is to say of it.
pub(crate) fn refusals(told: &ActiveFlow) -> impl Iterator<Item = (&NodeSummary, &str, String)> {
    let refused = agents(told).filter(|agent| !agent.ready).take(MAX_LISTED);
    refused.filter_map(|AgentState { node, problems, .. }| {
        let is_error = |problem: &&Diagnostic| problem.severity == Severity::Error;
        let worst = problems.iter().find(is_error).or(problems.first())?;
        Some((node, worst.code.as_str(), sentence(worst)))
    })
}

/// What is wrong, and how to mend it.
pub(crate) fn sentence(problem: &Diagnostic) -> String {
    format!("{}. {}", problem.message, problem.help)
}

fn check_revision(request: &DeployRequest, before: &ActiveFlow) -> Result<(), Problem> {
    let why = match &request.revision {
        _ if request.force => return Ok(()),
        Some(revision) if revision == before.revision() => return Ok(()),
        None if before.is_empty => return Ok(()),
        Some(_) => return Err(conflict(before)),
        None => {
            "Say which revision this flow was made from, or `force: true` to deploy whatever is in force."
        }
    };
    Err(conflict_because(before, why))
}

/// Another flow came first.
pub(crate) fn conflict(before: &ActiveFlow) -> Problem {
    let why =
        "Another flow has been deployed since that revision. Get it, merge, and deploy with its revision.";
    conflict_because(before, why)
}

fn conflict_because(before: &ActiveFlow, why: &str) -> Problem {
    let revision = Some(before.revision().to_owned());
    ApiError { revision, ..ApiError::new(ApiCode::RevisionConflict, why) }.into()
}

/// Credentials that cannot be kept are refused, not forgotten.
fn refuse_odd_credentials(raw: &RawFlow) -> Result<(), CheckReport> {
    let diagnostics: Vec<Diagnostic> = raw
        .invalid_credentials()
        .into_iter()
        .take(MAX_LISTED)
        .map(|node| {
            let message = "`credentials` must be an object of names and values".to_owned();
            let help = "Send {\"name\": \"value\"}, or leave them out to keep those the node has.".to_owned();
            let pointer = Some("/credentials".to_owned());
            let found = Diagnostic::new(DiagnosticCode::ConfigInvalid, message, help);
            Diagnostic { node: Some(node), pointer, ..found }
        })
        .collect();
    if diagnostics.is_empty() { Ok(()) } else { Err(CheckReport { diagnostics, ..CheckReport::default() }) }
}

/// The flow has errors.
pub(crate) fn refused(report: CheckReport) -> Problem {
    // The first one comes first: some show no more than the beginning.
    let first = report.diagnostics.iter().find(|problem| problem.severity == Severity::Error);
    let first = first.map(|first| format!("{}: {}. ", first.code, first.message)).unwrap_or_default();
    let text =
        format!("{first}The flow has errors, each with how to mend it in `report`. Nothing was changed.");
    ApiError { report: Some(report), ..ApiError::new(ApiCode::FlowRefused, text) }.into()
}
