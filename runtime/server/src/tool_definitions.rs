//! Keeps the registry equal to the manifest and the registered tools on the disk.
//!
//! A manifest with problems changes nothing while the sidecar runs, so that no call escapes a policy.

use redflow_contract::diagnostic::Diagnostic;
use redflow_engine::Registry;
use redflow_ports::{Adapters, FileStoreError, ManifestStamp, ManifestStore};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_millis(500);

/// Problems that are logged one by one.
const MAX_LOGGED: usize = 20;

pub(crate) struct ToolDefinitions {
    pub(crate) registry: Arc<Registry>,
    store: Arc<dyn ManifestStore>,
    adapters: Arc<Adapters>,
    env: fn(&str) -> Option<String>,
    /// Locked while the files are read or changed.
    state: Mutex<LoadState>,
}

/// What was read last.
#[derive(Default)]
struct LoadState {
    stamp: ManifestStamp,
    /// The problems of the files; empty if there are none.
    problems: Arc<[Diagnostic]>,
}

impl ToolDefinitions {
    pub(crate) fn new(
        store: Arc<dyn ManifestStore>,
        adapters: Arc<Adapters>,
        env: fn(&str) -> Option<String>,
    ) -> Arc<Self> {
        let (registry, state) = (Arc::default(), Mutex::default());
        Arc::new(Self { registry, store, adapters, env, state })
    }

    /// Reads the files. Waits for the disk.
    ///
    /// # Errors
    /// Every problem of the manifest. Then the registry stays as it is.
    pub(crate) fn load(&self) -> Result<(), Vec<Diagnostic>> {
        self.load_locked(&mut self.state())
    }

    fn load_locked(&self, state: &mut LoadState) -> Result<(), Vec<Diagnostic>> {
        // Taken first: a file that changes meanwhile is read again.
        state.stamp = self.store.stamp();
        let loaded = self.registry.load(&*self.store, self.adapters.manifest_tool.as_ref(), &self.env);
        let problems = loaded.as_ref().unwrap_or_else(|problems| problems);
        for problem in problems.iter().take(MAX_LOGGED) {
            let (code, file) = (problem.code.as_str(), problem.file.as_deref().unwrap_or_default());
            let pointer = problem.pointer.as_deref().unwrap_or_default();
            tracing::error!(code, file, pointer, "a tool cannot be used: {}", problem.message);
        }
        state.problems = problems.clone().into();
        loaded.map(|_| ())
    }

    /// The problems of the files, for people who look at the list of tools.
    pub(crate) fn problems(&self) -> Arc<[Diagnostic]> {
        Arc::clone(&self.state().problems)
    }

    /// Registers a tool. It is on the disk and in the registry when this returns. Waits for the disk.
    pub(crate) fn put(&self, id: &str, tool: &Value) -> Result<(), FileStoreError> {
        let mut state = self.state();
        self.store.put(id, tool)?;
        let _ = self.load_locked(&mut state);
        Ok(())
    }

    /// Removes a registered tool. False if there is none with this id. Waits for the disk.
    pub(crate) fn remove(&self, id: &str) -> Result<bool, FileStoreError> {
        let mut state = self.state();
        let removed = self.store.remove(id)?;
        let _ = self.load_locked(&mut state);
        Ok(removed)
    }

    /// Reads the files whenever they have changed, until the task is aborted.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let own = Arc::clone(&self);
            let look = move || {
                let mut state = own.state();
                if own.store.stamp() != state.stamp && own.load_locked(&mut state).is_ok() {
                    let generation = own.registry.snapshot().generation();
                    tracing::info!(generation, "the tools have changed");
                }
            };
            let _ = tokio::task::spawn_blocking(look).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, LoadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
