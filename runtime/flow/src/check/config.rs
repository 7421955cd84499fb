//! Properties of nodes against the schemas of their types, and Agent Core's own settings.

use super::Checker;
use super::schema::{Violation, kind_of};
use crate::env::{EnvResolver, whole_reference};
use crate::resolve::NodeIx;
use redflow_contract::catalogue::{STRUCTURE_TYPES, lookup};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::flow::Profile;
use redflow_contract::limits::DEFAULT_RUN_TIMEOUT_MS;
use redflow_contract::node_config::{AgentBindingConfig, StopCondition};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Node-RED's own keys: never part of a configuration.
pub(super) const NODE_RED_KEYS: [&str; 11] =
    ["id", "type", "z", "x", "y", "wires", "g", "d", "name", "info", "l"];

/// Keys that bind services or belong to the runtime: not part of Agent Core's schema.
const BINDING_KEYS: [&str; 5] = ["model", "memory", "tools", "sessionId", "timeout"];

/// An agent's own settings.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentConfig {
    /// Agent Core's; none if they are invalid, or for another kind of agent.
    pub(super) core: Option<CoreConfig>,
    pub(super) model: Option<String>,
    pub(super) memory: Option<String>,
    pub(super) tools: Vec<String>,
    pub(super) session_id: Option<String>,
    pub(super) timeout_ms: u64,
}

/// What Agent Core's schema describes.
#[derive(Debug, Clone)]
pub(super) struct CoreConfig {
    pub(super) max_iterations: u32,
    pub(super) allowed_tools: Vec<String>,
    pub(super) stop_conditions: Vec<StopCondition>,
    pub(super) debug: bool,
}

impl Checker<'_> {
    pub(super) fn check_configs(&mut self) {
        self.check_structure();
        for ix in 0..self.flow.nodes.len() {
            let node = &self.flow.nodes[ix];
            if node.is_virtual {
                continue;
            }
            let role = node.kind.role;
            if role.is_judged() || !node.kind.schemas.is_empty() {
                self.check_wires_shape(ix);
            }
            match role {
                Role::Agent => {
                    let config = self.agent_config(ix);
                    self.configs.push((ix, config));
                }
                Role::Tool => drop(self.tool_info(ix)),
                Role::Model | Role::Memory | Role::Chat | Role::Data => {
                    let schemas = node.kind.schemas;
                    if !schemas.is_empty() {
                        let config = Value::Object(without(self.props(ix), &[&NODE_RED_KEYS]));
                        for schema in schemas {
                            self.report_violations(ix, schema, &config);
                        }
                    }
                }
            }
        }
    }

    /// Tabs, groups and subflows: no nodes that run, but nodes are read by what they say.
    fn check_structure(&mut self) {
        let raw = self.flow.raw.nodes();
        for (place, node) in raw.iter().enumerate().filter(|(_, node)| is_structure(&node.type_name)) {
            let config = Value::Object(without(&node.props, &[&["id", "type", "z", "info", "wires"]]));
            for schema in lookup(&node.type_name).schemas {
                for violation in self.schemas.violations(schema, &config) {
                    let mut diagnostic = describe(&node.type_name, violation, None, self.options.profile);
                    diagnostic.node = Some(node.summary());
                    self.sink.add(diagnostic, place);
                }
            }
        }
    }

    /// `wires` must be a list of lists of ids where we read it.
    fn check_wires_shape(&mut self, ix: NodeIx) {
        let Some(wires) = self.props(ix).get("wires") else { return };
        let fits = wires.as_array().is_some_and(|ports| {
            ports.iter().all(|port| port.as_array().is_some_and(|ids| ids.iter().all(Value::is_string)))
        });
        if !fits {
            let violation = Violation {
                pointer: "/wires".to_owned(),
                rule: "type".to_owned(),
                expected: "a list of lists of node ids".to_owned(),
                found: kind_of(wires).to_owned(),
            };
            self.config_invalid(ix, violation, None);
        }
    }

    /// Checks a configuration against an embedded schema. Values that are still `${NAME}` are let be: what
    /// they stand for is known later.
    pub(super) fn report_violations(&mut self, ix: NodeIx, schema: &'static str, config: &Value) -> bool {
        let mut clean = true;
        for violation in self.schemas.violations(schema, config) {
            let value = config.pointer(&violation.pointer).and_then(Value::as_str);
            let symbolic = value.is_some_and(|text| whole_reference(text).is_some());
            if symbolic && self.flow.nodes[ix].kind.role != Role::Agent {
                continue;
            }
            clean = false;
            self.config_invalid(ix, violation, None);
        }
        clean
    }

    pub(super) fn config_invalid(&mut self, ix: NodeIx, violation: Violation, help: Option<String>) {
        let type_name = &self.flow.raw(ix).type_name;
        let profile = self.options.profile;
        self.sink
            .push(DiagnosticCode::ConfigInvalid, ix, None, || describe(type_name, violation, help, profile));
    }

    /// An agent's properties with every `${NAME}` resolved, checked and typed.
    fn agent_config(&mut self, ix: NodeIx) -> AgentConfig {
        let props = without(self.props(ix), &[&NODE_RED_KEYS]);
        let props = self.resolved(ix, &props);
        let mut config = AgentConfig { timeout_ms: DEFAULT_RUN_TIMEOUT_MS, ..AgentConfig::default() };

        let bindings: Map<String, Value> = BINDING_KEYS
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), props.get(*key)?.clone())))
            .collect();
        let bindings = Value::Object(bindings);
        if self.report_violations(ix, "node.agent-binding", &bindings) {
            let typed = serde_json::from_value::<AgentBindingConfig>(whole(bindings)).unwrap_or_default();
            let set = |text: Option<String>| text.filter(|text| !text.is_empty());
            config.model = set(typed.model);
            config.memory = set(typed.memory);
            config.tools = typed.tools.unwrap_or_default();
            config.session_id = set(typed.session_id);
            config.timeout_ms = typed.timeout.unwrap_or(config.timeout_ms);
        }
        if self.flow.raw(ix).type_name == "agent-core" {
            config.core = self.core_config(ix, props);
        }
        config
    }

    /// Resolves `${NAME}` in a node's properties and says which ones must not be.
    pub(super) fn resolved(&mut self, ix: NodeIx, props: &Map<String, Value>) -> Map<String, Value> {
        let mut env = EnvResolver {
            flow: self.flow,
            process: self.options.env,
            node: ix,
            secrets: false,
            refused: Vec::new(),
        };
        let props = env.resolve_map(props);
        for name in env.refused {
            self.sink.push(DiagnosticCode::ConfigInvalid, ix, None, || Diagnostic {
                found: Some(format!("${{{name}}}")),
                expected: Some("a variable that holds no secret".to_owned()),
                ..Diagnostic::new(
                    DiagnosticCode::ConfigInvalid,
                    format!(
                        "`${{{name}}}` looks like a secret, and this property can reach prompts and journals"
                    ),
                    "Use a variable of another name, or put the value into the flow's own environment."
                        .to_owned(),
                )
            });
        }
        props
    }

    fn core_config(&mut self, ix: NodeIx, props: Map<String, Value>) -> Option<CoreConfig> {
        let template = props.get("modelPromptTemplate").and_then(Value::as_str).unwrap_or_default();
        if !template.trim().is_empty() {
            self.sink.push(DiagnosticCode::PromptTemplateIgnored, ix, None, || Diagnostic {
                pointer: Some("/modelPromptTemplate".to_owned()),
                ..Diagnostic::new(
                    DiagnosticCode::PromptTemplateIgnored,
                    "`modelPromptTemplate` is set, but Agent Core's prompt is fixed".to_owned(),
                    "Empty it; say what the agent should do in the message you send it.".to_owned(),
                )
            });
        }
        let mut props = without_keys(props, &BINDING_KEYS);
        let mut no_tools = false;
        if self.options.profile == Profile::Redflow {
            no_tools = self.assume_defaults(ix, &mut props);
        }
        let config = Value::Object(props);
        let mut clean = true;
        for violation in self.schemas.violations("agent-core.react", &config) {
            if no_tools && violation.pointer == "/allowedTools" && violation.rule == "minItems" {
                continue;
            }
            clean = false;
            self.config_invalid(ix, violation, None);
        }
        let stop_conditions = self.stop_conditions(ix, config.get("stopConditions"));
        if !clean {
            return None;
        }
        let tools =
            config.get("allowedTools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut known = HashSet::new();
        let names = tools.iter().filter_map(Value::as_str).filter(|name| known.insert(*name));
        let allowed_tools = names.map(str::to_owned).collect();
        Some(CoreConfig {
            max_iterations: config.get("maxIterations").and_then(whole_number)?,
            allowed_tools,
            stop_conditions: stop_conditions?,
            debug: config.get("debug").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    /// Profile `redflow`: what a fresh Redflow node lacks takes its default. Says whether it has no tools.
    fn assume_defaults(&mut self, ix: NodeIx, props: &mut Map<String, Value>) -> bool {
        for (key, default) in
            [("strategy", json!("react")), ("maxIterations", json!(5)), ("allowedTools", json!([]))]
        {
            let empty_list = key == "allowedTools" && props.get(key) == Some(&json!([]));
            if props.contains_key(key) && !empty_list {
                continue;
            }
            let message = if empty_list {
                "`allowedTools` is empty: the agent has no tools".to_owned()
            } else {
                format!("`{key}` is missing: {default} is assumed")
            };
            self.sink.push(DiagnosticCode::DefaultAssumed, ix, None, || Diagnostic {
                pointer: Some(format!("/{key}")),
                expected: Some(default.to_string()),
                ..Diagnostic::new(
                    DiagnosticCode::DefaultAssumed,
                    message,
                    format!("Set `{key}` on the node; the profile `strict` asks for it."),
                )
            });
            props.insert(key.to_owned(), default);
        }
        props.get("allowedTools") == Some(&json!([]))
    }

    /// The schema leaves `value` open; each type of condition needs its own.
    fn stop_conditions(&mut self, ix: NodeIx, list: Option<&Value>) -> Option<Vec<StopCondition>> {
        let mut conditions = Some(Vec::new());
        for (place, item) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let value = item.get("value").filter(|value| !value.is_null());
            let (condition, expected) = match item.get("type").and_then(Value::as_str) {
                Some("final_answer") => (Some(StopCondition::FinalAnswer {}), ""),
                Some("confidence_threshold") => {
                    let value = value.and_then(Value::as_f64).filter(|value| (0.0..=1.0).contains(value));
                    let condition = value.map(|value| StopCondition::ConfidenceThreshold { value });
                    (condition, "a number from 0 to 1")
                }
                Some("iteration_limit") => {
                    let value = value.and_then(whole_number).filter(|value| *value >= 1);
                    (value.map(|value| StopCondition::IterationLimit { value }), "a whole number from 1")
                }
                // The schema has said so already.
                _ => continue,
            };
            match condition {
                Some(condition) => {
                    if let Some(list) = conditions.as_mut() {
                        list.push(condition);
                    }
                }
                None => {
                    conditions = None;
                    let violation = Violation {
                        pointer: format!("/stopConditions/{place}/value"),
                        rule: if value.is_none() { "required" } else { "type" }.to_owned(),
                        expected: expected.to_owned(),
                        found: value.map_or("nothing", kind_of).to_owned(),
                    };
                    let help = format!("Set `value` to {expected}, as a number and not as text.");
                    self.config_invalid(ix, violation, Some(help));
                }
            }
        }
        conditions
    }
}

fn is_structure(type_name: &str) -> bool {
    STRUCTURE_TYPES.contains(&type_name)
}

/// A violation as a diagnostic without its node.
fn describe(type_name: &str, violation: Violation, help: Option<String>, profile: Profile) -> Diagnostic {
    let Violation { pointer, rule, expected, found } = violation;
    let name = pointer.trim_start_matches('/').replace('/', ".");
    let message = match rule.as_str() {
        "required" => format!("`{name}` is missing"),
        _ => format!("`{name}` must be {expected}, and is {found} (rule `{rule}`)"),
    };
    let help = help.unwrap_or_else(|| mend(type_name, &pointer, &rule, &expected, profile));
    Diagnostic {
        pointer: Some(pointer),
        expected: Some(expected),
        found: Some(found),
        ..Diagnostic::new(DiagnosticCode::ConfigInvalid, message, help)
    }
}

fn mend(type_name: &str, pointer: &str, rule: &str, expected: &str, profile: Profile) -> String {
    if pointer.starts_with("/stopConditions/") && pointer.ends_with("/type") {
        return "Use `final_answer`, `confidence_threshold` or `iteration_limit`.".to_owned();
    }
    let lenient = type_name == "agent-core"
        && profile == Profile::Strict
        && matches!(pointer, "/strategy" | "/maxIterations" | "/allowedTools")
        && matches!(rule, "required" | "minItems");
    let name = pointer.trim_start_matches('/').replace('/', ".");
    let mut help = match (pointer, rule) {
        ("/allowedTools", _) => {
            "List the names of the tools the model may ask for in `allowedTools`.".to_owned()
        }
        (_, "required") => format!("Add `{name}` to the node."),
        _ => format!("Set `{name}` to {expected}."),
    };
    if lenient {
        help.push_str(" For flows as Redflow writes them, use the profile `redflow`.");
    }
    help
}

/// A whole number, also when it is written as 5.0.
fn whole_number(value: &Value) -> Option<u32> {
    let number = value.as_f64()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u32)
}

/// A JSON Schema `integer` may be written 5.0, which serde does not take for one.
pub(super) fn whole(value: Value) -> Value {
    match value {
        Value::Number(ref number) if number.is_f64() => match whole_number(&value) {
            Some(whole) => Value::from(whole),
            None => value,
        },
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, whole(value))).collect(),
        other => other,
    }
}

fn without_keys(mut map: Map<String, Value>, keys: &[&str]) -> Map<String, Value> {
    map.retain(|key, _| !keys.contains(&key.as_str()));
    map
}

/// A copy without some keys.
pub(super) fn without(map: &Map<String, Value>, lists: &[&[&str]]) -> Map<String, Value> {
    map.iter()
        .filter(|(key, _)| !lists.iter().any(|list| list.contains(&key.as_str())))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
