//! Checks the properties of nodes against the schemas of their types, and reads the settings of agents.

use super::Checker;
use super::config_texts::{config_problem, unset_variable_help};
use super::schema::{Violation, display_value, kind_of};
use crate::env::{EnvResolver, ProcessSecrets, whole_reference};
use crate::resolved::NodeIx;
use crate::wire_search::LimitExceeded;
use redflow_contract::catalogue::{STRUCTURE_TYPES, lookup};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::editor_values::without_blanks;
use redflow_contract::flow::Profile;
use redflow_contract::id::NodeSummary;
use redflow_contract::input::InputTemplates;
use redflow_contract::json::push_pointer;
use redflow_contract::limits::DEFAULT_RUN_TIMEOUT_MS;
use redflow_contract::node::{
    self, AgentBindingConfig, Budget, CONVERSE_STRATEGY, DEFAULT_STRATEGY, StopCondition, TextList,
    ToolConfig,
};
use redflow_contract::phrase::Sentence;
use redflow_contract::phrases;
use redflow_contract::plan::{ConverseSpec, TaskKind};
use redflow_contract::secret::{
    REDACTED, is_secret_name, is_secret_property, is_secret_value, is_secret_variable,
};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Node-RED's own keys, which are never part of a configuration.
pub(super) const NODE_RED_KEYS: [&str; 11] =
    ["id", "type", "z", "x", "y", "wires", "g", "d", "name", "info", "l"];

/// What the checker does with a `${NAME}` that names a process secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretReferences {
    /// Keeps it. It is resolved when the node is built.
    Keep,
    /// Reports an error, because the property can reach prompts and journals.
    Reject,
}

/// The settings of an agent. Each is read separately, so that a wrong one does not affect the others.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentConfig {
    /// The settings of its type; none if they are invalid, or if this build cannot run the type.
    pub(super) settings: Option<AgentSettings>,
    /// The tools that the model may call, each once, with its index in `allowedTools`; none if there is no
    /// list.
    pub(super) allowed_tools: Option<Vec<(usize, String)>>,
    pub(super) model: Option<String>,
    pub(super) memory: Option<String>,
    pub(super) tools: Vec<String>,
    pub(super) session_id: Option<String>,
    pub(super) input: InputTemplates,
    pub(super) timeout_ms: u64,
    pub(super) fallback_models: Vec<String>,
    pub(super) budget: Option<Budget>,
}

impl AgentConfig {
    /// Whether the agent only reads one text: it has no tools and no memory.
    pub(super) fn is_reader(&self) -> bool {
        let converse = self.settings.as_ref().and_then(|settings| settings.converse.as_ref());
        let task = converse.and_then(|converse| converse.task.as_ref());
        task.is_some_and(|task| task.kind != TaskKind::Objective)
    }
}

/// The settings in the schema of an agent's type.
#[derive(Debug, Clone)]
pub(super) struct AgentSettings {
    pub(super) max_iterations: u32,
    pub(super) stop_conditions: Vec<StopCondition>,
    pub(super) debug: bool,
    /// The settings of an AI Agent.
    pub(super) converse: Option<ConverseSpec>,
}

impl Checker<'_> {
    pub(super) fn check_configs(&mut self) -> Result<(), LimitExceeded> {
        self.check_structure();
        for ix in 0..self.flow.nodes.len() {
            let node = &self.flow.nodes[ix];
            if node.is_virtual {
                continue;
            }
            let (role, schemas) = (node.kind.role, node.kind.schemas);
            if role.is_checked() || !schemas.is_empty() {
                self.check_wires_shape(ix);
            }
            let has_secrets = node::find(&self.flow.raw(ix).type_name).has_secrets();
            if has_secrets {
                self.check_secrets(ix);
            }
            match role {
                Role::Agent => {
                    let config = self.agent_config(ix)?;
                    self.configs.push((ix, config));
                }
                Role::Tool | Role::Model | Role::Memory | Role::Chat | Role::Data => {
                    if role == Role::Tool {
                        // The tools of a provider are known as a run begins.
                        if !self.is_provider(ix) {
                            drop(self.tool_info(ix)?);
                        }
                    }
                    if role == Role::Model {
                        self.check_unknown_properties(ix);
                    }
                    // `tool_info` has checked the properties that every tool has.
                    let is_own = |schema: &&&str| role != Role::Tool || **schema != ToolConfig::SET.schema;
                    let mut schemas = schemas.iter().filter(is_own).peekable();
                    if schemas.peek().is_some() {
                        let config = self.resolved(ix, &[], SecretReferences::Keep)?;
                        let type_name = &self.flow.raw(ix).type_name;
                        let config = if has_secrets { without_blanks(type_name, &config) } else { config };
                        self.check_http_request(ix, &config);
                        self.check_key_node(ix, &config);
                        self.check_knowledge_base(ix, &config);
                        if role == Role::Model {
                            self.check_model_price(ix, &config);
                        }
                        let config = Value::Object(config);
                        for schema in schemas {
                            self.report_violations(ix, schema, &config, SecretReferences::Keep);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Warns about secrets outside `credentials`. Flows are exported, shared and put into repositories, so a
    /// key in another property is in every copy of the file.
    fn check_secrets(&mut self, ix: NodeIx) {
        let pointers: Vec<String> = secret_pointers(self.props(ix)).collect();
        for pointer in pointers {
            self.secret_in_flow(ix, &pointer);
        }
    }

    pub(super) fn secret_in_flow(&mut self, ix: NodeIx, pointer: &str) {
        self.diagnostics.push(DiagnosticCode::SecretInFlow, ix, None, || Diagnostic {
            pointer: Some(pointer.to_owned()),
            ..Diagnostic::new(
                DiagnosticCode::SecretInFlow,
                phrases::secret_in_flow(pointer),
                phrases::secret_in_flow_help(),
            )
        });
    }

    /// Checks tabs, groups and subflows. They never run, but their properties affect the nodes that do.
    fn check_structure(&mut self) {
        let raw = self.flow.raw.nodes();
        for (place, node) in raw.iter().enumerate().filter(|(_, node)| is_structure(&node.type_name)) {
            let config = Value::Object(without_lists(&node.props, &[&["id", "type", "z", "info", "wires"]]));
            self.check_structure_config(&node.type_name, Some(&node.summary()), &config, place);
        }
        // A wrapper tab is not among the nodes.
        if let Some(tab) = self.flow.raw.wrapper_tab() {
            let config = Value::Object(without_lists(tab, &[&["nodes", "configs", "subflows"]]));
            self.check_structure_config("tab", None, &config, 0);
        }
    }

    fn check_structure_config(
        &mut self,
        type_name: &str,
        node: Option<&NodeSummary>,
        config: &Value,
        place: usize,
    ) {
        for schema in lookup(type_name).schemas {
            let (violations, more) = self.schemas.violations(schema, config);
            self.diagnostics.omit(DiagnosticCode::ConfigInvalid, more);
            for violation in violations {
                let diagnostic = config_problem(type_name, violation, None, self.options.profile);
                self.diagnostics.add(Diagnostic { node: node.cloned(), ..diagnostic }, place);
            }
        }
    }

    /// Checks that `wires` is a list of lists of ids.
    fn check_wires_shape(&mut self, ix: NodeIx) {
        let Some(wires) = self.props(ix).get("wires") else { return };
        let fits = wires.as_array().is_some_and(|ports| {
            ports.iter().all(|port| port.as_array().is_some_and(|ids| ids.iter().all(Value::is_string)))
        });
        if !fits {
            let violation = Violation {
                pointer: "/wires".to_owned(),
                rule: "type".to_owned(),
                expected: phrases::lists_of_ids(),
                found: kind_of(wires),
            };
            self.config_invalid(ix, violation, None);
        }
    }

    /// Checks a configuration against an embedded schema. Returns whether it is valid.
    pub(super) fn report_violations(
        &mut self,
        ix: NodeIx,
        schema: &'static str,
        config: &Value,
        secrets: SecretReferences,
    ) -> bool {
        let (violations, more) = self.schemas.violations(schema, config);
        self.diagnostics.omit(DiagnosticCode::ConfigInvalid, more);
        let mut valid = true;
        for violation in violations {
            let text = config.pointer(&violation.pointer).and_then(Value::as_str);
            let reference = text.and_then(whole_reference);
            // A process secret is resolved only when the node is built, in a property that may hold one.
            let holds_secrets = violation.pointer.rsplit('/').next().is_some_and(is_secret_name);
            if secrets == SecretReferences::Keep
                && holds_secrets
                && reference.is_some_and(|name| self.is_process_secret(name))
            {
                continue;
            }
            valid = false;
            self.config_invalid(ix, violation, reference.map(unset_variable_help));
        }
        valid
    }

    fn is_process_secret(&self, name: &str) -> bool {
        is_secret_variable(name, (self.options.env)(name).as_deref())
    }

    pub(super) fn config_invalid(&mut self, ix: NodeIx, violation: Violation, help: Option<Sentence>) {
        let type_name = &self.flow.raw(ix).type_name;
        let profile = self.options.profile;
        self.diagnostics.push(DiagnosticCode::ConfigInvalid, ix, None, || {
            config_problem(type_name, violation, help, profile)
        });
    }

    /// Resolves every `${NAME}` in an agent's properties, and checks and reads them.
    fn agent_config(&mut self, ix: NodeIx) -> Result<AgentConfig, LimitExceeded> {
        let mut props = self.resolved(ix, &[], SecretReferences::Reject)?;
        let strategy = node::find(&self.flow.raw(ix).type_name).strategy;
        if strategy == Some(CONVERSE_STRATEGY) {
            props = self.ai_agent_props(ix, &props);
        }
        let names = AgentBindingConfig::SET.names();
        let bindings: Map<String, Value> =
            names.filter_map(|key| Some((key.to_owned(), props.get(key)?.clone()))).collect();
        let bindings = Value::Object(bindings);
        self.report_violations(ix, AgentBindingConfig::SET.schema, &bindings, SecretReferences::Reject);
        let text = |key: &str| {
            let text = bindings.get(key).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let ids = |key: &str| -> Vec<String> {
            let ids = bindings.get(key).and_then(Value::as_array).into_iter().flatten();
            ids.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let budget = bindings.get("budget").map(read_budget);
        let mut config = AgentConfig {
            settings: None,
            allowed_tools: None,
            model: text("model"),
            memory: text("memory"),
            tools: ids("tools"),
            session_id: text("sessionId"),
            input: InputTemplates {
                user: text("userId"),
                time: text("inputTime"),
                tags: bindings.get("inputTags").map(read_texts).unwrap_or_default(),
            },
            timeout_ms: bindings.get("timeout").and_then(whole_number).unwrap_or(DEFAULT_RUN_TIMEOUT_MS),
            fallback_models: ids("fallbackModels"),
            budget: budget.filter(|budget| *budget != Budget::default()),
        };
        match strategy {
            Some(DEFAULT_STRATEGY) => self.core_config(ix, props, &mut config),
            Some(CONVERSE_STRATEGY) => config.settings = self.converse_settings(ix, &props),
            _ => {}
        }
        Ok(config)
    }

    /// A node's properties with every `${NAME}` resolved; only those in `keys`, unless `keys` is empty.
    /// References to process secrets are not resolved.
    pub(super) fn resolved(
        &mut self,
        ix: NodeIx,
        keys: &[&str],
        secrets: SecretReferences,
    ) -> Result<Map<String, Value>, LimitExceeded> {
        self.count_bytes(self.size(ix))?;
        let is_wanted =
            |key: &str| if keys.is_empty() { !NODE_RED_KEYS.contains(&key) } else { keys.contains(&key) };
        let mut env = EnvResolver::new(self.flow, self.options.env, ix, ProcessSecrets::Hidden);
        env.bytes_left = self.bytes_left;
        let props = env.resolve_props(self.props(ix).iter().filter(|(key, _)| is_wanted(key)));
        if env.exhausted {
            return Err(LimitExceeded::CopiedBytes);
        }
        self.bytes_left = env.bytes_left;
        for (property, name) in
            env.refused_secrets.into_iter().filter(|_| secrets == SecretReferences::Reject)
        {
            self.diagnostics.push(DiagnosticCode::ConfigInvalid, ix, None, || {
                let mut pointer = String::new();
                push_pointer(&mut pointer, &property);
                Diagnostic {
                    pointer: Some(pointer),
                    found: Some(format!("${{{name}}}")),
                    expected: Some("a variable that holds no secret".to_owned()),
                    ..Diagnostic::new(
                        DiagnosticCode::ConfigInvalid,
                        phrases::secret_variable(name),
                        phrases::secret_variable_help(),
                    )
                }
            });
        }
        Ok(props)
    }

    fn core_config(&mut self, ix: NodeIx, props: Map<String, Value>, agent: &mut AgentConfig) {
        let template = props.get("modelPromptTemplate").and_then(Value::as_str).unwrap_or_default();
        if !template.trim().is_empty() {
            self.diagnostics.push(DiagnosticCode::PromptTemplateIgnored, ix, None, || Diagnostic {
                pointer: Some("/modelPromptTemplate".to_owned()),
                ..Diagnostic::new(
                    DiagnosticCode::PromptTemplateIgnored,
                    phrases::prompt_template_ignored(),
                    phrases::prompt_template_ignored_help(),
                )
            });
        }
        // Agent Core's schema does not have the keys that bind services or belong to the runtime.
        let binding_keys: Vec<&str> = AgentBindingConfig::SET.names().collect();
        let mut props = without_keys(props, &binding_keys);
        let mut all_tools = false;
        if self.options.profile == Profile::Redflow {
            all_tools = self.assume_defaults(ix, &mut props);
        }
        let config = Value::Object(props);
        let (violations, more) = self.schemas.violations("agent-core.react", &config);
        self.diagnostics.omit(DiagnosticCode::ConfigInvalid, more);
        let mut valid = true;
        for violation in violations {
            if all_tools && violation.pointer == "/allowedTools" && violation.rule == "minItems" {
                continue;
            }
            valid = false;
            let text = config.pointer(&violation.pointer).and_then(Value::as_str);
            let unset = text.and_then(whole_reference).map(unset_variable_help);
            self.config_invalid(ix, violation, unset);
        }
        let stop_conditions = self.stop_conditions(ix, config.get("stopConditions"));
        let allowed_tools = config.get("allowedTools").filter(|_| !all_tools);
        agent.allowed_tools = allowed_tools.and_then(Value::as_array).map(|tools| {
            let mut known = HashSet::new();
            let names = tools.iter().enumerate().filter_map(|(place, name)| Some((place, name.as_str()?)));
            names
                .filter(|(_, name)| known.insert(*name))
                .map(|(place, name)| (place, name.to_owned()))
                .collect()
        });
        let max_iterations = config.get("maxIterations").and_then(whole_number);
        let max_iterations = max_iterations.and_then(|number| u32::try_from(number).ok());
        if let (true, Some(max_iterations), Some(stop_conditions)) = (valid, max_iterations, stop_conditions)
        {
            let debug = config.get("debug").and_then(Value::as_bool).unwrap_or(false);
            agent.settings = Some(AgentSettings { max_iterations, stop_conditions, debug, converse: None });
        }
    }

    /// Profile `redflow`: sets the defaults that a fresh Redflow node lacks. Returns whether the agent may call all
    /// tools that are wired to it, because the UI cannot edit the list.
    fn assume_defaults(&mut self, ix: NodeIx, props: &mut Map<String, Value>) -> bool {
        for (key, default) in
            [("strategy", json!("react")), ("maxIterations", json!(5)), ("allowedTools", json!([]))]
        {
            let is_list = key == "allowedTools";
            if props.get(key).is_some_and(|value| !(is_list && value == &default)) {
                continue;
            }
            let (message, expected) = if is_list {
                let message = if props.contains_key(key) {
                    phrases::wired_tools_assumed_for_empty()
                } else {
                    phrases::wired_tools_assumed()
                };
                (message, "the names of the tools that the model may call".to_owned())
            } else {
                (phrases::default_assumed(key, default.to_string()), default.to_string())
            };
            self.diagnostics.push(DiagnosticCode::DefaultAssumed, ix, None, || Diagnostic {
                pointer: Some(format!("/{key}")),
                expected: Some(expected),
                ..Diagnostic::new(DiagnosticCode::DefaultAssumed, message, phrases::default_assumed_help(key))
            });
            props.insert(key.to_owned(), default);
        }
        props.get("allowedTools") == Some(&json!([]))
    }

    /// Reads the stop conditions. Checks each `value` here, because the schema allows any.
    fn stop_conditions(&mut self, ix: NodeIx, list: Option<&Value>) -> Option<Vec<StopCondition>> {
        let mut conditions = Some(Vec::new());
        for (place, item) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let value = item.get("value").filter(|value| !value.is_null());
            let (condition, expected) = match item.get("type").and_then(Value::as_str) {
                Some("final_answer") => (Some(StopCondition::FinalAnswer {}), phrases::nothing()),
                Some("confidence_threshold") => {
                    let value = value.and_then(Value::as_f64).filter(|value| (0.0..=1.0).contains(value));
                    let condition = value.map(|value| StopCondition::ConfidenceThreshold { value });
                    (condition, phrases::number_up_to_1())
                }
                Some("iteration_limit") => {
                    let value = value.and_then(whole_number).and_then(|value| u32::try_from(value).ok());
                    let condition = value.filter(|value| *value >= 1);
                    (
                        condition.map(|value| StopCondition::IterationLimit { value }),
                        phrases::whole_number_from_1(),
                    )
                }
                // The schema has already reported it.
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
                        rule: match value {
                            None => "required",
                            Some(Value::Number(_)) => "range",
                            Some(_) => "type",
                        }
                        .to_owned(),
                        expected: expected.clone(),
                        found: value.map_or_else(phrases::nothing, display_value),
                    };
                    let help = phrases::stop_value_help(expected);
                    self.config_invalid(ix, violation, Some(help));
                }
            }
        }
        conditions
    }
}

/// JSON pointers to the properties and options that contain a secret in plain text.
fn secret_pointers(props: &Map<String, Value>) -> impl Iterator<Item = String> {
    let options = props.get("options").and_then(Value::as_object);
    let outer = props.iter().map(|(name, value)| ("", name, value));
    let inner = options.into_iter().flatten().map(|(name, value)| ("/options", name, value));
    outer.chain(inner).filter_map(|(place, name, value)| {
        let is_secret = is_secret_property(name, value)
            || value.as_str().is_some_and(|text| text == REDACTED || is_secret_value(text));
        if name == "credentials" || !is_secret {
            return None;
        }
        let mut pointer = place.to_owned();
        push_pointer(&mut pointer, name);
        Some(pointer)
    })
}

fn is_structure(type_name: &str) -> bool {
    STRUCTURE_TYPES.contains(&type_name)
}

/// Reads a whole number up to 2^53, also if it is written as 5.0.
pub(super) fn whole_number(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number = value.as_f64()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}

/// Reads texts that follow their schema: a list, or one text with commas.
fn read_texts(texts: &Value) -> Vec<String> {
    let texts: Option<TextList> = serde_json::from_value(texts.clone()).ok();
    texts.iter().flat_map(TextList::list).map(str::to_owned).collect()
}

/// Reads a budget that follows its schema. A number may be written as 5.0.
fn read_budget(budget: &Value) -> Budget {
    let number = |name: &str| budget.get(name).and_then(whole_number);
    let count = |name: &str| number(name).and_then(|number| u32::try_from(number).ok());
    Budget {
        tokens: number("tokens"),
        cost: budget.get("cost").and_then(Value::as_f64),
        model_calls: count("modelCalls"),
        tool_calls: count("toolCalls"),
    }
}

fn without_keys(mut map: Map<String, Value>, keys: &[&str]) -> Map<String, Value> {
    map.retain(|key, _| !keys.contains(&key.as_str()));
    map
}

/// Copies a map without the keys in `lists`.
fn without_lists(map: &Map<String, Value>, lists: &[&[&str]]) -> Map<String, Value> {
    map.iter()
        .filter(|(key, _)| !lists.iter().any(|list| list.contains(&key.as_str())))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
