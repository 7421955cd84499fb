//! The trait that a data directory and a sidecar share, so that commands print the same for both.

use redflow_contract::Message;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::tool::{ToolEntry, ToolInvocation};

/// The tools of a data directory or of a sidecar.
pub(super) trait ToolSource {
    /// The directory or the address, for messages.
    fn place(&self) -> String;

    /// Lists the tools, sorted by id.
    fn list(&self) -> Result<Vec<ToolEntry>, ApiError>;

    /// Finds a tool by its id or its name.
    fn find(&self, id: &str) -> Result<ToolEntry, ApiError>;

    fn call(&self, id: &str, input: Message) -> Result<ToolInvocation, ApiError>;

    /// Lists at most `limit` calls that have ended, newest first.
    fn calls(&self, id: &str, limit: usize) -> Result<Vec<ToolInvocation>, ApiError>;
}

/// The error for an id that no tool has.
pub(super) fn unknown_tool(id: &str, place: &str) -> ApiError {
    let text = format!("There is no tool `{id}` in {place}. `redflow tools list` lists them.");
    ApiError::new(ApiCode::NotFound, text)
}
