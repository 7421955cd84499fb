//! A flow as its file has it: read strictly, and written back without loss.

use crate::report::{ReportBuilder, single_problem, too_many};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::flow::FlowShape;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::json::{JsonLimits, JsonProblem, parse_exact};
use redflow_contract::limits::FlowLimits;
use redflow_contract::phrase::Sentence;
use redflow_contract::phrases;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// A key of Redflow's export beside `flow`. False if the wrapper is not a tab of the flow: then its nodes
/// only name it as their tab.
pub(crate) const IS_TAB: &str = "isTab";

/// The keys of a wrapper that hold lists of nodes.
pub(crate) const NODE_LISTS: [&str; 3] = ["nodes", "configs", "subflows"];

/// A parsed flow file. It keeps every property of every node, even unknown ones.
#[derive(Debug, Clone)]
pub struct RawFlow {
    shape: FlowShape,
    /// The file without its nodes: `null` stands in the place of each list of nodes.
    document: Value,
    /// The path of each list of nodes, and its length.
    sections: Vec<(&'static [&'static str], usize)>,
    nodes: Vec<RawNode>,
}

/// A node as the file has it.
#[derive(Debug, Clone)]
pub struct RawNode {
    /// The id of the node.
    pub id: NodeId,
    /// The Node-RED type.
    pub type_name: String,
    /// All properties, including `id` and `type`.
    pub props: Map<String, Value>,
}

impl RawNode {
    /// The text of a property; none if it is absent, empty or not text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.props.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Whether a property is `true`.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.props.get(key) == Some(&Value::Bool(true))
    }

    /// The id, type and name of the node.
    #[must_use]
    pub fn summary(&self) -> NodeSummary {
        NodeSummary {
            id: self.id.clone(),
            type_name: self.type_name.clone(),
            name: self.text("name").or_else(|| self.text("label")).unwrap_or_default().to_owned(),
        }
    }
}

impl RawFlow {
    /// Reads a flow in any of its four shapes.
    ///
    /// # Errors
    /// Every problem that refuses the whole flow, as far as reading can continue after it.
    pub fn parse(bytes: &[u8], limits: &FlowLimits) -> Result<Self, CheckReport> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let json = JsonLimits { max_bytes: limits.max_bytes, max_depth: limits.max_depth };
        let document = parse_exact(bytes, json).map_err(|problem| json_report(problem, limits))?;
        Self::from_value(document, limits)
    }

    /// Reads a flow from parsed JSON.
    ///
    /// # Errors
    /// As for [`RawFlow::parse`].
    pub fn from_value(mut document: Value, limits: &FlowLimits) -> Result<Self, CheckReport> {
        let (shape, paths) = shape_of(&document).ok_or_else(|| single_problem(limits, unknown_shape()))?;
        let mut problems = ReportBuilder::new(limits);
        let (mut sections, mut nodes) = (Vec::new(), Vec::new());
        for path in paths {
            let Some(slot) = value_at(&mut document, path).filter(|slot| slot.is_array()) else { continue };
            let Value::Array(items) = slot.take() else { continue };
            let items = without_copies(items, shape, &nodes);
            sections.push((*path, items.len()));
            for (index, item) in items.into_iter().enumerate() {
                match read_node(item, path, index) {
                    Ok(node) => nodes.push(node),
                    Err(problem) => problems.add(problem.code, || *problem),
                }
            }
        }
        check_nodes(&nodes, problems, limits)?;
        Ok(Self { shape, document, sections, nodes })
    }

    /// A plain array of nodes from several flows. Checks their number and ids.
    pub(crate) fn from_nodes(nodes: Vec<RawNode>, limits: &FlowLimits) -> Result<Self, CheckReport> {
        check_nodes(&nodes, ReportBuilder::new(limits), limits)?;
        Ok(Self::plain(nodes))
    }

    /// The shape of the file.
    #[must_use]
    pub fn shape(&self) -> FlowShape {
        self.shape
    }

    /// The nodes, in the order of the file.
    #[must_use]
    pub fn nodes(&self) -> &[RawNode] {
        &self.nodes
    }

    /// The `credentials` that a deployment has beside its `flows`, by node.
    pub(crate) fn separate_credentials(&self) -> HashMap<String, Value> {
        let separate = self.document.get("credentials").and_then(Value::as_object);
        separate.into_iter().flatten().map(|(id, own)| (id.clone(), own.clone())).collect()
    }

    /// The file without its nodes.
    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// The nodes of the first list of nodes.
    pub(crate) fn first_section_mut(&mut self) -> &mut [RawNode] {
        let count = self.sections.first().map_or(0, |(_, count)| *count);
        self.nodes.get_mut(..count).unwrap_or_default()
    }

    pub(crate) fn nodes_mut(&mut self) -> &mut [RawNode] {
        &mut self.nodes
    }

    pub(crate) fn into_nodes(self) -> Vec<RawNode> {
        self.nodes
    }

    /// A plain array of nodes.
    pub(crate) fn plain(nodes: Vec<RawNode>) -> Self {
        Self { shape: FlowShape::Array, document: Value::Null, sections: vec![(&[], nodes.len())], nodes }
    }

    /// The wrapper of `{id, label, nodes}` and of Redflow's export: a tab that is not a node of the file.
    pub(crate) fn wrapper_tab(&self) -> Option<&Map<String, Value>> {
        match self.shape {
            FlowShape::Array | FlowShape::Deployment => None,
            FlowShape::SingleFlow => self.document.as_object(),
            FlowShape::RedflowExport if self.document.get(IS_TAB) == Some(&Value::Bool(false)) => None,
            FlowShape::RedflowExport => self.document.get("flow").and_then(Value::as_object),
        }
    }

    pub(crate) fn wrapper_tab_mut(&mut self) -> Option<&mut Map<String, Value>> {
        self.wrapper_tab()?;
        let tab = if self.shape == FlowShape::SingleFlow {
            Some(&mut self.document)
        } else {
            self.document.get_mut("flow")
        };
        tab.and_then(Value::as_object_mut)
    }

    /// Writes the flow as JSON in its own shape. Keeps every property, id and key order. Writes whole floats
    /// as integers, as JavaScript does.
    #[must_use]
    pub fn export(&self) -> Value {
        let mut document = self.document.clone();
        let mut nodes = self.nodes.iter();
        for (path, count) in &self.sections {
            let items =
                nodes.by_ref().take(*count).map(|node| whole_numbers(&Value::Object(node.props.clone())));
            let array = Value::Array(items.collect());
            if let Some(slot) = value_at(&mut document, path) {
                *slot = array;
            }
        }
        document
    }
}

/// The shape of a document, and the paths of its lists of nodes.
fn shape_of(document: &Value) -> Option<(FlowShape, &'static [&'static [&'static str]])> {
    if document.is_array() {
        return Some((FlowShape::Array, &[&[]]));
    }
    let has = |path: &[&str]| {
        path.iter().try_fold(document, |value, key| value.get(key)).is_some_and(Value::is_array)
    };
    if has(&["flows"]) {
        Some((FlowShape::Deployment, &[&["flows"]]))
    } else if has(&["flow", "nodes"]) {
        let lists: &[&[&str]] = &[&["flow", "nodes"], &["flow", "configs"], &["flow", "subflows"]];
        Some((FlowShape::RedflowExport, lists))
    } else if has(&["nodes"]) {
        Some((FlowShape::SingleFlow, &[&["nodes"], &["configs"], &["subflows"]]))
    } else {
        None
    }
}

/// Drops repeated nodes: Redflow writes the config nodes of a tab twice, among its nodes and in `configs`.
fn without_copies(items: Vec<Value>, shape: FlowShape, before: &[RawNode]) -> Vec<Value> {
    if shape != FlowShape::RedflowExport || before.is_empty() || items.is_empty() {
        return items;
    }
    let known: HashMap<&str, &RawNode> = before.iter().map(|node| (node.id.as_str(), node)).collect();
    let is_copy = |item: &Value| {
        let known = item.get("id").and_then(Value::as_str).and_then(|id| known.get(id));
        known.is_some_and(|known| item.as_object() == Some(&known.props))
    };
    items.into_iter().filter(|item| !is_copy(item)).collect()
}

fn value_at<'a>(document: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(document, |value, key| value.get_mut(key))
}

fn read_node(item: Value, path: &[&str], index: usize) -> Result<RawNode, Box<Diagnostic>> {
    let mut pointer: String = path.iter().flat_map(|key| ["/", key]).collect();
    pointer.push_str(&format!("/{index}"));
    let Value::Object(props) = item else {
        let help = "Every entry of the list of nodes must be an object with `id` and `type`.";
        return Err(shape_problem("this entry of the flow is not an object", help, pointer));
    };
    let text = |key: &str| props.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(type_name) = text("type") else {
        let help = "Give the node a `type`, such as \"agent-core\" or \"inject\".";
        return Err(shape_problem("this node has no `type`", help, pointer + "/type"));
    };
    let (id, type_name) = (text("id").unwrap_or_default().to_owned(), type_name.to_owned());
    if id.is_empty() {
        let (message, help) = (phrases::node_without_id(type_name), phrases::node_without_id_help());
        let problem = Diagnostic::new(DiagnosticCode::DuplicateId, message, help);
        return Err(Box::new(Diagnostic { pointer: Some(pointer + "/id"), ..problem }));
    }
    Ok(RawNode { id: NodeId::from(id), type_name, props })
}

fn check_nodes(
    nodes: &[RawNode],
    mut problems: ReportBuilder,
    limits: &FlowLimits,
) -> Result<(), CheckReport> {
    if nodes.len() > limits.max_nodes {
        return Err(single_problem(limits, too_many(phrases::nodes(), limits.max_nodes)));
    }
    check_ids(nodes, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(problems.finish()) }
}

fn check_ids(nodes: &[RawNode], problems: &mut ReportBuilder) {
    let mut seen: HashMap<&str, &RawNode> = HashMap::with_capacity(nodes.len());
    for node in nodes {
        let Some(first) = seen.insert(node.id.as_str(), node) else { continue };
        problems.add(DiagnosticCode::DuplicateId, || Diagnostic {
            node: Some(first.summary()),
            target: Some(node.summary()),
            pointer: Some("/id".to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::DuplicateId,
                phrases::two_ids(node.id.as_str(), &first.type_name, &node.type_name),
                phrases::two_ids_help(),
            )
        });
    }
}

fn shape_problem(message: &str, help: &str, pointer: String) -> Box<Diagnostic> {
    let mut problem = Diagnostic::new(DiagnosticCode::FlowShapeUnknown, message.to_owned(), help.to_owned());
    problem.pointer = Some(pointer);
    Box::new(problem)
}

fn unknown_shape() -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::FlowShapeUnknown,
        "the file is JSON, but not a flow".to_owned(),
        "Export the flow from Node-RED (an array of nodes) or from Redflow, and use that file.".to_owned(),
    );
    problem.pointer = Some(String::new());
    problem.expected =
        Some("an array of nodes, {flows, rev}, {id, label, nodes, configs} or {flow: {nodes}}".to_owned());
    problem
}

fn json_report(problem: JsonProblem, limits: &FlowLimits) -> CheckReport {
    let report = |code, message, help: Sentence| single_problem(limits, Diagnostic::new(code, message, help));
    match problem {
        JsonProblem::TooLarge { bytes, limit } => {
            let message = phrases::flow_too_large(bytes, limit);
            report(DiagnosticCode::FlowTooLarge, message, phrases::flow_too_large_help())
        }
        JsonProblem::TooDeep { limit, offset } => {
            let message = phrases::flow_too_deep(limit, offset);
            report(DiagnosticCode::FlowTooDeep, message, phrases::flow_too_deep_help())
        }
        JsonProblem::NotJson { message, line, column } => {
            let message = format!("the flow file is not JSON: {message} (line {line}, column {column})");
            let help = "Correct the file there, or export the flow again.";
            report(DiagnosticCode::FlowNotJson, message.into(), help.into())
        }
        JsonProblem::DuplicateKeys { pointers, total } => {
            let mut problems = ReportBuilder::new(limits);
            problems.omit(DiagnosticCode::DuplicateKey, total - pointers.len());
            for pointer in pointers {
                problems.add(DiagnosticCode::DuplicateKey, || {
                    let key =
                        pointer.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~");
                    let (message, help) = (phrases::key_twice(key), phrases::key_twice_help());
                    let problem = Diagnostic::new(DiagnosticCode::DuplicateKey, message, help);
                    Diagnostic { pointer: Some(pointer), ..problem }
                });
            }
            problems.finish()
        }
    }
}

/// Writes whole floats as integers: JavaScript has one number type and writes 1000.0 as 1000.
fn whole_numbers(value: &Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT =>
            {
                #[allow(clippy::cast_possible_truncation)]
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => Value::Array(items.iter().map(whole_numbers).collect()),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), whole_numbers(value))).collect(),
        other => other.clone(),
    }
}
