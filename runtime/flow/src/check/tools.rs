//! Checks tools: their names, their schemas, and whether the agent allows them.

use super::bindings::Bindings;
use super::config::{AgentConfig, SecretReferences, whole_number};
use super::schema::Violation;
use super::texts::agent_port;
use super::{Checker, ReadyProvider};
use crate::report::truncate;
use crate::resolved::NodeIx;
use crate::wire_search::LimitExceeded;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::editor_values::without_blanks;
use redflow_contract::json::{JsonLimits, parse_exact, read_typed, size_of};
use redflow_contract::limits::DEFAULT_TOOL_TIMEOUT_MS;
use redflow_contract::node::{self, EffectClass, FINAL_ANSWER, OnUnknown, RegistryToolConfig, ToolConfig};
use redflow_contract::phrases;
use redflow_contract::tool::own_tool_id;
use redflow_json_schema::strict_input;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The node type that ends a flow tool.
pub(super) const FLOW_TOOL_RETURN: &str = "flow-tool-return";

/// The longest name that is compared with others, in bytes.
const LONGEST_NAME: usize = 256;

/// The most connected tools that a message lists.
const LISTED_TOOLS: usize = 20;

/// What a tool node declares, with `${NAME}` resolved.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolInfo {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Option<Value>,
    pub(super) effect: Option<EffectClass>,
    pub(super) timeout_ms: u64,
    pub(super) on_unknown: OnUnknown,
    /// Whether the provider must keep to the input schema. True only if providers can.
    pub(super) strict: Option<bool>,
    /// The bytes of a copy.
    pub(super) size: usize,
}

/// What `allowedTools` may write for a tool that is a node: its name, its id, or a pattern.
pub(super) fn tool_keys(node_type: &str, name: &str) -> [String; 4] {
    let id = own_tool_id(node_type, name);
    let origin = id.split('.').next().unwrap_or_default();
    let below = format!("{origin}.*");
    [name.to_owned(), id, below, "*".to_owned()]
}

/// Whether an editor wrote "no schema".
fn is_unset(schema: &Value) -> bool {
    schema.is_null() || schema.as_str().is_some_and(|text| text.trim().is_empty())
}

/// Reads a property as its type; none if it is absent or wrong. The schema has already reported a wrong one.
fn typed<T: for<'de> serde::Deserialize<'de>>(value: &Value, key: &str) -> Option<T> {
    value.get(key).and_then(|value| read_typed(value.clone()).ok())
}

impl Checker<'_> {
    /// Reads a tool node, or a data node used as a tool. Reports its problems the first time.
    pub(super) fn tool_info(&mut self, ix: NodeIx) -> Result<Arc<ToolInfo>, LimitExceeded> {
        if let Some(known) = &self.tools[ix] {
            return Ok(Arc::clone(known));
        }
        let info = Arc::new(self.read_tool(ix)?);
        self.tools[ix] = Some(Arc::clone(&info));
        Ok(info)
    }

    fn read_tool(&mut self, ix: NodeIx) -> Result<ToolInfo, LimitExceeded> {
        // `name` is used if there is no `toolName`.
        let keys: Vec<&str> = ToolConfig::SET.names().chain(["name"]).collect();
        let mut own = self.resolved(ix, &keys, SecretReferences::Reject)?;
        let node_name = own.remove("name");
        let fixed = self.flow.nodes[ix].kind.tool;
        let value = Value::Object(without_blanks(&self.flow.raw(ix).type_name, &own));
        self.report_violations(ix, ToolConfig::SET.schema, &value, SecretReferences::Reject);
        let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("toolName")
            .or(fixed.map(|tool| tool.name))
            .or(node_name.as_ref().and_then(Value::as_str))
            .unwrap_or_default()
            .to_owned();
        self.check_tool_name(ix, &name);
        let input_schema = match fixed {
            Some(tool) => {
                // Such a tool ignores its own schema, but a broken one is still a mistake.
                if let Some(own) = value.get("inputSchema").filter(|own| !is_unset(own)) {
                    self.tool_schema(ix, Some(own.clone()));
                }
                serde_json::from_str(tool.input_schema).ok()
            }
            None => self.tool_schema(ix, value.get("inputSchema").cloned()),
        };
        let (input_schema, strict) = self.strict_schema(ix, typed(&value, "strict"), input_schema);
        let description = text("description").or(fixed.map(|tool| tool.description)).unwrap_or_default();
        let size = name.len() + description.len() + input_schema.as_ref().map_or(0, size_of);
        Ok(ToolInfo {
            name,
            description: description.to_owned(),
            input_schema,
            effect: typed(&value, "effect"),
            timeout_ms: value.get("timeout").and_then(whole_number).unwrap_or(DEFAULT_TOOL_TIMEOUT_MS),
            on_unknown: typed(&value, "onUnknown").unwrap_or_default(),
            strict,
            size,
        })
    }

    /// The schema that a strict tool is offered with. Warns if providers cannot force it; then the tool is not strict.
    fn strict_schema(
        &mut self,
        ix: NodeIx,
        strict: Option<bool>,
        schema: Option<Value>,
    ) -> (Option<Value>, Option<bool>) {
        if strict != Some(true) {
            return (schema, strict);
        }
        if let Some(closed) = schema.as_ref().and_then(strict_input) {
            return (Some(closed), strict);
        }
        let label = self.label(ix);
        self.diagnostics.push(DiagnosticCode::ToolNotStrict, ix, None, || Diagnostic {
            pointer: Some("/strict".to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::ToolNotStrict,
                phrases::tool_not_strict(label),
                phrases::tool_not_strict_help(),
            )
        });
        (schema, None)
    }

    fn check_tool_name(&mut self, ix: NodeIx, name: &str) {
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if letters && (1..=64).contains(&name.len()) {
            return;
        }
        self.diagnostics.push(DiagnosticCode::ToolNameInvalid, ix, None, || {
            let message = if name.is_empty() {
                phrases::tool_without_name()
            } else {
                phrases::tool_name_invalid(name.chars().take(80).collect::<String>())
            };
            Diagnostic {
                pointer: Some("/toolName".to_owned()),
                expected: Some("1 to 64 letters, digits, `_` or `-`".to_owned()),
                found: Some(name.chars().take(80).collect()),
                ..Diagnostic::new(DiagnosticCode::ToolNameInvalid, message, phrases::tool_name_invalid_help())
            }
        });
    }

    /// Reads the input schema: an object, or its text; none if it is absent or broken.
    fn tool_schema(&mut self, ix: NodeIx, schema: Option<Value>) -> Option<Value> {
        let schema = match schema {
            None => None,
            Some(schema) if is_unset(&schema) => None,
            // The schema of tool nodes has already reported this.
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
            Some(Value::String(text)) => {
                let limits = JsonLimits { max_bytes: self.options.limits.max_bytes, max_depth: 64 };
                Some(
                    parse_exact(text.as_bytes(), limits)
                        .ok()
                        .filter(Value::is_object)
                        .ok_or_else(phrases::not_a_json_object),
                )
            }
            Some(schema) => Some(Ok(schema)),
        };
        let Some(schema) = schema else {
            let label = self.label(ix);
            self.diagnostics.push(DiagnosticCode::ToolWithoutSchema, ix, None, || Diagnostic {
                pointer: Some("/inputSchema".to_owned()),
                ..Diagnostic::new(
                    DiagnosticCode::ToolWithoutSchema,
                    phrases::tool_without_schema(label),
                    phrases::tool_without_schema_help(),
                )
            });
            return None;
        };
        let checked = schema.and_then(|schema| self.schemas.check_tool_schema(&schema).map(|()| schema));
        match checked {
            Ok(schema) => Some(schema),
            Err(what) => {
                let violation = Violation {
                    pointer: "/inputSchema".to_owned(),
                    rule: "schema".to_owned(),
                    expected: phrases::quick_schema(),
                    found: phrases::none_because(what),
                };
                self.config_invalid(ix, violation, None);
                None
            }
        }
    }

    /// Checks that names are unique, allowed tools connected, connected tools allowed, and that flow tools
    /// return.
    pub(super) fn check_tools(
        &mut self,
        agent: NodeIx,
        config: &AgentConfig,
        bound: &Bindings,
    ) -> Result<(), LimitExceeded> {
        let mut names: HashSet<String> = HashSet::new();
        // A model confuses names that differ only in case, so they are the same name here.
        let mut without_case: HashMap<String, NodeIx> = HashMap::new();
        let mut open: HashSet<String> = HashSet::new();
        let mut has_provider = false;
        for tool in bound.tools.iter().copied() {
            // A data node that never returns is probably not meant as a tool, so its name and schema do not
            // matter.
            if self.flow.nodes[tool].kind.role == Role::Data && !self.returns(agent, tool)? {
                let port = self.flow.nodes[agent].kind.binds_by_ports().then_some(1);
                self.never_returns(agent, port, tool);
                let raw = self.flow.raw(tool);
                open.extend(raw.text("toolName").or(raw.text("name")).map(str::to_owned));
                continue;
            }
            // The tools of a provider are known as a run begins, and with them their names.
            if self.is_provider(tool) {
                has_provider = true;
                continue;
            }
            let info = self.tool_info(tool)?;
            // A name this long is invalid already. To compare it for every agent would take long.
            if info.name.len() > LONGEST_NAME {
                continue;
            }
            names.insert(info.name.clone());
            if let Some(first) = without_case.insert(info.name.to_ascii_lowercase(), tool) {
                let name = self.tool_info(first)?.name.clone();
                self.duplicate_name(agent, (first, &name), (tool, &info.name));
            }
        }
        self.check_final_tool(agent, config, &without_case);
        let Some(allowed_tools) = &config.allowed_tools else { return Ok(()) };
        let allowed: HashSet<&str> = allowed_tools.iter().map(|(_, name)| name.as_str()).collect();
        let mut keys: HashSet<String> = HashSet::new();
        for tool in bound.tools.iter().copied() {
            if let Some(info) = self.tools[tool].as_ref().filter(|info| info.name.len() <= LONGEST_NAME) {
                keys.extend(tool_keys(&self.flow.raw(tool).type_name, &info.name));
            }
        }
        let mut connected: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        connected.sort_unstable();
        connected.truncate(LISTED_TOOLS);
        for (place, name) in allowed_tools {
            if !has_provider && !keys.contains(name) && !open.contains(name) {
                self.not_connected(agent, *place, name, &connected);
            }
        }
        for tool in bound.tools.iter().copied() {
            let Some(info) = self.tools[tool].clone() else { continue };
            let keys = tool_keys(&self.flow.raw(tool).type_name, &info.name);
            let is_allowed = keys.iter().any(|key| allowed.contains(key.as_str()));
            if info.name.len() > LONGEST_NAME || !is_allowed {
                self.not_allowed(agent, tool, &info.name);
            }
        }
        Ok(())
    }

    /// Whether a node provides several tools.
    pub(super) fn is_provider(&self, ix: NodeIx) -> bool {
        let type_name = &self.flow.raw(ix).type_name;
        node::find(type_name).provider || (self.options.provides_tools)(type_name)
    }

    /// Reads a node that provides several tools.
    pub(super) fn read_provider(&mut self, ix: NodeIx) -> Result<ReadyProvider, LimitExceeded> {
        let own = self.resolved(ix, &["ids", "toolName", "onUnknown"], SecretReferences::Reject)?;
        let value = Value::Object(own);
        let is_registry = node::find(&self.flow.raw(ix).type_name)
            .property_sets
            .iter()
            .any(|set| set.schema == RegistryToolConfig::SET.schema);
        let name = value.get("toolName").and_then(Value::as_str).filter(|name| !name.is_empty());
        Ok(ReadyProvider {
            ix,
            ids: is_registry.then(|| typed(&value, "ids").unwrap_or_default()),
            tool_name: name.map(str::to_owned),
            on_unknown: typed(&value, "onUnknown").unwrap_or_default(),
        })
    }

    /// A model gives an answer with a schema by calling `final_answer`, so no other tool may have that name.
    fn check_final_tool(&mut self, agent: NodeIx, config: &AgentConfig, tools: &HashMap<String, NodeIx>) {
        let converse = config.settings.as_ref().and_then(|settings| settings.converse.as_ref());
        if converse.is_some_and(|converse| converse.task.is_some()) {
            return self.check_finishing_tool(agent, tools);
        }
        let has_schema = converse.is_some_and(|converse| converse.output_schema.is_some());
        let Some(tool) = tools.get(FINAL_ANSWER).copied().filter(|_| has_schema) else { return };
        self.diagnostics.push(DiagnosticCode::ToolNameDuplicate, agent, Some(tool), || Diagnostic {
            found: Some(FINAL_ANSWER.to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::ToolNameDuplicate,
                phrases::tool_called_final_answer(FINAL_ANSWER),
                phrases::tool_called_final_answer_help(),
            )
        });
    }

    /// Whether the flow that starts at a data node reaches the agent or a return node.
    fn returns(&mut self, agent: NodeIx, start: NodeIx) -> Result<bool, LimitExceeded> {
        let flow = self.flow;
        self.wire_search.reaches(start, &|ix| ix == agent || flow.raw(ix).type_name == FLOW_TOOL_RETURN)
    }

    fn not_allowed(&mut self, agent: NodeIx, tool: NodeIx, name: &str) {
        self.diagnostics.push(DiagnosticCode::ToolConnectedNotAllowed, agent, Some(tool), || Diagnostic {
            port: Some(1),
            pointer: Some("/allowedTools".to_owned()),
            found: Some(name.to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::ToolConnectedNotAllowed,
                phrases::tool_not_allowed(name),
                phrases::tool_not_allowed_help(name),
            )
        });
    }

    pub(super) fn never_returns(&mut self, node: NodeIx, port: Option<u32>, start: NodeIx) {
        let label = self.label(start);
        let target = (node != start).then_some(start);
        let kind = self.flow.nodes[node].kind;
        let has_tool_port = match kind.role {
            Role::Agent => kind.binds_by_ports(),
            _ => {
                self.flow.nodes.iter().any(|node| node.kind.role == Role::Agent && node.kind.binds_by_ports())
            }
        };
        // An ordinary node can be a tool, but a newcomer may not know how.
        let explains = kind.role == Role::Agent && self.flow.nodes[start].kind.role == Role::Data;
        let help = if has_tool_port {
            phrases::flow_tool_open_port_help(agent_port(Role::Data))
        } else {
            phrases::flow_tool_open_help()
        };
        self.diagnostics.push(DiagnosticCode::ToolChainOpen, node, target, || Diagnostic {
            port,
            expected: Some("tool_chain".to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::ToolChainOpen,
                phrases::flow_tool_open(label),
                if explains { phrases::with_flow_tool(help) } else { help },
            )
        });
    }

    fn duplicate_name(
        &mut self,
        agent: NodeIx,
        (first, first_name): (NodeIx, &str),
        (second, name): (NodeIx, &str),
    ) {
        let has_ports = self.flow.nodes[agent].kind.binds_by_ports();
        let (a, b) = (self.flow.summary(first).id, self.flow.summary(second).id);
        self.diagnostics.push(DiagnosticCode::ToolNameDuplicate, agent, Some(second), || Diagnostic {
            port: has_ports.then_some(1),
            found: Some(name.to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::ToolNameDuplicate,
                if first_name == name {
                    phrases::tools_of_one_name(a.as_str(), b.as_str(), name)
                } else {
                    phrases::tools_of_similar_names(a.as_str(), first_name, b.as_str(), name)
                },
                phrases::tools_of_one_name_help(),
            )
        });
    }

    fn not_connected(&mut self, agent: NodeIx, place: usize, name: &str, connected: &[&str]) {
        let mut list = if connected.is_empty() { "none".to_owned() } else { connected.join(", ") };
        truncate(&mut list, 400);
        self.diagnostics.push(DiagnosticCode::ToolNotConnected, agent, None, || Diagnostic {
            port: Some(1),
            pointer: Some(format!("/allowedTools/{place}")),
            expected: Some(format!("one of the connected tools: {list}")),
            found: Some(name.to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::ToolNotConnected,
                phrases::tool_not_connected(name),
                phrases::tool_not_connected_help(agent_port(Role::Tool)),
            )
        });
    }
}
