//! Finds tools: of the registry, and of the active flows.

use crate::active_flow::FlowTools;
use crate::app::App;
use crate::request::{query_pairs, unknown_parameter};
use crate::response::{Problem, printable};
use redflow_contract::code::ApiCode;
use redflow_contract::id::InstanceId;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{
    MatchedCalls, RuleAction, ToolEntry, ToolOrigin, ToolRule, ToolState, provider_name,
};
use redflow_engine::RegistrySnapshot;
use redflow_ports::{ProvidedTool, Tool};
use std::collections::HashSet;
use std::sync::Arc;

/// Tools with the same id that an error names.
const MAX_NAMED: usize = 20;

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

/// A tool with what a call outside a run needs.
struct KnownTool {
    entry: ToolEntry,
    /// None if only agents call it.
    tool: Option<Arc<dyn Tool>>,
    /// Removes the secrets of its flow.
    scrubber: Arc<Scrubber>,
}

/// All tools, sorted by id: of the registry, of the active flow, and of the flows of Node-REDs.
fn known_tools(app: &App, snapshot: &RegistrySnapshot) -> Vec<KnownTool> {
    let of_registry = snapshot.entries().into_iter().map(|entry| {
        let provided = snapshot
            .tool(&entry.id)
            .filter(|_| matches!(entry.origin, ToolOrigin::Manifest | ToolOrigin::Mcp));
        let tool = provided.map(|provided| Arc::clone(&provided.tool));
        KnownTool { entry, tool, scrubber: Arc::default() }
    });
    let mut tools: Vec<KnownTool> = of_registry.collect();
    let instances = app.bridge.all();
    let flows = instances.iter().map(|instance| instance.tools());
    for flow in std::iter::once(app.active_flow().tools).chain(flows) {
        let FlowTools { own, scrubber, .. } = &*flow;
        tools.extend(own.iter().map(|own| KnownTool {
            entry: (*own.entry).clone(),
            tool: own.tool.clone(),
            scrubber: Arc::clone(scrubber),
        }));
    }
    let connected = instances.iter().filter(|instance| instance.is_connected());
    let connected: HashSet<&InstanceId> = connected.map(|instance| &instance.id).collect();
    for KnownTool { entry, .. } in &mut tools {
        entry.rules = snapshot.policy().rules_of(entry);
        let is_offline = entry.instance.as_ref().is_some_and(|instance| !connected.contains(instance));
        if is_offline && entry.state == ToolState::Ready {
            (entry.state, entry.reason) =
                (ToolState::Offline, Some("its Node-RED is not connected".to_owned()));
        }
        if let Some(rule) = denying_rule(&entry.rules)
            && entry.state == ToolState::Ready
        {
            let reason = format!("the policy allows no call (rule {rule})");
            (entry.state, entry.reason) = (ToolState::Blocked, Some(reason));
        }
    }
    let order = |tool: &KnownTool| {
        let ToolEntry { id, instance, provider, .. } = &tool.entry;
        (id.clone(), instance.clone(), provider.clone())
    };
    tools.sort_by_cached_key(order);
    tools
}

/// The first rule that refuses every call.
pub(crate) fn denying_rule(rules: &[ToolRule]) -> Option<u32> {
    let first = |action, calls| rules.iter().find(|rule| rule.action == action && rule.calls == calls);
    let is_allowed =
        rules.iter().any(|rule| rule.action == RuleAction::Allow && rule.calls != MatchedCalls::None);
    let unmatched = || first(RuleAction::Allow, MatchedCalls::None).filter(|_| !is_allowed);
    // A person cannot be asked yet.
    let refusing =
        [RuleAction::Deny, RuleAction::Ask].into_iter().find_map(|action| first(action, MatchedCalls::Every));
    refusing.or_else(unmatched).map(|rule| rule.rule)
}

pub(crate) fn all_tools(app: &App, snapshot: &RegistrySnapshot) -> Vec<ToolEntry> {
    known_tools(app, snapshot).into_iter().map(|tool| tool.entry).collect()
}

/// Finds a tool by its id or its name; one of them if there are several.
pub(crate) fn find_tool(app: &App, id: &str) -> Lookup {
    let tools = all_tools(app, &app.tool_definitions.registry.snapshot());
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

/// Which of several tools with the same id a client means.
#[derive(Debug, Default)]
pub(crate) struct ToolChoice {
    node: Option<String>,
    instance: Option<String>,
}

impl ToolChoice {
    /// Reads `node` and `instance` of a query.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut choice = Self::default();
        for (name, value) in query_pairs(query) {
            match name.as_str() {
                "node" => choice.node = Some(value),
                "instance" => choice.instance = Some(value),
                other => return Err(unknown_parameter(other)),
            }
        }
        Ok(choice)
    }

    fn admits(&self, entry: &ToolEntry) -> bool {
        self.node.as_ref().is_none_or(|node| *node == entry.provider)
            && self.instance.as_ref().is_none_or(|instance| instance == instance_of(entry))
    }
}

fn instance_of(entry: &ToolEntry) -> &str {
    entry.instance.as_ref().map_or("local", InstanceId::as_str)
}

/// Finds the tool with this id or this name. An error if there are several.
fn find_known(app: &App, id: &str, choice: &ToolChoice) -> Result<KnownTool, Problem> {
    let mut tools = known_tools(app, &app.tool_definitions.registry.snapshot());
    let has_id = tools.iter().any(|KnownTool { entry, .. }| entry.id == id);
    tools.retain(|KnownTool { entry, .. }| {
        choice.admits(entry) && if has_id { entry.id == id } else { entry.name == id }
    });
    match tools.pop() {
        Some(tool) if tools.is_empty() => Ok(tool),
        Some(last) => {
            tools.push(last);
            Err(several_tools(id, &tools))
        }
        None => Err(unknown_tool(id)),
    }
}

fn several_tools(id: &str, tools: &[KnownTool]) -> Problem {
    let name = |KnownTool { entry, .. }: &KnownTool| {
        format!("`node={}&instance={}`", printable(&entry.provider), printable(instance_of(entry)))
    };
    let mut names: Vec<String> = tools.iter().take(MAX_NAMED).map(name).collect();
    names.extend((tools.len() > MAX_NAMED).then(|| "…".to_owned()));
    let text =
        format!("Several tools are `{}`. Choose one with its query: {}.", printable(id), names.join(", "));
    Problem::new(ApiCode::ToolConflict, text)
}

pub(crate) fn find_entry(app: &App, id: &str, choice: &ToolChoice) -> Result<ToolEntry, Problem> {
    find_known(app, id, choice).map(|known| known.entry)
}

/// A tool that can be called outside a run, and what removes the secrets of its flow.
pub(crate) struct CallableTool {
    pub(crate) tool: ProvidedTool,
    pub(crate) scrubber: Arc<Scrubber>,
}

/// Finds a tool to call: of the registry, or a node of a flow that this build runs.
pub(crate) fn find_callable(app: &App, id: &str, choice: &ToolChoice) -> Result<CallableTool, Problem> {
    let KnownTool { entry, tool, scrubber } = find_known(app, id, choice)?;
    let Some(tool) = tool else {
        let text = "Only agents call this tool, because it is a flow or a node of Node-RED. Start its agent instead.";
        return Err(Problem::new(ApiCode::NodeNotStartable, text));
    };
    Ok(CallableTool { tool: ProvidedTool { entry: Arc::new(entry), tool }, scrubber })
}
