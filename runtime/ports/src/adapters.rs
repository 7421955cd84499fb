//! The node types that this build can run, and how each is built from its properties.

use crate::build_error::{BuildError, MAX_LABEL_CHARS};
use crate::flow_node::FlowNode;
use crate::image::ImageFetcher;
use crate::memory::Memory;
use crate::model::ChatModel;
use crate::named_services::{NamedServices, NoServices};
use crate::tool::{Tool, ToolProvider};
use redflow_contract::editor_values::{text_of, without_blanks};
use redflow_contract::id::NodeSummary;
use redflow_contract::json::read_typed;
use redflow_contract::manifest::ManifestTool;
use redflow_contract::node;
use redflow_contract::secret::is_reference;
use redflow_contract::tool::REGISTRY_TOOL;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node to build.
#[derive(Clone, Copy)]
pub struct NodeConfig<'a> {
    /// The id, type and name of the node.
    pub node: &'a NodeSummary,
    /// Its properties. The checker has validated them against the schema of the type.
    pub props: &'a Map<String, Value>,
    /// The process environment. A node reads its key there if the flow gives none.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Called with every secret that the node uses, so that the engine can remove it from results.
    pub on_secret: &'a dyn Fn(&str),
    /// The models and memories that the node names.
    pub services: &'a dyn NamedServices,
    /// The flow part of its session keys: the tab, with the Node-RED that owns it.
    pub flow: &'a str,
}

/// A tool of the manifest to build.
#[derive(Clone, Copy)]
pub struct ManifestToolConfig<'a> {
    /// Its definition, which has been checked.
    pub tool: &'a ManifestTool,
    /// The process environment, for its key.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Called with every secret that the tool uses, so that the engine can remove it from results.
    pub on_secret: &'a dyn Fn(&str),
}

impl<'a> NodeConfig<'a> {
    /// A node that names no service and is in no flow.
    #[must_use]
    pub fn new(
        node: &'a NodeSummary,
        props: &'a Map<String, Value>,
        env: &'a dyn Fn(&str) -> Option<String>,
        on_secret: &'a dyn Fn(&str),
    ) -> Self {
        Self { node, props, env, on_secret, services: &NoServices, flow: "" }
    }

    /// The model that a property names; none if it is blank.
    ///
    /// # Errors
    /// When the model cannot be built.
    pub fn model(&self, id: Option<&str>) -> Result<Option<Arc<dyn ChatModel>>, BuildError> {
        id.filter(|id| !id.trim().is_empty()).map(|id| self.services.model(self.node, id)).transpose()
    }

    /// The memory that a property names; none if it is blank.
    ///
    /// # Errors
    /// When the memory cannot be built.
    pub fn memory(&self, id: Option<&str>) -> Result<Option<Arc<dyn Memory>>, BuildError> {
        id.filter(|id| !id.trim().is_empty()).map(|id| self.services.memory(self.node, id)).transpose()
    }

    /// Reads the properties as a typed configuration.
    ///
    /// # Errors
    /// When a property does not fit the type.
    pub fn typed<T: for<'de> serde::Deserialize<'de>>(&self) -> Result<T, BuildError> {
        // The library's message can quote a value, and the value can be a secret.
        read_typed(whole_numbers(Value::Object(self.props.clone()))).map_err(|_| {
            let type_name = &self.node.type_name;
            self.error(format!(
                "its properties do not fit the type `{type_name}`; run `redflow check` for details"
            ))
        })
    }

    /// Like [`NodeConfig::typed`], and also reads the properties in `options`. A property outside wins,
    /// unless it is blank.
    ///
    /// # Errors
    /// When a property does not fit the type.
    pub fn typed_with_options<T: for<'de> serde::Deserialize<'de>>(&self) -> Result<T, BuildError> {
        let mut props = without_blanks(&self.node.type_name, self.props);
        if let Some(Value::Object(options)) = props.remove("options") {
            for (name, value) in options {
                props.entry(name).or_insert(value);
            }
        }
        NodeConfig { props: &props, ..*self }.typed()
    }

    /// Finds a secret of this node: in its credentials, else in its properties, else in the first environment
    /// variable of `variables` that is set.
    #[must_use]
    pub fn secret(&self, name: &str, variables: &[&str]) -> Option<String> {
        // A reference to an unset variable stays in the property; that is not a secret.
        let is_set = |text: &&str| !text.trim().is_empty() && !is_reference(text.trim());
        let text = |value: &Value| value.as_str().filter(is_set).map(str::to_owned);
        let credentials = self.props.get("credentials").and_then(|all| all.get(name));
        let options = self.props.get("options").and_then(|all| all.get(name));
        let own = [credentials, self.props.get(name), options].into_iter().flatten().find_map(text);
        let secret = own
            .or_else(|| variables.iter().find_map(|name| (self.env)(name).filter(|text| !text.is_empty())))?;
        (self.on_secret)(&secret);
        Some(secret)
    }

    /// Makes an error about this node.
    #[must_use]
    pub fn error(&self, reason: impl Into<String>) -> BuildError {
        let error = BuildError::new(self.node, reason);
        let model = ["model", "deployment"].iter().find_map(|name| text_of(self.props, name));
        match model.filter(|_| self.node.name.is_empty()) {
            Some(model) => BuildError { label: model.chars().take(MAX_LABEL_CHARS).collect(), ..error },
            None => error,
        }
    }
}

/// Writes every whole number as an integer, because `5.0` is an integer in JSON Schema and in Node-RED.
fn whole_numbers(value: Value) -> Value {
    /// 2^53: above it a float cannot represent every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => Value::from(float as i64),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, whole_numbers(value))).collect(),
        other => other,
    }
}

/// Builds a node. The closure can hold what all nodes of its type share, such as a connection pool. It opens no
/// connection: a check of a flow builds its nodes with the keys of the deployed ones.
pub type Builder<T> = Arc<dyn Fn(NodeConfig<'_>) -> Result<T, BuildError> + Send + Sync>;
/// Builds a model node.
pub type ModelBuilder = Builder<Arc<dyn ChatModel>>;
/// Builds a tool node.
pub type ToolBuilder = Builder<Arc<dyn Tool>>;
/// Builds a tool node that provides several tools.
pub type ToolProviderBuilder = Builder<Arc<dyn ToolProvider>>;
/// Builds a tool of the manifest, or one that was registered at run time.
pub type ManifestToolBuilder =
    Arc<dyn Fn(ManifestToolConfig<'_>) -> Result<Arc<dyn Tool>, String> + Send + Sync>;
/// Builds a memory node.
pub type MemoryBuilder = Builder<Arc<dyn Memory>>;
/// Builds an ordinary Node-RED node.
pub type NodeBuilder = Builder<Box<dyn FlowNode>>;

/// Makes one model of several: a model that fails is replaced by the next one.
pub type ModelChainBuilder = fn(Vec<Arc<dyn ChatModel>>) -> Arc<dyn ChatModel>;

/// The builders of this build, by node type.
#[derive(Clone, Default)]
pub struct Adapters {
    /// Builders of models.
    pub models: BTreeMap<&'static str, ModelBuilder>,
    /// Joins a model and its fallback models; none if this build has no models of providers.
    pub model_chain: Option<ModelChainBuilder>,
    /// Downloads the images of messages; none if this build downloads none.
    pub images: Option<Arc<dyn ImageFetcher>>,
    /// Builders of tools.
    pub tools: BTreeMap<&'static str, ToolBuilder>,
    /// Builders of tool nodes that provide several tools.
    pub tool_providers: BTreeMap<&'static str, ToolProviderBuilder>,
    /// Builds tools of the manifest; none if this build has none.
    pub manifest_tool: Option<ManifestToolBuilder>,
    /// Builders of memories.
    pub memories: BTreeMap<&'static str, MemoryBuilder>,
    /// Builders of ordinary Node-RED nodes.
    pub nodes: BTreeMap<&'static str, NodeBuilder>,
    /// Builds flow tools whose nodes run in another process; none if the engine runs them itself.
    pub flow_tools: Option<ToolBuilder>,
}

impl Adapters {
    /// Whether this build can run a type: an agent with a strategy, a config node, or a type with a builder.
    #[must_use]
    pub fn can_run(&self, type_name: &str) -> bool {
        let declaration = node::find(type_name);
        declaration.strategy.is_some()
            || declaration.config
            || self.models.contains_key(type_name)
            || self.tools.contains_key(type_name)
            || self.tool_providers.contains_key(type_name)
            || (type_name == REGISTRY_TOOL && self.manifest_tool.is_some())
            || self.memories.contains_key(type_name)
            || self.nodes.contains_key(type_name)
    }
}

#[cfg(test)]
mod tests {
    use super::NodeConfig;
    use redflow_contract::id::NodeSummary;
    use redflow_contract::node::ScriptedModelConfig;
    use serde_json::{Value, json};

    fn typed(props: &Value) -> Result<ScriptedModelConfig, String> {
        let node =
            NodeSummary { id: "m".into(), type_name: "scripted-model".to_owned(), name: String::new() };
        let config = NodeConfig::new(&node, props.as_object().unwrap(), &|_| None, &|_| ());
        config.typed().map_err(|error| error.to_string())
    }

    #[test]
    fn reads_whole_floats_as_integers() {
        let replies = json!([{"a": [1.0, -2e3, -0.0, 0.5, 9_007_199_254_740_991.0, 1e300, u64::MAX, "5.0"]}]);
        let config = typed(&json!({"replies": replies, "delayMs": 5.0})).unwrap();
        assert_eq!(config.delay_ms, Some(5));
        let written = r#"{"a":[1,-2000,0,0.5,9007199254740991,1e+300,18446744073709551615,"5.0"]}"#;
        assert_eq!(config.replies[0].to_string(), written);
    }

    #[test]
    fn an_error_does_not_quote_the_property() {
        for wrong in [json!(5.5), json!(-1), json!("s3cret"), json!(1e300)] {
            let error = typed(&json!({"replies": ["x"], "delayMs": wrong})).unwrap_err();
            let text = "its properties do not fit the type `scripted-model`; run `redflow check` for details";
            assert_eq!(error, format!("`m` cannot be built: {text}"), "{wrong}");
        }
    }
}
