//! Finds the flow for each run that is resumed.
//!
//! That is the file the user names, else the file of the run's start, else none, with the reason.

use crate::context::AppContext;
use crate::files::display_path;
use crate::loaded_flow::LoadedFlow;
use crate::text::printable_line;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::id::RunId;
use redflow_contract::run::RunSummary;
use std::collections::HashMap;
use std::path::Path;

/// Runs that are resumed with the same flow.
pub(super) struct FlowGroup {
    pub(super) flow: Option<LoadedFlow>,
    /// In the order of their starts.
    pub(super) runs: Vec<RunSummary>,
}

/// Runs, grouped by their flows.
pub(super) struct FlowGroups {
    /// The groups with a flow in the order of their first runs, then the group without a flow.
    pub(super) groups: Vec<FlowGroup>,
    /// The reason for each run without a flow.
    pub(super) without_flow: HashMap<RunId, String>,
}

impl FlowGroups {
    /// Resumes all runs with the flow that the user names.
    pub(super) fn with_flow(flow: LoadedFlow, runs: Vec<RunSummary>) -> Self {
        let group = FlowGroup { flow: Some(flow), runs };
        Self { groups: vec![group], without_flow: HashMap::new() }
    }

    /// Resumes each run with the file of its start.
    pub(super) fn by_source(context: &AppContext, runs: Vec<RunSummary>) -> Self {
        let mut groups: Vec<FlowGroup> = Vec::new();
        let mut files: HashMap<String, Result<usize, String>> = HashMap::new();
        let (mut flowless, mut without_flow) = (Vec::new(), HashMap::new());
        for run in runs {
            let index = match &run.source {
                None => Err("the file of its flow is not known".to_owned()),
                Some(source) => files
                    .entry(source.clone())
                    .or_insert_with(|| {
                        let flow = LoadedFlow::read(context, Path::new(source))
                            .map_err(|problems| unusable_flow(source, &problems))?;
                        groups.push(FlowGroup { flow: Some(flow), runs: Vec::new() });
                        Ok(groups.len() - 1)
                    })
                    .clone(),
            };
            let index = index.and_then(|index| {
                let (flow, id) = (groups[index].flow.as_ref(), &run.agent.node_id);
                if flow.is_some_and(|flow| flow.has_agent(id)) {
                    return Ok(index);
                }
                let file = display_path(Path::new(run.source.as_deref().unwrap_or_default()));
                Err(format!("its flow {file} has no agent `{}` any more", printable_line(id.as_str(), 80)))
            });
            match index {
                Ok(index) => groups[index].runs.push(run),
                Err(why) => {
                    without_flow.insert(run.run_id.clone(), why);
                    flowless.push(run);
                }
            }
        }
        groups.push(FlowGroup { flow: None, runs: flowless });
        groups.retain(|group| !group.runs.is_empty());
        Self { groups, without_flow }
    }
}

/// Why a flow file is not used.
fn unusable_flow(source: &str, problems: &[Diagnostic]) -> String {
    let why = problems.first().map(|problem| format!("{}: {}", problem.code, problem.message));
    let why = printable_line(&why.unwrap_or_default(), 200);
    format!("its flow {} cannot be used ({why})", display_path(Path::new(source)))
}
