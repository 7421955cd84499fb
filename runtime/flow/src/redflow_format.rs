//! Converts flows between Node-RED, which has one array, and Redflow, which has one file per tab.
//!
//! Owns which nodes go into the file of a tab, and what a wrapper becomes on the way back, so that nothing is
//! lost. Never does I/O: the time is an argument.

use crate::raw::{IS_TAB, NODE_LISTS, RawFlow, RawNode};
use crate::report::single_problem;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::digest::Digest;
use redflow_contract::flow::FlowShape;
use redflow_contract::id::NodeId;
use redflow_contract::limits::FlowLimits;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// The number of hex digits in an id of Node-RED.
const ID_DIGITS: usize = 16;

/// The id of the file for nodes without any tab.
const NO_TAB: &str = "flow";

/// One tab as Redflow writes and reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct TabFile {
    /// The id of the tab.
    pub id: String,
    /// The name its owner gave it.
    pub label: String,
    /// `{flow: {id, label, nodes, configs, subflows, …}, exportedAt}`.
    pub document: Value,
}

impl RawFlow {
    /// Turns the flow into Node-RED's array, like [`RawFlow::into_array`]. A wrapper with a name but no id
    /// becomes a tab too, and nodes of a wrapper without a tab are put on it.
    #[must_use]
    pub fn into_flow_file(mut self) -> Self {
        self.complete_tab();
        self.into_array()
    }

    /// The keys beside the nodes that have no place in an array, so that [`RawFlow::into_flow_file`] drops
    /// them.
    #[must_use]
    pub fn dropped_keys(&self) -> Vec<&str> {
        let known: &[&str] = match self.shape() {
            FlowShape::Array => return Vec::new(),
            FlowShape::Deployment => &["flows", "rev", "credentials"],
            FlowShape::RedflowExport => &["flow", "exportedAt", IS_TAB],
            // Every key becomes a property of the tab.
            FlowShape::SingleFlow if self.wrapper_tab().is_some_and(is_tab) => return Vec::new(),
            FlowShape::SingleFlow => &NODE_LISTS,
        };
        let keys = self.document().as_object().into_iter().flat_map(Map::keys);
        keys.map(String::as_str).filter(|key| !known.contains(key)).collect()
    }

    fn complete_tab(&mut self) {
        let Some(tab) = self.wrapper_tab().filter(|tab| is_tab(tab)) else { return };
        let own = text(tab, "id").map(str::to_owned);
        let name = text(tab, "name").map(Value::from);
        let id = own.unwrap_or_else(|| self.fresh_tab_id());
        if let Some(tab) = self.wrapper_tab_mut() {
            tab.insert("id".to_owned(), Value::from(id.as_str()));
            if let Some(name) = name {
                tab.entry("label").or_insert(name);
            }
        }
        for node in self.first_section_mut() {
            if node.text("z").is_none() && !is_container(node) {
                node.props.insert("z".to_owned(), Value::from(id.as_str()));
            }
        }
    }

    /// An id for a tab that has none: the one that its nodes name, else an unused one.
    fn fresh_tab_id(&self) -> String {
        let ids: HashSet<&str> = self.nodes().iter().map(|node| node.id.as_str()).collect();
        let named: HashSet<&str> = self.nodes().iter().filter_map(|node| node.text("z")).collect();
        let mut named = named.into_iter().filter(|z| !ids.contains(z));
        if let (Some(only), None) = (named.next(), named.next()) {
            return only.to_owned();
        }
        let mut digest = Digest::of(self.export().to_string().as_bytes());
        loop {
            let id: String = digest.to_hex().chars().take(ID_DIGITS).collect();
            if !ids.contains(id.as_str()) {
                return id;
            }
            digest = digest.chain(0, id.as_bytes());
        }
    }
}

/// Whether a wrapper is a tab. Without an id and a name it is only a list.
fn is_tab(wrapper: &Map<String, Value>) -> bool {
    ["id", "label", "name"].into_iter().any(|key| text(wrapper, key).is_some())
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Joins flows into one array. A node that several flows contain unchanged appears once.
///
/// # Errors
/// When two different nodes share an id, or when there are too many nodes.
///
/// ```
/// use redflow_contract::limits::FlowLimits;
/// use redflow_flow::{RawFlow, join_flows};
///
/// let limits = FlowLimits::default();
/// let read = |file: &[u8]| RawFlow::parse(file, &limits).expect("a flow");
/// // Both tabs contain the same config node.
/// let first = read(br#"{"id": "t1", "label": "One", "nodes": [], "configs": [{"id": "c", "type": "x"}]}"#);
/// let second = read(br#"{"id": "t2", "label": "Two", "nodes": [], "configs": [{"id": "c", "type": "x"}]}"#);
/// let joined = join_flows(vec![first, second], &limits).expect("one flow");
/// let ids: Vec<&str> = joined.nodes().iter().map(|node| node.id.as_str()).collect();
/// assert_eq!(ids, ["t1", "c", "t2"]);
/// ```
pub fn join_flows(flows: Vec<RawFlow>, limits: &FlowLimits) -> Result<RawFlow, CheckReport> {
    let mut nodes: Vec<RawNode> = Vec::new();
    let mut places: HashMap<NodeId, usize> = HashMap::new();
    for node in flows.into_iter().flat_map(|flow| flow.into_flow_file().into_nodes()) {
        let first = places.get(&node.id).map(|place| &nodes[*place]);
        if first.is_some_and(|first| first.props == node.props) {
            continue;
        }
        places.entry(node.id.clone()).or_insert(nodes.len());
        nodes.push(node);
    }
    RawFlow::from_nodes(nodes, limits)
}

/// The tabs for which [`split_by_tab`] makes files: the id and the name of each, or the id again if it has no name.
#[must_use]
pub fn tab_names(flow: &RawFlow) -> Vec<(NodeId, String)> {
    let name = |group: &TabGroup<'_>| {
        let label = group.tab.and_then(|place| flow.nodes()[place].text("label"));
        (NodeId::from(group.id), label.unwrap_or(group.id).to_owned())
    };
    TabIndex::new(flow.nodes()).groups.iter().map(name).collect()
}

/// Splits a flow into one file per tab, with everything that the tab uses: config nodes in `configs`,
/// subflows and the nodes inside them in `subflows`. Nodes that no tab uses go into the first file. With
/// `only`, makes just the file of that tab.
///
/// # Errors
/// When the shared nodes in all files together have more bytes than one flow file may have.
///
/// ```
/// use redflow_contract::limits::FlowLimits;
/// use redflow_flow::{RawFlow, split_by_tab};
///
/// let file = br#"[{"id": "t1", "type": "tab", "label": "One"}, {"id": "t2", "type": "tab", "label": "Two"},
///     {"id": "n", "type": "debug", "z": "t2"}]"#;
/// let limits = FlowLimits::default();
/// let flow = RawFlow::parse(file, &limits).expect("a flow");
/// let files = split_by_tab(flow, None, "2026-01-01T00:00:00.000Z", &limits).expect("two files");
/// let labels: Vec<&str> = files.iter().map(|file| file.label.as_str()).collect();
/// assert_eq!(labels, ["One", "Two"]);
/// assert_eq!(files[1].document["flow"]["nodes"][0]["id"], "n");
/// ```
pub fn split_by_tab(
    flow: RawFlow,
    only: Option<&NodeId>,
    exported_at: &str,
    limits: &FlowLimits,
) -> Result<Vec<TabFile>, CheckReport> {
    let flow = flow.into_flow_file();
    let (index, json) = (TabIndex::new(flow.nodes()), flow.to_json());
    let sizes: Vec<usize> = json.iter().map(|node| node.to_string().len()).collect();
    let (mut copied, mut used) = (0, HashSet::new());
    let is_wanted = |group: &&TabGroup<'_>| only.is_none_or(|only| only.as_str() == group.id);
    let mut files: Vec<(&TabGroup<'_>, Vec<usize>)> = Vec::new();
    for group in index.groups.iter().filter(is_wanted) {
        let shared = index.used_by(&group.members);
        copied += shared.iter().map(|place| sizes[*place]).sum::<usize>();
        if copied > limits.max_bytes {
            return Err(single_problem(limits, files_too_large()));
        }
        used.extend(shared.iter().copied());
        files.push((group, shared));
    }
    let rest = || index.shared().filter(|place| !used.contains(place));
    let no_tab = TabGroup { id: NO_TAB, tab: None, members: Vec::new() };
    if only.is_none() {
        if files.is_empty() && rest().next().is_some() {
            files.push((&no_tab, Vec::new()));
        }
        if let Some((_, shared)) = files.first_mut() {
            shared.extend(rest());
            shared.sort_unstable();
        }
    }
    Ok(files
        .into_iter()
        .map(|(group, shared)| tab_file(group, &shared, &index, &json, exported_at))
        .collect())
}

fn files_too_large() -> Diagnostic {
    let message = "the tabs share so much that one file for each would be too large".to_owned();
    let help = "Name one tab, or keep the flow as one array.".to_owned();
    Diagnostic::new(DiagnosticCode::FlowTooLarge, message, help)
}

/// Whether a node is a tab or a subflow, which contain nodes.
fn is_container(node: &RawNode) -> bool {
    node.type_name == "tab" || node.type_name == "subflow"
}

/// A tab, or an id that nodes name as their tab, with its nodes.
struct TabGroup<'a> {
    id: &'a str,
    tab: Option<usize>,
    members: Vec<usize>,
}

/// The nodes of an array, by tab. Numbers are indices in the array.
struct TabIndex<'a> {
    nodes: &'a [RawNode],
    groups: Vec<TabGroup<'a>>,
    /// Nodes without a tab: config nodes that every tab can use.
    global_nodes: HashMap<&'a str, usize>,
    /// Subflows, each with the nodes inside it.
    templates: HashMap<&'a str, Vec<usize>>,
}

impl<'a> TabIndex<'a> {
    fn new(nodes: &'a [RawNode]) -> Self {
        let (mut groups, mut by_id) = (Vec::new(), HashMap::new());
        let mut templates: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, node) in nodes.iter().enumerate().filter(|(_, node)| is_container(node)) {
            let id = node.id.as_str();
            if node.type_name == "tab" {
                by_id.insert(id, groups.len());
                groups.push(TabGroup { id, tab: Some(place), members: Vec::new() });
            } else {
                templates.insert(id, vec![place]);
            }
        }
        let mut global_nodes = HashMap::new();
        for (place, node) in nodes.iter().enumerate().filter(|(_, node)| !is_container(node)) {
            let Some(z) = node.text("z") else {
                global_nodes.insert(node.id.as_str(), place);
                continue;
            };
            if let Some(inside) = templates.get_mut(z) {
                inside.push(place);
                continue;
            }
            let group = *by_id.entry(z).or_insert_with(|| {
                groups.push(TabGroup { id: z, tab: None, members: Vec::new() });
                groups.len() - 1
            });
            groups[group].members.push(place);
        }
        Self { nodes, groups, global_nodes, templates }
    }

    /// All nodes that several tabs can use.
    fn shared(&self) -> impl Iterator<Item = usize> {
        self.global_nodes.values().chain(self.templates.values().flatten()).copied()
    }

    /// The shared nodes that `members` use, directly or through others, in the order of the array.
    fn used_by(&self, members: &[usize]) -> Vec<usize> {
        let (mut used, mut to_visit) = (HashSet::new(), members.to_vec());
        while let Some(place) = to_visit.pop() {
            let node = &self.nodes[place];
            let template = node.type_name.strip_prefix("subflow:").and_then(|id| self.templates.get(id));
            let mut found: Vec<usize> = template.into_iter().flatten().copied().collect();
            for value in node.props.values() {
                self.collect_named(value, &mut found);
            }
            to_visit.extend(found.into_iter().filter(|place| used.insert(*place)));
        }
        let mut used: Vec<usize> = used.into_iter().collect();
        used.sort_unstable();
        used
    }

    /// Collects the config nodes that a value names. Only a node's type knows which of its properties does,
    /// so every text counts.
    fn collect_named(&self, value: &Value, found: &mut Vec<usize>) {
        match value {
            Value::String(text) => found.extend(self.global_nodes.get(text.as_str())),
            Value::Array(items) => items.iter().for_each(|item| self.collect_named(item, found)),
            Value::Object(map) => map.values().for_each(|value| self.collect_named(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn tab_file(
    group: &TabGroup<'_>,
    shared: &[usize],
    index: &TabIndex<'_>,
    json: &[Value],
    exported_at: &str,
) -> TabFile {
    let take = |places: &[usize]| -> Vec<Value> { places.iter().map(|place| json[*place].clone()).collect() };
    let (configs, subflows): (Vec<usize>, Vec<usize>) =
        shared.iter().partition(|place| index.global_nodes.contains_key(index.nodes[**place].id.as_str()));
    let tab = group.tab.and_then(|place| json[place].as_object().map(|props| (place, props)));
    let (mut flow, mut nodes) = (Map::new(), take(&group.members));
    flow.insert("id".to_owned(), Value::from(group.id));
    match tab {
        Some((_, props)) if fits_wrapper(props) => {
            let rest = props.iter().filter(|(key, _)| !["id", "type"].contains(&key.as_str()));
            flow.extend(rest.map(|(key, value)| (key.clone(), value.clone())));
        }
        // A tab that the wrapper cannot represent goes into the file as a node.
        Some((place, _)) => {
            flow.insert("label".to_owned(), Value::from(group.id));
            nodes.insert(0, json[place].clone());
        }
        None => drop(flow.insert("label".to_owned(), Value::from(group.id))),
    }
    let label = flow.get("label").and_then(Value::as_str).unwrap_or(group.id).to_owned();
    flow.insert("nodes".to_owned(), Value::Array(nodes));
    for (key, places) in [("configs", configs), ("subflows", subflows)] {
        if !places.is_empty() {
            flow.insert(key.to_owned(), Value::Array(take(&places)));
        }
    }
    let mut document = json!({"flow": flow});
    if tab.is_none() {
        document[IS_TAB] = Value::Bool(false);
    }
    document["exportedAt"] = Value::from(exported_at);
    TabFile { id: group.id.to_owned(), label, document }
}

/// Whether a tab can be the wrapper: it has a name, and no property with the key of a list of nodes.
fn fits_wrapper(tab: &Map<String, Value>) -> bool {
    text(tab, "label").is_some() && !NODE_LISTS.iter().any(|key| tab.contains_key(*key))
}
