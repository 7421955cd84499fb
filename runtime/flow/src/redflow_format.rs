//! Flows between Node-RED, which has one array of everything, and Redflow, which has one file for each tab.
//!
//! Owns what goes along with a tab so that nothing is lost on the way, and what a wrapping becomes on the way back.
//! Never does I/O: the time comes in.

use crate::raw::{RawFlow, RawNode, Refusal};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::digest::Digest;
use redflow_contract::flow::FlowShape;
use redflow_contract::id::NodeId;
use redflow_contract::limits::FlowLimits;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// Says beside `flow` that the wrapping is no tab of the flow: its nodes only say that they are on one.
pub(crate) const IS_TAB: &str = "isTab";

/// Where a wrapping has nodes.
pub(crate) const NODE_LISTS: [&str; 3] = ["nodes", "configs", "subflows"];

/// Hex digits of an id that Node-RED makes.
const ID_DIGITS: usize = 16;

/// What a file is called that has no tab at all.
const NO_TAB: &str = "flow";

/// One tab as Redflow writes and reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct TabFile {
    /// The id of the tab.
    pub id: String,
    /// What people call it.
    pub label: String,
    /// `{flow: {id, label, nodes, configs, subflows, …}, exportedAt}`.
    pub document: Value,
}

impl RawFlow {
    /// Node-RED's array, as a flow file has it: as [`RawFlow::into_array`], and a wrapping that has a name and no id
    /// becomes a tab all the same. Nodes of a wrapping that say no tab are on it.
    #[must_use]
    pub fn into_flow_file(mut self) -> Self {
        self.settle_tab();
        self.into_array()
    }

    /// The names of what stands beside the nodes and has no place in an array.
    #[must_use]
    pub fn beside(&self) -> Vec<&str> {
        let known: &[&str] = match self.shape() {
            FlowShape::Array => return Vec::new(),
            FlowShape::Deployment => &["flows", "rev", "credentials"],
            FlowShape::RedflowExport => &["flow", "exportedAt", IS_TAB],
            // All of it is the tab's.
            FlowShape::SingleFlow if self.wrapping_tab().is_some_and(is_tab) => return Vec::new(),
            FlowShape::SingleFlow => &NODE_LISTS,
        };
        let keys = self.shell().as_object().into_iter().flat_map(Map::keys);
        keys.map(String::as_str).filter(|key| !known.contains(key)).collect()
    }

    fn settle_tab(&mut self) {
        let Some(tab) = self.wrapping_tab().filter(|tab| is_tab(tab)) else { return };
        let own = text(tab, "id").map(str::to_owned);
        let name = text(tab, "name").map(Value::from);
        let id = own.unwrap_or_else(|| self.fresh_tab_id());
        if let Some(tab) = self.wrapping_tab_mut() {
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

    /// The id of a tab that has none: the one its nodes name, else one that is nobody's.
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

/// Whether a wrapping is a tab at all: one that has neither an id nor a name is a mere list.
fn is_tab(wrapping: &Map<String, Value>) -> bool {
    ["id", "label", "name"].into_iter().any(|key| text(wrapping, key).is_some())
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Puts flows together into one array. A node that stands in several of them, the same in all, stands there once.
///
/// # Errors
/// Two different nodes share an id, or there are too many.
pub fn join(flows: Vec<RawFlow>, limits: &FlowLimits) -> Result<RawFlow, CheckReport> {
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
    RawFlow::checked(nodes, limits)
}

/// The tabs of an array that [`by_tab`] makes files of, with what people call each: the id if it has no name.
#[must_use]
pub fn tab_names(flow: &RawFlow) -> Vec<(NodeId, String)> {
    let name = |group: &Group<'_>| {
        let label = group.tab.and_then(|place| flow.nodes()[place].text("label"));
        (NodeId::from(group.id), label.unwrap_or(group.id).to_owned())
    };
    Sorted::of(flow.nodes()).groups.iter().map(name).collect()
}

/// A flow as one file for each tab, with everything the tab uses: config nodes in `configs`, subflows and what is in
/// them in `subflows`. What no tab uses goes along with the first. With `only`, just that tab and what it uses.
///
/// # Errors
/// When what tabs use would have more bytes in all files together than one flow file may have.
pub fn by_tab(
    flow: RawFlow,
    only: Option<&NodeId>,
    exported_at: &str,
    limits: &FlowLimits,
) -> Result<Vec<TabFile>, CheckReport> {
    let flow = flow.into_flow_file();
    let (sorted, json) = (Sorted::of(flow.nodes()), flow.to_json());
    let sizes: Vec<usize> = json.iter().map(|node| node.to_string().len()).collect();
    let (mut copied, mut used) = (0, HashSet::new());
    let wanted = |group: &&Group<'_>| only.is_none_or(|only| only.as_str() == group.id);
    let mut files: Vec<(&Group<'_>, Vec<usize>)> = Vec::new();
    for group in sorted.groups.iter().filter(wanted) {
        let along = sorted.used_by(&group.members);
        copied += along.iter().map(|place| sizes[*place]).sum::<usize>();
        if copied > limits.max_bytes {
            return Err(Refusal::because(limits, too_much()));
        }
        used.extend(along.iter().copied());
        files.push((group, along));
    }
    let rest = || sorted.shared().filter(|place| !used.contains(place));
    let nowhere = Group { id: NO_TAB, tab: None, members: Vec::new() };
    if only.is_none() {
        if files.is_empty() && rest().next().is_some() {
            files.push((&nowhere, Vec::new()));
        }
        if let Some((_, along)) = files.first_mut() {
            along.extend(rest());
            along.sort_unstable();
        }
    }
    Ok(files.into_iter().map(|(group, along)| file(group, &along, &sorted, &json, exported_at)).collect())
}

fn too_much() -> Diagnostic {
    let message = "the tabs share so much that one file for each would be too large".to_owned();
    let help = "Name one tab, or keep the flow as one array.".to_owned();
    Diagnostic::new(DiagnosticCode::FlowTooLarge, message, help)
}

/// Tabs and subflows are on nothing.
fn is_container(node: &RawNode) -> bool {
    node.type_name == "tab" || node.type_name == "subflow"
}

/// A tab, or a place that nodes take for one.
struct Group<'a> {
    id: &'a str,
    tab: Option<usize>,
    members: Vec<usize>,
}

/// The nodes of an array by what they belong to. Numbers are places in the array.
struct Sorted<'a> {
    nodes: &'a [RawNode],
    groups: Vec<Group<'a>>,
    /// Nodes that are on nothing: config nodes for everybody.
    loose: HashMap<&'a str, usize>,
    /// Subflows, each with what is in it.
    templates: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Sorted<'a> {
    fn of(nodes: &'a [RawNode]) -> Self {
        let (mut groups, mut by_id) = (Vec::new(), HashMap::new());
        let mut templates: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, node) in nodes.iter().enumerate().filter(|(_, node)| is_container(node)) {
            let id = node.id.as_str();
            if node.type_name == "tab" {
                by_id.insert(id, groups.len());
                groups.push(Group { id, tab: Some(place), members: Vec::new() });
            } else {
                templates.insert(id, vec![place]);
            }
        }
        let mut loose = HashMap::new();
        for (place, node) in nodes.iter().enumerate().filter(|(_, node)| !is_container(node)) {
            let Some(z) = node.text("z") else {
                loose.insert(node.id.as_str(), place);
                continue;
            };
            if let Some(inside) = templates.get_mut(z) {
                inside.push(place);
                continue;
            }
            let group = *by_id.entry(z).or_insert_with(|| {
                groups.push(Group { id: z, tab: None, members: Vec::new() });
                groups.len() - 1
            });
            groups[group].members.push(place);
        }
        Self { nodes, groups, loose, templates }
    }

    /// Everything that several tabs may use.
    fn shared(&self) -> impl Iterator<Item = usize> {
        self.loose.values().chain(self.templates.values().flatten()).copied()
    }

    /// What nodes use, and what that uses, in the order of the array.
    fn used_by(&self, members: &[usize]) -> Vec<usize> {
        let (mut used, mut to_look_at) = (HashSet::new(), members.to_vec());
        while let Some(place) = to_look_at.pop() {
            let node = &self.nodes[place];
            let template = node.type_name.strip_prefix("subflow:").and_then(|id| self.templates.get(id));
            let mut found: Vec<usize> = template.into_iter().flatten().copied().collect();
            for value in node.props.values() {
                self.named_in(value, &mut found);
            }
            to_look_at.extend(found.into_iter().filter(|place| used.insert(*place)));
        }
        let mut used: Vec<usize> = used.into_iter().collect();
        used.sort_unstable();
        used
    }

    /// Which property of a node names a config node is known to its type alone: every text may.
    fn named_in(&self, value: &Value, found: &mut Vec<usize>) {
        match value {
            Value::String(text) => found.extend(self.loose.get(text.as_str())),
            Value::Array(items) => items.iter().for_each(|item| self.named_in(item, found)),
            Value::Object(map) => map.values().for_each(|value| self.named_in(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn file(
    group: &Group<'_>,
    along: &[usize],
    sorted: &Sorted<'_>,
    json: &[Value],
    exported_at: &str,
) -> TabFile {
    let take = |places: &[usize]| -> Vec<Value> { places.iter().map(|place| json[*place].clone()).collect() };
    let (configs, subflows): (Vec<usize>, Vec<usize>) =
        along.iter().partition(|place| sorted.loose.contains_key(sorted.nodes[**place].id.as_str()));
    let tab = group.tab.and_then(|place| json[place].as_object().map(|props| (place, props)));
    let (mut flow, mut nodes) = (Map::new(), take(&group.members));
    flow.insert("id".to_owned(), Value::from(group.id));
    match tab {
        Some((_, props)) if fits(props) => {
            let rest = props.iter().filter(|(key, _)| !["id", "type"].contains(&key.as_str()));
            flow.extend(rest.map(|(key, value)| (key.clone(), value.clone())));
        }
        // What would not be the same afterwards goes along as a node.
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

/// Whether a tab can be the wrapping: it has a name, and nothing of it stands where the wrapping has its nodes.
fn fits(tab: &Map<String, Value>) -> bool {
    text(tab, "label").is_some() && !NODE_LISTS.iter().any(|key| tab.contains_key(*key))
}
