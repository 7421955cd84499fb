//! The manifest of tools, the registered tools and the added MCP servers, as files of a data directory.

use super::definition_folder::{
    DefinitionFolder, DefinitionKind, file_state, name_file, read_file, unreadable,
};
use super::manifest_text::{MAX_MANIFEST_BYTES, ManifestFormat, parse_manifest, problem};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::manifest::MAX_MANIFEST_TOOLS;
use redflow_contract::mcp::{MAX_MCP_SERVERS, is_mcp_name};
use redflow_contract::tool::is_tool_id;
use redflow_ports::{FileStoreError, ManifestStamp, ManifestStore, RegisteredServer, RegisteredTool};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The names that a manifest may have.
const NAMES: [&str; 2] = ["tools.yaml", "tools.json"];

const TOOLS: DefinitionKind = DefinitionKind {
    folder: "tools.d",
    name: "id of a tool",
    plural: "registered tools",
    is_name: is_tool_id,
    most: MAX_MANIFEST_TOOLS,
};

const SERVERS: DefinitionKind = DefinitionKind {
    folder: "mcp.d",
    name: "name of an MCP server",
    plural: "added MCP servers",
    is_name: is_mcp_name,
    most: MAX_MCP_SERVERS,
};

/// `tools.yaml` or `tools.json`, `tools.d/` and `mcp.d/`, in a data directory.
#[derive(Debug)]
pub struct ManifestFiles {
    data: PathBuf,
    tools: DefinitionFolder,
    servers: DefinitionFolder,
}

impl ManifestFiles {
    /// The files in this data directory. Reads and creates nothing yet.
    #[must_use]
    pub fn new(data_dir: PathBuf) -> Self {
        let tools = DefinitionFolder::new(&data_dir, &TOOLS);
        let servers = DefinitionFolder::new(&data_dir, &SERVERS);
        Self { data: data_dir, tools, servers }
    }
}

impl ManifestStore for ManifestFiles {
    fn stamp(&self) -> ManifestStamp {
        let mut stamp = String::new();
        for name in NAMES.into_iter().chain([TOOLS.folder, SERVERS.folder]) {
            if let Some(state) = file_state(&self.data.join(name)) {
                let _ = write!(stamp, "{name} {state};");
            }
        }
        let _ = write!(stamp, "{} {}", self.tools.stamp(), self.servers.stamp());
        ManifestStamp(stamp)
    }

    fn read(&self) -> Result<Value, Vec<Diagnostic>> {
        let [yaml, json] = NAMES.map(|name| self.data.join(name));
        let path = match (is_there(&yaml)?, is_there(&json)?) {
            (true, true) => {
                let message = "`tools.yaml` and `tools.json` are both in the data directory".to_owned();
                return Err(vec![problem(message, "Keep one of them, and remove the other.")]);
            }
            (true, false) => yaml,
            (false, _) => json,
        };
        let text = read_file(&path, MAX_MANIFEST_BYTES)?;
        parse_manifest(&text.unwrap_or_default(), ManifestFormat::of(&path))
            .map_err(|problems| name_file(&path, problems))
    }

    fn registered(&self) -> Vec<RegisteredTool> {
        let checked = |id: &str, tool: Value| {
            if tool.get("id").and_then(Value::as_str) == Some(id) {
                return Ok(tool);
            }
            let message = "the tool has another id than its file".to_owned();
            Err(self.tools.named(id, vec![problem(message, "Register the tool again, and remove the file.")]))
        };
        let each = |(id, tool): (String, Result<Value, Vec<Diagnostic>>)| {
            let tool = tool.and_then(|tool| checked(&id, tool));
            RegisteredTool { id, tool }
        };
        self.tools.read().into_iter().map(each).collect()
    }

    fn servers(&self) -> Vec<RegisteredServer> {
        self.servers.read().into_iter().map(|(name, server)| RegisteredServer { name, server }).collect()
    }

    fn put_server(&self, name: &str, server: &Value) -> Result<(), FileStoreError> {
        self.servers.put(name, server)
    }

    fn remove_server(&self, name: &str) -> Result<bool, FileStoreError> {
        self.servers.remove(name)
    }

    fn put(&self, id: &str, tool: &Value) -> Result<(), FileStoreError> {
        self.tools.put(id, tool)
    }

    fn remove(&self, id: &str) -> Result<bool, FileStoreError> {
        self.tools.remove(id)
    }
}

/// Whether a file is there. If that cannot be seen it is a problem, so that no policy is lost.
fn is_there(path: &Path) -> Result<bool, Vec<Diagnostic>> {
    path.try_exists().map_err(|error| name_file(path, vec![unreadable(&error)]))
}
