//! The tools of a server: from the definitions that it sends to entries of the registry.

use crate::definition::{ServerDefinition, is_included, tightened};
use crate::pins::{PinState, definition_of, digest_of, pin_state};
use crate::schema::usable_schema;
use crate::text::{clean_and_cut, clean_line};
use redflow_contract::Millis;
use redflow_contract::digest::Digest;
use redflow_contract::mcp::{
    MAX_MCP_DESCRIPTION_CHARS, MAX_MCP_TOOLS, MCP_CLIENT, McpPin, McpPins, McpTightened,
};
use redflow_contract::node::EffectClass;
use redflow_contract::tool::{
    MAX_TOOL_ID_BYTES, ToolEntry, ToolOrigin, ToolRetry, ToolState, id_part, provider_name,
};
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// The most bytes of a definition: two schemas and the texts around them.
pub(crate) const MAX_DEFINITION_BYTES: usize = 196_608;

/// The most tools that `include` and `exclude` leave out and that are shown to people.
pub(crate) const MAX_SHOWN_TOOLS: usize = 500;

/// The most characters of a title.
const MAX_TITLE_CHARS: usize = 80;

/// The most characters of a tool's name in a text for people.
const MAX_NAME_CHARS: usize = 80;

/// A tool as the server sends it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentTool {
    pub(crate) name: String,
    pub(crate) definition: Value,
    pub(crate) digest: Digest,
    /// Whether `include` and `exclude` of the server allow it.
    pub(crate) included: bool,
    /// Whether the definition is too long, so that only its name is kept.
    pub(crate) is_too_long: bool,
}

impl SentTool {
    /// Why a person cannot approve it: people do not see its whole definition. None if they do.
    pub(crate) fn approval_refusal(&self) -> Option<String> {
        if self.is_too_long {
            return Some(too_long_text());
        }
        let text = "`include` or `exclude` of the server leaves it out. Include it first, and look at it.";
        (!self.included).then(|| text.to_owned())
    }
}

fn too_long_text() -> String {
    format!("Its definition has more than {MAX_DEFINITION_BYTES} bytes.")
}

/// The list of tools that a server sends, bounded.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SentTools {
    pub(crate) tools: Vec<SentTool>,
    /// What people should know about the list.
    pub(crate) notes: Vec<String>,
    /// Whether it has more tools than are used.
    pub(crate) is_cut: bool,
    /// How many tools were looked at.
    pub(crate) seen: usize,
}

/// What a tool of ours does at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerToolKind {
    /// Calls a tool.
    Call,
    /// Lists resources.
    ListResources,
    /// Reads a resource.
    ReadResource,
}

/// A tool of a server that agents can get.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerTool {
    pub(crate) kind: ServerToolKind,
    /// The name that the server gives it.
    pub(crate) name: String,
    pub(crate) entry: Arc<ToolEntry>,
    annotations: Option<ToolAnnotations>,
}

/// How a node narrows the tools of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolView {
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    pub(crate) effects: Vec<(String, EffectClass)>,
    pub(crate) resources: bool,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) max_result_bytes: Option<u64>,
}

/// Collects the pages of a list.
pub(crate) struct ToolCollector<'a> {
    definition: &'a ServerDefinition,
    sent: SentTools,
    /// The ids of the tools, and whether they are included.
    ids: HashSet<(bool, String)>,
    seen: usize,
    kept: usize,
    not_kept: usize,
}

impl<'a> ToolCollector<'a> {
    pub(crate) fn new(definition: &'a ServerDefinition) -> Self {
        Self { definition, sent: SentTools::default(), ids: HashSet::new(), seen: 0, kept: 0, not_kept: 0 }
    }

    /// How many tools the server has sent.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    /// Adds what people should know.
    pub(crate) fn note(&mut self, note: String) {
        self.sent.notes.push(note);
    }

    /// Adds a tool as the server sent it.
    pub(crate) fn add(&mut self, sent: &Value) {
        self.seen += 1;
        let Some(name) = sent.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            return self.count_bad();
        };
        let included = self.definition.includes(name);
        if included && self.kept == MAX_MCP_TOOLS {
            self.not_kept += 1;
            return;
        }
        let shown = self.sent.tools.len() - self.kept;
        if (!included && shown == MAX_SHOWN_TOOLS) || name.len() > MAX_TOOL_ID_BYTES {
            return self.count_bad_if(name.len() > MAX_TOOL_ID_BYTES);
        }
        // Two names that become the same id are the same name here. A tool that is left out takes no id.
        if !self.ids.insert((included, id_part(name).to_ascii_lowercase())) {
            let name = clean_line(name, MAX_NAME_CHARS);
            if self.sent.notes.len() < MAX_MCP_TOOLS {
                self.note(format!("The tool `{name}` is left out, because another one has the same id."));
            }
            return;
        }
        let definition = definition_of(sent);
        let digest = digest_of(&definition);
        let is_too_long = definition.to_string().len() > MAX_DEFINITION_BYTES;
        let definition = match (is_too_long, included) {
            (true, _) => json!({"name": name}),
            // People see no more of a tool that is left out, and a server may have many.
            (false, false) => {
                let mut hints = annotations_of(&definition).unwrap_or_default();
                hints.title = None;
                json!({"name": name, "description": description_of(&definition), "annotations": hints})
            }
            (false, true) => definition,
        };
        self.kept += usize::from(included);
        self.sent.tools.push(SentTool { name: name.to_owned(), definition, digest, included, is_too_long });
    }

    fn count_bad(&mut self) {
        self.count_bad_if(true);
    }

    fn count_bad_if(&mut self, is_bad: bool) {
        let note = "A tool is left out, because it has no name, or one that is too long.";
        if is_bad && !self.sent.notes.iter().any(|known| known == note) {
            self.note(note.to_owned());
        }
    }

    pub(crate) fn finish(mut self) -> SentTools {
        self.sent.seen = self.seen;
        if self.not_kept > 0 {
            self.sent.is_cut = true;
            let all = self.kept + self.not_kept;
            self.sent.notes.insert(
                0,
                format!(
                    "Only {MAX_MCP_TOOLS} of {all} tools are used. Name those that you need in `include`."
                ),
            );
        }
        self.sent.tools.sort_by(|one, other| one.name.cmp(&other.name));
        self.sent
    }
}

/// The pins with those of tools that are used for the first time; none if there is no new one.
pub(crate) fn first_pins(
    definition: &ServerDefinition,
    pins: &McpPins,
    sent: &SentTools,
    now: Millis,
) -> Option<McpPins> {
    let mut all = pins.clone();
    for tool in sent.tools.iter().filter(|tool| tool.included) {
        if pin_state(&all, definition.trust(), &tool.name, tool.digest) == PinState::First {
            let definition = tool.definition.clone();
            let pin = McpPin { digest: tool.digest, definition, at: now, approved: false };
            all.tools.insert(tool.name.clone(), pin);
        }
    }
    (all.tools.len() > pins.tools.len()).then_some(all)
}

/// The pins of a server.
#[derive(Clone, Copy)]
pub(crate) struct PinView<'a> {
    /// None if they cannot be read.
    pub(crate) pins: Option<&'a McpPins>,
    /// Why they cannot be read, or why those of new tools cannot be written.
    pub(crate) problem: Option<&'a str>,
}

/// The tools that agents can get.
pub(crate) fn server_tools(
    definition: &ServerDefinition,
    view: PinView<'_>,
    sent: &SentTools,
) -> Vec<ServerTool> {
    sent.tools.iter().filter(|tool| tool.included).map(|tool| server_tool(definition, view, tool)).collect()
}

fn server_tool(definition: &ServerDefinition, view: PinView<'_>, sent: &SentTool) -> ServerTool {
    let name = sent.name.as_str();
    let unknown = json!({"name": name, "inputSchema": {}});
    let blocked =
        |reason: String| make(definition, name, &unknown, sent.digest, (ToolState::Blocked, Some(reason)));
    let problem = |otherwise: &str| view.problem.unwrap_or(otherwise).to_owned();
    let Some(pins) = view.pins else { return blocked(problem("The pins of the server cannot be read.")) };
    // No person can approve it, so it does not wait for an approval.
    if sent.is_too_long {
        return blocked(too_long_text());
    }
    let approve = approval_text(definition.handle());
    match pin_state(pins, definition.trust(), name, sent.digest) {
        // Its pin could not be written.
        PinState::First => {
            blocked(problem("Its first definition has not been kept. The next list of the server does that."))
        }
        PinState::Approved => make(definition, name, &sent.definition, sent.digest, (ToolState::Ready, None)),
        // The text of the new definition must not reach a model.
        PinState::Changed => {
            let pin = pins.tools.get(name);
            let (known, digest) =
                pin.map_or((&Value::Null, sent.digest), |pin| (&pin.definition, pin.digest));
            let reason = format!("Its definition is not the one that was approved. {approve}");
            make(definition, name, known, digest, (ToolState::Changed, Some(reason)))
        }
        PinState::NotApproved => {
            let reason = format!("Its definition has not been approved. {approve}");
            make(definition, name, &unknown, sent.digest, (ToolState::Changed, Some(reason)))
        }
        PinState::Full => {
            let reason = format!("The server has too many pins. {approve}");
            make(definition, name, &unknown, sent.digest, (ToolState::Changed, Some(reason)))
        }
    }
}

/// What people should know about the output schemas of the tools. A bad one is dropped.
pub(crate) fn output_notes(sent: &SentTools) -> Vec<String> {
    let note = |tool: &SentTool| {
        let why = usable_schema(tool.definition.get("outputSchema")?).err()?;
        let name = clean_line(&tool.name, MAX_NAME_CHARS);
        Some(format!("The output schema of `{name}` is not used: {why}."))
    };
    sent.tools.iter().filter(|tool| tool.included).filter_map(note).collect()
}

/// How a person approves definitions.
pub(crate) fn approval_text(server: &str) -> String {
    format!("Look at it and approve it: `redflow mcp pin {server}`.")
}

/// The class that the server's own rules give a tool, for people.
pub(crate) fn shown_effect(definition: &ServerDefinition, sent: &Value) -> EffectClass {
    let name = sent.get("name").and_then(Value::as_str).unwrap_or_default();
    definition.effect(&[], name, annotations_of(sent).as_ref())
}

/// What the classes of a node's rules become for a tool.
pub(crate) fn tightened_classes(sent: &Value) -> McpTightened {
    tightened(annotations_of(sent).as_ref())
}

/// The description for people and models.
pub(crate) fn description_of(sent: &Value) -> String {
    let text = sent.get("description").and_then(Value::as_str).unwrap_or_default();
    clean_and_cut(text, MAX_MCP_DESCRIPTION_CHARS)
}

/// The id of a tool.
pub(crate) fn tool_id(server: &str, tool: &str) -> String {
    format!("mcp.{server}.{}", id_part(tool))
}

fn annotations_of(sent: &Value) -> Option<ToolAnnotations> {
    serde_json::from_value(sent.get("annotations")?.clone()).ok()
}

fn make(
    definition: &ServerDefinition,
    name: &str,
    sent: &Value,
    digest: Digest,
    (mut state, mut reason): (ToolState, Option<String>),
) -> ServerTool {
    let mut block = |why: String| {
        if state == ToolState::Ready {
            state = ToolState::Blocked;
            reason = Some(why);
        }
    };
    let input_schema = match usable_schema(sent.get("inputSchema").unwrap_or(&Value::Null)) {
        Ok(schema) => Some(schema),
        Err(why) => {
            block(format!("Its input schema cannot be used: {why}."));
            None
        }
    };
    let output_schema = sent.get("outputSchema").and_then(|schema| usable_schema(schema).ok());
    let id = tool_id(&definition.name, name);
    if id.len() > MAX_TOOL_ID_BYTES {
        block("Its name is too long.".to_owned());
    }
    let annotations = annotations_of(sent);
    let title = sent.get("title").and_then(Value::as_str).unwrap_or_default();
    let description = match description_of(sent) {
        text if !text.is_empty() => text,
        _ => format!("The tool {} of the server {}.", id_part(name), definition.name),
    };
    let entry = ToolEntry {
        name: provider_name(&id),
        id,
        origin: ToolOrigin::Mcp,
        provider: definition.name.clone(),
        title: clean_line(title, MAX_TITLE_CHARS),
        description,
        input_schema,
        output_schema,
        effect: Some(definition.effect(&[], name, annotations.as_ref())),
        timeout_ms: definition.timeout_ms(),
        retry: ToolRetry::default(),
        permissions: definition.permissions(),
        digest,
        node_type: Some(MCP_CLIENT.to_owned()),
        state,
        reason,
        instance: None,
        rules: Vec::new(),
    };
    ServerTool { kind: ServerToolKind::Call, name: name.to_owned(), entry: Arc::new(entry), annotations }
}

/// The tools for resources. The server has no definitions of them, so they have no pins.
pub(crate) fn resource_tools(definition: &ServerDefinition) -> [ServerTool; 2] {
    let list = json!({"name": "list_resources", "inputSchema": {"type": "object", "properties": {}},
        "description": "Lists the resources of the server: addresses, names and descriptions."});
    let read = json!({"name": "read_resource", "description": "Reads a resource of the server.",
        "inputSchema": {"type": "object", "required": ["uri"], "additionalProperties": false,
            "properties": {"uri": {"type": "string", "description": "The address of the resource."}}}});
    [(list, ServerToolKind::ListResources), (read, ServerToolKind::ReadResource)].map(|(sent, kind)| {
        let name = sent.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let tool = make(definition, &name, &sent, digest_of(&sent), (ToolState::Ready, None));
        let entry = ToolEntry { effect: Some(EffectClass::Read), ..(*tool.entry).clone() };
        ServerTool { kind, entry: Arc::new(entry), ..tool }
    })
}

impl ServerTool {
    /// The entry as a node has it; none if the node leaves the tool out.
    pub(crate) fn entry_for(
        &self,
        definition: &ServerDefinition,
        view: Option<&ToolView>,
        is_offline: bool,
    ) -> Option<Arc<ToolEntry>> {
        let offline = is_offline && self.entry.state == ToolState::Ready;
        let Some(view) = view else {
            return Some(if offline {
                Arc::new(set_offline((*self.entry).clone()))
            } else {
                Arc::clone(&self.entry)
            });
        };
        // The list names tools of the server. A property of its own says whether those for resources are wanted.
        let include = if self.kind == ServerToolKind::Call { view.include.as_slice() } else { &[] };
        if !is_included(include, &view.exclude, &self.name) {
            return None;
        }
        let mut entry = (*self.entry).clone();
        if self.kind == ServerToolKind::Call {
            entry.effect = Some(definition.effect(&view.effects, &self.name, self.annotations.as_ref()));
        }
        entry.timeout_ms = view.timeout_ms.map_or(entry.timeout_ms, |own| own.min(entry.timeout_ms));
        Some(Arc::new(if offline { set_offline(entry) } else { entry }))
    }
}

fn set_offline(entry: ToolEntry) -> ToolEntry {
    ToolEntry { state: ToolState::Offline, reason: Some("The server is not connected.".to_owned()), ..entry }
}
