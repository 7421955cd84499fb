//! MCP servers whose tools, resources and prompts agents use, and what is kept about them.

use crate::flow_store::FileStoreError;
use crate::future::BoxFuture;
use crate::tool::ToolProvider;
use redflow_contract::Millis;
use redflow_contract::api::ApiError;
use redflow_contract::digest::Digest;
use redflow_contract::mcp::{McpLogin, McpPinRequest, McpPins, McpServerDetail, McpServerList};
use redflow_contract::scrub::Scrubber;
use std::sync::Arc;

/// The answer about an MCP server.
pub type McpAnswer<'a, T> = BoxFuture<'a, Result<T, ApiError>>;

/// The MCP servers of the manifest, and of the nodes of flows. As a provider it gives the tools of the servers of the
/// manifest, with ids `mcp.SERVER.TOOL`.
pub trait McpServers: ToolProvider + ContextSource {
    /// Replaces the servers of the manifest. A server with the same definition stays connected. It makes no connection.
    fn define(
        &self,
        servers: &redflow_contract::mcp::McpServers,
        added: &[String],
        env: &dyn Fn(&str) -> Option<String>,
    );

    /// Connects to all servers of the manifest, in the background.
    fn connect_all(&self);

    /// Whether the manifest has this server.
    fn is_known(&self, server: &str) -> bool;

    /// The servers as they are now.
    fn list(&self) -> McpServerList;

    /// A server with its tools. Connects to it, if it is not connected; then it gives what it knows, even if that
    /// failed.
    fn show<'a>(&'a self, server: &'a str) -> McpAnswer<'a, McpServerDetail>;

    /// Connects again at once, and reads the lists of the server.
    fn connect<'a>(&'a self, server: &'a str) -> McpAnswer<'a, McpServerDetail>;

    /// Approves definitions of tools. None is approved if one is not the one that the person has seen.
    fn pin<'a>(&'a self, server: &'a str, request: McpPinRequest) -> McpAnswer<'a, McpServerDetail>;

    /// Begins a sign-in. The issuer sends the person back to `redirect`.
    fn login<'a>(&'a self, server: &'a str, redirect: &'a str) -> McpAnswer<'a, McpLogin>;

    /// Ends a sign-in with the address that the issuer sent the person to. Gives the name of the server.
    fn finish_login<'a>(&'a self, callback: &'a str) -> McpAnswer<'a, String>;

    /// Removes the tokens of a server.
    fn logout<'a>(&'a self, server: &'a str) -> McpAnswer<'a, ()>;

    /// The text of a prompt, if it was read; none if the server or the prompt is not there. `wait` reads it.
    fn prompt(&self, server: &str, prompt: &str) -> Option<Arc<str>>;

    /// Waits until a try to connect to these servers has ended and these prompts were read, `(server, prompt)`. It ends
    /// in time, also if a server does not answer.
    fn wait<'a>(&'a self, servers: &'a [String], prompts: &'a [(String, String)]) -> BoxFuture<'a, ()>;

    /// The secrets of all servers, with the tokens of sign-ins. `generation` changes when they do. No result, prompt
    /// or error that an agent gets has one of them.
    fn secrets(&self) -> Scrubber {
        Scrubber::default()
    }

    /// Ends all connections and programs.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// Gives spans of context: texts of resources of MCP servers.
pub trait ContextSource: Send + Sync {
    /// Reads a resource. The error says why not, for people.
    fn read<'a>(&'a self, server: &'a str, resource: &'a str) -> BoxFuture<'a, Result<ContextSpan, String>>;
}

/// The text of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSpan {
    /// The text, cleaned and bounded.
    pub text: String,
    /// The digest of the text.
    pub digest: Digest,
    /// Until when the server says that it stays as it is; none if it does not say.
    pub expires_at: Option<Millis>,
}

/// Keeps the pins and the tokens of MCP servers.
pub trait McpStore: Send + Sync {
    /// The approved definitions of a server; empty if there are none.
    ///
    /// # Errors
    /// When the file cannot be read. Then no tool of the server may be used.
    fn pins(&self, server: &str) -> Result<McpPins, FileStoreError>;

    /// Replaces the approved definitions of a server. They are on the disk when this returns.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn set_pins(&self, server: &str, pins: &McpPins) -> Result<(), FileStoreError>;

    /// The tokens under this key, as they were kept; none if there are none.
    ///
    /// # Errors
    /// When the file cannot be read or decrypted.
    fn tokens(&self, key: &str) -> Result<Option<String>, FileStoreError>;

    /// Keeps tokens, encrypted; none removes them.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn set_tokens(&self, key: &str, tokens: Option<&str>) -> Result<(), FileStoreError>;
}
