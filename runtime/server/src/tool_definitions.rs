//! Keeps the registry equal to the manifest and the registered tools on the disk.
//!
//! A manifest with problems changes nothing while the sidecar runs, so that no call escapes a policy. The same holds
//! for a manifest that somebody writes at this moment: it is read when it has rested.

use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::manifest::ManifestTool;
use redflow_contract::tool::{ToolEntry, provider_name};
use redflow_engine::Registry;
use redflow_flow::check_manifest;
use redflow_ports::{Adapters, FileStoreError, ManifestStamp, ManifestStore, McpServers, RegisteredTool};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the files are looked at. They are read when two looks see the same.
const INTERVAL: Duration = Duration::from_millis(250);

/// Problems that are logged one by one.
const MAX_LOGGED: usize = 20;

/// The provider of tools that were registered at run time.
pub(crate) const REGISTERED: &str = "registered";

pub(crate) struct ToolDefinitions {
    pub(crate) registry: Arc<Registry>,
    store: Arc<dyn ManifestStore>,
    adapters: Arc<Adapters>,
    env: fn(&str) -> Option<String>,
    /// Locked while the files are read or changed.
    state: Mutex<LoadState>,
    /// The problems of the files; empty if there are none. Apart from the state, because who shows them must not
    /// wait for the disk.
    problems: Mutex<Arc<[Diagnostic]>>,
    /// The ids of the tools that clients of the sidecar's own MCP server may call.
    mcp_callable: Mutex<Arc<HashSet<String>>>,
}

/// What was read last.
#[derive(Default)]
struct LoadState {
    stamp: ManifestStamp,
    /// The last manifest without problems.
    manifest: Value,
}

/// Why a tool was not registered. Then nothing was written.
#[derive(Debug)]
pub(crate) enum PutError {
    /// The manifest has these problems.
    Manifest(Vec<Diagnostic>),
    /// This tool has the id or the name.
    Conflict(Box<ToolEntry>),
    /// The file cannot be written.
    File(FileStoreError),
}

impl ToolDefinitions {
    pub(crate) fn new(
        store: Arc<dyn ManifestStore>,
        adapters: Arc<Adapters>,
        env: fn(&str) -> Option<String>,
        mcp: Option<Arc<dyn McpServers>>,
    ) -> Arc<Self> {
        let registry = Arc::new(mcp.map_or_else(Registry::default, Registry::with_mcp));
        let (state, problems, mcp_callable) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { registry, store, adapters, env, state, problems, mcp_callable })
    }

    /// Reads the files. Waits for the disk.
    ///
    /// # Errors
    /// Every problem of the manifest. Then the registry stays as it is.
    pub(crate) fn load(&self) -> Result<(), Vec<Diagnostic>> {
        let mut state = self.state();
        // Taken first: a file that changes meanwhile is read again.
        let stamp = self.store.stamp();
        self.load_manifest(&mut state, stamp, self.store.read())
    }

    fn load_manifest(
        &self,
        state: &mut LoadState,
        stamp: ManifestStamp,
        manifest: Result<Value, Vec<Diagnostic>>,
    ) -> Result<(), Vec<Diagnostic>> {
        state.stamp = stamp;
        self.define(manifest.clone())?;
        state.manifest = manifest?;
        Ok(())
    }

    /// Defines the tools of a manifest and the registered ones.
    fn define(&self, manifest: Result<Value, Vec<Diagnostic>>) -> Result<(), Vec<Diagnostic>> {
        let build = self.adapters.manifest_tool.as_ref();
        let registered = self.store.registered();
        let callable = mcp_callable(manifest.as_ref().ok(), &registered);
        let loaded = self.registry.load_values(manifest, registered, self.store.servers(), build, &self.env);
        if loaded.is_ok() {
            *self.mcp_callable.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(callable);
        }
        let problems = loaded.as_ref().unwrap_or_else(|problems| problems);
        for problem in problems.iter().take(MAX_LOGGED) {
            let (code, file) = (problem.code.as_str(), problem.file.as_deref().unwrap_or_default());
            let pointer = problem.pointer.as_deref().unwrap_or_default();
            tracing::error!(code, file, pointer, "a tool cannot be used: {}", problem.message);
        }
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems.clone().into();
        loaded.map(|_| ())
    }

    /// Connects to the MCP servers of the manifest, in the background.
    pub(crate) fn connect_servers(&self) {
        if let Some(mcp) = self.registry.mcp() {
            mcp.connect_all();
        }
    }

    /// The problems of the files, for people who look at the list of tools.
    pub(crate) fn problems(&self) -> Arc<[Diagnostic]> {
        Arc::clone(&self.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The ids of the tools that clients of the sidecar's own MCP server may call.
    pub(crate) fn mcp_callable(&self) -> Arc<HashSet<String>> {
        Arc::clone(&self.mcp_callable.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Registers a tool. It is on the disk and in the registry when this returns. Waits for the disk.
    pub(crate) fn put(&self, tool: &ManifestTool, value: &Value) -> Result<(), PutError> {
        let state = self.state();
        let checked = self.store.read().and_then(|manifest| check_manifest(&manifest));
        checked.map_err(PutError::Manifest)?;
        let entries = self.registry.snapshot().entries();
        if let Some(other) = entries.into_iter().find(|entry| conflicts(entry, &tool.id)) {
            return Err(PutError::Conflict(Box::new(other)));
        }
        self.store.put(&tool.id, value).map_err(PutError::File)?;
        self.define_registered(&state);
        Ok(())
    }

    /// Removes a registered tool. False if there is none with this id. Waits for the disk.
    pub(crate) fn remove(&self, id: &str) -> Result<bool, FileStoreError> {
        let state = self.state();
        let removed = self.store.remove(id)?;
        self.define_registered(&state);
        Ok(removed)
    }

    /// Reads only the registered tools again, because somebody may write the manifest at this moment.
    fn define_registered(&self, state: &LoadState) {
        let _ = self.define(Ok(state.manifest.clone()));
    }

    /// Reads the files whenever they have changed, until the task is aborted.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut last = None;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let own = Arc::clone(&self);
            let look = move || own.look(last.as_ref());
            last = tokio::task::spawn_blocking(look).await.ok();
        }
    }

    /// Reads the files if they have changed, and are as the last look has seen them. Gives what this look sees.
    fn look(&self, last: Option<&ManifestStamp>) -> ManifestStamp {
        let mut state = self.state();
        let stamp = self.store.stamp();
        if stamp == state.stamp || Some(&stamp) != last {
            return stamp;
        }
        let manifest = self.store.read();
        let after = self.store.stamp();
        if after == stamp && self.load_manifest(&mut state, stamp, manifest).is_ok() {
            let generation = self.registry.snapshot().generation();
            tracing::info!(generation, "the tools have changed");
            self.connect_servers();
        }
        after
    }

    fn state(&self) -> MutexGuard<'_, LoadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ids of the tools with `mcp: true`. A tool of the manifest replaces a registered one with the same id.
fn mcp_callable(manifest: Option<&Value>, registered: &[RegisteredTool]) -> HashSet<String> {
    let of_manifest = manifest.and_then(|manifest| manifest.get("tools")?.as_array());
    let registered = registered.iter().filter_map(|tool| tool.tool.as_ref().ok());
    let mut ids = HashSet::new();
    for tool in registered.chain(of_manifest.into_iter().flatten()) {
        let Some(id) = tool.get("id").and_then(Value::as_str) else { continue };
        if tool.get("mcp") == Some(&Value::Bool(true)) {
            ids.insert(id.to_owned());
        } else {
            ids.remove(id);
        }
    }
    ids
}

/// Whether a tool keeps another one with this id from being registered. Models do not tell cases apart.
fn conflicts(entry: &ToolEntry, id: &str) -> bool {
    let replaces = entry.provider == REGISTERED && entry.id == id;
    !replaces && entry.name.eq_ignore_ascii_case(&provider_name(id))
}

#[cfg(test)]
#[path = "tool_definitions_tests.rs"]
mod tests;
