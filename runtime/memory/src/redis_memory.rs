//! `redis-memory`: conversations in Redis, shared by all processes that use the same one.
//!
//! A conversation is a list at `<keyPrefix><session>`, an element per turn. Its limits count what is stored: the
//! bytes of the elements, encryption included. A run appends once as long as its turn is kept.

use crate::element::{self, Seal};
use crate::link::{Link, Links};
use crate::trim::{self, Limits, Size};
use crate::{address, failed, legacy, repair, scripts, too_large};
use redflow_contract::Millis;
use redflow_contract::id::RunId;
use redflow_contract::run_error::Failure;
use redflow_contract::service_config::RedisMemoryConfig;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{BoxFuture, BuildError, Memory, NodeConfig};
use redis::Script;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KEY_PREFIX: &str = "agent:memory:";
const TIMEOUT_MS: u64 = 2_000;
/// An hour: a longer wait is none anybody waits for.
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// 68 years: about what fits in 31 bits.
const MAX_TTL: u64 = i32::MAX as u64;
/// How often a legacy form that changes while it is brought over is read again.
const ROUNDS: usize = 3;

pub(crate) struct RedisMemory {
    link: Arc<Link>,
    key_prefix: String,
    limits: Limits,
    /// Seconds; 0 for ever.
    ttl: u64,
    timeout: Duration,
    seal: Option<Seal>,
}

struct Keys {
    list: String,
    /// Of the form before the list, which knew no flows.
    legacy: String,
}

impl RedisMemory {
    pub(crate) fn build(node: &NodeConfig<'_>, links: &Links) -> Result<Self, BuildError> {
        let others = address::others(node.props);
        let config: RedisMemoryConfig = NodeConfig { props: &others, ..*node }.typed_with_options()?;
        let ttl = config.ttl.unwrap_or(0);
        if ttl > MAX_TTL {
            return Err(node.error(format!("its ttl is {ttl}; the limit is {MAX_TTL}")));
        }
        let seal = match node.secret("encryptionKey", &["REDFLOW_MEMORY_KEY"]) {
            Some(key) => {
                let why = "its encryptionKey is not 32 bytes in base64";
                Some(Seal::new(&key).ok_or_else(|| node.error(why))?)
            }
            None => None,
        };
        let info = address::of(node)?;
        let link = links.to(info).ok_or_else(|| node.error("its Redis is no address to connect to"))?;
        Ok(Self {
            link,
            limits: Limits::of(node, config.max_messages, trim::BUFFER_MESSAGES, config.max_bytes)?,
            ttl,
            timeout: Duration::from_millis(config.timeout.unwrap_or(TIMEOUT_MS).min(MAX_TIMEOUT_MS)),
            // Never empty, or every key of the database would be a conversation: a blank one has been dropped.
            key_prefix: config.key_prefix.unwrap_or_else(|| KEY_PREFIX.to_owned()),
            seal,
        })
    }

    fn keys(&self, session: &str) -> Keys {
        // The flow's part has no colon.
        let name = session.split_once(':').map_or(session, |(_, name)| name);
        Keys { list: format!("{}{session}", self.key_prefix), legacy: format!("{}{name}", self.key_prefix) }
    }

    /// Runs a script. Its answer, and what came with it.
    async fn ask(
        &self,
        script: &Script,
        keys: &Keys,
        arguments: &[&[u8]],
    ) -> Result<(Answer, Vec<Vec<u8>>), Failure> {
        let mut call = script.prepare_invoke();
        call.key(&keys.list).key(&keys.legacy);
        for argument in arguments {
            call.arg(*argument);
        }
        let mut reply = self.link.run(&call, self.timeout).await?.into_iter();
        let word = reply.next().unwrap_or_default();
        let mut text = || String::from_utf8_lossy(&reply.next().unwrap_or_default()).into_owned();
        let answer = match word.as_slice() {
            b"done" => Answer::Done,
            b"turns" => Answer::Turns,
            b"legacy" => Answer::Legacy,
            b"changed" => Answer::Changed,
            b"junk" => return Err(element::junk(&keys.list)),
            b"type" => return Err(element::junk(&text())),
            b"large" => return Err(too_much(&text(), text(), text())),
            _ => return Err(failed("Redis gave an answer that makes no sense")),
        };
        Ok((answer, reply.collect()))
    }

    async fn load(&self, session: &str) -> Result<Vec<ChatMessage>, Failure> {
        let keys = self.keys(session);
        let [messages, bytes, legacy_bytes] =
            [self.limits.messages, self.limits.bytes, self.limits.bytes.saturating_mul(2)]
                .map(|limit| limit.to_string());
        let arguments = [messages.as_bytes(), bytes.as_bytes(), legacy_bytes.as_bytes()];
        for _ in 0..ROUNDS {
            match self.ask(&scripts::RECALL, &keys, &arguments).await? {
                (Answer::Turns, newest_first) => {
                    let read = |element: &Vec<u8>| element::read(&keys.list, element, self.seal.as_ref());
                    let turns: Vec<_> = newest_first.iter().rev().map(read).collect::<Result<_, _>>()?;
                    return Ok(repair::join(turns));
                }
                (_, legacy) => self.migrate(&keys, &legacy.concat()).await?,
            }
        }
        Err(failed(format!("the key `{}` changed while it was read", keys.legacy)))
    }

    /// Brings the legacy form over, unless somebody else does just now.
    async fn migrate(&self, keys: &Keys, legacy: &[u8]) -> Result<(), Failure> {
        let turns = legacy::read(legacy).ok_or_else(|| element::junk(&keys.legacy))?;
        let at = now();
        let elements = turns.iter().enumerate().map(|(number, turn)| {
            element::write(&keys.list, &format!("legacy-{number}"), at, turn, self.seal.as_ref())
        });
        let elements: Vec<Vec<u8>> = elements.collect::<Result<_, _>>()?;
        if let Some(newest) = elements.last().filter(|newest| newest.len() > self.limits.bytes) {
            return Err(too_much(&keys.legacy, newest.len(), self.limits.bytes));
        }
        let sizes = turns.iter().zip(&elements);
        let sizes = sizes.map(|(turn, element)| Size { messages: turn.len(), bytes: element.len() });
        let keep = trim::kept(sizes.rev(), self.limits);
        let ttl = self.ttl.to_string();
        let mut arguments: Vec<&[u8]> = vec![legacy, ttl.as_bytes()];
        arguments.extend(elements[elements.len() - keep..].iter().map(Vec::as_slice));
        self.ask(&scripts::MIGRATE, keys, &arguments).await.map(|_| ())
    }

    async fn add(&self, session: &str, run: &RunId, turn: &[ChatMessage]) -> Result<(), Failure> {
        let turn = repair::without_system(turn);
        if turn.is_empty() {
            return Ok(());
        }
        let keys = self.keys(session);
        let element = element::write(&keys.list, run.as_str(), now(), &turn, self.seal.as_ref())?;
        if element.len() > self.limits.bytes {
            return Err(too_large(element.len(), self.limits.bytes));
        }
        let [messages, bytes, count] =
            [self.limits.messages, self.limits.bytes, turn.len()].map(|number| number.to_string());
        let (ttl, run) = (self.ttl.to_string(), element::run_part(run.as_str()));
        let texts = [&messages, &bytes, &ttl, &count, &run].map(String::as_bytes);
        let arguments: Vec<&[u8]> = texts.into_iter().chain([element.as_slice()]).collect();
        for _ in 0..ROUNDS {
            match self.ask(&scripts::APPEND, &keys, &arguments).await?.0 {
                Answer::Legacy => drop(self.load(session).await?),
                _ => return Ok(()),
            }
        }
        Err(failed(format!("the key `{}` changed while it was read", keys.legacy)))
    }
}

/// What a script says.
enum Answer {
    Done,
    Turns,
    Legacy,
    Changed,
}

impl Memory for RedisMemory {
    fn recall<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, Failure>> {
        Box::pin(self.load(session))
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        run: &'a RunId,
        turn: &'a [ChatMessage],
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.add(session, run, turn))
    }

    fn clear<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { self.ask(&scripts::CLEAR, &self.keys(session), &[]).await.map(|_| ()) })
    }
}

/// More than is read.
fn too_much(key: &str, bytes: impl Display, most: impl Display) -> Failure {
    failed(format!("the key `{key}` holds {bytes} bytes in one piece; the limit is {most}"))
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
