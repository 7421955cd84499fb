//! Tells MCP clients when the list of tools changes: at deploys, when a Node-RED comes or goes, and when the registry
//! changes.

use super::current_tools::current_tools;
use crate::app::App;
use std::sync::Arc;
use std::time::Duration;

/// How often the list of tools is compared.
const INTERVAL: Duration = Duration::from_millis(250);

/// Compares the list of tools again and again, until the task is aborted. A change that clients do not see, such as the
/// tools of an MCP server that agents use, is none.
pub(crate) async fn watch_lists(app: Arc<App>) {
    let mut known = current_tools(&app);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let list = current_tools(&app);
        if !Arc::ptr_eq(&known, &list) && known.described != list.described {
            app.mcp.changes.count();
        }
        known = list;
    }
}
