//! Reads the properties of an AI Agent.

use super::Checker;
use super::config::{AgentSettings, SecretReferences, whole_number};
use super::schema::Violation;
use crate::resolved::NodeIx;
use redflow_contract::editor_values::without_blanks;
use redflow_contract::json::{JsonLimits, parse_exact};
use redflow_contract::node::{
    AiAgentConfig, DEFAULT_IMAGES, DEFAULT_MAX_ITERATIONS, DEFAULT_PARALLEL_TOOLS, DEFAULT_SYSTEM_PROMPT,
};
use redflow_contract::phrase::Sentence;
use redflow_contract::phrases;
use redflow_contract::plan::ConverseSpec;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

impl Checker<'_> {
    /// The properties of an AI Agent as its schemas have them: without blanks, with the properties in `options`,
    /// and with JSON that was written as text as a value.
    pub(super) fn ai_agent_props(&self, ix: NodeIx, props: &Map<String, Value>) -> Map<String, Value> {
        let mut all = props.clone();
        if let Some(Value::Object(options)) = all.remove("options") {
            let is_blank =
                |value: &Value| value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
            for (name, value) in options {
                if all.get(&name).is_none_or(is_blank) {
                    all.insert(name, value);
                }
            }
        }
        // Empty prompts and images mean that there are none. Missing ones mean the default.
        let texts = ["systemPrompt", "images"].into_iter().filter_map(|name| {
            Some((name.to_owned(), all.get(name).filter(|text| text.is_string())?.clone()))
        });
        let texts: Vec<(String, Value)> = texts.collect();
        let mut props = without_blanks(&self.flow.raw(ix).type_name, &all);
        props.extend(texts);
        for name in ["budget", "outputSchema", "categories"] {
            let Some(Value::String(text)) = props.get(name) else { continue };
            let limits = JsonLimits { max_bytes: self.options.limits.max_bytes, max_depth: 64 };
            if let Ok(value @ (Value::Object(_) | Value::Array(_))) = parse_exact(text.as_bytes(), limits) {
                props.insert(name.to_owned(), value);
            }
        }
        props
    }

    /// Checks and reads the settings of an AI Agent.
    pub(super) fn ai_agent_settings(
        &mut self,
        ix: NodeIx,
        props: &Map<String, Value>,
    ) -> Option<AgentSettings> {
        let own = AiAgentConfig::SET.names();
        let config: Map<String, Value> =
            own.filter_map(|name| Some((name.to_owned(), props.get(name)?.clone()))).collect();
        let config = Value::Object(config);
        let valid = self.report_violations(ix, AiAgentConfig::SET.schema, &config, SecretReferences::Reject);
        let output_schema = match config.get("outputSchema") {
            None => None,
            Some(schema) => Some(self.output_schema(ix, schema)?),
        };
        if !valid {
            return None;
        }
        let text = |name: &str| config.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| {
            config.get(name).and_then(whole_number).and_then(|number| u32::try_from(number).ok())
        };
        let converse = ConverseSpec {
            system_prompt: text("systemPrompt").unwrap_or_else(|| DEFAULT_SYSTEM_PROMPT.to_owned()),
            user_message: text("userMessage").unwrap_or_default(),
            tool_choice: choice(&config, "toolChoice"),
            output_format: choice(&config, "outputFormat"),
            output_schema,
            parallel_tools: number("parallelTools").unwrap_or(DEFAULT_PARALLEL_TOOLS),
            images: text("images")
                .map_or_else(|| Some(DEFAULT_IMAGES.to_owned()), Some)
                .filter(|template| !template.trim().is_empty()),
            task: None,
        };
        Some(AgentSettings {
            max_iterations: number("maxIterations").unwrap_or(DEFAULT_MAX_ITERATIONS),
            stop_conditions: Vec::new(),
            debug: config.get("debug").and_then(Value::as_bool).unwrap_or(false),
            converse: Some(converse),
        })
    }

    /// Checks the schema of the answer: a JSON Schema of an object.
    pub(super) fn output_schema(&mut self, ix: NodeIx, schema: &Value) -> Option<Value> {
        let problem = if !schema.is_object() {
            Some(phrases::not_a_json_object())
        } else if schema.get("type").and_then(Value::as_str) != Some("object") {
            Some(phrases::type_not_object())
        } else {
            self.schemas.check_tool_schema(schema).err()
        };
        match problem {
            None => Some(schema.clone()),
            Some(problem) => self.unusable_output_schema(ix, problem),
        }
    }

    /// Reports that the schema of the answer cannot be used.
    pub(super) fn unusable_output_schema<T>(&mut self, ix: NodeIx, problem: Sentence) -> Option<T> {
        let violation = Violation {
            pointer: "/outputSchema".to_owned(),
            rule: "schema".to_owned(),
            expected: phrases::quick_object_schema(),
            found: phrases::none_because(problem),
        };
        self.config_invalid(ix, violation, None);
        None
    }
}

/// The value of a choice; the default if it is missing.
pub(super) fn choice<T: DeserializeOwned + Default>(config: &Value, name: &str) -> T {
    config.get(name).and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or_default()
}
