//! Resolves a raw flow: expands subflows, joins link pairs and removes disabled nodes.
//!
//! A subflow instance becomes one transparent node for its input and one for each output. So inner nodes
//! reach outer ones without multiplied wires.

use crate::connect::connect;
use crate::raw::{RawFlow, RawNode};
use crate::report::{single_problem, too_many};
use crate::resolved::{Env, EnvScope, Group, Instance, NodeIx, ResolvedFlow, ResolvedNode};
use redflow_contract::catalogue::{self, STRUCTURE_TYPES};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::edge::Role;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::limits::FlowLimits;
use redflow_contract::phrases;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The deepest nesting of subflows in subflows.
const MAX_SUBFLOW_DEPTH: usize = 50;

/// How often an id is copied: into its node, into the index of ids, and into the ids of a subflow's outputs.
const COPIES_OF_IDS: usize = 4;

/// Resolves a flow. The diagnostics in the result are about single subflow instances.
///
/// # Errors
/// A report of what refuses the whole flow.
///
/// ```
/// use redflow_contract::limits::FlowLimits;
/// use redflow_flow::{RawFlow, Wire, resolve_flow};
///
/// let file = br#"[{"id": "t", "type": "tab"},
///     {"id": "in", "type": "inject", "z": "t", "x": 1, "y": 1, "wires": [["off", "out"]]},
///     {"id": "off", "type": "debug", "z": "t", "x": 1, "y": 1, "wires": [], "d": true},
///     {"id": "out", "type": "debug", "z": "t", "x": 1, "y": 1, "wires": []}]"#;
/// let limits = FlowLimits::default();
/// let raw = RawFlow::parse(file, &limits).expect("a flow");
/// let (flow, problems) = resolve_flow(raw, &limits).expect("a flow that resolves");
/// assert!(problems.is_empty());
/// // The tab and the disabled node are gone.
/// let (inject, debug) = (flow.find("in").expect("in"), flow.find("out").expect("out"));
/// assert_eq!(flow.nodes.len(), 2);
/// assert_eq!(flow.nodes[inject].wires[0], [Wire::Disabled, Wire::To(debug)]);
/// ```
pub fn resolve_flow(
    raw: RawFlow,
    limits: &FlowLimits,
) -> Result<(ResolvedFlow, Vec<Diagnostic>), CheckReport> {
    let mut resolver = Resolver::new(&raw, limits);
    resolver.emit_tabs().map_err(|problem| single_problem(limits, *problem))?;
    let Resolver { nodes, scopes, by_id, groups, global_env, disabled, problems, instances, .. } = resolver;
    let mut flow = ResolvedFlow { raw, nodes, scopes, by_id, groups, global_env, disabled };
    connect(&mut flow, &instances, limits.max_wires).map_err(|problem| single_problem(limits, *problem))?;
    Ok((flow, problems))
}

struct Resolver<'a> {
    raw: &'a RawFlow,
    limits: &'a FlowLimits,
    /// The index of each subflow in the file, and its variables.
    templates: HashMap<&'a str, (usize, Arc<Env>)>,
    members: HashMap<&'a str, Arc<Vec<usize>>>,
    nodes: Vec<ResolvedNode>,
    scopes: Vec<EnvScope>,
    by_id: HashMap<NodeId, NodeIx>,
    groups: HashMap<String, Group>,
    global_env: Env,
    disabled: HashSet<String>,
    problems: Vec<Diagnostic>,
    /// The instances that were left out because their subflow contains itself.
    cycles: HashSet<usize>,
    instances: Vec<Instance>,
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
            instances: Vec::new(),
            // Instances that are left out are visited too.
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
            // Nodes that never run are left out here once, and not in every instance.
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
        let wrapper = self.raw.wrapper_tab();
        let wrapper_id = wrapper.and_then(|tab| tab.get("id")).and_then(Value::as_str).unwrap_or_default();
        if let Some(tab) = wrapper {
            let scope = self.add_tab(wrapper_id, tab);
            tabs.insert(wrapper_id, (scope, tab.get("disabled") == Some(&Value::Bool(true))));
        }
        for node in self.raw.nodes().iter().filter(|node| node.type_name == "tab") {
            let scope = self.add_tab(node.id.as_str(), &node.props);
            tabs.insert(node.id.as_str(), (scope, node.flag("disabled")));
        }
        for (ix, node) in self.raw.nodes().iter().enumerate() {
            let z = node.text("z").unwrap_or(wrapper_id);
            if STRUCTURE_TYPES.contains(&node.type_name.as_str()) || self.templates.contains_key(z) {
                continue;
            }
            // If the tab of a node is not in the file, Node-RED makes one.
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
        self.scopes.push(EnvScope { parent: None, id: id.to_owned(), name, env, prefix: String::new() });
        self.scopes.len() - 1
    }

    /// Adds a node and, if it is a subflow instance, everything inside it. `stack` holds the subflows around
    /// it.
    fn emit(&mut self, raw_ix: usize, scope: usize, stack: &mut Vec<usize>) -> Result<(), Box<Diagnostic>> {
        let too_many_nodes = || Box::new(too_many(phrases::nodes(), self.limits.max_nodes));
        self.visits_left = self.visits_left.checked_sub(1).ok_or_else(too_many_nodes)?;
        let node = &self.raw.nodes()[raw_ix];
        let bytes = self.scopes[scope].prefix.len() + node.id.as_str().len();
        let too_many_bytes = || Box::new(too_many(phrases::bytes_of_ids(), self.limits.max_copied_bytes));
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
            // Reported once per node of the file: it is one mistake, however many instances there are.
            if self.cycles.insert(raw_ix) {
                self.problems.push(cycle_problem(node, id, &self.raw.nodes()[template]));
                self.disabled.insert(node.id.to_string());
            }
            return Ok(());
        }
        if stack.len() >= MAX_SUBFLOW_DEPTH {
            return Err(Box::new(Diagnostic::new(
                DiagnosticCode::FlowTooDeep,
                phrases::subflows_too_deep(MAX_SUBFLOW_DEPTH),
                phrases::subflows_too_deep_help(),
            )));
        }
        let template_node = &self.raw.nodes()[template];
        let env = vec![Arc::new(env_of(&node.props)), template_env];
        self.scopes.push(EnvScope {
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
        // No wire can name the id of an output: its line feed keeps it apart from real ids.
        let outputs = (0..count)
            .map(|port| self.push(end(NodeId::from(format!("{id}\noutput {port}")), Some((entry, port)))))
            .collect::<Result<Vec<_>, _>>()?;
        self.instances.push(Instance {
            template,
            raw: raw_ix,
            entry,
            outputs,
            inner_scope,
            outer_scope: scope,
        });
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
            return Err(Box::new(too_many(phrases::nodes(), self.limits.max_nodes)));
        }
        if self.by_id.insert(node.id.clone(), ix).is_some() {
            return Err(Box::new(Diagnostic::new(
                DiagnosticCode::DuplicateId,
                phrases::id_in_subflow(node.id.as_str()),
                phrases::id_in_subflow_help(),
            )));
        }
        self.nodes.push(node);
        Ok(ix)
    }
}

fn cycle_problem(node: &RawNode, id: NodeId, template: &RawNode) -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::SubflowCycle,
        phrases::subflow_cycle(template.summary().name),
        phrases::subflow_cycle_help(),
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
