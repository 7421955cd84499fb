//! `redis-memory`: conversations in Redis, shared by all processes that use the same Redis.
//!
//! A conversation is a list at `<keyPrefix><session>`, with one element per turn. Its limits count the stored
//! bytes of the elements, encryption included. A run appends only once, as long as its turn is stored.

use crate::element::{self, TurnCipher};
use crate::failure::{memory_error, turn_too_large};
use crate::redis_connection::{RedisConnection, RedisConnections};
use crate::trim::{self, Limits, Size};
use crate::{address, legacy, repair, scripts};
use redflow_contract::Millis;
use redflow_contract::id::RunId;
use redflow_contract::node::RedisMemoryConfig;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{BoxFuture, BuildError, Memory, NodeConfig};
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

pub(crate) struct RedisMemory {
    connection: Arc<RedisConnection>,
    key_prefix: String,
    limits: Limits,
    /// Time to live in seconds; 0 for ever.
    ttl: u64,
    timeout: Duration,
    cipher: Option<TurnCipher>,
}

struct Keys {
    list: String,
    /// The key of the legacy format, which had no flow in it.
    legacy: String,
}

impl RedisMemory {
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
            limits: Limits::for_node(node, config.max_messages, trim::BUFFER_MESSAGES, config.max_bytes)?,
            ttl,
            timeout: Duration::from_millis(config.timeout.unwrap_or(DEFAULT_TIMEOUT_MS).min(MAX_TIMEOUT_MS)),
            // Never empty, or every key of the database would be a conversation: blank values count as
            // absent.
            key_prefix: config.key_prefix.unwrap_or_else(|| DEFAULT_KEY_PREFIX.to_owned()),
            cipher,
        })
    }

    fn keys(&self, session: &str) -> Keys {
        // The part of the flow has no colon.
        let name = session.split_once(':').map_or(session, |(_, name)| name);
        Keys { list: format!("{}{session}", self.key_prefix), legacy: format!("{}{name}", self.key_prefix) }
    }

    /// Runs a script. Returns its reply and the values that follow.
    async fn run_script(
        &self,
        script: &Script,
        keys: &Keys,
        arguments: &[&[u8]],
    ) -> Result<(ScriptReply, Vec<Vec<u8>>), Failure> {
        let mut call = script.prepare_invoke();
        call.key(&keys.list).key(&keys.legacy);
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
            b"junk" => return Err(element::not_a_conversation(&keys.list)),
            b"type" => return Err(element::not_a_conversation(&text())),
            b"large" => return Err(value_too_large(&text(), text(), text())),
            _ => return Err(memory_error("Redis sent an unexpected answer")),
        };
        Ok((reply, values.collect()))
    }

    async fn load_messages(&self, session: &str) -> Result<Vec<ChatMessage>, Failure> {
        let keys = self.keys(session);
        let [messages, bytes, legacy_bytes] =
            [self.limits.messages, self.limits.bytes, self.limits.bytes.saturating_mul(2)]
                .map(|limit| limit.to_string());
        let arguments = [messages.as_bytes(), bytes.as_bytes(), legacy_bytes.as_bytes()];
        for _ in 0..MIGRATION_ATTEMPTS {
            match self.run_script(&scripts::RECALL, &keys, &arguments).await? {
                (ScriptReply::Turns, newest_first) => {
                    let decode =
                        |element: &Vec<u8>| element::decode(&keys.list, element, self.cipher.as_ref());
                    let turns: Vec<_> = newest_first.iter().rev().map(decode).collect::<Result<_, _>>()?;
                    return Ok(repair::join_complete_turns(turns));
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
            element::encode(&keys.list, &format!("legacy-{number}"), at, turn, self.cipher.as_ref())
        });
        let elements: Vec<Vec<u8>> = elements.collect::<Result<_, _>>()?;
        if let Some(newest) = elements.last().filter(|newest| newest.len() > self.limits.bytes) {
            return Err(value_too_large(&keys.legacy, newest.len(), self.limits.bytes));
        }
        let sizes = turns.iter().zip(&elements);
        let sizes = sizes.map(|(turn, element)| Size { messages: turn.len(), bytes: element.len() });
        let keep = trim::turns_that_fit(sizes.rev(), self.limits);
        let ttl = self.ttl.to_string();
        let mut arguments: Vec<&[u8]> = vec![legacy, ttl.as_bytes()];
        arguments.extend(elements[elements.len() - keep..].iter().map(Vec::as_slice));
        self.run_script(&scripts::MIGRATE, keys, &arguments).await.map(|_| ())
    }

    async fn append_turn(&self, session: &str, run: &RunId, turn: &[ChatMessage]) -> Result<(), Failure> {
        let turn = repair::stored_messages(turn);
        if turn.is_empty() {
            return Ok(());
        }
        let keys = self.keys(session);
        let element = element::encode(&keys.list, run.as_str(), now(), &turn, self.cipher.as_ref())?;
        if element.len() > self.limits.bytes {
            return Err(turn_too_large(element.len(), self.limits.bytes));
        }
        let [messages, bytes, count] =
            [self.limits.messages, self.limits.bytes, turn.len()].map(|number| number.to_string());
        let (ttl, run) = (self.ttl.to_string(), element::run_field(run.as_str()));
        let texts = [&messages, &bytes, &ttl, &count, &run].map(String::as_bytes);
        let arguments: Vec<&[u8]> = texts.into_iter().chain([element.as_slice()]).collect();
        for _ in 0..MIGRATION_ATTEMPTS {
            match self.run_script(&scripts::APPEND, &keys, &arguments).await?.0 {
                ScriptReply::Legacy => drop(self.load_messages(session).await?),
                _ => return Ok(()),
            }
        }
        Err(memory_error(format!("the key `{}` changed while it was read", keys.legacy)))
    }
}

/// The first value of a script's reply.
enum ScriptReply {
    Done,
    Turns,
    Legacy,
    Changed,
}

impl Memory for RedisMemory {
    fn recall<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, Failure>> {
        Box::pin(self.load_messages(session))
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        run: &'a RunId,
        turn: &'a [ChatMessage],
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.append_turn(session, run, turn))
    }

    fn clear<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { self.run_script(&scripts::CLEAR, &self.keys(session), &[]).await.map(|_| ()) })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            // No session has this name: each has a colon.
            let mut script = scripts::CHECK.prepare_invoke();
            script.key(format!("{}check", self.key_prefix));
            self.connection.run_script(&script, self.timeout).await.map(|_| ())
        })
    }
}

fn value_too_large(key: &str, bytes: impl Display, limit: impl Display) -> Failure {
    memory_error(format!("the key `{key}` holds {bytes} bytes in one piece; the limit is {limit}"))
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
