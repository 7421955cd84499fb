//! With which flow a run goes on.
//!
//! Owns the way from a stored run to its flow: the file the user names, else the one the run began with, else
//! none, with the reason.

use crate::files::{read_flow, shown, whole_path};
use crate::terminal::printable_line;
use crate::wiring;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::limits::FlowLimits;
use redflow_contract::run::RunSummary;
use redflow_flow::CheckedFlow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// A flow, and where it was read from.
pub(crate) struct Flow {
    pub(crate) checked: CheckedFlow,
    /// The file, if it was one.
    pub(crate) source: Option<Arc<str>>,
}

impl Flow {
    /// Reads and checks a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let bytes = read_flow(path, FlowLimits::default().max_bytes).map_err(|problem| vec![*problem])?;
        let checked = wiring::check(&bytes, wiring::profile(), &wiring::adapters());
        let checked = checked.map_err(|report| report.diagnostics)?;
        Ok(Self { checked, source: whole_path(path) })
    }

    pub(crate) fn has_agent(&self, id: &NodeId) -> bool {
        self.checked.agents.iter().any(|agent| agent.node.id == *id)
    }
}

/// Runs that go on with the same flow.
pub(crate) struct Group {
    pub(crate) flow: Option<Flow>,
    /// In the order they began.
    pub(crate) runs: Vec<RunSummary>,
}

/// Runs by the flows they go on with.
pub(crate) struct Groups {
    /// Those with a flow, in the order in which their first runs began; then those without.
    pub(crate) groups: Vec<Group>,
    /// The runs without a flow, and why they have none.
    pub(crate) without: HashMap<RunId, String>,
}

impl Groups {
    /// All with this flow.
    pub(crate) fn with(flow: Flow, runs: Vec<RunSummary>) -> Self {
        Self { groups: vec![Group { flow: Some(flow), runs }], without: HashMap::new() }
    }

    /// Each with the flow it began with.
    pub(crate) fn by_source(runs: Vec<RunSummary>) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut files: HashMap<String, Result<usize, String>> = HashMap::new();
        let (mut alone, mut without) = (Vec::new(), HashMap::new());
        for run in runs {
            let place = match &run.source {
                None => Err("the file of its flow is not known".to_owned()),
                Some(source) => files
                    .entry(source.clone())
                    .or_insert_with(|| {
                        let flow = Flow::read(Path::new(source)).map_err(|why| refusal(source, &why))?;
                        groups.push(Group { flow: Some(flow), runs: Vec::new() });
                        Ok(groups.len() - 1)
                    })
                    .clone(),
            };
            let place = place.and_then(|place| {
                let (flow, id) = (groups[place].flow.as_ref(), &run.agent.node_id);
                if flow.is_some_and(|flow| flow.has_agent(id)) {
                    return Ok(place);
                }
                let file = shown(Path::new(run.source.as_deref().unwrap_or_default()));
                Err(format!("its flow {file} has no agent `{}` any more", printable_line(id.as_str(), 80)))
            });
            match place {
                Ok(place) => groups[place].runs.push(run),
                Err(why) => {
                    without.insert(run.run_id.clone(), why);
                    alone.push(run);
                }
            }
        }
        groups.push(Group { flow: None, runs: alone });
        groups.retain(|group| !group.runs.is_empty());
        Self { groups, without }
    }
}

/// Why a file is not used, in a few words.
fn refusal(source: &str, problems: &[Diagnostic]) -> String {
    let why = problems.first().map(|problem| format!("{}: {}", problem.code, problem.message));
    let why = printable_line(&why.unwrap_or_default(), 200);
    format!("its flow {} cannot be used ({why})", shown(Path::new(source)))
}
