//! The tools of a sidecar.

use super::source::{ToolSource, unknown_tool};
use crate::exit::Exit;
use crate::session::new_runtime;
use crate::sidecar::SidecarClient;
use crate::text::printable_line;
use redflow_contract::Message;
use redflow_contract::api::ApiError;
use redflow_contract::tool::{ToolEntry, ToolInvocation};
use redflow_contract::tool_api::{MAX_CALLS_PAGE, ToolCallList, ToolCallRequest, ToolList};
use tokio::runtime::Runtime;

pub(super) struct RemoteTools {
    sidecar: SidecarClient,
    runtime: Runtime,
}

impl RemoteTools {
    pub(super) fn new(sidecar: SidecarClient) -> Result<Self, Exit> {
        Ok(Self { sidecar, runtime: new_runtime()? })
    }

    /// Passes the calls of a tool to `print` as they end. Returns only with an error.
    pub(super) fn follow(
        &self,
        id: &str,
        print: &mut (dyn FnMut(&ToolInvocation) + Send),
    ) -> Result<(), ApiError> {
        self.runtime.block_on(self.sidecar.read_stream(&self.path(id, &["calls"])?, print))
    }

    /// The path of a tool. An id that would change the path is refused, because no tool has it.
    fn path<'a>(&self, id: &'a str, rest: &[&'a str]) -> Result<Vec<&'a str>, ApiError> {
        if matches!(id, "" | "." | "..") {
            return Err(unknown_tool(id, &self.place()));
        }
        Ok(["api", "tools", id].into_iter().chain(rest.iter().copied()).collect())
    }
}

impl ToolSource for RemoteTools {
    fn place(&self) -> String {
        printable_line(self.sidecar.url().as_str(), 200)
    }

    fn list(&self) -> Result<Vec<ToolEntry>, ApiError> {
        let list: ToolList = self.runtime.block_on(self.sidecar.get(&["api", "tools"], &[]))?;
        Ok(list.tools)
    }

    fn find(&self, id: &str) -> Result<ToolEntry, ApiError> {
        self.runtime.block_on(self.sidecar.get(&self.path(id, &[])?, &[]))
    }

    fn call(&self, id: &str, input: Message) -> Result<ToolInvocation, ApiError> {
        self.runtime.block_on(self.sidecar.post(&self.path(id, &["call"])?, &ToolCallRequest { input }))
    }

    fn calls(&self, id: &str, limit: usize) -> Result<Vec<ToolInvocation>, ApiError> {
        let path = self.path(id, &["calls"])?;
        let (mut calls, mut before) = (Vec::new(), None);
        loop {
            let mut query = vec![("limit", MAX_CALLS_PAGE.min(limit - calls.len()).to_string())];
            query.extend(before.take().map(|cursor| ("before", cursor)));
            let page: ToolCallList = self.runtime.block_on(self.sidecar.get(&path, &query))?;
            calls.extend(page.calls);
            before = page.next.filter(|_| calls.len() < limit);
            if before.is_none() {
                return Ok(calls);
            }
        }
    }
}
