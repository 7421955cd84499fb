//! From a raw flow to the nodes that would run: subflows expanded, link pairs joined, disabled nodes gone.
//!
//! A subflow instance becomes a transparent node for its input and one per output, so inner nodes reach outer
//! ones without wires being multiplied out.

use crate::connect::connect;
use crate::env::{Env, EnvResolver};
use crate::raw::{RawFlow, RawNode, Refusal, too_many};
use redflow_contract::catalogue::{self, NodeType, STRUCTURE_TYPES};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::edge::Role;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::limits::FlowLimits;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A node's place in [`ResolvedFlow::nodes`].
pub type NodeIx = usize;

/// Subflows inside subflows, at most.
const MAX_SUBFLOW_DEPTH: usize = 50;

/// How often an id is kept: with its node, in the index of ids, and in the names of a subflow's outputs.
const COPIES_OF_IDS: usize = 4;

/// One end of a wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wire {
    /// Another node.
    To(NodeIx),
    /// A disabled node: as if the wire were not there.
    Absent,
    /// No such node.
    Missing(String),
}

/// A node that would run.
#[derive(Debug, Clone)]
pub struct ResolvedNode {
    /// Its id; `<instance>-<node>` inside a subflow.
    pub id: NodeId,
    /// The node of the file it comes from.
    pub raw: usize,
    /// What the catalogue says of its type.
    pub kind: &'static NodeType,
    /// Messages pass through unchanged: junctions, link nodes, the ends of a subflow instance.
    pub transparent: bool,
    /// An end of a subflow instance: in no file.
    pub is_virtual: bool,
    /// For an output of an instance: the node that stands for the instance, and which output it is.
    pub output_of: Option<(NodeIx, usize)>,
    /// Without coordinates: Node-RED treats it as a config node.
    pub is_config: bool,
    /// The tab or subflow instance it is in.
    pub(crate) scope: usize,
    /// Where its messages go, port by port; at least as many ports as the catalogue says.
    pub wires: Vec<Vec<Wire>>,
}

/// A tab or a subflow instance, for looking up environment variables.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) parent: Option<usize>,
    pub(crate) id: String,
    pub(crate) name: String,
    /// Nearest first: an instance's own, then its template's.
    pub(crate) env: Vec<Arc<Env>>,
    /// Empty for tabs, else `<instance>-`.
    prefix: String,
}

/// The nodes that would run.
#[derive(Debug)]
pub struct ResolvedFlow {
    pub(crate) raw: RawFlow,
    /// The nodes.
    pub nodes: Vec<ResolvedNode>,
    pub(crate) scopes: Vec<Scope>,
    by_id: HashMap<NodeId, NodeIx>,
    pub(crate) groups: HashMap<String, Group>,
    pub(crate) global_env: Env,
    disabled: HashSet<String>,
}

/// A group of nodes, which may have variables and a group around it.
#[derive(Debug)]
pub(crate) struct Group {
    raw: usize,
    pub(crate) env: Env,
}

impl ResolvedFlow {
    /// The node of the file a resolved node comes from.
    #[must_use]
    pub fn raw(&self, ix: NodeIx) -> &RawNode {
        &self.raw.nodes()[self.nodes[ix].raw]
    }

    /// A node as people recognise it.
    #[must_use]
    pub fn summary(&self, ix: NodeIx) -> NodeSummary {
        NodeSummary { id: self.nodes[ix].id.clone(), ..self.raw(ix).summary() }
    }

    /// The node of an id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<NodeIx> {
        self.by_id.get(id).copied()
    }

    /// What a node inside `scope` means by an id: a neighbour first, then a node of the whole flow.
    pub(crate) fn find_from(&self, scope: usize, id: &str) -> Wire {
        let prefix = &self.scopes[scope].prefix;
        let inner = if prefix.is_empty() { None } else { self.find(&format!("{prefix}{id}")) };
        match inner.or_else(|| self.find(id)) {
            Some(ix) => Wire::To(ix),
            None if self.disabled.contains(id) => Wire::Absent,
            None => Wire::Missing(id.to_owned()),
        }
    }

    /// The id of the tab or instance a node is in, and of the groups around it, nearest first.
    #[must_use]
    pub fn groups_of(&self, ix: NodeIx) -> Vec<&str> {
        let mut found = Vec::new();
        let mut next = self.raw(ix).text("g");
        while let Some(id) = next {
            if found.len() > 100 || found.contains(&id) {
                break;
            }
            found.push(id);
            next = self.groups.get(id).and_then(|group| self.raw.nodes()[group.raw].text("g"));
        }
        found
    }

    /// Who reports for a node, from the inside out: the node itself, then each subflow instance around it.
    #[must_use]
    pub fn reporters(&self, ix: NodeIx) -> Vec<NodeIx> {
        let mut reporters = vec![ix];
        let mut scope = &self.scopes[self.nodes[ix].scope];
        while let Some(parent) = scope.parent {
            reporters.extend(self.find(&scope.id));
            scope = &self.scopes[parent];
        }
        reporters
    }

    /// An environment variable as a node sees it; `process` is asked last, and never for a secret.
    #[must_use]
    pub fn env_value(
        &self,
        ix: NodeIx,
        name: &str,
        process: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Value> {
        EnvResolver::new(self, process, ix, false).lookup(name)
    }

    /// A node's properties with every whole `${NAME}` resolved, as Node-RED does when it makes the node. With
    /// `secrets`, process variables that look like secrets too, into properties that hold secrets: for services.
    #[must_use]
    pub fn resolved_props(
        &self,
        ix: NodeIx,
        process: &dyn Fn(&str) -> Option<String>,
        secrets: bool,
    ) -> Map<String, Value> {
        EnvResolver::new(self, process, ix, secrets).resolve_props(&self.raw(ix).props)
    }

    /// Other properties than its own, resolved as the node would resolve them: what a run planned earlier.
    #[must_use]
    pub fn resolve_at(
        &self,
        ix: NodeIx,
        props: &Map<String, Value>,
        process: &dyn Fn(&str) -> Option<String>,
    ) -> Map<String, Value> {
        EnvResolver::new(self, process, ix, true).resolve_props(props)
    }

    /// The tab a node is on, through any subflow instances.
    #[must_use]
    pub fn tab_of(&self, ix: NodeIx) -> &str {
        let mut scope = &self.scopes[self.nodes[ix].scope];
        while let Some(parent) = scope.parent {
            scope = &self.scopes[parent];
        }
        &scope.id
    }
}

/// Expands, joins and drops.
///
/// # Errors
/// What refuses the whole flow. What refuses only an instance comes back beside the result.
pub fn resolve_flow(
    raw: RawFlow,
    limits: &FlowLimits,
) -> Result<(ResolvedFlow, Vec<Diagnostic>), CheckReport> {
    let mut resolver = Resolver::new(&raw, limits);
    resolver.emit_tabs().map_err(|problem| Refusal::because(limits, *problem))?;
    let Resolver { nodes, scopes, by_id, groups, global_env, disabled, problems, outs, .. } = resolver;
    let mut flow = ResolvedFlow { raw, nodes, scopes, by_id, groups, global_env, disabled };
    connect(&mut flow, &outs, limits.max_wires).map_err(|problem| Refusal::because(limits, *problem))?;
    Ok((flow, problems))
}

/// A subflow instance whose ends still have to be wired.
pub(crate) struct Instance {
    pub(crate) template: usize,
    pub(crate) raw: usize,
    pub(crate) entry: NodeIx,
    pub(crate) outputs: Vec<NodeIx>,
    pub(crate) inner_scope: usize,
    pub(crate) outer_scope: usize,
}

struct Resolver<'a> {
    raw: &'a RawFlow,
    limits: &'a FlowLimits,
    /// Each template's place in the file, and its variables.
    templates: HashMap<&'a str, (usize, Arc<Env>)>,
    members: HashMap<&'a str, Arc<Vec<usize>>>,
    nodes: Vec<ResolvedNode>,
    scopes: Vec<Scope>,
    by_id: HashMap<NodeId, NodeIx>,
    groups: HashMap<String, Group>,
    global_env: Env,
    disabled: HashSet<String>,
    problems: Vec<Diagnostic>,
    /// The instances that were left out because they are inside themselves.
    cycles: HashSet<usize>,
    outs: Vec<Instance>,
    visits_left: usize,
    bytes_left: usize,
}

impl<'a> Resolver<'a> {
    fn new(raw: &'a RawFlow, limits: &'a FlowLimits) -> Self {
        let mut resolver = Self {
            raw,
            limits,
            templates: HashMap::new(),
            members: HashMap::new(),
            nodes: Vec::with_capacity(raw.nodes().len()),
            scopes: Vec::new(),
            by_id: HashMap::with_capacity(raw.nodes().len()),
            groups: HashMap::new(),
            global_env: Env::new(),
            disabled: HashSet::new(),
            problems: Vec::new(),
            cycles: HashSet::new(),
            outs: Vec::new(),
            // Instances that are left out are visited all the same.
            visits_left: limits.max_nodes.saturating_mul(2),
            bytes_left: limits.max_copied_bytes,
        };
        for (ix, node) in raw.nodes().iter().enumerate() {
            match node.type_name.as_str() {
                "subflow" => {
                    let env = Arc::new(env_of(&node.props));
                    resolver.templates.insert(node.id.as_str(), (ix, env));
                }
                "group" => {
                    let group = Group { raw: ix, env: env_of(&node.props) };
                    resolver.groups.insert(node.id.to_string(), group);
                }
                "global-config" => resolver.global_env.extend(env_of(&node.props)),
                _ => {}
            }
        }
        for (ix, node) in raw.nodes().iter().enumerate() {
            let Some(template) = node.text("z").filter(|z| resolver.templates.contains_key(z)) else {
                continue;
            };
            // What never runs is left out here, once, and not in every instance.
            if node.flag("d") {
                resolver.disabled.insert(node.id.to_string());
            } else if !STRUCTURE_TYPES.contains(&node.type_name.as_str()) {
                Arc::make_mut(resolver.members.entry(template).or_default()).push(ix);
            }
        }
        resolver
    }

    fn emit_tabs(&mut self) -> Result<(), Box<Diagnostic>> {
        let mut tabs: HashMap<&str, (usize, bool)> = HashMap::new();
        let wrapping = self.raw.wrapping_tab();
        let wrapping_id = wrapping.and_then(|tab| tab.get("id")).and_then(Value::as_str).unwrap_or_default();
        if let Some(tab) = wrapping {
            let scope = self.add_tab(wrapping_id, tab);
            tabs.insert(wrapping_id, (scope, tab.get("disabled") == Some(&Value::Bool(true))));
        }
        for node in self.raw.nodes().iter().filter(|node| node.type_name == "tab") {
            let scope = self.add_tab(node.id.as_str(), &node.props);
            tabs.insert(node.id.as_str(), (scope, node.flag("disabled")));
        }
        for (ix, node) in self.raw.nodes().iter().enumerate() {
            let z = node.text("z").unwrap_or(wrapping_id);
            if STRUCTURE_TYPES.contains(&node.type_name.as_str()) || self.templates.contains_key(z) {
                continue;
            }
            // Node-RED makes a tab for a node whose tab is not in the file.
            let (scope, tab_disabled) = match tabs.get(z) {
                Some(found) => *found,
                None => {
                    let scope = self.add_tab(z, &Map::new());
                    tabs.insert(z, (scope, false));
                    (scope, false)
                }
            };
            if tab_disabled || node.flag("d") {
                self.disabled.insert(node.id.to_string());
            } else {
                self.emit(ix, scope, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    fn add_tab(&mut self, id: &str, props: &Map<String, Value>) -> usize {
        let name = props.get("label").and_then(Value::as_str).unwrap_or_default().to_owned();
        let env = vec![Arc::new(env_of(props))];
        self.scopes.push(Scope { parent: None, id: id.to_owned(), name, env, prefix: String::new() });
        self.scopes.len() - 1
    }

    /// Adds a node, and everything inside it if it is a subflow instance. `stack` holds the templates we are in.
    fn emit(&mut self, raw_ix: usize, scope: usize, stack: &mut Vec<usize>) -> Result<(), Box<Diagnostic>> {
        let too_many_nodes = || Box::new(too_many("nodes", self.limits.max_nodes));
        self.visits_left = self.visits_left.checked_sub(1).ok_or_else(too_many_nodes)?;
        let node = &self.raw.nodes()[raw_ix];
        let bytes = self.scopes[scope].prefix.len() + node.id.as_str().len();
        let too_many_bytes = || Box::new(too_many("bytes of ids", self.limits.max_copied_bytes));
        self.bytes_left = self.bytes_left.checked_sub(bytes * COPIES_OF_IDS).ok_or_else(too_many_bytes)?;
        let id = NodeId::from(format!("{}{}", self.scopes[scope].prefix, node.id));
        let template = node.type_name.strip_prefix("subflow:").and_then(|id| self.templates.get(id)).cloned();
        let Some((template, template_env)) = template else {
            let kind = catalogue::lookup(&node.type_name);
            let placed = ["x", "y"].iter().all(|key| node.props.get(*key).is_some_and(|v| !v.is_null()));
            return self
                .push(ResolvedNode {
                    id,
                    raw: raw_ix,
                    kind,
                    transparent: kind.transparent,
                    is_virtual: false,
                    output_of: None,
                    is_config: kind.role == Role::Data && !placed,
                    scope,
                    wires: Vec::new(),
                })
                .map(drop);
        };
        if stack.contains(&template) {
            // Once per place in the template: however many instances there are, it is one mistake.
            if self.cycles.insert(raw_ix) {
                self.problems.push(cycle(node, id, &self.raw.nodes()[template]));
                self.disabled.insert(node.id.to_string());
            }
            return Ok(());
        }
        if stack.len() >= MAX_SUBFLOW_DEPTH {
            return Err(Box::new(Diagnostic::new(
                DiagnosticCode::FlowTooDeep,
                format!("subflows are nested deeper than {MAX_SUBFLOW_DEPTH} levels"),
                "Flatten the subflows.".to_owned(),
            )));
        }
        let template_node = &self.raw.nodes()[template];
        let env = vec![Arc::new(env_of(&node.props)), template_env];
        self.scopes.push(Scope {
            parent: Some(scope),
            id: id.to_string(),
            name: node.summary().name,
            env,
            prefix: format!("{id}-"),
        });
        let inner_scope = self.scopes.len() - 1;
        let end = |id: NodeId, output_of: Option<(NodeIx, usize)>| ResolvedNode {
            id,
            output_of,
            raw: raw_ix,
            kind: catalogue::lookup("junction"),
            transparent: true,
            is_virtual: true,
            is_config: false,
            scope,
            wires: Vec::new(),
        };
        let entry = self.push(end(id.clone(), None))?;
        let count = template_node.props.get("out").and_then(Value::as_array).map_or(0, Vec::len);
        // The ids of outputs can be nobody's target, and a line feed keeps them apart from real ones.
        let outputs = (0..count)
            .map(|port| self.push(end(NodeId::from(format!("{id}\noutput {port}")), Some((entry, port)))))
            .collect::<Result<Vec<_>, _>>()?;
        self.outs.push(Instance { template, raw: raw_ix, entry, outputs, inner_scope, outer_scope: scope });
        stack.push(template);
        let members = self.members.get(template_node.id.as_str()).map(Arc::clone).unwrap_or_default();
        for member in members.iter() {
            self.emit(*member, inner_scope, stack)?;
        }
        stack.pop();
        Ok(())
    }

    fn push(&mut self, node: ResolvedNode) -> Result<NodeIx, Box<Diagnostic>> {
        let ix = self.nodes.len();
        if ix >= self.limits.max_nodes {
            return Err(Box::new(too_many("nodes", self.limits.max_nodes)));
        }
        if self.by_id.insert(node.id.clone(), ix).is_some() {
            return Err(Box::new(Diagnostic::new(
                DiagnosticCode::DuplicateId,
                format!("the id `{}` is also the id of a node inside a subflow instance", node.id),
                "Give one of them another id.".to_owned(),
            )));
        }
        self.nodes.push(node);
        Ok(ix)
    }
}

fn cycle(node: &RawNode, id: NodeId, template: &RawNode) -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::SubflowCycle,
        format!("the subflow `{}` contains itself; this instance is left out", template.summary().name),
        "Remove the instance of the subflow from inside the subflow.".to_owned(),
    );
    problem.node = Some(NodeSummary { id, ..node.summary() });
    problem.target = Some(template.summary());
    problem
}

fn env_of(props: &Map<String, Value>) -> Env {
    let list = props.get("env").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named = |entry: &Value| Some((entry.get("name")?.as_str()?.to_owned(), entry.clone()));
    list.iter().filter_map(named).collect()
}
