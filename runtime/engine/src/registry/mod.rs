//! The registry: every tool that is no node of its own, the policy, and the rates.
//!
//! Owns which tools of the manifest, of run-time registrations, of MCP servers and of Node-RED's nodes exist at a
//! moment. Each change is a new snapshot with a new generation. A run keeps the tools of the generation that it began
//! with.

mod admission;
pub(crate) mod attempts;
pub(crate) mod bindings;
mod called_tools;
mod entry;
mod load;
mod mcp;
pub(crate) mod operation;
mod run_servers;
pub(crate) mod wait;

pub(crate) use admission::Permit;
pub(crate) use entry::tool_permissions;
pub use entry::{entry_of_manifest_tool, entry_of_operation};

use admission::Limiter;
use called_tools::{CalledTools, JoinedSecrets};
use redflow_contract::code::ToolCode;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::InstanceId;
use redflow_contract::manifest::{Manifest, ManifestTool, NodeOperation, NodeTools};
use redflow_contract::policy::Policy;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{ToolEntry, ToolState};
use redflow_contract::{Message, node::EffectClass};
use redflow_ports::{
    BoxFuture, ManifestToolBuilder, ManifestToolConfig, McpServers, ProvidedTool, Tool, ToolOutcome,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The tools of one process, shared by its engines.
#[derive(Default)]
pub struct Registry {
    snapshot: RwLock<Arc<RegistrySnapshot>>,
    limiter: Arc<Mutex<Limiter>>,
    /// The MCP servers; none if this build has none.
    mcp: Option<Arc<dyn McpServers>>,
    pub(crate) called_tools: CalledTools,
    joined_secrets: JoinedSecrets,
}

/// The registry at one moment.
#[derive(Default)]
pub struct RegistrySnapshot {
    generation: u64,
    /// The generation of the MCP servers whose tools these are; none before the first one.
    mcp_generation: Option<u64>,
    /// Sorted by id, with the tools of MCP servers.
    tools: Vec<ProvidedTool>,
    /// The operations in the manifest. They replace those of packages.
    nodes: NodeTools,
    /// The operations in the packages of each Node-RED.
    packages: HashMap<InstanceId, NodeTools>,
    policy: Arc<Policy>,
    /// The keys of the tools of the manifest.
    own_secrets: Scrubber,
    /// The same, with the secrets of MCP servers.
    secrets: Arc<Scrubber>,
}

/// What the manifest and the registrations at run time define.
pub struct Definitions<'a> {
    /// The checked manifest.
    pub manifest: &'a Manifest,
    /// The tools that were registered at run time. A tool of the manifest replaces one with the same id.
    pub registered: &'a [ManifestTool],
    /// The MCP servers that commands have added, checked. A server of the manifest replaces one with the same name.
    pub added_servers: &'a redflow_contract::mcp::McpServers,
    /// The compiled policy of the manifest.
    pub policy: Policy,
    /// Makes the tools; none if this build has no such tools.
    pub build: Option<&'a ManifestToolBuilder>,
    /// The process environment, for keys.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

impl Registry {
    /// An empty registry with these MCP servers.
    #[must_use]
    pub fn with_mcp(mcp: Arc<dyn McpServers>) -> Self {
        Self { mcp: Some(mcp), ..Self::default() }
    }

    /// The MCP servers; none if this build has none.
    #[must_use]
    pub fn mcp(&self) -> Option<&Arc<dyn McpServers>> {
        self.mcp.as_ref()
    }

    /// The registry at this moment, with the tools that the MCP servers have now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<RegistrySnapshot> {
        let current = self.current();
        match &self.mcp {
            // Runs ask for a snapshot often, so the number is compared first.
            Some(mcp) if current.mcp_generation != Some(mcp.generation()) => self.read_mcp_tools(&**mcp),
            _ => current,
        }
    }

    /// Knows the secrets of a flow, the keys of all tools of the manifest, and the secrets of MCP servers.
    #[must_use]
    pub fn secrets_with(&self, flow: &Arc<Scrubber>) -> Arc<Scrubber> {
        let snapshot = self.snapshot();
        self.joined_secrets.join(flow, &snapshot.secrets, snapshot.generation)
    }

    fn current(&self) -> Arc<RegistrySnapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces what the manifest and the registrations define. A tool whose definition is the same stays as it is.
    pub fn define(&self, definitions: Definitions<'_>) {
        let Definitions { manifest, registered, added_servers, policy, build, env } = definitions;
        let mut defined: BTreeMap<&str, (&ManifestTool, &'static str)> = BTreeMap::new();
        defined.extend(registered.iter().map(|tool| (tool.id.as_str(), (tool, "registered"))));
        defined.extend(manifest.tools.iter().map(|tool| (tool.id.as_str(), (tool, "manifest"))));
        let before = self.current();
        let secrets = RefCell::new(before.own_secrets.clone());
        let make = |(tool, provider): (&ManifestTool, &'static str)| {
            let entry = entry_of_manifest_tool(tool, provider);
            let same = |known: &&ProvidedTool| {
                known.entry.digest == entry.digest && known.entry.state == ToolState::Ready
            };
            if let Some(known) = before.tool(&tool.id).filter(same) {
                return ProvidedTool { entry: Arc::new(entry), tool: Arc::clone(&known.tool) };
            }
            let on_secret = |secret: &str| secrets.borrow_mut().add(secret);
            let config = ManifestToolConfig { tool, env, on_secret: &on_secret };
            let built = match build {
                Some(build) => catch_unwind(AssertUnwindSafe(|| build(config)))
                    .unwrap_or_else(|_| Err("the tool crashed while it was built".to_owned())),
                None => Err("this build has no tools of the manifest".to_owned()),
            };
            match built {
                Ok(tool) => ProvidedTool { entry: Arc::new(entry), tool },
                Err(reason) => {
                    let text = format!("The tool `{}` cannot be used: {reason}.", tool.id);
                    let entry = ToolEntry { state: ToolState::Blocked, reason: Some(reason), ..entry };
                    ProvidedTool {
                        entry: Arc::new(entry),
                        tool: Arc::new(RefusedTool::new(ToolCode::ToolUnavailable, text)),
                    }
                }
            }
        };
        let tools: Vec<ProvidedTool> = defined.into_values().map(make).collect();
        // The limits go on counting, unless the policy has changed.
        let policy = if *before.policy == policy { Arc::clone(&before.policy) } else { Arc::new(policy) };
        if let Some(mcp) = &self.mcp {
            mcp::define_servers(&**mcp, manifest, added_servers, env);
        }
        let own_secrets = secrets.take();
        self.replace(|before| {
            let mut secrets = Scrubber::clone(&before.secrets);
            secrets.add_all(&own_secrets);
            RegistrySnapshot {
                generation: 0,
                mcp_generation: before.mcp_generation,
                tools: mcp::join_tools(
                    tools,
                    before.tools.iter().filter(|tool| mcp::is_mcp_tool(tool)).cloned(),
                ),
                nodes: manifest.nodes.clone(),
                packages: before.packages.clone(),
                policy,
                own_secrets,
                secrets: Arc::new(secrets),
            }
        });
    }

    /// Sets the operations in the packages of a Node-RED.
    pub fn set_node_tools(&self, instance: &InstanceId, tools: NodeTools) {
        if self.snapshot().packages.get(instance).cloned().unwrap_or_default() != tools {
            self.change_packages(|packages| drop(packages.insert(instance.clone(), tools)));
        }
    }

    /// Removes the operations in the packages of a Node-RED that is not known any more.
    pub fn remove_node_tools(&self, instance: &InstanceId) {
        if self.snapshot().packages.contains_key(instance) {
            self.change_packages(|packages| drop(packages.remove(instance)));
        }
    }

    fn change_packages(&self, change: impl FnOnce(&mut HashMap<InstanceId, NodeTools>)) {
        self.replace(|before| {
            let mut packages = before.packages.clone();
            change(&mut packages);
            RegistrySnapshot {
                generation: 0,
                mcp_generation: before.mcp_generation,
                tools: before.tools.clone(),
                nodes: before.nodes.clone(),
                packages,
                policy: Arc::clone(&before.policy),
                own_secrets: before.own_secrets.clone(),
                secrets: Arc::clone(&before.secrets),
            }
        });
    }

    fn replace(&self, change: impl FnOnce(&RegistrySnapshot) -> RegistrySnapshot) {
        let mut current = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        let generation = current.generation + 1;
        *current = Arc::new(RegistrySnapshot { generation, ..change(&current) });
    }
}

impl RegistrySnapshot {
    /// A number that grows with every change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Finds a tool of the manifest, of a registration or of an MCP server.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&ProvidedTool> {
        let place = self.tools.binary_search_by(|tool| tool.entry.id.as_str().cmp(id)).ok()?;
        self.tools.get(place)
    }

    /// The tools of the manifest, of registrations and of MCP servers, sorted by id.
    #[must_use]
    pub fn tools(&self) -> &[ProvidedTool] {
        &self.tools
    }

    /// Finds a tool by its id or its name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ProvidedTool> {
        let by_name = || self.tools.iter().find(|tool| tool.entry.name == name);
        self.tool(name).or_else(by_name)
    }

    /// The operations of a node type in a Node-RED, by name.
    #[must_use]
    pub fn operations(
        &self,
        instance: &InstanceId,
        type_name: &str,
    ) -> Option<&BTreeMap<String, NodeOperation>> {
        let of_package = || self.packages.get(instance)?.get(type_name);
        self.nodes.get(type_name).or_else(of_package).filter(|operations| !operations.is_empty())
    }

    /// The entries of all tools that are no nodes of their own, sorted by id.
    #[must_use]
    pub fn entries(&self) -> Vec<ToolEntry> {
        let mut entries: Vec<ToolEntry> = self.tools.iter().map(|tool| (*tool.entry).clone()).collect();
        let of_nodes = |nodes: &NodeTools, instance: Option<&InstanceId>| -> Vec<ToolEntry> {
            let each = |(type_name, operations): (&String, &BTreeMap<String, NodeOperation>)| {
                let entry = |(name, operation): (&String, &NodeOperation)| ToolEntry {
                    instance: instance.cloned(),
                    ..entry_of_operation(type_name, name, operation, type_name)
                };
                operations.iter().map(entry).collect::<Vec<_>>()
            };
            nodes.iter().flat_map(each).collect()
        };
        entries.extend(of_nodes(&self.nodes, None));
        for (instance, nodes) in &self.packages {
            let replaced = |entry: &ToolEntry| self.nodes.contains_key(&entry.provider);
            entries.extend(of_nodes(nodes, Some(instance)).into_iter().filter(|entry| !replaced(entry)));
        }
        entries.sort_by(|one, other| (&one.id, &one.instance).cmp(&(&other.id, &other.instance)));
        entries
    }

    /// Who may call what.
    #[must_use]
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Knows the keys of all tools of the manifest, and the secrets of MCP servers.
    #[must_use]
    pub fn secrets(&self) -> &Scrubber {
        &self.secrets
    }
}

/// Stands for a tool that cannot be called: every call fails with the same code.
pub(crate) struct RefusedTool {
    code: ToolCode,
    reason: String,
}

impl RefusedTool {
    pub(crate) fn new(code: ToolCode, reason: String) -> Self {
        Self { code, reason }
    }
}

impl Tool for RefusedTool {
    /// The call is never made, so it may be repeated.
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::Read
    }

    fn call<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        let result = ToolResult::refused(self.code, self.reason.clone());
        Box::pin(std::future::ready(ToolOutcome::Returned(result)))
    }
}
