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
    let flow = deployed_flow(&app, &instance)?;
    let limits = app.settings.flow_limits;
    let draw = move || draw_deployed(&flow, tab.as_ref(), &limits).map(|graph| json(200, &graph));
    slot.run_blocking(draw).await?.0
}

fn deployed_flow(app: &App, instance: &InstanceId) -> Result<DeployedFlow, Problem> {
    if *instance == InstanceId::local() {
        let active = app.active_flow();
        return Ok(DeployedFlow { report: Arc::new(full_report(&active)), nodes: active.nodes });
    }
    let found = app.bridge.all().into_iter().find(|known| known.id == *instance);
    found.and_then(|known| known.flow()).ok_or_else(|| {
        let text = "There is no flow of a Node-RED `{}` here. /api/instances lists the Node-REDs.";
        Problem::new(ApiCode::NotFound, text.replace("{}", &printable(instance.as_str())))
    })
}

/// The report with the problems of agents that the checker does not find, such as a missing key.
fn full_report(active: &ActiveFlow) -> CheckReport {
    let mut report = CheckReport::clone(&active.report);
    for problem in active.agents().flat_map(|agent| &agent.problems) {
        if !report.diagnostics.contains(problem) {
            report.diagnostics.push(problem.clone());
        }
    }
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
