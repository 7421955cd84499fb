//! Whose message starts a run, when it was made, and its tags.

use jiff::Timestamp;
use redflow_contract::input::{InputDetails, InputTemplates, kept_tags, user_name};
use redflow_contract::{Message, Millis};
use redflow_machine::template::{render, text_of};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// The last time that a message may name: the end of the year 9999.
const LAST_TIME: Millis = 253_402_300_799_999;

/// Whose message began a run. Of a resumed run that is known when its journal is read.
#[derive(Clone, Default)]
pub(crate) struct KnownUser(Arc<OnceLock<Arc<str>>>);

impl KnownUser {
    pub(crate) fn set(&self, user: Option<&str>) {
        if let Some(user) = user {
            // The first fact of a run never changes.
            let _ = self.0.set(user.into());
        }
    }

    pub(crate) fn get(&self) -> Option<Arc<str>> {
        self.0.get().cloned()
    }
}

/// Reads the details of a message; none if nothing is known. The user is that of the agent, else of the message, else of
/// the memory, else of the run that sent the message.
pub(crate) fn input_details(
    templates: &InputTemplates,
    memory_user: Option<&str>,
    message: &Message,
    sender_user: Option<&str>,
) -> Option<InputDetails> {
    let rendered = |template: &str| user_name(&render(template, message));
    let own = templates.user.as_deref().and_then(rendered);
    let sent = || message.get("userId").and_then(|user| user_name(&text_of(user)));
    let of_sender = || sender_user.map(str::to_owned);
    let user = own.or_else(sent).or_else(|| memory_user.and_then(rendered)).or_else(of_sender);
    let time = match &templates.time {
        Some(template) => parse_time(&render(template, message)),
        None => message.get("timestamp").and_then(|time| parse_time(&text_of(time))),
    };
    let named: Vec<String> = templates.tags.iter().map(|template| render(template, message)).collect();
    let sent: Vec<&str> = match message.get("tags") {
        Some(Value::Array(tags)) => tags.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(tags)) => tags.split(',').collect(),
        _ => Vec::new(),
    };
    let tags = kept_tags(sent.into_iter().chain(named.iter().map(String::as_str)));
    let details = InputDetails { user, time, tags };
    (!details.is_empty()).then_some(details)
}

/// Milliseconds since 1970, or a time as text.
fn parse_time(text: &str) -> Option<Millis> {
    let text = text.trim();
    let parsed = || text.parse::<Timestamp>().ok()?.as_millisecond().try_into().ok();
    text.parse().ok().or_else(parsed).filter(|time| *time <= LAST_TIME)
}

#[cfg(test)]
mod tests {
    use super::input_details;
    use redflow_contract::Message;
    use redflow_contract::input::{InputDetails, InputTemplates};
    use serde_json::{Value, json};

    fn message(value: &Value) -> Message {
        value.as_object().unwrap().clone()
    }

    fn details(user: Option<&str>, time: Option<u64>, tags: &[&str]) -> Option<InputDetails> {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Some(InputDetails { user: user.map(str::to_owned), time, tags })
    }

    #[test]
    fn the_agent_wins_over_the_message_the_memory_and_the_sender() {
        let own = InputTemplates { user: Some("{{msg.from.name}}".to_owned()), ..Default::default() };
        let (none, memory) = (InputTemplates::default(), Some("m-{{msg.topic}}"));
        let all = message(&json!({"from": {"name": "Ada"}, "userId": 7, "topic": "t"}));
        let rows = [
            (&own, &all, memory, "Ada"),
            (&none, &all, memory, "7"),
            (&own, &message(&json!({"userId": " Bob "})), memory, "Bob"),
            (&own, &message(&json!({"topic": "t"})), memory, "m-t"),
            (&own, &message(&json!({"userId": " "})), None, "Eve"),
        ];
        for (templates, message, memory, expected) in rows {
            let found = input_details(templates, memory, message, Some("Eve"));
            assert_eq!(found, details(Some(expected), None, &[]));
        }
        assert_eq!(
            input_details(&own, None, &message(&json!({"payload": "hi", "userId": null})), None),
            None
        );
    }

    #[test]
    fn a_time_is_a_number_or_a_text() {
        let named = InputTemplates { time: Some("{{msg.at}}".to_owned()), ..Default::default() };
        let rows = [
            (json!({"at": 1_790_000_000_000_u64}), Some(1_790_000_000_000)),
            (json!({"at": "2026-11-18T09:00:00+01:00"}), Some(1_794_988_800_000)),
            (json!({"at": "2026-11-18T08:00:00.250Z"}), Some(1_794_988_800_250)),
            (json!({"at": "yesterday", "timestamp": 5}), None),
            (json!({"at": -5}), None),
            (json!({"at": 1.5}), None),
            (json!({"at": "1900-01-01T00:00:00Z"}), None),
            (json!({"at": 999_999_999_999_999_u64}), None),
            (json!({"at": {"x": 1}}), None),
        ];
        for (sent, expected) in rows {
            let found = input_details(&named, None, &message(&sent), None).and_then(|found| found.time);
            assert_eq!(found, expected, "{sent}");
        }
        let sent = message(&json!({"timestamp": "12"}));
        assert_eq!(
            input_details(&InputTemplates::default(), None, &sent, None),
            details(None, Some(12), &[])
        );
    }

    #[test]
    fn tags_come_from_the_message_and_from_the_agent() {
        let named =
            InputTemplates { tags: vec!["bug".to_owned(), "{{msg.topic}}".to_owned()], ..Default::default() };
        let rows = [
            (json!({"tags": ["a", 5, "b"], "topic": "t"}), &["a", "b", "bug", "t"][..]),
            (json!({"tags": "a, b,,bug"}), &["a", "b", "bug"]),
            (json!({"tags": {"a": 1}}), &["bug"]),
        ];
        for (sent, expected) in rows {
            assert_eq!(input_details(&named, None, &message(&sent), None), details(None, None, expected));
        }
    }
}
