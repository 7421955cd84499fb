//! `GET /api/flows/graph`: one tab of an active flow as a drawing.

use crate::active_flow::ActiveFlow;
use crate::app::App;
use crate::bridge::instance::DeployedFlow;
use crate::request::{query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, printable};
use axum::extract::{Extension, RawQuery, State};
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use redflow_contract::console::FlowGraph;
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::id::{InstanceId, NodeId};
use redflow_contract::limits::FlowLimits;
use redflow_flow::{RawFlow, ResolvedFlow, draw_flow, resolve_flow};
use std::sync::Arc;

pub(crate) async fn graph(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let (mut tab, mut instance) = (None, InstanceId::local());
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "tab" => tab = Some(NodeId::from(value)),
            "instance" => instance = InstanceId::from(value),
            other => return Err(unknown_parameter(other)),
        }
    }
    let slot = app.work_slots.computation(&caller.name).await?;
    let source = FlowSource::find(&app, &instance)?;
    let limits = app.settings.flow_limits;
    let draw = move || {
        let graph = draw_deployed(&source.into_flow(), tab.as_ref(), &limits)?;
        Ok(json(200, &graph))
    };
    slot.run_blocking(draw).await?.0
}

/// Who owns the flow.
enum FlowSource {
    Sidecar(ActiveFlow),
    NodeRed(DeployedFlow),
}

impl FlowSource {
    fn find(app: &App, instance: &InstanceId) -> Result<Self, Problem> {
        if *instance == InstanceId::local() {
            return Ok(Self::Sidecar(app.active_flow()));
        }
        let found = app.bridge.all().into_iter().find(|known| known.id == *instance);
        found.and_then(|known| known.flow()).map(Self::NodeRed).ok_or_else(|| {
            let name = printable(instance.as_str());
            let text =
                format!("There is no flow of a Node-RED `{name}`. /api/instances lists the Node-REDs.");
            Problem::new(ApiCode::NotFound, text)
        })
    }

    fn into_flow(self) -> DeployedFlow {
        match self {
            Self::Sidecar(active) => {
                DeployedFlow { report: Arc::new(full_report(&active)), nodes: active.nodes }
            }
            Self::NodeRed(flow) => flow,
        }
    }
}

/// The report with the problems of agents that cannot be built, such as a missing key. Such an agent has one problem.
fn full_report(active: &ActiveFlow) -> CheckReport {
    let mut report = CheckReport::clone(&active.report);
    let first = active.agents().filter_map(|agent| agent.problems.first());
    let unbuilt: Vec<_> = first.filter(|problem| !report.diagnostics.contains(problem)).cloned().collect();
    report.diagnostics.splice(0..0, unbuilt);
    report
}

fn draw_deployed(
    flow: &DeployedFlow,
    tab: Option<&NodeId>,
    limits: &FlowLimits,
) -> Result<FlowGraph, Problem> {
    let raw = RawFlow::parse(flow.nodes.as_bytes(), limits).map_err(Problem::flow_refused)?;
    let (resolved, _) = resolve_flow(raw, limits).map_err(Problem::flow_refused)?;
    draw_tab(&resolved, &flow.report, tab)
}

/// Draws a tab or subflow, the first tab if none is named.
pub(crate) fn draw_tab(
    flow: &ResolvedFlow,
    report: &CheckReport,
    tab: Option<&NodeId>,
) -> Result<FlowGraph, Problem> {
    draw_flow(flow, report, tab.map(NodeId::as_str)).ok_or_else(|| {
        let tab = printable(tab.map(NodeId::as_str).unwrap_or_default());
        let text = format!("There is no tab or subflow `{tab}`. Without `tab`, the first tab is drawn.");
        Problem::new(ApiCode::NotFound, text)
    })
}
