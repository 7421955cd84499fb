//! A flow as a drawing: the nodes of one tab or subflow at their places, their wires by kind, and their problems.
//!
//! Owns the kind of each drawn wire, by the edge table, and the limits of a drawing. A drawing shows nodes of the file, so a
//! subflow instance is one node.

use crate::named_services::service_names;
use crate::raw::RawNode;
use crate::resolved::{NodeIx, ResolvedFlow};
use crate::wire_kinds::{RawWire, wire_kind, wire_kinds};
use redflow_contract::catalogue::{STRUCTURE_TYPES, lookup};
use redflow_contract::console::{FlowGraph, GraphNode, GraphTab, GraphWire};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::edge::{EdgeKind, Role};
use redflow_contract::editor_values::text_of;
use redflow_contract::id::NodeId;
use redflow_contract::node::KEY_NODE;
use redflow_contract::phrase::truncate;
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The most nodes of a drawing.
pub const MAX_GRAPH_NODES: usize = 2_000;

/// The most tabs that a drawing lists, and the most wires and problems.
const MAX_TABS: usize = 2_000;
const MAX_WIRES: usize = 20_000;
const MAX_PROBLEMS: usize = 1_000;

/// The most bytes of a drawing as JSON: of its tabs, nodes, wires and problems.
const TAB_BYTES: usize = 512 * 1024;
const NODE_BYTES: usize = 1024 * 1024;
const WIRE_BYTES: usize = 1_500 * 1024;
const PROBLEM_BYTES: usize = 1000 * 1024;

/// The longest type, name or label of a drawing, in characters.
const MAX_NAME: usize = 256;

/// Draws a tab or a subflow, the first tab if none is named; none if there is no such tab.
///
/// ```
/// use redflow_contract::{diagnostic::CheckReport, edge::EdgeKind, limits::FlowLimits};
/// use redflow_flow::{RawFlow, draw_flow, resolve_flow};
///
/// let file = br#"[{"id": "t", "type": "tab", "label": "Home"},
///     {"id": "a", "type": "agent-core", "z": "t", "x": 200, "y": 80, "wires": [["m"], [], [], [], []]},
///     {"id": "m", "type": "scripted-model", "z": "t", "x": 400, "y": 80, "wires": [["a"]]}]"#;
/// let limits = FlowLimits::default();
/// let raw = RawFlow::parse(file, &limits).expect("a flow");
/// let (flow, _) = resolve_flow(raw, &limits).expect("a flow that resolves");
/// let graph = draw_flow(&flow, &CheckReport::default(), Some("t")).expect("a tab");
/// assert_eq!(graph.nodes.len(), 2);
/// assert_eq!(graph.wires.iter().map(|wire| wire.kind).collect::<Vec<_>>(), [EdgeKind::Model, EdgeKind::Reply]);
/// assert_eq!(draw_flow(&flow, &CheckReport::default(), Some("other")), None);
/// ```
#[must_use]
pub fn draw_flow(flow: &ResolvedFlow, report: &CheckReport, tab: Option<&str>) -> Option<FlowGraph> {
    let mut tabs = tabs(flow);
    let drawn = match tab {
        Some(id) => Some(tabs.iter().position(|tab| tab.id.as_str() == id)?),
        None => tabs.iter().position(|tab| !tab.is_subflow).or(if tabs.is_empty() { None } else { Some(0) }),
    };
    let mut drawing = Drawing::new(flow);
    if let Some(drawn) = drawn {
        tabs[drawn].is_drawn = true;
        drawing.add_nodes(&tabs[drawn].id);
        drawing.add_wires();
        drawing.add_bindings();
        drawing.add_problems(report);
    }
    let (all, mut limit) = (tabs.len(), ListLimit::new(MAX_TABS, TAB_BYTES));
    // The drawn tab is listed, however many there are.
    let lists_drawn = drawn.is_some_and(|drawn| limit.take(&tabs[drawn]));
    tabs.retain(|tab| if tab.is_drawn { lists_drawn } else { limit.take(tab) });
    drawing.graph.omitted_parts += number(all - tabs.len());
    Some(FlowGraph { tabs, ..drawing.graph })
}

/// Every tab and subflow of a file, then the tabs that only nodes name.
fn tabs(flow: &ResolvedFlow) -> Vec<GraphTab> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut tabs = Vec::new();
    for node in flow.raw.nodes().iter().filter(|node| is_drawn(node)) {
        *counts.entry(flow.tab_id(node)).or_default() += 1;
    }
    let mut add = |id: &str, label: &str, is_subflow: bool, nodes: u32| {
        let mut label = label.to_owned();
        truncate(&mut label, MAX_NAME);
        tabs.push(GraphTab { id: id.into(), label, is_subflow, nodes, is_drawn: false });
    };
    if let Some(wrapper) = flow.raw.wrapper_tab() {
        let text = |key: &str| wrapper.get(key).and_then(Value::as_str).unwrap_or_default();
        add(text("id"), text("label"), false, counts.remove(text("id")).unwrap_or_default());
    }
    for node in flow.raw.nodes() {
        let is_subflow = node.type_name == "subflow";
        if is_subflow || node.type_name == "tab" {
            let count = counts.remove(node.id.as_str()).unwrap_or_default();
            add(node.id.as_str(), &node.summary().name, is_subflow, count);
        }
    }
    let mut rest: Vec<(&str, u32)> = counts.into_iter().collect();
    rest.sort_unstable();
    rest.into_iter().for_each(|(id, nodes)| add(id, "", false, nodes));
    tabs
}

/// Whether a node of the file has a place in a drawing. A config node has none, unless an agent or a model names it.
fn is_drawn(node: &RawNode) -> bool {
    if STRUCTURE_TYPES.contains(&node.type_name.as_str()) {
        return false;
    }
    let is_wired = node.props.get("wires").is_some_and(Value::is_array);
    is_wired || coordinates(node).is_some() || lookup(&node.type_name).role != Role::Data
}

fn coordinates(node: &RawNode) -> Option<(f64, f64)> {
    let number = |key: &str| node.props.get(key).and_then(Value::as_f64);
    Some((number("x")?, number("y")?))
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What may still be added to one list of a drawing. When something does not fit, the list is full.
struct ListLimit {
    items: usize,
    bytes: usize,
}

impl ListLimit {
    fn new(items: usize, bytes: usize) -> Self {
        Self { items, bytes }
    }

    fn is_full(&self) -> bool {
        self.items == 0
    }

    /// Counts an item, if it may still be added.
    fn take(&mut self, item: &impl Serialize) -> bool {
        if self.is_full() {
            return false;
        }
        let bytes = serde_json::to_vec(item).map_or(usize::MAX, |json| json.len());
        let left = self.bytes.checked_sub(bytes.saturating_add(1));
        (self.items, self.bytes) = left.map_or((0, 0), |left| (self.items - 1, left));
        left.is_some()
    }
}

struct Drawing<'a> {
    flow: &'a ResolvedFlow,
    /// The places of all nodes in the file.
    by_id: HashMap<&'a str, usize>,
    /// The places of the drawn nodes in the file, in the order of `graph.nodes`.
    places: Vec<usize>,
    is_drawn: HashSet<usize>,
    node_limit: ListLimit,
    wire_limit: ListLimit,
    graph: FlowGraph,
}

impl<'a> Drawing<'a> {
    fn new(flow: &'a ResolvedFlow) -> Self {
        let nodes = flow.raw.nodes().iter().enumerate();
        Self {
            flow,
            by_id: nodes.map(|(place, node)| (node.id.as_str(), place)).collect(),
            places: Vec::new(),
            is_drawn: HashSet::new(),
            node_limit: ListLimit::new(MAX_GRAPH_NODES, NODE_BYTES),
            wire_limit: ListLimit::new(MAX_WIRES, WIRE_BYTES),
            graph: FlowGraph::default(),
        }
    }

    fn node(&self, place: usize) -> &'a RawNode {
        &self.flow.raw.nodes()[place]
    }

    /// Adds the nodes of a tab.
    fn add_nodes(&mut self, tab: &NodeId) {
        let flow = self.flow;
        for (place, node) in flow.raw.nodes().iter().enumerate() {
            if is_drawn(node) && flow.tab_id(node) == tab.as_str() {
                self.add_node(place, coordinates(node));
            }
        }
    }

    /// Adds a node, or counts it.
    fn add_node(&mut self, place: usize, coordinates: Option<(f64, f64)>) {
        let node = self.node(place);
        let kind = lookup(&node.type_name);
        let wires = node.props.get("wires").and_then(Value::as_array).map_or(0, Vec::len);
        let (mut type_name, mut name) = (node.type_name.clone(), node.summary().name);
        truncate(&mut type_name, MAX_NAME);
        truncate(&mut name, MAX_NAME);
        let (x, y) = coordinates.unzip();
        let drawn = GraphNode {
            id: node.id.clone(),
            type_name,
            name,
            role: kind.role,
            x,
            y,
            outputs: number(wires.max(kind.outputs.map_or(0, <[_]>::len))),
            disabled: self.flow.disabled.contains(node.id.as_str()),
        };
        if self.node_limit.take(&drawn) {
            self.graph.nodes.push(drawn);
            self.places.push(place);
            self.is_drawn.insert(place);
        } else {
            self.graph.omitted += 1;
        }
    }

    /// Adds a wire, or counts it.
    fn add_wire(&mut self, from: usize, port: Option<u32>, to: usize, kind: EdgeKind) {
        if self.wire_limit.is_full() {
            self.graph.omitted_parts = self.graph.omitted_parts.saturating_add(1);
            return;
        }
        let wire = GraphWire { from: self.node(from).id.clone(), port, to: self.node(to).id.clone(), kind };
        if self.wire_limit.take(&wire) {
            self.graph.wires.push(wire);
        } else {
            self.graph.omitted_parts += 1;
        }
    }

    /// Adds the wires of the file, then the link pairs.
    fn add_wires(&mut self) {
        let mut kinds = wire_kinds(self.flow, &self.is_drawn);
        let mut seen = HashSet::new();
        for from in self.places.clone() {
            let node = self.node(from);
            // Node-RED ignores the saved wires of a link out.
            let wires = node.props.get("wires").filter(|_| node.type_name != "link out");
            let ports = wires.and_then(Value::as_array).into_iter().flatten();
            for (port, targets) in ports.enumerate() {
                let ids = targets.as_array().into_iter().flatten().filter_map(Value::as_str);
                for to in ids.filter_map(|id| self.by_id.get(id).copied()).collect::<Vec<_>>() {
                    let wire = RawWire { from, port, to };
                    // The rest of very many wires is only counted.
                    if self.is_drawn.contains(&to) && (self.wire_limit.is_full() || seen.insert(wire)) {
                        let to_type = &self.node(to).type_name;
                        let kind = kinds.remove(&wire);
                        let kind = kind.unwrap_or_else(|| wire_kind(&node.type_name, port, to_type));
                        self.add_wire(from, Some(number(port)), to, kind);
                    }
                }
            }
        }
        let mut links: Vec<(RawWire, EdgeKind)> = kinds.into_iter().collect();
        links.sort_unstable_by_key(|(wire, _)| *wire);
        for (RawWire { from, port, to }, kind) in links {
            self.add_wire(from, Some(number(port)), to, kind);
        }
    }

    /// Adds what agents and models bind by a property, also nodes that are not on the tab.
    fn add_bindings(&mut self) {
        let mut elsewhere = HashSet::new();
        let mut next = 0;
        // Nodes that are added here may bind others: a model names its key.
        while let Some(from) = self.places.get(next).copied() {
            next += 1;
            for (to, kind) in self.bindings_of(from) {
                if !self.is_drawn.contains(&to) && elsewhere.insert(to) {
                    self.add_node(to, None);
                }
                if self.is_drawn.contains(&to) {
                    self.add_wire(from, None, to, kind);
                }
            }
        }
    }

    /// The nodes that a node names in its properties, each once.
    fn bindings_of(&self, place: usize) -> Vec<(usize, EdgeKind)> {
        let node = self.node(place);
        let list = |key: &str| {
            let ids = node.props.get(key).and_then(Value::as_array).into_iter().flatten();
            ids.filter_map(Value::as_str).collect::<Vec<_>>()
        };
        let mut named: Vec<(&str, EdgeKind)> = Vec::new();
        match lookup(&node.type_name).role {
            Role::Agent => {
                named.extend(node.text("model").map(|id| (id, EdgeKind::Model)));
                named.extend(node.text("memory").map(|id| (id, EdgeKind::Memory)));
                named.extend(list("tools").into_iter().map(|id| (id, EdgeKind::Tool)));
                named.extend(list("fallbackModels").into_iter().map(|id| (id, EdgeKind::Model)));
            }
            Role::Model => named.extend(text_of(&node.props, KEY_NODE).map(|id| (id, EdgeKind::Data))),
            Role::Memory | Role::Tool => {
                let services = service_names(&node.type_name, &node.props);
                named.extend(services.map(|(property, id)| match property.role {
                    Role::Model => (id, EdgeKind::Model),
                    _ => (id, EdgeKind::Memory),
                }));
            }
            Role::Chat | Role::Data => {}
        }
        let mut seen = HashSet::new();
        let found = named.into_iter().filter_map(|(id, kind)| Some((*self.by_id.get(id)?, kind)));
        found.filter(|(to, _)| *to != place && seen.insert(*to)).collect()
    }

    /// Adds the problems of the drawn nodes. A problem inside a subflow instance is one of the instance.
    fn add_problems(&mut self, report: &CheckReport) {
        let mut limit = ListLimit::new(MAX_PROBLEMS, PROBLEM_BYTES);
        for problem in &report.diagnostics {
            let Some(id) = problem.node.as_ref().and_then(|node| self.drawn_id(&node.id)) else { continue };
            let mut problem = Diagnostic::clone(problem);
            if let Some(node) = &mut problem.node {
                node.id = id;
            }
            if let Some(target) = &mut problem.target
                && let Some(id) = self.drawn_id(&target.id)
            {
                target.id = id;
            }
            if limit.take(&problem) {
                self.graph.diagnostics.push(problem);
            } else {
                self.graph.omitted_parts += 1;
            }
        }
    }

    /// The id in this drawing of a node or of something inside it.
    fn drawn_id(&self, id: &NodeId) -> Option<NodeId> {
        let Some(ix) = self.flow.find(id.as_str()) else {
            let place = self.by_id.get(id.as_str())?;
            return self.is_drawn.contains(place).then(|| id.clone());
        };
        let around = self.flow.reporters(ix).into_iter();
        let mut places = around.map(|ix: NodeIx| self.flow.nodes[ix].raw);
        let place = places.find(|place| self.is_drawn.contains(place))?;
        Some(self.node(place).id.clone())
    }
}

impl ResolvedFlow {
    /// The id of the tab or subflow that a node of the file is on.
    fn tab_id<'a>(&'a self, node: &'a RawNode) -> &'a str {
        let wrapper = || self.raw.wrapper_tab()?.get("id")?.as_str();
        node.text("z").or_else(wrapper).unwrap_or_default()
    }
}
