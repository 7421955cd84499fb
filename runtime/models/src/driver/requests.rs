//! The requests of one call: what the next one asks for, after what the provider has refused.

use super::{CallOptions, Target};
use crate::call_error::CallError;
use crate::refusals::thoughts::without_thoughts;
use crate::refusals::{
    Change, Interface, MAX_CHANGES_OF_CALL, RefusedRequest, apply, find_change, is_lasting, read_limit,
    shown_field,
};
use crate::wire::{AnswerFormat, ChatRequest, ProviderError};
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
    /// The changes that this call has made, and whether later calls need them too.
    new: Vec<(Change, bool)>,
    /// How many requests this call has changed.
    changed: u32,
    /// The interface that this call has left, and why.
    left: Option<(&'a Target, ProviderError)>,
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
            changed: 0,
            left: None,
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
        if self.changed >= MAX_CHANGES_OF_CALL || error.is_final() {
            return false;
        }
        let own = self.target;
        let found = self.find(refusal).or_else(|| self.return_to_first(error));
        let Some((change, is_lasting)) = found else { return false };
        match change {
            Change::NoThoughts => self.refused_thoughts = Some(error.clone()),
            // The server may have failed by itself, for a moment.
            Change::WeakerFormat if !error.is_internal() => self.refused_formats.push(self.chat.format),
            Change::Interface(_) => self.left = Some((own, refusal.clone())),
            _ => {}
        }
        self.changed += 1;
        self.new.push((change.clone(), is_lasting));
        self.make(change);
        true
    }

    /// The change that an error asks for, and whether later calls need it too.
    fn find(&self, refusal: &ProviderError) -> Option<(Change, bool)> {
        let body = String::from_utf8(self.encode().ok()?).ok()?;
        let chat = self.chat();
        let wire = &*self.target.wire;
        let thoughts = chat.messages.iter().filter_map(|message| message.reasoning.as_ref());
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
                && thoughts.into_iter().any(|thought| wire.takes_parts_of(&thought.wire)),
        };
        let change = find_change(refusal, &request)?;
        let is_lasting = is_lasting(&change, refusal, &body);
        Some((change, is_lasting))
    }

    /// Goes back to the first interface if the server does not have the other one after all. What the server said of the
    /// first one may name another change. None if it does not.
    fn return_to_first(&mut self, error: &CallError) -> Option<(Change, bool)> {
        if !error.is_not_found() {
            return None;
        }
        let (first, said) = self.left.take()?;
        let other = std::mem::replace(&mut self.target, first);
        self.options.other_interface = None;
        let found = self.find(&said);
        match found {
            Some(_) => self.new.retain(|(change, _)| !matches!(change, Change::Interface(_))),
            None => self.target = other,
        }
        found
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
                let wire = &*self.target.wire;
                let messages = self.messages.as_deref().unwrap_or(self.chat.messages);
                self.messages = without_thoughts(messages, |thought| wire.takes_parts_of(&thought.wire));
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
        // A limit that the provider has named is the highest one.
        let is_at_most = self.changes.iter().any(|change| matches!(change, Change::Limit(_)));
        let is_last = self.is_raised || self.changed >= MAX_CHANGES_OF_CALL;
        if !is_cut_off || is_last || is_at_most || self.options.has_own_limit {
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
        self.changed += 1;
        self.used = answer.usage.map(|usage| self.priced(usage));
        self.changes.push(Change::Limit(raised));
        true
    }

    /// The usage of one request with its cost, as far as that is known.
    fn priced(&self, usage: Usage) -> Usage {
        let cost = self.options.cost.and_then(|cost| cost(&usage));
        Usage { cost: cost.or(usage.cost), ..usage }
    }

    /// The answer of the call, with what all its requests have used. What was refused is remembered.
    pub(super) fn finish(self, mut answer: ModelAnswer) -> ModelAnswer {
        answer.usage = answer.usage.map(|usage| self.priced(usage));
        if let Some(used) = self.used {
            answer.usage = Some(answer.usage.map_or(used, |usage| usage.plus(&used)));
        }
        if self.new.is_empty() {
            return answer;
        }
        if let Some(memory) = self.options.refused_formats {
            self.refused_formats.into_iter().for_each(|format| memory.add(format));
        }
        for (change, is_lasting) in self.new {
            let field = shown_field(&change);
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
                        memory.add_all(self.chat.messages, |wire| self.target.wire.takes_parts_of(wire));
                    }
                }
                // Each schema is remembered by itself.
                Change::WeakerFormat => {}
                change => {
                    if let Some(learnt) = self.options.learnt.filter(|_| is_lasting) {
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
