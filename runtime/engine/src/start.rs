//! Requests that start a node, and their outcome.

use crate::report::RunReport;
use redflow_contract::Message;
use redflow_contract::chat::ChatItem;
use redflow_contract::digest::Digest;
use redflow_contract::id::{InstanceId, NodeId, NodeSummary, Principal, RunId};
use redflow_flow::NodeIx;
use redflow_ports::StoreError;
use serde_json::Value;
use tokio::sync::oneshot;

/// A start of a node that was found in the flow.
#[derive(Debug, Clone)]
pub enum Start {
    /// An inject node fires.
    Inject {
        /// The index of the inject node in the flow.
        node: NodeIx,
        /// Replaces the node's own payload.
        payload: Option<Value>,
    },
    /// An agent receives a new message with this payload.
    Agent {
        /// The index of the agent in the flow.
        node: NodeIx,
        /// Goes into `msg.payload`.
        payload: Value,
    },
    /// An agent receives this message.
    Message {
        /// The index of the agent in the flow.
        node: NodeIx,
        /// Its properties are kept; a missing `_msgid` is added.
        message: Message,
    },
    /// A person writes in the window of a chat node.
    Chat {
        /// The index of the chat node in the flow.
        node: NodeIx,
        /// The text and its id.
        item: ChatItem,
        /// Its images, for `msg.images`.
        images: Vec<String>,
    },
}

/// A start by the id of a node. `BuiltFlow::choose_start` finds the node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartOrder {
    /// An agent or an inject node. Without it: the only agent, or the only one with wires from inject nodes.
    pub node: Option<NodeId>,
    /// The payload. An agent without one has its only inject node fired.
    pub payload: Option<Value>,
    /// A whole message for the agent, instead of a payload.
    pub message: Option<Message>,
    /// Images for `msg.images`; only with a payload for an agent, or with a text for a chat node. The caller bounds
    /// their number.
    pub images: Vec<String>,
    /// A text for the window of a chat node; only for chat nodes.
    pub chat_item: Option<ChatItem>,
    /// Who starts it; none for the engine's own principal.
    pub by: Option<Principal>,
    /// Starts with the same key begin one run, also after a restart, as long as the store has that run. Only
    /// for an agent with a payload, or a chat. The caller bounds its length.
    pub key: Option<StartKey>,
}

/// Identifies a start, so that it begins one run however often it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartKey {
    /// Chosen by a caller, in the header `Idempotency-Key`.
    Caller(String),
    /// The digest of a chat message with its node and id.
    Chat(Digest),
    /// The digest of a key that an MCP client chose, with the client, the agent and the conversation.
    Mcp(Digest),
    /// A start of a Node-RED on the bridge.
    Bridge {
        /// The Node-RED.
        instance: InstanceId,
        /// The id of the start.
        start: String,
    },
}

/// What the cause of a chat message has before its digest.
const CHAT: &str = "chat:";

/// What the cause of a call of an MCP client has before its digest.
const MCP: &str = "mcp:";

/// Whether a key of a caller looks like the cause of a chat message or of an MCP client.
fn is_digest_of_other_kind(key: &str) -> bool {
    let digest = key.strip_prefix(CHAT).or_else(|| key.strip_prefix(MCP));
    digest.is_some_and(|hex| Digest::parse_hex(hex).is_some())
}

impl StartKey {
    /// The cause of the run. Keys of different kinds never have the same cause. No run has an id like this, so
    /// a message of a run never has the same cause either.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            // Runs are stored with these causes. So only a key that looks like the cause of another kind has
            // another form.
            Self::Caller(key) if key.contains('\n') || is_digest_of_other_kind(key) => {
                format!("api:caller\n{key}")
            }
            Self::Caller(key) => format!("api:{key}"),
            Self::Chat(digest) => format!("api:{CHAT}{}", digest.to_hex()),
            Self::Mcp(digest) => format!("api:{MCP}{}", digest.to_hex()),
            Self::Bridge { instance, start } => format!("api:bridge\n{instance}\n{start}"),
        }
    }
}

/// A run that an earlier start with the same cause has stored.
#[derive(Debug)]
pub(crate) struct EarlierRun {
    pub(crate) run: RunId,
    pub(crate) agent: NodeId,
    /// What began it. None if its journal is not readable.
    pub(crate) input: Option<StartInput>,
}

/// The parts of a message that a caller chooses.
#[derive(Debug, PartialEq)]
pub(crate) struct StartInput {
    payload: Option<Value>,
    /// The digest of the images, which may be large; none without images.
    images: Option<Digest>,
}

impl StartInput {
    /// The input of a stored message. One of a version without images has none.
    pub(crate) fn of_message(mut message: Message) -> Self {
        let images = message.swap_remove("images").and_then(|images| Digest::of_json(&images).ok());
        Self { payload: message.swap_remove("payload"), images }
    }

    fn of_order(order: &StartOrder) -> Self {
        let images = Some(&order.images).filter(|images| !images.is_empty());
        let images = images.and_then(|images| Digest::of_json(images).ok());
        Self { payload: order.payload.clone(), images }
    }
}

/// What a caller asked for under its key. The same key must always ask for the same.
#[derive(Debug)]
pub(crate) struct CallerRequest {
    node: Option<NodeId>,
    input: StartInput,
}

impl CallerRequest {
    /// None if the key is not one that a caller chose.
    pub(crate) fn new(order: &StartOrder) -> Option<Self> {
        let is_caller = matches!(order.key, Some(StartKey::Caller(_) | StartKey::Mcp(_)));
        is_caller.then(|| Self { node: order.node.clone(), input: StartInput::of_order(order) })
    }

    /// Compares the request with the run that an earlier start with the same key began, as far as that run is
    /// readable.
    pub(crate) fn check(&self, earlier: &EarlierRun) -> Result<(), StartError> {
        let node = self.node.as_ref().is_some_and(|node| *node != earlier.agent).then_some("`node`");
        let input = earlier.input.as_ref();
        let payload = input.filter(|input| input.payload != self.input.payload).map(|_| "`payload`");
        let images = input.filter(|input| input.images != self.input.images).map(|_| "`images`");
        let different: Vec<&str> = node.into_iter().chain(payload).chain(images).collect();
        if different.is_empty() { Ok(()) } else { Err(StartError::KeyReused(different.join(" and "))) }
    }
}

/// The outcome of a start whose runs are stored.
#[derive(Debug)]
pub struct StartOutcome {
    /// The stored runs that began before any of them had a result, in order. With a key that was used before:
    /// the run of that time.
    pub runs: Vec<(RunId, NodeSummary)>,
    /// The runs that did not begin: the agent is refused, a limit was reached, or the store failed.
    pub refused: Vec<RunReport>,
    /// The reports of the whole cascade, when nothing of it moves any more. Includes `refused`, but not a run
    /// of an earlier start.
    pub reports: oneshot::Receiver<Vec<RunReport>>,
}

/// The reason why nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The engine has no flow yet.
    #[error("there is no flow: deploy one first")]
    NoFlow,
    /// The flow has no such node.
    #[error("{0}")]
    NodeUnknown(String),
    /// The node cannot be started, or not with this input.
    #[error("{0}")]
    NotStartable(String),
    /// The wires of the chat node lead to no agent.
    #[error("{0}")]
    NotConnected(String),
    /// The key of an earlier start came with another request. Names the parts that differ.
    #[error("an earlier start with this key had another {0}: use a new key for another request")]
    KeyReused(String),
    /// The engine takes no more work.
    #[error("the engine is stopping")]
    Stopping,
    /// The store could not say whether the key was used before.
    #[error(transparent)]
    Store(#[from] StoreError),
}
