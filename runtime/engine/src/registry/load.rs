//! Reads the definitions of tools from a manifest store.

use super::{Definitions, Registry};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::manifest::{Manifest, ManifestTool};
use redflow_contract::mcp::{MAX_MCP_SERVERS, McpServers, is_mcp_name};
use redflow_contract::policy::{Policy, PolicyProblem};
use redflow_contract::tool::{id_part, provider_name};
use redflow_flow::{check_manifest, check_mcp_server, check_tool};
use redflow_ports::{ManifestStore, ManifestToolBuilder, RegisteredServer, RegisteredTool};
use serde_json::Value;
use std::collections::HashMap;

impl Registry {
    /// Reads the manifest, the registered tools and the added MCP servers, and replaces what they define. Gives the
    /// problems of registered tools and added servers, which are left out.
    ///
    /// # Errors
    /// Every problem of the manifest. Then nothing changes, so that no call escapes a policy.
    pub fn load(
        &self,
        store: &dyn ManifestStore,
        build: Option<&ManifestToolBuilder>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        self.load_values(store.read(), store.registered(), store.servers(), build, env)
    }

    /// The same with what was read before.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn load_values(
        &self,
        manifest: Result<Value, Vec<Diagnostic>>,
        registered_tools: Vec<RegisteredTool>,
        added_servers: Vec<RegisteredServer>,
        build: Option<&ManifestToolBuilder>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let named = |problem: Diagnostic| Diagnostic {
            file: problem.file.or_else(|| Some("the manifest".to_owned())),
            ..problem
        };
        let manifest = manifest.and_then(|value| check_manifest(&value));
        let manifest = manifest.map_err(|problems| problems.into_iter().map(named).collect::<Vec<_>>())?;
        let policy = Policy::new(&manifest.policy, &manifest.roles)
            .map_err(|problems| problems.into_iter().map(policy_problem).collect::<Vec<_>>())?;
        let (mut registered, mut problems): (Vec<ManifestTool>, Vec<Diagnostic>) = Default::default();
        let mut names = manifest_names(&manifest);
        for RegisteredTool { id, tool } in registered_tools {
            let checked = tool.and_then(|value| check_tool(&value));
            match checked.and_then(|definition| take_name(&mut names, definition)) {
                Ok(definition) => registered.push(definition),
                Err(found) => problems.extend(found.into_iter().map(|problem| Diagnostic {
                    file: problem.file.or_else(|| Some(format!("tools.d/{id}.json"))),
                    ..problem
                })),
            }
        }
        let added_servers = &read_servers(&manifest, added_servers, &mut problems);
        let manifest = &manifest;
        self.define(Definitions { manifest, registered: &registered, added_servers, policy, build, env });
        Ok(problems)
    }
}

/// The added servers that can be used. A server of the manifest replaces one with the same name without a problem.
fn read_servers(
    manifest: &Manifest,
    added: Vec<RegisteredServer>,
    problems: &mut Vec<Diagnostic>,
) -> McpServers {
    let mut servers = McpServers::new();
    let names = manifest.mcp.keys().map(|name| (name.to_ascii_lowercase(), name.clone()));
    let mut names: HashMap<String, String> = names.collect();
    for RegisteredServer { name, server } in added {
        let checked = server.and_then(|value| check_mcp_server(&value));
        match checked.and_then(|server| take_server_name(&mut names, &name).map(|()| server)) {
            Ok(server) => drop(servers.insert(name, server)),
            Err(found) => problems.extend(found.into_iter().map(|problem| Diagnostic {
                file: problem.file.or_else(|| Some(format!("mcp.d/{name}.json"))),
                ..problem
            })),
        }
    }
    servers
}

/// Adds the name of a server; an error if it is none, if another server has it in another case, or if there are too
/// many.
fn take_server_name(names: &mut HashMap<String, String>, name: &str) -> Result<(), Vec<Diagnostic>> {
    let refuse = |message: String, help: String| {
        Err(vec![Diagnostic::new(DiagnosticCode::ManifestInvalid, message, help)])
    };
    let help =
        || format!("Remove the server with `redflow mcp remove {name}`, and add it with another name.");
    if !is_mcp_name(name) {
        let message = "the file is not named after a server: 1 to 40 letters, digits, `_` and `-`";
        return refuse(message.to_owned(), "Rename or remove the file.".to_owned());
    }
    let count = names.len();
    match names.get(&name.to_ascii_lowercase()) {
        Some(owner) if owner == name => Ok(()),
        Some(owner) => refuse(format!("the server `{name}` differs from `{owner}` only by its case"), help()),
        None if count >= MAX_MCP_SERVERS => {
            let message = format!("there are more than {MAX_MCP_SERVERS} MCP servers");
            refuse(message, format!("Remove servers that nobody needs: `redflow mcp remove {name}`."))
        }
        None => {
            names.insert(name.to_ascii_lowercase(), name.to_owned());
            Ok(())
        }
    }
}

/// The names of the manifest's tools in lower case, each with the id of its tool. Models do not tell cases apart.
fn manifest_names(manifest: &Manifest) -> HashMap<String, String> {
    let of_nodes = manifest.nodes.iter().flat_map(|(type_name, operations)| {
        operations.keys().map(move |operation| format!("{}.{operation}", id_part(type_name)))
    });
    let ids = manifest.tools.iter().map(|tool| tool.id.clone()).chain(of_nodes);
    ids.map(|id| (provider_name(&id).to_ascii_lowercase(), id)).collect()
}

/// Adds the name of a registered tool; an error if another tool has it. A tool of the manifest with the same id
/// replaces it without an error.
fn take_name(
    names: &mut HashMap<String, String>,
    tool: ManifestTool,
) -> Result<ManifestTool, Vec<Diagnostic>> {
    let name = provider_name(&tool.id).to_ascii_lowercase();
    let owner = names.entry(name).or_insert_with(|| tool.id.clone());
    if *owner == tool.id {
        return Ok(tool);
    }
    let message = format!("the tool `{}` has the name of the tool `{owner}`", tool.id);
    let help = "Remove the registered tool, and register it with another id.".to_owned();
    Err(vec![Diagnostic::new(DiagnosticCode::ManifestInvalid, message, help)])
}

/// Does not happen, because the check of the manifest compiles the policy too.
fn policy_problem(PolicyProblem { pointer, expected, found }: PolicyProblem) -> Diagnostic {
    let message = format!("the policy has {found} at {pointer}");
    let help = format!("Write {expected}.");
    Diagnostic { pointer: Some(pointer), ..Diagnostic::new(DiagnosticCode::ManifestInvalid, message, help) }
}
