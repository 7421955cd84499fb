//! Compares what a server sends with its pins.

use super::Server;
use crate::tools::{SentTools, first_pins, output_notes, resource_tools, server_tools};
use redflow_contract::mcp::McpPins;
use rmcp::model::ServerPeerInfo;
use std::sync::Arc;

impl Server {
    /// Compares what the server has sent with the pins. Pins what is new, if that is trusted.
    pub(crate) async fn apply(&self, sent: SentTools, info: Option<Arc<ServerPeerInfo>>) {
        let _one = self.pins.lock().await;
        let pins = self.read_pins().await;
        let pins = match pins {
            Ok(pins) => match first_pins(&self.definition, &pins, &sent, self.shared.now()) {
                Some(all) => self.write_pins(all).await,
                None => Ok(pins),
            },
            Err(reason) => Err(reason),
        };
        self.set_tools(sent, pins, info.as_deref());
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
        self.set_tools((*sent).clone(), Ok(pins), info.as_deref());
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

    fn set_tools(&self, sent: SentTools, pins: Result<McpPins, String>, info: Option<&ServerPeerInfo>) {
        let mut tools = server_tools(&self.definition, pins.as_ref().map_err(String::as_str), &sent);
        let has_resources = info.is_some_and(|info| info.capabilities.resources.is_some());
        if self.definition.server.resources == Some(true) && has_resources {
            for tool in resource_tools(&self.definition) {
                if tools.iter().all(|known| known.entry.id != tool.entry.id) {
                    tools.push(tool);
                }
            }
        }
        let mut notes = sent.notes.clone();
        notes.extend(output_notes(&sent));
        if let Err(reason) = &pins {
            notes.insert(0, reason.clone());
        }
        let mut status = self.status();
        if *status.tools != tools {
            status.generation = self.shared.next_generation();
            status.tools = Arc::new(tools);
        }
        status.sent = Arc::new(sent);
        status.pins = Arc::new(pins.unwrap_or_default());
        status.notes = notes;
        status.prompts.clear();
    }
}
