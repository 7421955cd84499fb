//! Turns as entries: the user's text and the answer, and what was recalled for them.

use crate::clean::clean;
use crate::names::episode_key;
use crate::prompt_injection::addresses_assistant;
use crate::recalled::note_recalled;
use crate::tags::stored_tags;
use redflow_contract::archive::{
    Entry, EntryKind, EntrySource, EntryState, MAX_ENTRY_TEXT, SourceKind, Trust,
};
use redflow_contract::digest::Digest;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_contract::{Message, Millis};
use redflow_ports::{Expected, NewEntry, Turn};
use serde_json::{Value, json};

/// The most bytes of one text of a turn. Both together fit into an entry.
const MAX_TEXT: usize = MAX_ENTRY_TEXT / 2 - 64;

const USER: &str = "User: ";
const ASSISTANT: &str = "\nAssistant: ";

/// What the user and the assistant said in one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnTexts {
    pub(crate) user: String,
    pub(crate) assistant: String,
}

impl TurnTexts {
    /// The input and the final answer: the first message of a user, and the last text of the assistant. Results of
    /// tools and texts of the system are left out. None if both are blank.
    pub(crate) fn of(messages: &[ChatMessage]) -> Option<Self> {
        let user = messages.iter().find(|message| message.role == ChatRole::User);
        let assistant = messages.iter().rev().find(|message| {
            message.role == ChatRole::Assistant
                && message.tool_calls.is_empty()
                && !message.content.trim().is_empty()
        });
        let text = |message: Option<&ChatMessage>| message.map(|message| clean(&message.content, MAX_TEXT));
        let (user, assistant) = (text(user).unwrap_or_default(), text(assistant).unwrap_or_default());
        (!user.is_empty() || !assistant.is_empty()).then_some(Self { user, assistant })
    }

    fn joined(&self) -> String {
        format!("{USER}{}{ASSISTANT}{}", self.user, self.assistant)
    }

    /// The texts of a stored turn. A changed text counts as the assistant's, which has less trust.
    pub(crate) fn of_entry(entry: &Entry) -> Self {
        let bytes =
            entry.meta.get("userBytes").and_then(Value::as_u64).and_then(|bytes| usize::try_from(bytes).ok());
        let parts = bytes.and_then(|bytes| {
            let rest = entry.text.strip_prefix(USER)?;
            let (user, rest) = rest.split_at_checked(bytes)?;
            Some((user, rest.strip_prefix(ASSISTANT)?))
        });
        let (user, assistant) = parts.unwrap_or(("", &entry.text));
        Self { user: user.to_owned(), assistant: assistant.to_owned() }
    }
}

/// A turn as an entry to store.
pub(crate) fn episode(
    turn: &Turn<'_>,
    texts: &TurnTexts,
    memory: &str,
    expires_at: Option<Millis>,
) -> NewEntry {
    let text = texts.joined();
    let digest = Digest::of(turn.run.as_str().as_bytes()).chain(b't', text.as_bytes());
    let mut meta = Message::new();
    meta.insert("turn".to_owned(), json!(digest));
    meta.insert("userBytes".to_owned(), json!(texts.user.len()));
    note_recalled(&mut meta, turn.sources, memory);
    // An injection that a turn repeats must never come back as a user's word.
    let is_injection = addresses_assistant(&texts.user) || addresses_assistant(&texts.assistant);
    NewEntry {
        expected: Expected::Absent,
        meta,
        tags: stored_tags(turn.tags.iter().map(String::as_str)),
        user: turn.user.map(str::to_owned),
        session: Some(turn.session.to_owned()),
        valid_from: (turn.at > 0).then_some(turn.at),
        expires_at,
        trust: match (is_injection, texts.assistant.is_empty()) {
            (true, _) => Trust::External,
            // The answer may repeat what a page says, so it must not come back as a user's word.
            (false, false) => Trust::Agent,
            (false, true) => Trust::User,
        },
        source: Some(EntrySource {
            kind: SourceKind::Memory,
            reference: turn.run.to_string(),
            digest: Some(digest),
        }),
        ..NewEntry::new(episode_key(turn.run), EntryKind::Episode, text)
    }
}

/// When the words of a stored turn were said: at the time of its message, which can be any, but not after the turn was
/// stored and not after now.
pub(crate) fn said_at(turn: &Entry, now: Millis) -> Millis {
    turn.valid_from.min(turn.created_at).min(now)
}

/// The digest of a stored turn.
pub(crate) fn turn_digest(entry: &Entry) -> Digest {
    let digest = entry.meta.get("turn").and_then(Value::as_str).and_then(Digest::parse_hex);
    digest.unwrap_or_else(|| Digest::of(entry.key.as_bytes()).chain(b't', entry.text.as_bytes()))
}

/// How often a model gave no usable answer about a stored turn.
pub(crate) fn attempts(entry: &Entry) -> u64 {
    entry.meta.get("attempts").and_then(Value::as_u64).unwrap_or(0)
}

/// The next version of a stored turn, in this state.
pub(crate) fn next_version(entry: Entry, state: EntryState) -> NewEntry {
    NewEntry {
        expected: Expected::Version(entry.version),
        meta: entry.meta,
        tags: entry.tags,
        user: entry.user,
        session: entry.session,
        state,
        valid_from: Some(entry.valid_from),
        valid_to: entry.valid_to,
        created_at: Some(entry.created_at),
        expires_at: entry.expires_at,
        trust: entry.trust,
        importance: entry.importance,
        source: entry.source,
        supersedes: entry.supersedes,
        ..NewEntry::new(entry.key, entry.kind, entry.text)
    }
}
