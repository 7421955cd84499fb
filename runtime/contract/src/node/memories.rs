//! The memories. Their properties may also stand in `options`, as those of models.

use super::config::config;
use super::declaration::{
    Initial, Kind, LINE, NodeDeclaration, Palette, Property, SecretRule, WHOLE, Whole, between, choice,
    count, from, line, sets,
};
use super::services::{CREDENTIALS, FROM_AGENT, NO_WIRE, OPTIONS};
use super::values::TextList;
use crate::edge::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) const fn palette(
    label: &'static str,
    summary: &'static str,
    properties: &'static [&'static [Property]],
) -> Palette {
    let (color, icon) = ("#c3a0e6", "redflow-memory.svg");
    let (named_by, input, outputs) = (None, Some(FROM_AGENT), NO_WIRE);
    Palette { label, summary, color, icon, properties, named_by, input, outputs }
}

pub(super) const fn memory(name: &'static str) -> NodeDeclaration {
    NodeDeclaration::service(name, Role::Memory).native()
}

pub(super) const SESSION: Property = Property::new(
    "sessionId",
    LINE,
    "Session",
    "The conversation if neither the agent nor the message names one.",
)
.hint("byMessage", "by the message")
.icon("user");

const MAX_MESSAGES: Property =
    Property::new("maxMessages", count(1), "Messages", "The most messages of one conversation.");

const MAX_TURNS: Property = Property::new(
    "maxTurns",
    count(1),
    "Turns",
    "The most turns of one conversation. A turn is a message with its answer and the tool calls between them.",
)
.label("maxTurns", "Max turns")
.more();

pub(super) const MODEL_TOKENS: Property = Property::new(
    "maxTokens",
    count(1),
    "Max tokens",
    "The most tokens of one conversation. They are estimated: three bytes are a token.",
);

pub(super) const USER: Property = Property::new(
    "userId",
    LINE,
    "User",
    "Whose conversation it is, if neither the agent nor the message says it. `{{msg.x}}` is a property of the message.",
)
.hint("byMessage", "by the message")
.icon("user")
.more();

const RECALL_TAGS: Property = Property::new(
    "recallTags",
    Kind::Texts { most: 16 },
    "Only tags",
    "Only turns with these tags are recalled. `msg.tags` are the tags of a turn.",
)
.more();

const TAG_MATCH: Property = Property::new(
    "tagMatch",
    Kind::Choice { choices: &[choice("any", "One of the tags"), choice("all", "All of the tags")] },
    "Match",
    "Whether a turn needs one of the tags or all of them.",
)
.default(Initial::Text("any"))
.more();

/// Whether a turn needs one of the tags or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TagMatch {
    /// One of them.
    #[default]
    Any,
    /// All of them.
    All,
}

const MAX_BYTES: Property = Property::new(
    "maxBytes",
    between(1, 4_194_304),
    "Max bytes",
    "The most bytes of one conversation, up to 4194304.",
)
.example("2097152")
.more();

const IDLE: Property = Property::new(
    "idle",
    from(0),
    "Forget after (s)",
    "Seconds after which an unused conversation is deleted; 0 for never.",
)
.example("3600")
.more();

/// A whole number from `least`, for which the dialog has other limits.
const fn in_dialog(least: i64, min: i64, max: i64) -> Kind {
    Kind::Whole(Whole { min: Some(least), dialog: Some((min, max)), ..WHOLE })
}

config! {
    /// The properties that every memory node may have.
    MemoryConfig = "node.memory" {
        session_id: String = SESSION,
        user_id: String = USER,
    }
}

/// Memories of other palettes.
pub(super) const OTHER: NodeDeclaration =
    NodeDeclaration::service("memory.*", Role::Memory).reads(sets![MemoryConfig::SET]);

config! {
    /// The properties of `buffer-memory`.
    BufferMemoryConfig = "node.buffer-memory" {
        session_id: String = SESSION,
        max_messages: u32 = MAX_MESSAGES.default(Initial::Number(1000)).icon("list"),
        max_bytes: u32 = MAX_BYTES,
        max_turns: u32 = MAX_TURNS,
        max_tokens: u32 = MODEL_TOKENS.more(),
        user_id: String = USER,
        recall_tags: TextList = RECALL_TAGS,
        tag_match: TagMatch = TAG_MATCH,
        idle: u64 = IDLE,
        #[cfg_attr(feature = "codegen", schemars(with = "BufferMemoryConfig"))]
        options: Box<BufferMemoryConfig> = OPTIONS,
    }
}

pub(super) const BUFFER: NodeDeclaration =
    memory("buffer-memory").reads(sets![BufferMemoryConfig::SET]).palette(palette(
        "buffer memory",
        "Gives an agent the whole conversation.",
        &[BufferMemoryConfig::SET.properties],
    ));

config! {
    /// The properties of `window-memory`.
    WindowMemoryConfig = "node.window-memory" {
        session_id: String = SESSION,
        max_messages: u32 = MAX_MESSAGES
            .help("How many of the last messages the model receives.")
            .default(Initial::Number(10))
            .icon("list"),
        max_bytes: u32 = MAX_BYTES,
        max_turns: u32 = MAX_TURNS,
        max_tokens: u32 = MODEL_TOKENS.more(),
        user_id: String = USER,
        recall_tags: TextList = RECALL_TAGS,
        tag_match: TagMatch = TAG_MATCH,
        idle: u64 = IDLE,
        #[cfg_attr(feature = "codegen", schemars(with = "WindowMemoryConfig"))]
        options: Box<WindowMemoryConfig> = OPTIONS,
    }
}

pub(super) const WINDOW: NodeDeclaration =
    memory("window-memory").reads(sets![WindowMemoryConfig::SET]).palette(palette(
        "window memory",
        "Gives an agent the last messages of the conversation.",
        &[WindowMemoryConfig::SET.properties],
    ));

config! {
    /// The properties of `redis-memory`.
    RedisMemoryConfig = "node.redis-memory" {
        session_id: String = SESSION,
        url: String = Property::new(
            "url",
            Kind::RedisAddress,
            "Redis",
            "`redis://HOST:PORT/DB`, `rediss://` with encryption; instead of host, port, database and TLS. No \
             password here. If neither an address nor a host is given, the sidecar uses `REDIS_URL`, else \
             127.0.0.1:6379.",
        )
        .label("redis", "Redis")
        .example("redis://127.0.0.1:6379/0")
        .icon("globe"),
        password: String = Property::new(
            "password",
            Kind::Secret { rule: SecretRule::Any, variable: None },
            "Password",
            "Kept in Node-RED's credentials, never in the flow.",
        )
        .icon("key"),
        ttl: u64 = Property::new(
            "ttl",
            in_dialog(0, 0, 2_147_483_647),
            "",
            "Seconds after which an unchanged conversation is deleted; 0 for never.",
        )
        .label("idle", "Forget after (s)")
        .default(Initial::Number(86_400)),
        host: String =
            Property::new("host", LINE, "Host", "The machine, if there is no address above.").more(),
        port: u16 = Property::new("port", in_dialog(0, 1, 65_535), "Port", "The port.").example("6379").more(),
        db: u32 = Property::new("db", count(0), "Database", "The number of the database.").example("0").more(),
        tls: bool = Property::new("tls", Kind::Flag, "TLS", "Whether the connection is encrypted.").more(),
        username: String = Property::new("username", LINE, "User", "The user.").more(),
        encryption_key: String = Property::new(
            "encryptionKey",
            Kind::Secret { rule: SecretRule::Bytes, variable: None },
            "Encryption key",
            "32 bytes in base64, with which the conversations are encrypted. Stored in Node-RED's credentials. If \
             it is empty, the sidecar uses `REDFLOW_MEMORY_KEY`.",
        )
        .icon("lock")
        .more(),
        key_prefix: String = Property::new("keyPrefix", line(200), "Key prefix", "The prefix of every key.")
            .example("agent:memory:")
            .more(),
        max_messages: u32 = MAX_MESSAGES.example("1000").more(),
        max_bytes: u32 = MAX_BYTES,
        max_turns: u32 = MAX_TURNS,
        max_tokens: u32 = MODEL_TOKENS.more(),
        user_id: String = USER,
        recall_tags: TextList = RECALL_TAGS,
        tag_match: TagMatch = TAG_MATCH,
        timeout: u64 = Property::new(
            "timeout",
            in_dialog(1, 1, 3_600_000),
            "Timeout (ms)",
            "The longest time of one command, in milliseconds.",
        )
        .example("2000")
        .more(),
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
        #[cfg_attr(feature = "codegen", schemars(with = "RedisMemoryConfig"))]
        options: Box<RedisMemoryConfig> = OPTIONS,
    }
}

pub(super) const REDIS: NodeDeclaration =
    memory("redis-memory").reads(sets![RedisMemoryConfig::SET]).palette(palette(
        "Redis memory",
        "Stores the conversations of an agent in Redis, where they outlive the sidecar.",
        &[RedisMemoryConfig::SET.properties],
    ));
