//! The manifest store: the manifest of tools, and the tools that were registered at run time.

use crate::FileStoreError;
use redflow_contract::diagnostic::Diagnostic;
use serde_json::Value;

/// Stores the manifest, which people write, and the registered tools, which programs write.
///
/// The values are not checked: `redflow_flow::check_manifest` and `check_tool` do that.
pub trait ManifestStore: Send + Sync {
    /// Describes the files as they are now, without reading them. If it has changed, read again.
    fn stamp(&self) -> ManifestStamp;

    /// Reads the manifest; `null` if there is none or it is empty.
    ///
    /// # Errors
    /// Why the manifest cannot be read: `MANIFEST_INVALID` with the line and the column.
    fn read(&self) -> Result<Value, Vec<Diagnostic>>;

    /// Reads the registered tools, in the order of their ids. A file that cannot be read gives its problems, and
    /// the others stay.
    fn registered(&self) -> Vec<RegisteredTool>;

    /// Reads the MCP servers that `redflow mcp add` has added, in the order of their names. A file that cannot be read
    /// gives its problems, and the others stay.
    fn servers(&self) -> Vec<RegisteredServer>;

    /// Adds an MCP server, or replaces the one with this name. It is on the disk when this returns.
    ///
    /// # Errors
    /// When the name is none, there are too many, or the file cannot be written.
    fn put_server(&self, name: &str, server: &Value) -> Result<(), FileStoreError>;

    /// Removes an added MCP server. False if there is none with this name.
    ///
    /// # Errors
    /// When the file cannot be removed.
    fn remove_server(&self, name: &str) -> Result<bool, FileStoreError>;

    /// Registers a tool, or replaces the one with this id. It is on the disk when this returns.
    ///
    /// # Errors
    /// When the id is none, the tool is too large, there are too many, or the file cannot be written.
    fn put(&self, id: &str, tool: &Value) -> Result<(), FileStoreError>;

    /// Removes a registered tool. False if there is none with this id.
    ///
    /// # Errors
    /// When the file cannot be removed.
    fn remove(&self, id: &str) -> Result<bool, FileStoreError>;
}

/// The state of the files of a manifest. It is only compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestStamp(pub String);

/// A tool that was registered at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredTool {
    /// Its id, or the name of the file if that is no id.
    pub id: String,
    /// The tool as it was registered, or why its file cannot be used.
    pub tool: Result<Value, Vec<Diagnostic>>,
}

/// An MCP server that was added by a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredServer {
    /// Its name, or the name of the file if that is no name of a server.
    pub name: String,
    /// The server as it was added, or why its file cannot be used.
    pub server: Result<Value, Vec<Diagnostic>>,
}
