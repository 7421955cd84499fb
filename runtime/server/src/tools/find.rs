//! Finds tools: of the registry, and of the active flows.

use crate::active_flow::FlowTools;
use crate::app::App;
use crate::response::{Problem, printable};
use redflow_contract::code::ApiCode;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{ToolEntry, provider_name};
use redflow_engine::FlowTool;
use redflow_ports::ProvidedTool;
use std::sync::Arc;

/// A tool that a client names.
#[derive(Clone)]
pub(crate) enum Lookup {
    /// A tool that is there.
    Found(Box<ToolEntry>),
    /// A tool that is not there now. The log may have calls of it.
    Gone { id: String, name: String },
}

impl Lookup {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Found(entry) => &entry.id,
            Self::Gone { id, .. } => id,
        }
    }

    /// The name that models call it by.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Found(entry) => &entry.name,
            Self::Gone { name, .. } => name,
        }
    }

    pub(crate) fn or_unknown(self, id: &str) -> Result<Self, Problem> {
        match self {
            Self::Found(_) => Ok(self),
            Self::Gone { .. } => Err(unknown_tool(id)),
        }
    }
}

pub(crate) fn unknown_tool(id: &str) -> Problem {
    let text = format!("There is no tool `{}`. /api/tools lists them.", printable(id));
    Problem::new(ApiCode::NotFound, text)
}

/// The tools of the active flow, and of those of Node-REDs.
fn flows(app: &App) -> Vec<Arc<FlowTools>> {
    let of_instances = app.bridge.all();
    std::iter::once(app.active_flow().tools).chain(of_instances.iter().map(|owner| owner.tools())).collect()
}

/// All tools, sorted by id.
pub(crate) fn all_tools(app: &App) -> Vec<ToolEntry> {
    let mut tools = app.tool_definitions.registry.snapshot().entries();
    for flow in flows(app) {
        tools.extend(flow.own.iter().map(|tool| (*tool.entry).clone()));
    }
    tools.sort_by(|one, other| (&one.id, &one.instance).cmp(&(&other.id, &other.instance)));
    tools
}

/// Finds a tool by its id or its name.
pub(crate) fn find_tool(app: &App, id: &str) -> Lookup {
    let tools = all_tools(app);
    let by_id = tools.iter().find(|tool| tool.id == id);
    match by_id.or_else(|| tools.iter().find(|tool| tool.name == id)) {
        Some(tool) => Lookup::Found(Box::new(tool.clone())),
        None => {
            // A tool that is a node of its own has its own name.
            let own = id.strip_prefix("builtin.").or_else(|| id.strip_prefix("flow."));
            let name = own.map_or_else(|| provider_name(id), str::to_owned);
            Lookup::Gone { id: id.to_owned(), name }
        }
    }
}

/// A tool that can be called outside a run, and what removes the secrets of its flow.
pub(crate) struct CallableTool {
    pub(crate) tool: ProvidedTool,
    pub(crate) scrubber: Arc<Scrubber>,
}

/// Finds a tool to call: of the registry, or a node of a flow that this build runs.
pub(crate) fn find_callable(app: &App, id: &str) -> Result<CallableTool, Problem> {
    if let Some(tool) = app.tool_definitions.registry.snapshot().find(id) {
        return Ok(CallableTool { tool: tool.clone(), scrubber: Arc::default() });
    }
    for flow in flows(app) {
        let named = |tool: &&FlowTool| tool.entry.id == id || tool.entry.name == id;
        if let Some(FlowTool { entry, tool: Some(tool) }) = flow.own.iter().find(named).cloned() {
            let scrubber = Arc::clone(&flow.scrubber);
            return Ok(CallableTool { tool: ProvidedTool { entry, tool }, scrubber });
        }
    }
    find_tool(app, id).or_unknown(id)?;
    let text =
        "Only agents call this tool, because it is a flow or a node of Node-RED. Start its agent instead.";
    Err(Problem::new(ApiCode::NodeNotStartable, text))
}
