//! The MCP servers of a data directory or of a sidecar, so that commands print the same for both.

use crate::commands::tools::call_tool;
use crate::context::AppContext;
use crate::errors::print_store_error;
use crate::exit::Exit;
use crate::files::display_path;
use crate::sidecar::SidecarClient;
use crate::text::printable_line;
use redflow_contract::Message;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::mcp::{
    McpLogin, McpPinRequest, McpServerDetail, McpServerList, McpServerSummary, McpToolInfo, is_mcp_name,
};
use redflow_contract::tool::ToolInvocation;
use redflow_contract::tool_api::ToolCallRequest;
use redflow_ports::McpServers;
use std::path::PathBuf;

pub(super) enum McpSource<'a> {
    Local(LocalMcp<'a>),
    Remote(SidecarClient),
}

/// The servers of a data directory. This process connects to them.
pub(super) struct LocalMcp<'a> {
    context: &'a AppContext,
    dir: PathBuf,
}

impl<'a> McpSource<'a> {
    pub(super) fn local(context: &'a AppContext) -> Result<Self, Exit> {
        let dir = context.settings.data_dir().map_err(print_store_error)?;
        Ok(Self::Local(LocalMcp { context, dir }))
    }

    pub(super) fn remote(sidecar: SidecarClient) -> Self {
        Self::Remote(sidecar)
    }

    /// Reads the definitions of a data directory. A manifest with problems is an error.
    pub(super) fn load(&self) -> Result<(), Exit> {
        match self {
            Self::Local(local) => local.context.load_tools(),
            Self::Remote(_) => Ok(()),
        }
    }

    /// The directory or the address, for messages.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Local(local) => display_path(&local.dir),
            Self::Remote(sidecar) => printable_line(sidecar.url().as_str(), 200),
        }
    }

    pub(super) async fn list(&self) -> Result<Vec<McpServerSummary>, ApiError> {
        let list: McpServerList = match self {
            Self::Local(local) => local.servers().list(),
            Self::Remote(sidecar) => sidecar.get(&["api", "mcp"], &[]).await?,
        };
        Ok(list.servers)
    }

    pub(super) async fn show(&self, name: &str) -> Result<McpServerDetail, ApiError> {
        self.check_name(name)?;
        match self {
            Self::Local(local) => local.servers().show(name).await,
            Self::Remote(sidecar) => sidecar.get(&["api", "mcp", name], &[]).await,
        }
    }

    pub(super) async fn pin(&self, name: &str, request: McpPinRequest) -> Result<McpServerDetail, ApiError> {
        self.check_name(name)?;
        match self {
            Self::Local(local) => local.servers().pin(name, request).await,
            Self::Remote(sidecar) => sidecar.post(&["api", "mcp", name, "pin"], &request).await,
        }
    }

    /// Begins a sign-in. A sidecar has an address of its own for the way back; `redirect` is that of this process.
    pub(super) async fn login(&self, name: &str, redirect: &str) -> Result<McpLogin, ApiError> {
        self.check_name(name)?;
        match self {
            Self::Local(local) => local.servers().login(name, redirect).await,
            Self::Remote(sidecar) => sidecar.post_empty(&["api", "mcp", name, "login"]).await,
        }
    }

    pub(super) async fn logout(&self, name: &str) -> Result<(), ApiError> {
        self.check_name(name)?;
        match self {
            Self::Local(local) => local.servers().logout(name).await,
            Self::Remote(sidecar) => sidecar.delete(&["api", "mcp", name, "login"], &[]).await,
        }
    }

    /// Calls a tool by the name that the server gives it, or by its id.
    pub(super) async fn call(
        &self,
        name: &str,
        tool: &str,
        input: Message,
    ) -> Result<ToolInvocation, ApiError> {
        let server = self.show(name).await?;
        let id = find_tool(&server, tool)?.id.clone();
        match self {
            Self::Local(local) => match call_tool(local.context, &id, input).await {
                Some(called) => called,
                None => Err(not_callable(&server, tool)),
            },
            Self::Remote(sidecar) => {
                sidecar.post_long(&["api", "tools", &id, "call"], &ToolCallRequest { input }).await
            }
        }
    }

    /// A text that is no name would change the path of a request.
    fn check_name(&self, name: &str) -> Result<(), ApiError> {
        let known = is_mcp_name(name) || (matches!(self, Self::Remote(_)) && name.contains('@'));
        if known { Ok(()) } else { Err(unknown_server(name, &self.place())) }
    }
}

impl LocalMcp<'_> {
    pub(super) fn servers(&self) -> &dyn McpServers {
        &*self.context.mcp
    }
}

pub(super) fn unknown_server(name: &str, place: &str) -> ApiError {
    let name = printable_line(name, 60);
    let text = format!("There is no MCP server `{name}` in {place}. `redflow mcp list` lists them.");
    ApiError::new(ApiCode::NotFound, text)
}

fn find_tool<'s>(server: &'s McpServerDetail, tool: &str) -> Result<&'s McpToolInfo, ApiError> {
    let found = server.tools.iter().find(|info| info.name == tool || info.id == tool);
    found.ok_or_else(|| match &server.summary.reason {
        Some(reason) => ApiError::new(ApiCode::McpFailed, reason.clone()),
        None => {
            let (tool, key) = (printable_line(tool, 100), &server.summary.key);
            let text = format!("The server has no tool `{tool}`. `redflow mcp tools {key}` lists its tools.");
            ApiError::new(ApiCode::NotFound, text)
        }
    })
}

/// The server has the tool, but agents cannot use it.
fn not_callable(server: &McpServerDetail, tool: &str) -> ApiError {
    let info = server.tools.iter().find(|info| info.name == tool || info.id == tool);
    let reason = info.and_then(|info| info.reason.clone());
    let text =
        reason.unwrap_or_else(|| "`include` or `exclude` of the server leaves this tool out.".to_owned());
    ApiError::new(ApiCode::McpFailed, text)
}
