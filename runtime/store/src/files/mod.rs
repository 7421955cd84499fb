//! Files other than the database: the flow, its credentials, the manifest of tools, the pins and tokens of MCP servers,
//! the UI storage, Node-RED's credentials file, keys.

mod credentials;
pub(crate) mod definition_folder;
pub(crate) mod flow_file;
pub(crate) mod key_file;
pub(crate) mod manifest_files;
pub(crate) mod manifest_text;
pub(crate) mod mcp_files;
pub(crate) mod node_red_file;
mod sealed_file;
pub(crate) mod ui_storage;
pub(crate) mod whole_file;
mod yaml;
