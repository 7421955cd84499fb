//! Finds the node that a start order means. Starts nothing itself.

use super::{BuiltFlow, BuiltNode};
use crate::start::{Start, StartError, StartOrder};
use redflow_contract::chat::ChatItem;
use redflow_contract::edge::Role;
use redflow_contract::id::NodeSummary;
use redflow_contract::node::{self, DEFAULT_IMAGES};
use redflow_contract::plan::AgentSpec;
use redflow_flow::NodeIx;
use redflow_machine::template::reads_property;

/// Nodes that an error text lists.
const MAX_LISTED_NODES: usize = 50;

/// Why a start with images is refused.
const IMAGES_NEED_A_PAYLOAD: &str = "images need an agent and a payload: name the agent, and give a payload";

/// The property of a message that holds the images of a start, and the property of an agent that names it.
const IMAGES: &str = "images";

/// Characters of an id, a type or a name in an error text.
const MAX_PRINTED_CHARS: usize = 80;

impl BuiltFlow {
    /// Finds the node of an order in this flow, and what starts it.
    ///
    /// # Errors
    /// When the flow has no such node, or the node cannot be started with this input.
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
                    format!("there is no node `{}` in the flow{}", printable(id.as_str()), self.agent_list());
                StartError::NodeUnknown(text)
            })?,
            None => self.default_agent()?,
        };
        if let Some(item) = &order.chat_item {
            return self.chat_start(node, item, &order.images);
        }
        let payload = order.payload.clone();
        let type_name = flow.raw(node).type_name.as_str();
        if type_name == "inject" && !flow.nodes[node].is_virtual {
            if !order.images.is_empty() {
                return Err(StartError::NotStartable(IMAGES_NEED_A_PAYLOAD.to_owned()));
            }
            return Ok(Start::Inject { node, payload });
        }
        if flow.nodes[node].kind.role != Role::Agent {
            return Err(StartError::NotStartable(format!(
                "`{}` is a {} node: only an agent or an inject node can be started{}",
                printable(flow.nodes[node].id.as_str()),
                printable(type_name),
                self.agent_list()
            )));
        }
        if let Some(message) = &order.message {
            return Ok(Start::Message { node, message: message.clone() });
        }
        match payload {
            Some(payload) if order.images.is_empty() => return Ok(Start::Agent { node, payload }),
            Some(payload) => {
                // A refused agent answers with its own error.
                if let BuiltNode::Agent(agent) = &self.nodes[node]
                    && let Some(text) = refuse_images(agent.compiled.spec())
                {
                    return Err(StartError::NotStartable(text));
                }
                let images = order.images.clone().into();
                let message = [("payload".to_owned(), payload), (IMAGES.to_owned(), images)];
                return Ok(Start::Message { node, message: message.into_iter().collect() });
            }
            None if order.images.is_empty() => {}
            None => return Err(StartError::NotStartable(IMAGES_NEED_A_PAYLOAD.to_owned())),
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

    fn chat_start(&self, node: NodeIx, item: &ChatItem, images: &[String]) -> Result<Start, StartError> {
        let id = printable(self.flow.nodes[node].id.as_str());
        let runs = matches!(self.nodes[node], BuiltNode::Native(_));
        if self.flow.nodes[node].kind.role != Role::Chat || !runs {
            return Err(StartError::NotStartable(format!("`{id}` is no chat node")));
        }
        if self.agent_behind(node).is_none() {
            let text = "The chat is not wired to an agent: draw a wire from it to one, and deploy.";
            return Err(StartError::NotConnected(text.to_owned()));
        }
        Ok(Start::Chat { node, item: item.clone(), images: images.to_vec() })
    }

    /// The agent of an order that names no node.
    fn default_agent(&self) -> Result<NodeIx, StartError> {
        if let [(only, _)] = self.agents.as_slice() {
            return Ok(*only);
        }
        // Of agents that feed each other, only the first one has wires from inject nodes.
        let mut injected = self.agents.iter().filter(|(_, injects)| !injects.is_empty());
        match (injected.next(), injected.next()) {
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

    /// One line for each node, up to the limit.
    fn list(&self, what: &str, nodes: impl Iterator<Item = NodeIx>) -> String {
        let line = |ix| {
            let NodeSummary { id, type_name, name } = self.flow.summary(ix);
            format!("\n  {}  {} {}", printable(id.as_str()), printable(&type_name), printable(&name))
        };
        let list: String = nodes.take(MAX_LISTED_NODES).map(line).collect();
        if list.is_empty() { list } else { format!("\n{what}, by id:{list}") }
    }
}

/// Why an agent cannot be started with images: it does not read `msg.images`. None if it does.
#[must_use]
pub fn refuse_images(spec: &AgentSpec) -> Option<String> {
    let template = spec.converse.as_ref().and_then(|converse| converse.images.as_deref());
    if template.is_some_and(|template| reads_property(template, IMAGES)) {
        return None;
    }
    let id = printable(spec.agent.node_id.as_str());
    let has_property = node::find(&spec.type_name)
        .property_sets
        .iter()
        .flat_map(|set| set.names())
        .any(|name| name == IMAGES);
    Some(if has_property {
        format!(
            "the agent `{id}` does not read `msg.images`: set its property `images` to `{DEFAULT_IMAGES}`, or leave \
             the images out"
        )
    } else {
        let type_name = printable(&spec.type_name);
        format!(
            "the agent `{id}` takes no images, because a {type_name} has no property `images`: leave them out, or \
             use another agent"
        )
    })
}

/// Text of a flow, shortened and without control characters, which a terminal would obey.
fn printable(text: &str) -> String {
    let replace_control = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(MAX_PRINTED_CHARS).map(replace_control).collect()
}
