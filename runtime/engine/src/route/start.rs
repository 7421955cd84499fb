//! Makes the first message of a cascade.

use super::chats::chat_message;
use crate::flow::BuiltNode;
use crate::origin::Origin;
use crate::start::Start;
use crate::state::EngineState;
use redflow_contract::Message;
use serde_json::Value;
use std::sync::Arc;

impl EngineState {
    pub(crate) fn start(&mut self, start: Start, origin: &Origin) {
        let Some(flow) = self.flow.clone() else { return };
        let id = Value::from(self.ports.clock.message_id());
        let mut message: Message = [("_msgid".to_owned(), id)].into_iter().collect();
        let is_chat = matches!(start, Start::Chat { .. });
        let (node, other_payload) = match start {
            Start::Inject { node, payload } => (node, payload),
            Start::Agent { node, payload } => {
                message.insert("payload".to_owned(), payload);
                (node, None)
            }
            Start::Message { node, message: whole } => {
                message.extend(whole);
                (node, None)
            }
            Start::Chat { node, item, images } => {
                origin.cascade.set_chat(flow.flow.nodes[node].id.clone());
                message.extend(chat_message(&item));
                if !images.is_empty() {
                    message.insert("images".to_owned(), images.into());
                }
                (node, None)
            }
        };
        let Some(built) = flow.nodes.get(node) else { return };
        origin.cascade.observer.node_started(&flow, node);
        match built {
            BuiltNode::Native(native) if other_payload.is_some() || is_chat => {
                self.run_native(
                    &flow,
                    node,
                    &**native,
                    &Arc::new(message.into()),
                    other_payload.as_ref(),
                    origin,
                );
            }
            _ => drop(self.enqueue(&flow, node, Arc::new(message.into()), origin, None)),
        }
    }
}
