//! The tools of a data directory: the manifest, the registered tools, and the calls in the event log.

use super::source::{ToolSource, unknown_tool};
use crate::context::{AppContext, clock};
use crate::errors::{from_store, print_store_error};
use crate::exit::Exit;
use crate::files::display_path;
use crate::run_source::{LocalRuns, RunSource as _};
use crate::session::new_runtime;
use crate::terminal::print_note;
use redflow_contract::Message;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{Principal, RunId};
use redflow_contract::limits::RunLimits;
use redflow_contract::mcp::mcp_server_of;
use redflow_contract::replay::RunDetail;
use redflow_contract::stream::StreamEvent;
use redflow_contract::tool::{ToolEntry, ToolInvocation, provider_name};
use redflow_engine::ToolRequest;
use redflow_ports::{LoggedEvent, ToolCallQuery};
use redflow_store::Reader;
use std::path::PathBuf;
use tokio::runtime::Runtime;

/// Events that are read at once.
const PAGE: usize = 100;

pub(super) struct LocalTools<'a> {
    context: &'a AppContext,
    dir: PathBuf,
    runs: LocalRuns<'a>,
    runtime: Runtime,
}

impl<'a> LocalTools<'a> {
    /// Reads the manifest and the registered tools. A manifest with problems is an error.
    pub(super) fn new(context: &'a AppContext) -> Result<Self, Exit> {
        let dir = context.settings.data_dir().map_err(print_store_error)?;
        let runtime = new_runtime()?;
        {
            let _entered = runtime.enter();
            context.load_tools()?;
        }
        Ok(Self { runs: LocalRuns::new(context, None)?, context, dir, runtime })
    }

    /// The tool with this id or this name, if it is known now.
    fn entry(&self, id: &str) -> Option<ToolEntry> {
        let entries = self.context.registry.snapshot().entries();
        entries.into_iter().find(|entry| entry.id == id || entry.name == id)
    }

    /// Connects to the MCP server whose tool has this id or this name.
    async fn connect_server_of(&self, id: &str) {
        let servers = self.context.mcp.list().servers;
        let has_name = |server: &str| id.starts_with(&provider_name(&format!("mcp.{server}.")));
        let named = servers.into_iter().map(|server| server.name).find(|server| has_name(server));
        if let Some(server) = mcp_server_of(id).map(str::to_owned).or(named) {
            self.context.mcp.wait(&[server], &[]).await;
        }
    }

    /// The call that an event ended, with what the journal of its run has.
    fn read_call(
        &self,
        logged: &LoggedEvent,
        id: &str,
        last: &mut Option<RunDetail>,
    ) -> Option<ToolInvocation> {
        match serde_json::from_str(&logged.json).ok()? {
            StreamEvent::Flow { event: FlowEvent::ToolInvoked { call }, .. } => Some(*call),
            StreamEvent::Flow { .. } => None,
            StreamEvent::Run { event } => {
                let run = event.run_id.clone();
                let mut call = event.ended_call(id)?;
                if let Some(detail) = self.detail(&run, last) {
                    detail.complete(&mut call);
                }
                Some(call)
            }
        }
    }

    /// Calls of one run follow each other often, so the last run is kept.
    fn detail<'d>(&self, run: &RunId, last: &'d mut Option<RunDetail>) -> Option<&'d RunDetail> {
        if last.as_ref().is_none_or(|detail| detail.summary.run_id != *run) {
            *last = self.runs.detail(run).ok();
        }
        last.as_ref()
    }
}

impl ToolSource for LocalTools<'_> {
    fn place(&self) -> String {
        display_path(&self.dir)
    }

    /// Connects to no MCP server: that would start all programs.
    fn list(&self) -> Result<Vec<ToolEntry>, ApiError> {
        if let Some(server) = self.context.mcp.list().servers.first() {
            let name = &server.name;
            print_note(&format!("the tools of MCP servers are not in this list: redflow mcp tools {name}"));
        }
        Ok(self.context.registry.snapshot().entries())
    }

    fn find(&self, id: &str) -> Result<ToolEntry, ApiError> {
        self.runtime.block_on(async {
            self.connect_server_of(id).await;
            let found = self.entry(id);
            self.context.mcp.stop().await;
            found.ok_or_else(|| unknown_tool(id, &self.place()))
        })
    }

    fn call(&self, id: &str, input: Message) -> Result<ToolInvocation, ApiError> {
        self.runtime.block_on(async {
            self.connect_server_of(id).await;
            let called = call_tool(self.context, id, input).await;
            self.context.mcp.stop().await;
            called.unwrap_or_else(|| Err(unknown_tool(id, &self.place())))
        })
    }

    fn calls(&self, id: &str, limit: usize) -> Result<Vec<ToolInvocation>, ApiError> {
        let Some(reader) = Reader::find(&self.dir).map_err(from_store)? else { return Ok(Vec::new()) };
        // The flow of the sidecar is unknown here. A tool that is a node of its own has its own name.
        let own = id.strip_prefix("builtin.").or_else(|| id.strip_prefix("flow."));
        let name = self.entry(id).map(|entry| entry.name);
        let tool = name.unwrap_or_else(|| own.map_or_else(|| provider_name(id), str::to_owned));
        let (mut calls, mut before, mut last) = (Vec::new(), None, None);
        while calls.len() < limit {
            let query = ToolCallQuery { id: id.to_owned(), name: tool.clone(), before, most: PAGE };
            let events = reader.tool_calls(&query).map_err(from_store)?;
            let Some(oldest) = events.last() else { break };
            before = Some(oldest.position);
            let found = events.iter().filter_map(|event| self.read_call(event, id, &mut last));
            calls.extend(found.filter(|call| call.id == id || call.tool == id).take(limit - calls.len()));
        }
        Ok(calls)
    }
}

/// Calls a tool of the registry once, outside a run; none if there is no such tool.
pub(crate) async fn call_tool(
    context: &AppContext,
    id: &str,
    input: Message,
) -> Option<Result<ToolInvocation, ApiError>> {
    let snapshot = context.registry.snapshot();
    let tool = snapshot.find(id)?;
    let (by, limits) = (Some(Principal::from("cli")), RunLimits::default());
    let scrubber = std::sync::Arc::default();
    let request = ToolRequest { tool, input, by, limits: &limits, scrubber: &scrubber };
    let (clock, meter) = (clock(), &*context.metrics);
    let called = context.registry.invoke(request, &*clock, meter).await;
    Some(called.map_err(|error| {
        let (code, message) = (ProblemCode::Run(error.code()), error.to_string());
        ApiError { code, message, report: None, revision: None }
    }))
}
