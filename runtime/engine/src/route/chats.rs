//! Shows messages in the windows of chat nodes.

use crate::flow::{BuiltFlow, BuiltNode};
use crate::origin::Origin;
use crate::state::EngineState;
use redflow_contract::Message;
use redflow_contract::chat::{CHAT_SENT, ChatItem};
use redflow_contract::edge::PortKind;
use redflow_contract::event::FlowEvent;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::run_error::Failure;
use redflow_flow::NodeIx;
use redflow_ports::StepOutcome;
use serde_json::Value;
use std::sync::Arc;

impl EngineState {
    /// Shows an item in a chat; the number is how many items the chat keeps.
    pub(super) fn show_in_chat(&self, flow: &BuiltFlow, ix: NodeIx, item: Option<(ChatItem, u32)>) {
        if let Some((item, keeps)) = item {
            let node = flow.flow.summary(ix);
            self.ports.events.flow_event(&FlowEvent::Chat { node, item, keeps });
        }
    }

    /// Shows a result in the chat that started the run, and in the chats behind the stream port, which show no
    /// pieces. A chat that gets the message by a wire shows it anyway; but the wire back may be missing.
    pub(super) fn answer_chat(
        &self,
        flow: &BuiltFlow,
        agent: NodeIx,
        message: &Arc<FlowMessage>,
        origin: &Origin,
    ) {
        let chats_behind = |kind| {
            let port = flow.output_port(agent, kind);
            port.map(|port| flow.chats_behind(agent, port)).unwrap_or_default()
        };
        let asked = origin.cascade.chat().and_then(|chat| flow.flow.find(chat.as_str()));
        let streamed = chats_behind(PortKind::Stream);
        if asked.is_none() && streamed.is_empty() {
            return;
        }
        // When the cascade is cut, no wire brings the message there.
        let is_wired = |chat, kind| !origin.cascade.is_cut() && chats_behind(kind).contains(&chat);
        if let Some(chat) = asked
            && !is_wired(chat, PortKind::ModelResponse)
            && flow.reaches_agent(chat, agent)
        {
            self.show_message(flow, chat, message);
        }
        for chat in streamed {
            if asked != Some(chat) && !is_wired(chat, PortKind::Result) {
                self.show_message(flow, chat, message);
            }
        }
    }

    /// Shows the end of a run without an answer in the chats behind port 4, where a person waits for it. It
    /// does so at once, so that an observer of the run's end finds the text in the chat.
    pub(super) fn show_end_in_chats(
        &self,
        flow: &BuiltFlow,
        agent: NodeIx,
        message: &Arc<FlowMessage>,
        error: Option<&Failure>,
        origin: &Origin,
    ) {
        self.answer_chat(flow, agent, message, origin);
        let Some(port) = flow.output_port(agent, PortKind::ModelResponse) else { return };
        let chats = flow.chats_behind(agent, port);
        for chat in &chats {
            self.show_message(flow, *chat, message);
        }
        let observer = &origin.cascade.observer;
        if !chats.is_empty() {
            observer.agent_sent(flow, (agent, port), message, error, true);
        }
        for chat in chats {
            observer.node_received(flow, chat, message);
            observer.node_done(flow, chat, StepOutcome::Completed);
        }
    }

    /// Whether a chat behind a port shows a message.
    pub(super) fn is_shown_in_chat(
        &self,
        flow: &BuiltFlow,
        from: NodeIx,
        port: usize,
        message: &Arc<FlowMessage>,
    ) -> bool {
        flow.chats_behind(from, port).into_iter().any(|chat| self.chat_item(flow, chat, message).is_some())
    }

    /// Shows what a chat node makes of a message, without sending it on.
    fn show_message(&self, flow: &BuiltFlow, chat: NodeIx, message: &Arc<FlowMessage>) {
        self.show_in_chat(flow, chat, self.chat_item(flow, chat, message));
    }

    /// What a chat node makes of a message.
    fn chat_item(
        &self,
        flow: &BuiltFlow,
        chat: NodeIx,
        message: &Arc<FlowMessage>,
    ) -> Option<(ChatItem, u32)> {
        match &flow.nodes[chat] {
            BuiltNode::Native(node) => self.call_native(flow, chat, &**node, message, None).chat,
            _ => None,
        }
    }
}

/// The properties of a message that a person sends in a chat.
pub(super) fn chat_message(item: &ChatItem) -> Message {
    let mut message = Message::new();
    message.insert("payload".to_owned(), Value::from(item.content.clone()));
    message.insert("chatEvent".to_owned(), Value::from(CHAT_SENT));
    message.insert("chatMessage".to_owned(), serde_json::to_value(item).unwrap_or_default());
    message
}
