//! The requests of one call: what the next one asks for, after what the provider has refused.

use super::{CallOptions, Target};
use crate::call_error::CallError;
use crate::refusals::thoughts::without_thoughts;
use crate::refusals::{
    Change, Interface, MAX_CHANGES_OF_CALL, RefusedRequest, apply, find_change, read_limit,
};
use crate::wire::{AnswerFormat, ChatRequest};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::ChatMessage;
use redflow_ports::ToolChoice;
use std::sync::Arc;

/// The state of a call between its requests.
pub(super) struct Requests<'a> {
    target: &'a Target,
    chat: ChatRequest<'a>,
    options: CallOptions<'a>,
    /// The conversation without refused thoughts; none if it is whole.
    messages: Option<Vec<Arc<ChatMessage>>>,
    /// How many of the weaker formats were asked for.
    weaker: usize,
    /// The formats that the provider has refused.
    refused_formats: Vec<AnswerFormat<'a>>,
    /// The error of a request with thoughts, which says more than that of one without.
    refused_thoughts: Option<CallError>,
    /// The changes of the encoded request, also those of earlier calls.
    changes: Vec<Change>,
    /// The changes that this call has made.
    new: Vec<Change>,
    /// What the answers that were cut off have used.
    used: Option<Usage>,
    is_raised: bool,
}

impl<'a> Requests<'a> {
    pub(super) fn new(target: &'a Target, chat: &ChatRequest<'a>, options: CallOptions<'a>) -> Self {
        let changes = options.learnt.map(|learnt| learnt.get().to_vec()).unwrap_or_default();
        let mut requests = Self {
            target,
            chat: *chat,
            options,
            messages: None,
            weaker: 0,
            refused_formats: Vec::new(),
            refused_thoughts: None,
            changes: Vec::new(),
            new: Vec::new(),
            used: None,
            is_raised: false,
        };
        changes.into_iter().for_each(|change| requests.make(change));
        let known = options.refused_thoughts.filter(|_| chat.reasoning.is_kept());
        requests.messages = known.and_then(|memory| memory.remove_from(chat.messages));
        requests
    }

    /// Where the next request goes.
    pub(super) fn target(&self) -> &'a Target {
        self.target
    }

    /// The next request.
    pub(super) fn chat(&self) -> ChatRequest<'_> {
        ChatRequest { messages: self.messages.as_deref().unwrap_or(self.chat.messages), ..self.chat }
    }

    /// The body of the next request.
    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let chat = self.chat();
        let mut body = Vec::with_capacity(super::estimated_bytes(&chat));
        self.target.wire.encode(&chat, &mut body)?;
        Ok(apply(&self.changes, body))
    }

    /// Changes the next request if the provider refuses something of this one. Returns whether it does.
    pub(super) fn change_after(&mut self, error: &CallError) -> bool {
        let CallError::Provider(refusal, _) = error else { return false };
        if self.new.len() >= usize::try_from(MAX_CHANGES_OF_CALL).unwrap_or(usize::MAX) || error.is_final() {
            return false;
        }
        let Ok(body) = self.encode().map(|body| String::from_utf8(body).unwrap_or_default()) else {
            return false;
        };
        let chat = self.chat();
        let wire = self.target.wire.name();
        let request = RefusedRequest {
            body: &body,
            chat: &chat,
            interface: self
                .target
                .interface
                .map(|interface| (interface, self.other_interface(interface).is_some())),
            has_own_limit: self.options.has_own_limit,
            requires_stream: self.options.requires_stream,
            has_weaker_format: self.weaker < self.options.weaker_formats.len(),
            has_thoughts: chat.reasoning.is_kept()
                && chat
                    .messages
                    .iter()
                    .any(|message| message.reasoning.as_ref().is_some_and(|thought| thought.wire == wire)),
        };
        let Some(change) = find_change(refusal, &request) else { return false };
        match change {
            Change::NoThoughts => self.refused_thoughts = Some(error.clone()),
            // The server may have failed by itself, for a moment.
            Change::WeakerFormat if !error.is_internal() => self.refused_formats.push(self.chat.format),
            _ => {}
        }
        self.new.push(change.clone());
        self.make(change);
        true
    }

    /// Makes a change for the next request.
    fn make(&mut self, change: Change) {
        match change {
            Change::Interface(interface) => {
                if let Some(other) = self.target.interface.and_then(|own| self.other_interface(own))
                    && self.target.interface != Some(interface)
                {
                    self.target = other;
                }
            }
            Change::FreeChoice => {
                if self.chat.tool_choice == ToolChoice::Required {
                    self.chat.tool_choice = ToolChoice::Auto;
                }
            }
            Change::NoStream => self.chat.stream &= self.options.requires_stream,
            Change::WeakerFormat => {
                if let Some(format) = self.options.weaker_formats.get(self.weaker) {
                    self.chat.format = *format;
                    self.weaker += 1;
                }
            }
            Change::NoThoughts => {
                let wire = self.target.wire.name();
                let messages = self.messages.as_deref().unwrap_or(self.chat.messages);
                self.messages = without_thoughts(messages, |thought| thought.wire == wire);
            }
            change => {
                self.changes.retain(|earlier| !change.replaces(earlier));
                self.changes.push(change);
            }
        }
    }

    fn other_interface(&self, own: Interface) -> Option<&'a Target> {
        let other = self.options.other_interface?;
        (other.interface.is_some_and(|interface| interface != own)).then_some(other)
    }

    /// Asks once more, with twice the room, after an answer without text that was cut off by a limit that the node
    /// does not set. Reasoning counts as output, and can use up all of it.
    pub(super) fn raise_limit(&mut self, answer: &ModelAnswer) -> bool {
        let is_cut_off = answer.finish == ModelFinish::Truncated
            && answer.text.trim().is_empty()
            && answer.tool_calls.is_empty();
        if !is_cut_off || self.is_raised || self.options.has_own_limit {
            return false;
        }
        let Some(sent) = self.encode().ok().and_then(|body| read_limit(&String::from_utf8(body).ok()?))
        else {
            return false;
        };
        let most = self.options.max_output.unwrap_or(u32::MAX);
        let raised = sent.saturating_mul(2).min(most);
        if raised <= sent {
            return false;
        }
        self.is_raised = true;
        self.used = answer.usage;
        self.changes.push(Change::Limit(raised));
        true
    }

    /// The answer of the call, with what all its requests have used. What was refused is remembered.
    pub(super) fn finish(self, mut answer: ModelAnswer) -> ModelAnswer {
        if let Some(used) = self.used {
            answer.usage = Some(answer.usage.map_or(used, |usage| usage.plus(&used)));
        }
        if self.new.is_empty() {
            return answer;
        }
        if let Some(memory) = self.options.refused_formats {
            self.refused_formats.into_iter().for_each(|format| memory.add(format));
        }
        for change in self.new {
            let field = change.field().into_owned();
            tracing::info!(
                provider = self.target.provider,
                model = self.target.model.as_str(),
                field,
                "the provider refused this field, so the call was made once more without it"
            );
            if !answer.refused.contains(&field) {
                answer.refused.push(field);
            }
            match change {
                Change::NoThoughts => {
                    if let Some(memory) = self.options.refused_thoughts {
                        memory.add_all(self.chat.messages, self.target.wire.name());
                    }
                }
                // Each schema is remembered by itself.
                Change::WeakerFormat => {}
                change => {
                    if let Some(learnt) = self.options.learnt {
                        learnt.add(&change);
                    }
                }
            }
        }
        answer
    }

    /// The error of the call: the last one, unless that is a consequence of missing thoughts.
    pub(super) fn final_error(&mut self, last: CallError) -> CallError {
        // A request without thoughts can be refused because it has none. The first error says more.
        match self.refused_thoughts.take().filter(|_| last.is_bad_request()) {
            Some(first) => first,
            None => last,
        }
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
