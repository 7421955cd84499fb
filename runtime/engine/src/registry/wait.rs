//! What a run waits for before it begins: providers that do not know their tools yet, and MCP servers.

use super::Registry;
use super::run_servers::MCP_NAME_PREFIX;
use crate::flow::agent::{BuiltAgent, ProviderBindings, ProviderSource};
use futures::FutureExt as _;
use futures::future::join_all;
use redflow_contract::mcp::{MCP_TOOL_PREFIX, mcp_server_of};
use redflow_ports::{BoxFuture, McpServers, ToolProvider};
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// How long a run waits for its tools. Then it begins with the tools that are there.
pub(crate) const MAX_TOOL_WAIT: Duration = Duration::from_secs(60);

/// The MCP servers and prompts that an agent needs.
#[derive(Default)]
struct McpNeeds {
    servers: Vec<String>,
    /// Whether a pattern matches the tools of every server.
    all_servers: bool,
    prompts: Vec<(String, String)>,
}

impl BuiltAgent {
    /// Waits until the agent's tools and its system prompt are known; none if they are known now. It may take longer
    /// than a run shall wait.
    pub(crate) fn tool_wait(&self, registry: &Registry) -> Option<BoxFuture<'static, ()>> {
        let bindings = self.providers.as_ref()?;
        let providers = bindings.unready_providers();
        let mcp = registry.mcp().and_then(|mcp| Some((Arc::clone(mcp), bindings.mcp_needs(&**mcp)?)));
        if providers.is_empty() && mcp.is_none() {
            return None;
        }
        wait_unless_ready(providers, mcp)
    }
}

impl ProviderBindings {
    fn unready_providers(&self) -> Vec<Arc<dyn ToolProvider>> {
        let unready = |source: &ProviderSource| match source {
            ProviderSource::Provider(provider) if !provider.is_ready() => Some(Arc::clone(provider)),
            _ => None,
        };
        self.providers.iter().filter_map(|provider| unready(&provider.source)).collect()
    }

    /// The servers and prompts that the agent needs; none if it needs none.
    fn mcp_needs(&self, mcp: &dyn McpServers) -> Option<McpNeeds> {
        let (mut servers, mut all_servers) = (BTreeSet::new(), false);
        for (.., id) in self.registry_ids() {
            match mcp_server_of(id) {
                Some(server) => drop(servers.insert(server.to_owned())),
                None => all_servers |= may_match_servers(id),
            }
        }
        let unread = self.prompt.iter().filter(|name| mcp.prompt(&name.server, &name.prompt).is_none());
        let prompts: Vec<_> = unread.map(|name| (name.server.clone(), name.prompt.clone())).collect();
        let all_servers = all_servers && !mcp.is_ready();
        let is_empty = servers.is_empty() && prompts.is_empty() && !all_servers;
        (!is_empty).then(|| McpNeeds { servers: servers.into_iter().collect(), all_servers, prompts })
    }
}

/// Whether a pattern without the name of a server may match tools of MCP servers.
fn may_match_servers(pattern: &str) -> bool {
    pattern == "*" || pattern.starts_with(MCP_TOOL_PREFIX) || pattern.starts_with(MCP_NAME_PREFIX)
}

/// Waits for the MCP servers of recorded tools, and for the providers that are not ready; none if there is nothing to
/// wait for.
pub(crate) fn recorded_wait(
    registry: &Registry,
    servers: BTreeSet<String>,
    providers: Vec<Arc<dyn ToolProvider>>,
) -> Option<BoxFuture<'static, ()>> {
    let mcp = registry.mcp().filter(|_| !servers.is_empty()).map(|mcp| {
        let needs = McpNeeds { servers: servers.into_iter().collect(), ..McpNeeds::default() };
        (Arc::clone(mcp), needs)
    });
    let unready: Vec<_> = providers.into_iter().filter(|provider| !provider.is_ready()).collect();
    if unready.is_empty() && mcp.is_none() {
        return None;
    }
    wait_unless_ready(unready, mcp)
}

/// The wait, unless it ends at once. A provider that panics ends it.
fn wait_unless_ready(
    providers: Vec<Arc<dyn ToolProvider>>,
    mcp: Option<(Arc<dyn McpServers>, McpNeeds)>,
) -> Option<BoxFuture<'static, ()>> {
    let wait = async move {
        let of_providers = join_all(providers.iter().map(|provider| provider.ready()));
        let of_servers = async {
            let Some((mcp, needs)) = &mcp else { return };
            if needs.all_servers {
                mcp.ready().await;
            }
            if !needs.servers.is_empty() || !needs.prompts.is_empty() {
                mcp.wait(&needs.servers, &needs.prompts).await;
            }
        };
        futures::join!(of_providers, of_servers);
    };
    let mut wait: BoxFuture<'static, ()> = Box::pin(AssertUnwindSafe(wait).catch_unwind().map(drop));
    (&mut wait).now_or_never().is_none().then_some(wait)
}
