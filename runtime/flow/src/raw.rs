//! A flow as its file has it: read strictly, kept whole, written back without loss.

use crate::redflow_format::IS_TAB;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::flow::FlowShape;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::json::{JsonLimits, JsonProblem, parse_strict};
use redflow_contract::limits::FlowLimits;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// A flow file, parsed. Node properties are kept as they are, unknown ones too.
#[derive(Debug, Clone)]
pub struct RawFlow {
    shape: FlowShape,
    /// The file without its nodes: `null` stands where each array of nodes was.
    shell: Value,
    /// Where each array was, and how many nodes it holds.
    sections: Vec<(&'static [&'static str], usize)>,
    nodes: Vec<RawNode>,
}

/// A node as the file has it.
#[derive(Debug, Clone)]
pub struct RawNode {
    /// Its id.
    pub id: NodeId,
    /// Its type.
    pub type_name: String,
    /// All its properties, `id` and `type` too.
    pub props: Map<String, Value>,
}

impl RawNode {
    /// A property that is text; absent, empty and anything else are `None`.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.props.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Whether a property is `true`.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.props.get(key) == Some(&Value::Bool(true))
    }

    /// The node as people recognise it.
    #[must_use]
    pub fn summary(&self) -> NodeSummary {
        NodeSummary {
            id: self.id.clone(),
            type_name: self.type_name.clone(),
            name: self.text("name").or_else(|| self.text("label")).unwrap_or_default().to_owned(),
        }
    }
}

/// Why a whole flow is refused: problems up to the limit, the rest counted.
#[derive(Debug)]
pub(crate) struct Refusal {
    limit: usize,
    pub(crate) report: CheckReport,
}

impl Refusal {
    pub(crate) fn new(limits: &FlowLimits) -> Self {
        Self { limit: limits.max_diagnostics, report: CheckReport::default() }
    }

    /// A refusal for one reason.
    pub(crate) fn because(limits: &FlowLimits, problem: Diagnostic) -> CheckReport {
        let mut refusal = Self::new(limits);
        refusal.add(problem.code, || problem);
        refusal.report
    }

    fn add(&mut self, code: DiagnosticCode, problem: impl FnOnce() -> Diagnostic) {
        if self.report.diagnostics.len() < self.limit {
            self.report.diagnostics.push(bounded(problem()));
        } else {
            self.omit(code, 1);
        }
    }

    fn omit(&mut self, code: DiagnosticCode, count: usize) {
        if count > 0 {
            let omitted = self.report.omitted.entry(code.to_string()).or_default();
            *omitted = omitted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }
}

/// A diagnostic whose texts a hostile flow cannot blow up.
pub(crate) fn bounded(mut diagnostic: Diagnostic) -> Diagnostic {
    const TEXT: usize = 600;
    const NAME: usize = 256;
    cut(&mut diagnostic.message, TEXT);
    cut(&mut diagnostic.help, TEXT);
    for text in
        [&mut diagnostic.pointer, &mut diagnostic.expected, &mut diagnostic.found].into_iter().flatten()
    {
        cut(text, TEXT);
    }
    for node in [&mut diagnostic.node, &mut diagnostic.target].into_iter().flatten() {
        if node.id.as_str().len() > NAME {
            let mut id = node.id.to_string();
            cut(&mut id, NAME);
            node.id = id.into();
        }
        cut(&mut node.type_name, NAME);
        cut(&mut node.name, NAME);
    }
    diagnostic
}

/// Cuts a text to a number of characters.
pub(crate) fn cut(text: &mut String, chars: usize) {
    if text.len() > chars
        && let Some((end, _)) = text.char_indices().nth(chars)
    {
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
}

impl RawFlow {
    /// Reads a flow in any of its four shapes.
    ///
    /// # Errors
    /// Everything that refuses the whole flow, all at once where reading can go on.
    pub fn parse(bytes: &[u8], limits: &FlowLimits) -> Result<Self, CheckReport> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let json = JsonLimits { max_bytes: limits.max_bytes, max_depth: limits.max_depth };
        let document = parse_strict(bytes, json).map_err(|problem| json_refusal(problem, limits))?;
        Self::from_value(document, limits)
    }

    /// Reads a flow that is JSON already.
    ///
    /// # Errors
    /// As for [`RawFlow::parse`].
    pub fn from_value(mut document: Value, limits: &FlowLimits) -> Result<Self, CheckReport> {
        let (shape, paths) = shape_of(&document).ok_or_else(|| Refusal::because(limits, unknown_shape()))?;
        let mut refusal = Refusal::new(limits);
        let (mut sections, mut nodes) = (Vec::new(), Vec::new());
        for path in paths {
            let Some(slot) = place(&mut document, path).filter(|slot| slot.is_array()) else { continue };
            let Value::Array(items) = slot.take() else { continue };
            let items = without_copies(items, shape, &nodes);
            sections.push((*path, items.len()));
            for (index, item) in items.into_iter().enumerate() {
                match read_node(item, path, index) {
                    Ok(node) => nodes.push(node),
                    Err(problem) => refusal.add(problem.code, || *problem),
                }
            }
        }
        check_nodes(&nodes, refusal, limits)?;
        Ok(Self { shape, shell: document, sections, nodes })
    }

    /// A plain array of nodes that come from several flows.
    pub(crate) fn checked(nodes: Vec<RawNode>, limits: &FlowLimits) -> Result<Self, CheckReport> {
        check_nodes(&nodes, Refusal::new(limits), limits)?;
        Ok(Self::plain(nodes))
    }

    /// The wrapping it came in.
    #[must_use]
    pub fn shape(&self) -> FlowShape {
        self.shape
    }

    /// Its nodes, in the order of the file.
    #[must_use]
    pub fn nodes(&self) -> &[RawNode] {
        &self.nodes
    }

    /// `credentials` beside the `flows` of a deployment, by node.
    pub(crate) fn credentials_beside(&self) -> HashMap<String, Value> {
        let beside = self.shell.get("credentials").and_then(Value::as_object);
        beside.into_iter().flatten().map(|(id, own)| (id.clone(), own.clone())).collect()
    }

    /// The file without its nodes.
    pub(crate) fn shell(&self) -> &Value {
        &self.shell
    }

    /// The nodes of the first list of nodes.
    pub(crate) fn first_section_mut(&mut self) -> &mut [RawNode] {
        let many = self.sections.first().map_or(0, |(_, many)| *many);
        self.nodes.get_mut(..many).unwrap_or_default()
    }

    pub(crate) fn nodes_mut(&mut self) -> &mut [RawNode] {
        &mut self.nodes
    }

    pub(crate) fn into_nodes(self) -> Vec<RawNode> {
        self.nodes
    }

    /// A plain array of nodes.
    pub(crate) fn plain(nodes: Vec<RawNode>) -> Self {
        Self { shape: FlowShape::Array, shell: Value::Null, sections: vec![(&[], nodes.len())], nodes }
    }

    /// The tab that `{id, label, nodes}` and Redflow's export are, which is no node of its own there.
    #[must_use]
    pub fn wrapping_tab(&self) -> Option<&Map<String, Value>> {
        match self.shape {
            FlowShape::Array | FlowShape::Deployment => None,
            FlowShape::SingleFlow => self.shell.as_object(),
            FlowShape::RedflowExport if self.shell.get(IS_TAB) == Some(&Value::Bool(false)) => None,
            FlowShape::RedflowExport => self.shell.get("flow").and_then(Value::as_object),
        }
    }

    pub(crate) fn wrapping_tab_mut(&mut self) -> Option<&mut Map<String, Value>> {
        self.wrapping_tab()?;
        let tab = if self.shape == FlowShape::SingleFlow {
            Some(&mut self.shell)
        } else {
            self.shell.get_mut("flow")
        };
        tab.and_then(Value::as_object_mut)
    }

    /// The flow as JSON in the shape it came in: every property, key order and id kept. Whole floats are
    /// written as integers, as JavaScript does.
    #[must_use]
    pub fn export(&self) -> Value {
        let mut document = self.shell.clone();
        let mut nodes = self.nodes.iter();
        for (path, count) in &self.sections {
            let items =
                nodes.by_ref().take(*count).map(|node| whole_numbers(&Value::Object(node.props.clone())));
            let array = Value::Array(items.collect());
            if let Some(slot) = place(&mut document, path) {
                *slot = array;
            }
        }
        document
    }
}

/// The shape of a document, and where its arrays of nodes are.
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

/// Redflow writes the config nodes of a tab twice: among its nodes, and in `configs`, as Node-RED gave them.
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

fn place<'a>(document: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
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
        let message = format!("this `{type_name}` node has no id");
        let help = "Give every node an `id` of its own: any text that is not empty.".to_owned();
        let mut problem = Diagnostic::new(DiagnosticCode::DuplicateId, message, help);
        problem.pointer = Some(pointer + "/id");
        return Err(Box::new(problem));
    }
    Ok(RawNode { id: NodeId::from(id), type_name, props })
}

fn check_nodes(nodes: &[RawNode], mut refusal: Refusal, limits: &FlowLimits) -> Result<(), CheckReport> {
    if nodes.len() > limits.max_nodes {
        return Err(Refusal::because(limits, too_many("nodes", limits.max_nodes)));
    }
    check_ids(nodes, &mut refusal);
    if refusal.report.diagnostics.is_empty() { Ok(()) } else { Err(refusal.report) }
}

fn check_ids(nodes: &[RawNode], refusal: &mut Refusal) {
    let mut seen: HashMap<&str, &RawNode> = HashMap::with_capacity(nodes.len());
    for node in nodes {
        let Some(first) = seen.insert(node.id.as_str(), node) else { continue };
        refusal.add(DiagnosticCode::DuplicateId, || Diagnostic {
            node: Some(first.summary()),
            target: Some(node.summary()),
            pointer: Some("/id".to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::DuplicateId,
                format!(
                    "two nodes share the id `{}`: a `{}` and a `{}`",
                    node.id, first.type_name, node.type_name
                ),
                "Give one of them another id, and change the wires that mean it.".to_owned(),
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

/// More `what` (nodes or wires) than allowed.
pub(crate) fn too_many(what: &str, limit: usize) -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::FlowTooLarge,
        format!("the flow has more than {limit} {what} once its subflows are expanded"),
        "Split the flow, or use fewer instances of large subflows.".to_owned(),
    );
    problem.expected = Some(format!("at most {limit} {what}"));
    problem
}

fn json_refusal(problem: JsonProblem, limits: &FlowLimits) -> CheckReport {
    let one = |code, message: String, help: &str| Diagnostic::new(code, message, help.to_owned());
    let because = |code, message, help| Refusal::because(limits, one(code, message, help));
    match problem {
        JsonProblem::TooLarge { bytes, limit } => {
            let message = format!("the flow file has {bytes} bytes; the limit is {limit}");
            because(DiagnosticCode::FlowTooLarge, message, "Split the flow into several files.")
        }
        JsonProblem::TooDeep { limit, offset } => {
            let message = format!("the flow file nests deeper than {limit} levels (at byte {offset})");
            because(DiagnosticCode::FlowTooDeep, message, "Move deeply nested data out of the flow file.")
        }
        JsonProblem::NotJson { message, line, column } => {
            let message = format!("the flow file is not JSON: {message} (line {line}, column {column})");
            because(DiagnosticCode::FlowNotJson, message, "Mend the file there, or export the flow again.")
        }
        JsonProblem::DuplicateKeys { pointers, total } => {
            let mut refusal = Refusal::new(limits);
            refusal.omit(DiagnosticCode::DuplicateKey, total - pointers.len());
            for pointer in pointers {
                refusal.add(DiagnosticCode::DuplicateKey, || {
                    let key =
                        pointer.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~");
                    let message = format!("the key `{key}` stands twice in one object");
                    let help = "Remove one of the two: it is not clear which one counts.";
                    Diagnostic { pointer: Some(pointer), ..one(DiagnosticCode::DuplicateKey, message, help) }
                });
            }
            refusal.report
        }
    }
}

/// JavaScript has one kind of number and writes 1000.0 as 1000.
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
