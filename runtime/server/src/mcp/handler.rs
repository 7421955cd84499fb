//! The requests of MCP clients: lists need the scope `read`, calls the scope `run`.

use super::agent_call::call_agent;
use super::call_context::{CallContext, OpenCalls};
use super::completion::complete;
use super::current_tools::current_tools;
use super::problem::{error_data, invalid_params};
use super::resources;
use super::tool_call::{call_flow_tool, call_registry_tool};
use super::tool_list::{ToolList, page};
use super::tools::CallTarget;
use crate::app::App;
use crate::response::{Problem, printable};
use axum::http::request::Parts;
use redflow_access::Caller;
use redflow_contract::api::Scope;
use redflow_contract::code::ApiCode;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, CompleteRequestParams,
    CompleteResult, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Tools and resources on a page.
const PAGE: usize = 200;

/// How often a stream of changes checks whether its client is still there and still accepted.
const RECHECK: Duration = Duration::from_secs(15);

/// Handles the requests of one session, or one request of a client without sessions.
pub(super) struct McpHandler {
    app: Arc<App>,
    open_calls: Arc<OpenCalls>,
    /// Whether a task tells the client about changes. A client may send `initialized` again and again.
    sends_changes: AtomicBool,
    /// The caller of every request, where requests do not come over HTTP.
    caller: Option<Caller>,
}

impl McpHandler {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app, open_calls: Arc::default(), sends_changes: AtomicBool::new(false), caller: None }
    }

    /// Handles requests that do not come over HTTP, all of one caller.
    pub(super) fn of_caller(app: Arc<App>, caller: Caller) -> Self {
        Self { caller: Some(caller), ..Self::new(app) }
    }

    /// The caller of a request. The guard has authenticated it.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let caller = parts.and_then(|parts| parts.extensions.get::<Caller>()).or(self.caller.as_ref());
        caller.cloned().ok_or_else(|| error_data(Problem::internal()))
    }

    fn tools(&self) -> Arc<ToolList> {
        current_tools(&self.app)
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        // The newest runs are always other ones, so changes of the resources are not announced.
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        let info = Implementation::new("redflow", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(info).with_instructions(
            "Agents of Node-RED flows, flow tools and registered tools. A call of an agent is a durable run: with \
             `_meta[\"redflow/key\"]` the same key begins one run only.",
        )
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let (tools, next) = page(&self.tools().described, |tool| &tool.name, cursor.as_deref(), PAGE)?;
        Ok(ListToolsResult { next_cursor: next, ..ListToolsResult::with_all_items(tools) })
    }

    /// The tool whose `Mcp-Param-*` headers are compared with the arguments of a call.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().describe(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // First, so that a cancellation finds the call.
        let call = CallContext::new(&self.app, self.caller(&context)?, &context, &self.open_calls);
        let required = self.app.access.require(&call.caller, Scope::Run);
        required.map_err(|error| error_data(error.into()))?;
        let tools = self.tools();
        let tool = tools.find(&request.name)?;
        let input = request.arguments.unwrap_or_default();
        let result = match &tool.target {
            CallTarget::Agent { agent, owner } => call_agent(agent, owner.as_ref(), input, &call).await?,
            CallTarget::Flow { entry, owner } => call_flow_tool(entry, owner.as_ref(), input, &call).await?,
            CallTarget::Registry { entry } => call_registry_tool(entry, input, &call).await?,
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        let resources = resources::list(&self.app, &caller).await?;
        let (resources, next) = page(&resources, |resource| &resource.uri, cursor.as_deref(), PAGE)?;
        Ok(ListResourcesResult { next_cursor: next, ..ListResourcesResult::with_all_items(resources) })
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let content = resources::read(&self.app, &caller, &request.uri).await?;
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![content])))
    }

    /// The server has no prompts of its own. Clients may ask for the list nevertheless.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(Vec::new()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = format!("There is no prompt `{}`: this server has none.", printable(&request.name));
        Err(error_data(Problem::new(ApiCode::NotFound, text)))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let caller = self.caller(&context)?;
        complete(&self.app, &caller, request).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller(context.request_context())?;
        let mut changes = self.app.mcp.changes.subscribe();
        let wants_tools = context.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.app.stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(RECHECK) => {
                    let now = self.app.clock.now();
                    self.app.access.recheck(&caller, now).map_err(|error| error_data(error.into()))?;
                }
                changed = changes.changed() => {
                    let closed = |_| invalid_params("The subscription is closed.");
                    changed.map_err(|_| error_data(Problem::internal()))?;
                    if wants_tools {
                        context.sink().notify_tool_list_changed().await.map_err(closed)?;
                    }
                }
            }
        }
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _: NotificationContext<RoleServer>,
    ) {
        if let Some(id) = &notification.request_id {
            self.open_calls.cancel(id);
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if !self.sends_changes.swap(true, Ordering::Relaxed) {
            tokio::spawn(send_changes(Arc::clone(&self.app), context.peer));
        }
    }
}

/// Tells the client of a session about changes of the list of tools, until the session ends.
async fn send_changes(app: Arc<App>, peer: Peer<RoleServer>) {
    let mut changes = app.mcp.changes.subscribe();
    while !peer.is_transport_closed() {
        tokio::select! {
            () = app.stop.cancelled() => return,
            () = tokio::time::sleep(RECHECK) => {}
            changed = changes.changed() => {
                if changed.is_err() || peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        }
    }
}
