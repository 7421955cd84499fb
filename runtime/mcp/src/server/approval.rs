//! Compares what a server sends with its pins.

use super::{Server, ServerTool, ServerToolKind};
use crate::text::shown_name;
use crate::tools::{PinView, SentTools, first_pins, output_notes, resource_tools, server_tools};
use redflow_contract::mcp::McpPins;
use redflow_contract::tool::ToolState;
use rmcp::model::ServerPeerInfo;
use std::collections::HashSet;
use std::sync::Arc;

impl Server {
    /// Compares what the server has sent with the pins. Pins what is new, if that is trusted.
    pub(crate) async fn apply(&self, sent: SentTools, info: Option<Arc<ServerPeerInfo>>) {
        let _one = self.pins.lock().await;
        let (pins, problem) = match self.read_pins().await {
            Ok(pins) => match first_pins(&self.definition, &pins, &sent, self.shared.now()) {
                // Without its pin a new tool would count as new each time. The others have theirs.
                Some(all) => match self.write_pins(all).await {
                    Ok(all) => (Some(all), None),
                    Err(reason) => (Some(pins), Some(reason)),
                },
                None => (Some(pins), None),
            },
            Err(reason) => (None, Some(reason)),
        };
        self.set_tools(sent, pins, problem, info.as_deref());
    }

    /// Reads the pins again, which another server with the same ones has changed.
    pub(crate) async fn compare_again(&self) {
        let _one = self.pins.lock().await;
        let Ok(pins) = self.read_pins().await else { return };
        let (sent, info) = {
            let status = self.status();
            (Arc::clone(&status.sent), status.info.clone())
        };
        self.set_tools((*sent).clone(), Some(pins), None, info.as_deref());
    }

    /// Replaces the pins with `change`, and compares the tools again.
    ///
    /// # Errors
    /// Why the pins cannot be changed, or the error of `change`.
    pub(crate) async fn change_pins<E: From<String>>(
        &self,
        change: impl FnOnce(&mut McpPins, &SentTools) -> Result<(), E>,
    ) -> Result<(), E> {
        let _one = self.pins.lock().await;
        let mut pins = self.read_pins().await.map_err(E::from)?;
        let sent = Arc::clone(&self.status().sent);
        change(&mut pins, &sent)?;
        let pins = self.write_pins(pins).await.map_err(E::from)?;
        let info = self.status().info.clone();
        self.set_tools((*sent).clone(), Some(pins), None, info.as_deref());
        Ok(())
    }

    async fn read_pins(&self) -> Result<McpPins, String> {
        let (store, key) = (Arc::clone(&self.shared.settings.store), self.definition.key.clone());
        let read = tokio::task::spawn_blocking(move || store.pins(&key)).await;
        match read {
            Ok(Ok(pins)) => Ok(pins),
            Ok(Err(error)) => Err(format!("The pins of the server cannot be read: {}", error.message)),
            Err(_) => Err("The pins of the server cannot be read.".to_owned()),
        }
    }

    async fn write_pins(&self, pins: McpPins) -> Result<McpPins, String> {
        let (store, key) = (Arc::clone(&self.shared.settings.store), self.definition.key.clone());
        let written = tokio::task::spawn_blocking(move || store.set_pins(&key, &pins).map(|()| pins)).await;
        match written {
            Ok(Ok(pins)) => Ok(pins),
            Ok(Err(error)) => Err(format!("The pins of the server cannot be written: {}", error.message)),
            Err(_) => Err("The pins of the server cannot be written.".to_owned()),
        }
    }

    /// `problem` says why the pins cannot be read, or why those of new tools cannot be written.
    fn set_tools(
        &self,
        sent: SentTools,
        pins: Option<McpPins>,
        problem: Option<String>,
        info: Option<&ServerPeerInfo>,
    ) {
        let has_resources = info.is_some_and(|info| info.capabilities.resources.is_some());
        let wants_resources = self.definition.server.resources == Some(true) && has_resources;
        {
            // Schemas are checked once: a server may say each second that its lists have changed.
            let mut status = self.status();
            let has_tools = status.tools.iter().any(|tool| tool.kind == ServerToolKind::ReadResource);
            if status.is_compared
                && problem.is_none()
                && *status.sent == sent
                && pins.as_ref() == Some(&*status.pins)
                && wants_resources == has_tools
            {
                status.prompts.clear();
                return;
            }
        }
        self.warn_of_cut(&sent);
        let view = PinView { pins: pins.as_ref(), problem: problem.as_deref() };
        let mut tools = server_tools(&self.definition, view, &sent);
        if wants_resources {
            for tool in resource_tools(&self.definition) {
                if tools.iter().all(|known| known.entry.id != tool.entry.id) {
                    tools.push(tool);
                }
            }
        }
        let mut notes = sent.notes.clone();
        notes.extend(output_notes(&sent));
        let is_compared = problem.is_none();
        notes.splice(0..0, problem);
        let mut status = self.status();
        if *status.tools != tools {
            let changed = newly_changed(&status.tools, &tools);
            if !changed.is_empty() {
                self.warnings.warn_changed(&changed);
            }
            status.generation = self.shared.next_generation();
            status.tools = Arc::new(tools);
        }
        status.is_compared = is_compared;
        status.sent = Arc::new(sent);
        status.pins = Arc::new(pins.unwrap_or_default());
        status.notes = notes;
        status.prompts.clear();
    }

    /// Warns when a list that was short enough becomes too long.
    fn warn_of_cut(&self, sent: &SentTools) {
        if sent.is_cut && !self.status().sent.is_cut {
            self.warnings.warn_cut(sent.seen);
        }
    }
}

/// The names of tools whose definitions have become others than the approved ones, cleaned.
fn newly_changed(before: &[ServerTool], now: &[ServerTool]) -> Vec<String> {
    let is_changed = |tool: &&ServerTool| tool.entry.state == ToolState::Changed;
    let known: HashSet<&str> = before.iter().filter(is_changed).map(|tool| tool.name.as_str()).collect();
    let new = now.iter().filter(is_changed).filter(|tool| !known.contains(tool.name.as_str()));
    new.map(|tool| shown_name(&tool.name)).collect()
}
