//! Makes the entries of the registry from definitions.

use crate::flow::FlowTool;
use crate::flow::agent::{BuiltAgent, BuiltTool, ToolTarget};
use redflow_contract::digest::Digest;
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_contract::limits::DEFAULT_TOOL_TIMEOUT_MS;
use redflow_contract::manifest::{HttpMethod, ManifestTool, NodeOperation};
use redflow_contract::node::EffectClass;
use redflow_contract::plan::ToolSpec;
use redflow_contract::tool::{
    NetworkPermission, ToolEntry, ToolOrigin, ToolPermissions, ToolRetry, ToolState, id_part, own_tool_id,
    provider_name,
};
use serde_json::Value;
use std::sync::Arc;

/// The entry of a tool of the manifest, or of one that was registered at run time.
#[must_use]
pub fn entry_of_manifest_tool(tool: &ManifestTool, provider: &str) -> ToolEntry {
    let secrets = tool.credential.iter().map(|credential| credential.env().to_owned()).collect();
    ToolEntry {
        id: tool.id.clone(),
        name: provider_name(&tool.id),
        origin: ToolOrigin::Manifest,
        provider: provider.to_owned(),
        title: tool.title.clone().unwrap_or_default(),
        description: tool.description.clone(),
        input_schema: Some(Value::Object(tool.input_schema.clone())),
        output_schema: tool.output_schema.clone().map(Value::Object),
        effect: tool.effect.or_else(|| Some(tool.method.unwrap_or(HttpMethod::Get).effect())),
        timeout_ms: tool.timeout_ms.unwrap_or(DEFAULT_TOOL_TIMEOUT_MS),
        retry: tool.retry.unwrap_or_default(),
        permissions: ToolPermissions {
            network: NetworkPermission::Hosts,
            secrets,
            ..ToolPermissions::default()
        },
        digest: Digest::of(&serde_json::to_vec(tool).unwrap_or_default()),
        node_type: None,
        state: ToolState::Ready,
        reason: None,
        instance: None,
        rules: Vec::new(),
    }
}

/// The entry of an operation of a node. Its name begins with `prefix`, the type or the tool name of the node.
#[must_use]
pub fn entry_of_operation(
    type_name: &str,
    operation_name: &str,
    operation: &NodeOperation,
    prefix: &str,
) -> ToolEntry {
    ToolEntry {
        id: format!("{}.{operation_name}", id_part(type_name)),
        name: provider_name(&format!("{}.{operation_name}", id_part(prefix))),
        origin: ToolOrigin::Node,
        provider: type_name.to_owned(),
        title: String::new(),
        description: operation.description.clone(),
        input_schema: Some(Value::Object(operation.input_schema.clone())),
        output_schema: operation.output_schema.clone().map(Value::Object),
        effect: operation.effect.or(Some(EffectClass::AtMostOnce)),
        timeout_ms: operation.timeout.unwrap_or(DEFAULT_TOOL_TIMEOUT_MS),
        retry: operation.retry.unwrap_or_default(),
        permissions: ToolPermissions::default(),
        digest: Digest::of(&serde_json::to_vec(operation).unwrap_or_default()),
        node_type: Some(type_name.to_owned()),
        state: ToolState::Ready,
        reason: None,
        instance: None,
        rules: Vec::new(),
    }
}

/// What a tool needs that is a node of its own.
pub(crate) fn tool_permissions(node_type: &str) -> ToolPermissions {
    let network = match node_type {
        "http-request-tool" => NetworkPermission::Public,
        _ => NetworkPermission::None,
    };
    ToolPermissions { network, ..ToolPermissions::default() }
}

impl BuiltAgent {
    /// The tools of the agent that are nodes of their own, each with the receiver of its calls.
    pub(crate) fn own_tools(&self) -> impl Iterator<Item = (FlowTool, ToolTarget)> {
        let spec = self.compiled.spec();
        let parts = spec.tools.iter().zip(&self.tools).zip(&self.tool_nodes);
        parts.filter(|((spec, _), _)| spec.id.is_none()).map(|((spec, tool), node)| {
            (own_tool(spec, tool, node, &self.compiled.spec().agent.instance), tool.target.clone())
        })
    }
}

pub(crate) fn own_tool(
    spec: &ToolSpec,
    tool: &BuiltTool,
    node: &NodeSummary,
    instance: &InstanceId,
) -> FlowTool {
    let id = own_tool_id(&node.type_name, &spec.name);
    let is_flow = id.starts_with("flow.");
    let entry = ToolEntry {
        id,
        name: spec.name.clone(),
        origin: if is_flow { ToolOrigin::Flow } else { ToolOrigin::Builtin },
        provider: node.id.to_string(),
        title: node.name.clone(),
        description: spec.description.clone(),
        input_schema: spec.input_schema.clone(),
        output_schema: None,
        effect: spec.effect,
        timeout_ms: spec.timeout_ms,
        retry: ToolRetry::default(),
        permissions: tool_permissions(&node.type_name),
        digest: Digest::of(&serde_json::to_vec(spec).unwrap_or_default()),
        node_type: Some(node.type_name.clone()),
        state: ToolState::Ready,
        reason: None,
        instance: Some(instance.clone()).filter(|instance| *instance != InstanceId::local()),
        rules: Vec::new(),
    };
    let tool = match &tool.target {
        ToolTarget::Service(tool) if !is_flow => Some(Arc::clone(tool)),
        _ => None,
    };
    FlowTool { entry: Arc::new(entry), tool }
}
