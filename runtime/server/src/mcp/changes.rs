//! Tells MCP clients when the lists of tools and resources change: at deploys, and when the registry changes.

use crate::app::App;
use redflow_contract::id::InstanceId;
use std::sync::Arc;
use std::time::Duration;

/// How often the state of the tools is compared.
const INTERVAL: Duration = Duration::from_millis(250);

/// What the lists depend on.
#[derive(PartialEq)]
struct ListState {
    revision: String,
    instances: Vec<(InstanceId, bool, Option<String>)>,
    generation: u64,
    mcp_generation: u64,
}

impl ListState {
    fn of(app: &App) -> Self {
        let registry = &app.tool_definitions.registry;
        let instances = app.bridge.all().into_iter().map(|instance| {
            let (is_connected, revision) = instance.flow_state();
            (instance.id.clone(), is_connected, revision)
        });
        Self {
            revision: app.active_flow().revision().to_owned(),
            instances: instances.collect(),
            generation: registry.snapshot().generation(),
            mcp_generation: registry.mcp().map_or(0, |mcp| mcp.generation()),
        }
    }
}

/// Compares the state of the tools again and again, until the task is aborted.
pub(crate) async fn watch_lists(app: Arc<App>) {
    let mut known = ListState::of(&app);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let state = ListState::of(&app);
        if known != state {
            app.mcp.changes.count();
        }
        known = state;
    }
}
