//! What is said in the windows of chat nodes: what starts there, and how a run that ends is heard of there.

use crate::build::{BuiltFlow, BuiltNode};
use crate::engine::Loop;
use crate::trail::Trail;
use crate::walk::port_of;
use redflow_contract::Message;
use redflow_contract::chat::{CHAT_SENT, ChatItem};
use redflow_contract::edge::PortKind;
use redflow_contract::event::FlowEvent;
use redflow_contract::run_error::Failure;
use redflow_flow::NodeIx;
use redflow_ports::StepOutcome;
use serde_json::Value;
use std::sync::Arc;

impl Loop {
    /// Something is said in the window of a chat node.
    pub(crate) fn say(&self, flow: &BuiltFlow, ix: NodeIx, says: Option<(ChatItem, u32)>) {
        if let Some((item, keeps)) = says {
            let node = flow.flow.summary(ix);
            self.ports.events.flow_event(&FlowEvent::Chat { node, item, keeps });
        }
    }

    /// The chat that a run was started from gets its result, if nothing else brings it there: its wire back may be
    /// missing.
    pub(crate) fn answer_chat(&self, flow: &BuiltFlow, agent: NodeIx, message: &Arc<Message>, trail: &Trail) {
        let Some(chat) = trail.chain.chat().and_then(|chat| flow.flow.find(chat.as_str())) else { return };
        let port = port_of(flow, agent, PortKind::ModelResponse);
        // Nothing gets there any more when too much has been sent already.
        let is_behind =
            !trail.chain.is_cut() && port.is_some_and(|port| flow.chats_behind(agent, port).contains(&chat));
        if let BuiltNode::Native(node) = &flow.nodes[chat]
            && !is_behind
            && flow.leads_to(chat, agent)
        {
            self.say(flow, chat, self.ask_node(flow, chat, &**node, message, None).says);
        }
    }

    /// A run that ends without an answer says so in the chats its answers go to: who asked there waits for a word.
    /// At once, so that it can be read there by whoever sees the run end.
    pub(crate) fn tell_chats(
        &self,
        flow: &BuiltFlow,
        agent: NodeIx,
        message: &Arc<Message>,
        error: Option<&Failure>,
        trail: &Trail,
    ) {
        self.answer_chat(flow, agent, message, trail);
        let Some(port) = port_of(flow, agent, PortKind::ModelResponse) else { return };
        let chats = flow.chats_behind(agent, port);
        for chat in &chats {
            if let BuiltNode::Native(node) = &flow.nodes[*chat] {
                self.say(flow, *chat, self.ask_node(flow, *chat, &**node, message, None).says);
            }
        }
        if !chats.is_empty() {
            Self::saw_sent(flow, agent, port, message, error, &trail.chain);
        }
        for chat in chats {
            Self::saw_received(flow, chat, message, &trail.chain);
            Self::saw_done(flow, chat, StepOutcome::Completed, &trail.chain);
        }
    }
}

/// What a chat node is given to say.
pub(crate) fn said(item: &ChatItem) -> Message {
    let mut message = Message::new();
    message.insert("payload".to_owned(), Value::from(item.content.clone()));
    message.insert("chatEvent".to_owned(), Value::from(CHAT_SENT));
    message.insert("chatMessage".to_owned(), serde_json::to_value(item).unwrap_or_default());
    message
}
