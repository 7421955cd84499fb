//! The tools as they are now.

use super::tool_list::ToolList;
use super::tools::ToolSources;
use crate::app::App;
use std::sync::Arc;

/// The tools of the sidecar's own MCP server as they are now.
pub(super) fn current_tools(app: &App) -> Arc<ToolList> {
    let (flow, definitions) = (app.active_flow().tools, &app.tool_definitions);
    let (registry, callable) = (definitions.registry.snapshot(), definitions.mcp_callable());
    app.mcp.tools.made_of(ToolSources::new(flow, app.bridge.all(), registry, callable))
}
