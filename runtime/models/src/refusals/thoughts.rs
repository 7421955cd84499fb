//! Remembers the thoughts whose signatures a provider refuses, so that later calls do not send them.

use crate::recent_digests::RecentDigests;
use redflow_contract::transcript::{ChatMessage, OpaqueParts};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

/// The most refused thoughts that are remembered of one model. The oldest one is forgotten, and sent once more.
const MAX_REFUSED_THOUGHTS: usize = 256;

/// The refused thoughts of one model.
#[derive(Debug, Default)]
pub struct RefusedThoughts(RecentDigests<MAX_REFUSED_THOUGHTS>);

impl RefusedThoughts {
    /// Remembers all thoughts of a conversation that a wire would send.
    pub(crate) fn add_all(&self, messages: &[Arc<ChatMessage>], is_sent: impl Fn(&str) -> bool) {
        let thoughts = messages.iter().filter_map(|message| message.reasoning.as_ref());
        thoughts.filter(|thought| is_sent(&thought.wire)).for_each(|thought| self.0.add(digest(thought)));
    }

    /// The conversation without refused thoughts; none if it has none.
    pub(crate) fn remove_from(&self, messages: &[Arc<ChatMessage>]) -> Option<Vec<Arc<ChatMessage>>> {
        if self.0.is_empty() {
            return None;
        }
        without_thoughts(messages, |thought| self.0.contains(digest(thought)))
    }
}

/// The conversation without some thoughts; none if it has none of them.
pub(crate) fn without_thoughts(
    messages: &[Arc<ChatMessage>],
    is_removed: impl Fn(&OpaqueParts) -> bool,
) -> Option<Vec<Arc<ChatMessage>>> {
    let has_one = |message: &ChatMessage| message.reasoning.as_ref().is_some_and(&is_removed);
    if !messages.iter().any(|message| has_one(message)) {
        return None;
    }
    let without = |message: &Arc<ChatMessage>| {
        if has_one(message) {
            Arc::new(ChatMessage { reasoning: None, ..(**message).clone() })
        } else {
            Arc::clone(message)
        }
    };
    Some(messages.iter().map(without).collect())
}

fn digest(thought: &OpaqueParts) -> u64 {
    let mut hasher = DefaultHasher::new();
    thought.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{MAX_REFUSED_THOUGHTS, RefusedThoughts};
    use crate::samples::{assistant, user, with_reasoning};
    use redflow_contract::transcript::ChatMessage;
    use serde_json::json;
    use std::sync::Arc;

    fn thought(wire: &str, number: usize) -> Arc<ChatMessage> {
        Arc::new(with_reasoning(wire, &[json!({ "signature": number })], assistant("Hm.")))
    }

    #[test]
    fn only_the_refused_thoughts_of_the_wire_are_removed() {
        let refused = RefusedThoughts::default();
        let conversation = [Arc::new(user("Hi")), thought("a", 1), thought("b", 2)];
        assert_eq!(refused.remove_from(&conversation), None);
        refused.add_all(&conversation, |wire| wire == "a");
        let mut later = conversation.to_vec();
        later.push(thought("a", 3));
        let expected =
            [Arc::clone(&later[0]), Arc::new(assistant("Hm.")), Arc::clone(&later[2]), Arc::clone(&later[3])];
        assert_eq!(refused.remove_from(&later).unwrap(), expected);
        assert_eq!(refused.remove_from(&later[2..]), None);
    }

    #[test]
    fn the_oldest_of_many_refused_thoughts_is_forgotten() {
        let refused = RefusedThoughts::default();
        let thoughts: Vec<_> = (0..=MAX_REFUSED_THOUGHTS).map(|number| thought("a", number)).collect();
        refused.add_all(&thoughts, |wire| wire == "a");
        let kept = thoughts.iter().filter(|one| refused.remove_from(std::slice::from_ref(one)).is_some());
        assert_eq!(kept.count(), MAX_REFUSED_THOUGHTS);
        assert_eq!(refused.remove_from(&thoughts[..1]), None);
    }
}
