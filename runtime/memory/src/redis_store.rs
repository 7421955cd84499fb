//! Conversations in Redis, shared by all processes that use the same Redis.
//!
//! A conversation is a list at `<keyPrefix><session>`, with one element per turn. Its limits count the stored
//! bytes of the elements, encryption included. A run appends only once, as long as its turn is stored. The hash at
//! `<keyPrefix>%about:<session>` has the summaries and the users of the conversation, and the set at
//! `<keyPrefix>%user:<digest>` the lists with turns of a user. No session has such a key: the flow part of a session has no
//! `%` but in `%25` and `%3A`.

use crate::cipher::{TurnCipher, filter_digest, user_digest};
use crate::element::{self, NewTurn};
use crate::failure::{memory_error, turn_too_large};
use crate::redis_connection::{RedisConnection, RedisConnections};
use crate::stored_turn::{StoredTurn, TagFilter};
use crate::trim::{self, Limits, OwnLimits, Size};
use crate::{address, legacy, repair, scripts};
use redflow_contract::Millis;
use redflow_contract::node::RedisMemoryConfig;
use redflow_contract::run_error::Failure;
use redflow_ports::{BuildError, NodeConfig, SummarisedConversation, Summary, Turn};
use redis::Script;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DEFAULT_KEY_PREFIX: &str = "agent:memory:";
const DEFAULT_TIMEOUT_MS: u64 = 2_000;
/// An hour: no caller waits longer.
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// 68 years: about what fits in 31 bits.
const MAX_TTL: u64 = i32::MAX as u64;
/// How often a legacy value is read again that changes during its migration.
const MIGRATION_ATTEMPTS: usize = 3;
/// The most fields of the hash of a conversation, about one for each user. Beyond it, its summary may have words of any
/// user.
const MAX_ABOUT_FIELDS: usize = 1_000;

pub(crate) struct RedisStore {
    connection: Arc<RedisConnection>,
    key_prefix: String,
    pub(crate) limits: Limits,
    /// The turns that are recalled.
    pub(crate) filter: TagFilter,
    /// Time to live in seconds; 0 for ever.
    ttl: u64,
    timeout: Duration,
    pub(crate) cipher: Option<TurnCipher>,
}

/// The keys of one conversation.
pub(crate) struct Keys {
    pub(crate) list: String,
    /// The key of the legacy format, which had no flow in it.
    legacy: String,
    /// The key of what else is known about it.
    pub(crate) about: String,
}

/// A conversation as it is stored.
pub(crate) struct LoadedConversation {
    /// Within the limits of what is stored, newest first.
    pub(crate) newest_first: Vec<Arc<StoredTurn>>,
    pub(crate) summary: Option<Summary>,
    pub(crate) removals: u64,
}

impl RedisStore {
    pub(crate) fn build(node: &NodeConfig<'_>, connections: &RedisConnections) -> Result<Self, BuildError> {
        let props = address::without_address_fields(node.props);
        let config: RedisMemoryConfig = NodeConfig { props: &props, ..*node }.typed_with_options()?;
        let ttl = config.ttl.unwrap_or(0);
        if ttl > MAX_TTL {
            return Err(node.error(format!("its ttl is {ttl}; the limit is {MAX_TTL}")));
        }
        let cipher = match node.secret("encryptionKey", &["REDFLOW_MEMORY_KEY"]) {
            Some(key) => {
                let message = "its encryptionKey is not 32 bytes in base64";
                Some(TurnCipher::new(&key).ok_or_else(|| node.error(message))?)
            }
            None => None,
        };
        let info = address::connection_info(node)?;
        let connection = connections.get_or_create(info);
        Ok(Self {
            connection: connection.ok_or_else(|| node.error("the address of its Redis is not valid"))?,
            limits: Limits::for_node(
                node,
                OwnLimits {
                    messages: config.max_messages,
                    bytes: config.max_bytes,
                    turns: config.max_turns,
                    tokens: config.max_tokens,
                },
                trim::BUFFER_MESSAGES,
            )?,
            filter: TagFilter::new(config.recall_tags.as_ref(), config.tag_match),
            ttl,
            timeout: Duration::from_millis(config.timeout.unwrap_or(DEFAULT_TIMEOUT_MS).min(MAX_TIMEOUT_MS)),
            // Never empty, or every key of the database would be a conversation: blank values count as
            // absent.
            key_prefix: config.key_prefix.unwrap_or_else(|| DEFAULT_KEY_PREFIX.to_owned()),
            cipher,
        })
    }

    pub(crate) fn keys(&self, session: &str) -> Keys {
        // The part of the flow has no colon.
        let name = session.split_once(':').map_or(session, |(_, name)| name);
        let prefix = &self.key_prefix;
        Keys {
            list: format!("{prefix}{session}"),
            legacy: format!("{prefix}{name}"),
            about: format!("{prefix}%about:{session}"),
        }
    }

    /// The keys of the conversation with this list; none if the list is not one of this memory.
    pub(crate) fn keys_of_list(&self, list: &str) -> Option<Keys> {
        list.strip_prefix(&self.key_prefix)
            .filter(|session| session.contains(':'))
            .map(|session| self.keys(session))
    }

    /// The beginning of the keys of users.
    pub(crate) fn users_prefix(&self) -> String {
        format!("{}%user:", self.key_prefix)
    }

    /// The pattern of all keys.
    pub(crate) fn pattern(&self) -> String {
        let mut pattern = String::new();
        for c in self.key_prefix.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '^' | '\\' | '-') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern + "*"
    }

    /// The end of the names of the fields of the summary: a summary covers only turns that pass the filter, so each filter
    /// has its own. That of all turns has no end.
    fn summary_fields(&self) -> String {
        match self.filter.name() {
            every if every.is_empty() => every,
            filter => format!(":{}", filter_digest(&filter, self.cipher.as_ref())),
        }
    }

    /// The limits of what is stored.
    fn stored_limits(&self) -> Limits {
        if self.filter.is_empty() { self.limits } else { self.limits.without_filter() }
    }

    /// Runs a script for a conversation. Returns its reply and the values that follow.
    pub(crate) async fn run_script(
        &self,
        script: &Script,
        keys: &Keys,
        arguments: &[&[u8]],
    ) -> Result<(ScriptReply, Vec<Vec<u8>>), Failure> {
        self.run_script_with(script, &[&keys.list, &keys.legacy, &keys.about], arguments).await
    }

    /// Runs a script with these keys. Errors name the first one.
    pub(crate) async fn run_script_with(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: &[&[u8]],
    ) -> Result<(ScriptReply, Vec<Vec<u8>>), Failure> {
        let mut call = script.prepare_invoke();
        for key in keys {
            call.key(*key);
        }
        for argument in arguments {
            call.arg(*argument);
        }
        let mut values = self.connection.run_script(&call, self.timeout).await?.into_iter();
        let word = values.next().unwrap_or_default();
        let mut text = || String::from_utf8_lossy(&values.next().unwrap_or_default()).into_owned();
        let reply = match word.as_slice() {
            b"done" => ScriptReply::Done,
            b"turns" => ScriptReply::Turns,
            b"legacy" => ScriptReply::Legacy,
            b"changed" => ScriptReply::Changed,
            b"junk" => return Err(element::not_a_conversation(keys.first().copied().unwrap_or_default())),
            b"type" => return Err(element::not_a_conversation(&text())),
            b"large" => return Err(value_too_large(&text(), text(), text())),
            _ => return Err(memory_error("Redis sent an unexpected answer")),
        };
        Ok((reply, values.collect()))
    }

    /// The stored turns, and the summary if it is asked for.
    pub(crate) async fn load(
        &self,
        session: &str,
        with_summary: bool,
    ) -> Result<LoadedConversation, Failure> {
        let keys = self.keys(session);
        let largest = self.stored_limits().largest();
        let legacy_bytes = largest.bytes.saturating_mul(2);
        let limits = numbers(&[largest.messages, largest.bytes, largest.turns, largest.tokens, legacy_bytes]);
        let fields = self.summary_fields();
        let asked: &[u8] = if with_summary { b"1" } else { b"0" };
        let arguments = [limits.as_bytes(), asked, fields.as_bytes()];
        let cipher = self.cipher.as_ref();
        for _ in 0..MIGRATION_ATTEMPTS {
            match self.run_script(&scripts::RECALL, &keys, &arguments).await? {
                (ScriptReply::Turns, values) => {
                    let (about, elements) =
                        values.split_at(values.len().min(if with_summary { 3 } else { 0 }));
                    let decode =
                        |element: &Vec<u8>| element::decode(&keys.list, element, cipher).map(Arc::new);
                    let newest_first = elements.iter().map(decode).collect::<Result<_, _>>()?;
                    let field = |index: usize| about.get(index).map(Vec::as_slice).unwrap_or_default();
                    let until = String::from_utf8_lossy(field(0));
                    let summary = (!until.is_empty())
                        .then(|| element::decode_summary(&keys.about, &fields, &until, field(1), cipher))
                        .transpose()?;
                    let removals = String::from_utf8_lossy(field(2)).parse().unwrap_or(0);
                    return Ok(LoadedConversation { newest_first, summary, removals });
                }
                (_, legacy) => self.migrate(&keys, &legacy.concat()).await?,
            }
        }
        Err(memory_error(format!("the key `{}` changed while it was read", keys.legacy)))
    }

    /// Migrates the legacy format, unless another process does so at the same time.
    async fn migrate(&self, keys: &Keys, legacy: &[u8]) -> Result<(), Failure> {
        let turns = legacy::parse_turns(legacy).ok_or_else(|| element::not_a_conversation(&keys.legacy))?;
        let at = now();
        let elements = turns.iter().enumerate().map(|(number, turn)| {
            let run = format!("legacy-{number}");
            let turn = NewTurn { run: &run, at, user: None, tags: &[], messages: turn };
            element::encode(&keys.list, turn, self.cipher.as_ref())
        });
        let elements: Vec<Vec<u8>> = elements.collect::<Result<_, _>>()?;
        let limits = self.stored_limits();
        if let Some(newest) = elements.last().filter(|newest| newest.len() > limits.largest().bytes) {
            return Err(value_too_large(&keys.legacy, newest.len(), limits.largest().bytes));
        }
        let sizes = turns.iter().zip(&elements);
        let sizes = sizes.map(|(turn, element)| Size { bytes: element.len(), ..Size::of_turn(turn) });
        let keep = trim::turns_that_fit(sizes.rev(), limits);
        let ttl = self.ttl.to_string();
        let mut arguments: Vec<&[u8]> = vec![legacy, ttl.as_bytes()];
        arguments.extend(elements[elements.len() - keep..].iter().map(Vec::as_slice));
        self.run_script(&scripts::MIGRATE, keys, &arguments).await.map(|_| ())
    }

    pub(crate) async fn append(&self, turn: Turn<'_>) -> Result<(), Failure> {
        let messages = repair::stored_messages(turn.messages);
        if messages.is_empty() {
            return Ok(());
        }
        let (keys, run) = (self.keys(turn.session), turn.run.as_str());
        // A caller that does not know the time leaves it at zero.
        let at = if turn.at == 0 { now() } else { turn.at };
        let new = NewTurn { run, at, user: turn.user, tags: turn.tags, messages: &messages };
        let element = element::encode(&keys.list, new, self.cipher.as_ref())?;
        let largest = self.stored_limits().largest();
        if element.len() > largest.bytes {
            return Err(turn_too_large(element.len(), largest.bytes));
        }
        let size = Size::of_turn(&messages);
        let ttl = usize::try_from(self.ttl).unwrap_or(usize::MAX);
        let numbers = numbers(&[
            largest.messages,
            largest.bytes,
            largest.turns,
            largest.tokens,
            ttl,
            size.messages,
            size.tokens,
            MAX_ABOUT_FIELDS,
        ]);
        let run = element::run_field(run);
        let arguments = [numbers.as_bytes(), run.as_bytes(), element.as_slice()];
        let mut all_keys = vec![keys.list.as_str(), &keys.legacy, &keys.about];
        let user_key = turn.user.map(|user| self.users_prefix() + &user_digest(user, self.cipher.as_ref()));
        all_keys.extend(user_key.as_deref());
        for _ in 0..MIGRATION_ATTEMPTS {
            match self.run_script_with(&scripts::APPEND, &all_keys, &arguments).await?.0 {
                ScriptReply::Legacy => drop(self.load(turn.session, false).await?),
                _ => return Ok(()),
            }
        }
        Err(memory_error(format!("the key `{}` changed while it was read", keys.legacy)))
    }

    /// Removes a conversation. Returns whether there was one.
    pub(crate) async fn clear(&self, keys: &Keys) -> Result<bool, Failure> {
        let users = self.users_prefix();
        let (_, values) = self.run_script(&scripts::CLEAR, keys, &[users.as_bytes()]).await?;
        Ok(values.first().is_some_and(|removed| removed == b"1"))
    }

    /// Replaces the summary, if nothing has changed since it was loaded. Returns whether it did.
    pub(crate) async fn replace_summary(
        &self,
        session: &str,
        loaded: &SummarisedConversation,
        summary: &Summary,
    ) -> Result<bool, Failure> {
        let (keys, fields) = (self.keys(session), self.summary_fields());
        let value = element::encode_summary(&keys.about, &fields, summary, self.cipher.as_ref())?;
        let expected = loaded.summary.as_ref().map_or("", |summary| summary.until.as_str());
        let (removals, run) = (loaded.removals.to_string(), element::run_field(summary.until.as_str()));
        let texts = [expected, &removals, summary.until.as_str(), &run].map(str::as_bytes);
        let arguments: Vec<&[u8]> = texts.into_iter().chain([value.as_slice(), fields.as_bytes()]).collect();
        let (reply, _) = self.run_script(&scripts::SUMMARISE, &keys, &arguments).await?;
        Ok(matches!(reply, ScriptReply::Done))
    }

    /// Whether Redis lets the memory write.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        // No session has this name: each has a colon.
        let mut script = scripts::CHECK.prepare_invoke();
        script.key(format!("{}check", self.key_prefix));
        self.connection.run_script(&script, self.timeout).await.map(|_| ())
    }
}

/// The first value of a script's reply.
pub(crate) enum ScriptReply {
    Done,
    Turns,
    Legacy,
    Changed,
}

/// Numbers as one argument of a script.
fn numbers(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

fn value_too_large(key: &str, bytes: impl Display, limit: impl Display) -> Failure {
    memory_error(format!("the key `{key}` holds {bytes} bytes in one piece; the limit is {limit}"))
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
