//! Which node is started, and with what: by its id in the flow of the moment.
//!
//! Owns the rules of choosing, the same for everyone who starts something. Starts nothing itself.

use crate::build::{BuiltFlow, BuiltNode};
use crate::report::{RunReport, Start};
use redflow_contract::Message;
use redflow_contract::chat::ChatItem;
use redflow_contract::edge::Role;
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_flow::NodeIx;
use redflow_ports::StoreError;
use serde_json::Value;
use tokio::sync::oneshot;

/// Nodes that an error lists, at most.
const LISTED: usize = 50;

/// Characters of an id, a type or a name in an error.
const SHOWN: usize = 80;

/// What is to be started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartOrder {
    /// An agent or an inject node. Without it: the only agent, or the only one that inject nodes are wired to.
    pub node: Option<NodeId>,
    /// The payload. An agent without one has its only inject node fired.
    pub payload: Option<Value>,
    /// A whole message for the agent, in the place of a payload.
    pub message: Option<Message>,
    /// Something to be said in the window of a chat node, and only there.
    pub said: Option<ChatItem>,
    /// Only for an agent with a payload, or a chat: whatever is started with the same key begins one run and no more, also
    /// after a restart, for as long as the store has that run. Whoever makes it bounds its length.
    pub key: Option<String>,
}

/// A start whose runs are kept.
#[derive(Debug)]
pub struct StartOutcome {
    /// The runs that began before any of them had a result, in order; each is kept. With a key that was used
    /// before, the run of that time.
    pub runs: Vec<(RunId, NodeSummary)>,
    /// Those that did not begin: their agent is refused, or there is no room, or they could not be kept.
    pub refused: Vec<RunReport>,
    /// What became of everything this start set off, when nothing of it moves any more. Also of the refused;
    /// not of a run of an earlier time.
    pub rest: oneshot::Receiver<Vec<RunReport>>,
}

/// Why nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// There is no flow.
    #[error("there is no flow: deploy one first")]
    NoFlow,
    /// There is no such node.
    #[error("{0}")]
    NodeUnknown(String),
    /// It cannot be started, or not like this.
    #[error("{0}")]
    NotStartable(String),
    /// A chat node whose wires lead to no agent.
    #[error("{0}")]
    NotConnected(String),
    /// The engine takes no more work.
    #[error("the engine is stopping")]
    Stopping,
    /// Nobody knows whether the key was used before.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BuiltFlow {
    /// What an order starts in this flow.
    ///
    /// # Errors
    /// When there is no such node, or it cannot be started like this.
    pub fn choose_start(&self, order: &StartOrder) -> Result<Start, StartError> {
        let start = self.choose(order)?;
        if order.key.is_some() && matches!(start, Start::Inject { .. }) {
            let text = "only the start of an agent with a payload can have a key: leave the key out, or give a payload";
            return Err(StartError::NotStartable(text.to_owned()));
        }
        Ok(start)
    }

    fn choose(&self, order: &StartOrder) -> Result<Start, StartError> {
        let flow = &self.flow;
        let node = match &order.node {
            Some(id) => flow.find(id.as_str()).ok_or_else(|| {
                let text =
                    format!("there is no node `{}` in the flow{}", shown(id.as_str()), self.agent_list());
                StartError::NodeUnknown(text)
            })?,
            None => self.first_agent()?,
        };
        if let Some(item) = &order.said {
            return self.chat_start(node, item);
        }
        let payload = order.payload.clone();
        let type_name = flow.raw(node).type_name.as_str();
        if type_name == "inject" && !flow.nodes[node].is_virtual {
            return Ok(Start::Inject { node, payload });
        }
        if flow.nodes[node].kind.role != Role::Agent {
            return Err(StartError::NotStartable(format!(
                "`{}` is a {} node: only an agent or an inject node can be started{}",
                shown(flow.nodes[node].id.as_str()),
                shown(type_name),
                self.agent_list()
            )));
        }
        if let Some(message) = &order.message {
            return Ok(Start::Message { node, message: message.clone() });
        }
        if let Some(payload) = payload {
            return Ok(Start::Agent { node, payload });
        }
        let injects =
            self.agents.iter().find(|(agent, _)| *agent == node).map(|(_, injects)| injects.as_slice());
        match injects.unwrap_or_default() {
            [only] => Ok(Start::Inject { node: *only, payload: None }),
            [] => {
                let text = "no inject node is wired to the agent: give it a payload";
                Err(StartError::NotStartable(text.to_owned()))
            }
            several => Err(StartError::NotStartable(format!(
                "several inject nodes are wired to the agent: start one of them, or give the agent a payload{}",
                self.list("the inject nodes", several.iter().copied())
            ))),
        }
    }

    fn chat_start(&self, node: NodeIx, item: &ChatItem) -> Result<Start, StartError> {
        let id = shown(self.flow.nodes[node].id.as_str());
        let runs = matches!(self.nodes[node], BuiltNode::Native(_));
        if self.flow.nodes[node].kind.role != Role::Chat || !runs {
            return Err(StartError::NotStartable(format!("`{id}` is no chat node")));
        }
        if !self.leads_to_an_agent(node) {
            let text = "The chat is not wired to an agent: draw a wire from it to one, and deploy.";
            return Err(StartError::NotConnected(text.to_owned()));
        }
        Ok(Start::Chat { node, item: item.clone() })
    }

    /// The agent that is meant when none is named.
    fn first_agent(&self) -> Result<NodeIx, StartError> {
        if let [(only, _)] = self.agents.as_slice() {
            return Ok(*only);
        }
        // Agents that feed each other have one beginning.
        let mut first = self.agents.iter().filter(|(_, injects)| !injects.is_empty());
        match (first.next(), first.next()) {
            _ if self.agents.is_empty() => {
                Err(StartError::NotStartable("there is no agent in the flow".to_owned()))
            }
            (Some((only, _)), None) => Ok(*only),
            _ => {
                let text = format!("the flow has several agents: name one of them{}", self.agent_list());
                Err(StartError::NotStartable(text))
            }
        }
    }

    fn agent_list(&self) -> String {
        self.list("the agents of the flow", self.agents.iter().map(|(agent, _)| *agent))
    }

    /// A line for each of these nodes, as far as they are not too many.
    fn list(&self, what: &str, nodes: impl Iterator<Item = NodeIx>) -> String {
        let line = |ix| {
            let NodeSummary { id, type_name, name } = self.flow.summary(ix);
            format!("\n  {}  {} {}", shown(id.as_str()), shown(&type_name), shown(&name))
        };
        let list: String = nodes.take(LISTED).map(line).collect();
        if list.is_empty() { list } else { format!("\n{what}, by id:{list}") }
    }
}

/// Text of a flow on one line, without what a terminal would obey.
fn shown(text: &str) -> String {
    let shown = text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c });
    shown.collect()
}
