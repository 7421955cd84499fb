//! Thoughts that are valid only after an unchanged conversation.
//!
//! A provider can bind a thought to the system prompt, the list of tools and all messages before it. If an agent has
//! changed one of them since, by a summary for example, the provider refuses the thought. It takes a conversation
//! without the thoughts at its front, but not one without a thought in the middle.

use crate::refusals::thoughts::without_thoughts;
use redflow_contract::digest::Digest;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, OpaqueParts};
use serde::Serialize;
use std::sync::Arc;

/// What a request binds its thoughts to.
pub(crate) struct Binding {
    /// The digest of the whole request.
    digest: Digest,
    /// The conversation without the thoughts that are no longer valid; none if all are.
    pub(crate) messages: Option<Vec<Arc<ChatMessage>>>,
}

/// What counts of a message: all that the provider gets, apart from its thoughts.
#[derive(Serialize)]
struct BoundMessage<'a> {
    message: &'a str,
    calls: Vec<[&'a str; 3]>,
    call: Option<&'a str>,
    images: Vec<&'a str>,
}

impl Binding {
    /// The binding of a request with these tools and messages.
    pub(crate) fn of(tools: &[ToolSpec], messages: &[Arc<ChatMessage>]) -> Self {
        let named = tools.iter().map(|tool| (&tool.name, &tool.description, &tool.input_schema));
        let mut digest = digest(&named.collect::<Vec<_>>());
        let mut valid_from = 0;
        for (index, message) in messages.iter().enumerate() {
            let bound = message.reasoning.as_ref().and_then(|thoughts| thoughts.bound);
            if bound.is_some_and(|bound| bound != digest) {
                valid_from = index + 1;
            }
            digest = digest.chain(message.role as u8, serialize_message(message).as_bytes());
        }
        let (changed, rest) = messages.split_at(valid_from);
        let shorter = without_thoughts(changed, |_| true);
        Self {
            digest,
            messages: shorter.map(|shorter| shorter.into_iter().chain(rest.iter().cloned()).collect()),
        }
    }

    /// Binds the thoughts of the answer.
    pub(crate) fn bind(&self, thoughts: &mut OpaqueParts) {
        thoughts.bound = Some(self.digest);
    }
}

fn digest(value: &impl Serialize) -> Digest {
    Digest::of_json(value).unwrap_or(Digest::ZERO)
}

fn serialize_message(message: &ChatMessage) -> String {
    let bound = BoundMessage {
        message: &message.content,
        calls: message.tool_calls.iter().map(|call| [&*call.id, &*call.name, &*call.arguments]).collect(),
        call: message.tool_call_id.as_deref(),
        images: message.images.iter().map(|image| &*image.data).collect(),
    };
    serde_json::to_string(&bound).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Binding;
    use crate::samples::{assistant, tool, two_tools, user, with_reasoning};
    use redflow_contract::transcript::ChatMessage;
    use serde_json::json;
    use std::sync::Arc;

    fn thoughts_of(messages: &[Arc<ChatMessage>]) -> Vec<bool> {
        let all = messages.iter().filter(|message| message.role.as_str() == "assistant");
        all.map(|message| message.reasoning.is_some()).collect()
    }

    /// A conversation of three rounds in which each answer has a bound thought.
    fn conversation() -> Vec<Arc<ChatMessage>> {
        let mut messages = Vec::new();
        for round in 0..3 {
            messages.push(Arc::new(user(&format!("Question {round}"))));
            let binding = Binding::of(&two_tools(), &messages);
            assert!(binding.messages.is_none(), "nothing has changed");
            let mut answer = with_reasoning("w", &[json!({"signature": round})], assistant("Hm."));
            binding.bind(answer.reasoning.as_mut().unwrap());
            messages.push(Arc::new(answer));
        }
        messages.push(Arc::new(user("And now?")));
        messages
    }

    #[test]
    fn an_unchanged_conversation_keeps_its_thoughts() {
        assert!(Binding::of(&two_tools(), &conversation()).messages.is_none());
    }

    #[test]
    fn thoughts_before_a_change_are_left_out_from_the_front() {
        let all = conversation();
        // Another list of tools, or another first message: every thought was made before.
        let tools = [two_tools(), vec![tool("more", "", None)]].concat();
        assert_eq!(thoughts_of(&Binding::of(&tools, &all).messages.unwrap()), [false; 3]);
        let mut changed = all.clone();
        changed[0] = Arc::new(user("Another question"));
        assert_eq!(thoughts_of(&Binding::of(&two_tools(), &changed).messages.unwrap()), [false; 3]);
        // A change in the middle: the first thought was made before it, and goes too, because the others do.
        let mut changed = all.clone();
        changed[2] = Arc::new(user("Another question"));
        assert_eq!(thoughts_of(&Binding::of(&two_tools(), &changed).messages.unwrap()), [false; 3]);
        // The last question is after all thoughts.
        let mut changed = all;
        changed[6] = Arc::new(user("Another question"));
        assert!(Binding::of(&two_tools(), &changed).messages.is_none());
    }

    #[test]
    fn thoughts_after_a_change_stay() {
        // A summary has replaced the first round, and a thought was made after it.
        let mut messages =
            vec![Arc::new(user("Summary")), Arc::clone(&conversation()[3]), Arc::new(user("Go on"))];
        let binding = Binding::of(&two_tools(), &messages);
        assert_eq!(thoughts_of(binding.messages.as_deref().unwrap()), [false]);
        let mut answer = with_reasoning("w", &[json!({"signature": 9})], assistant("Hm."));
        binding.bind(answer.reasoning.as_mut().unwrap());
        messages.extend([Arc::new(answer), Arc::new(user("And now?"))]);
        assert_eq!(thoughts_of(&Binding::of(&two_tools(), &messages).messages.unwrap()), [false, true]);
    }

    #[test]
    fn thoughts_without_a_binding_stay() {
        let messages = [Arc::new(user("Hi")), Arc::new(with_reasoning("w", &[json!(1)], assistant("Hm.")))];
        assert!(Binding::of(&two_tools(), &messages).messages.is_none());
    }
}
