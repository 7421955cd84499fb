//! Chooses the node that `redflow run` starts, and its input.

use crate::text::printable_line;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::id::NodeId;
use redflow_engine::{Start, refuse_images};
use redflow_flow::{CheckedFlow, NodeIx, Verdict};
use serde_json::Value;

/// The start, and the agent that the user requested.
pub(super) fn choose_start(
    checked: &CheckedFlow,
    node: Option<&str>,
    input: Option<Value>,
) -> Result<(Start, Option<NodeId>), String> {
    let flow = &checked.flow;
    let chosen = match node {
        Some(id) => flow.find(id).ok_or_else(|| {
            format!("there is no node `{}` in the flow{}", printable_line(id, 80), list_agents(checked))
        })?,
        None => match checked.agents.as_slice() {
            [] => return Err("there is no agent in the flow".to_owned()),
            [only] => only.ix,
            several => {
                // In a chain of agents only the first one has an inject node.
                let mut first = several.iter().filter(|agent| !agent.injects.is_empty());
                match (first.next(), first.next()) {
                    (Some(only), None) => only.ix,
                    _ => {
                        return Err(format!(
                            "the flow has several agents: choose one with --node ID{}",
                            list_agents(checked)
                        ));
                    }
                }
            }
        },
    };
    let type_name = flow.raw(chosen).type_name.as_str();
    if type_name == "inject" && !flow.nodes[chosen].is_virtual {
        return Ok((Start::Inject { node: chosen, payload: input }, None));
    }
    if flow.nodes[chosen].kind.role != Role::Agent {
        return Err(format!(
            "`{}` is a {} node: only an agent or an inject node can be started{}",
            printable_line(flow.nodes[chosen].id.as_str(), 80),
            printable_line(type_name, 60),
            list_agents(checked)
        ));
    }
    let agent = Some(flow.nodes[chosen].id.clone());
    if let Some(payload) = input {
        return Ok((Start::Agent { node: chosen, payload }, agent));
    }
    let injects =
        checked.agents.iter().find(|agent| agent.ix == chosen).map(|agent| agent.injects.as_slice());
    match injects.unwrap_or_default() {
        [only] => Ok((Start::Inject { node: *only, payload: None }, agent)),
        [] => Err("no inject node is wired to the agent: give it an input with --input JSON".to_owned()),
        several => {
            let list: Vec<String> = several.iter().map(|ix| describe(checked, *ix)).collect();
            Err(format!(
                "several inject nodes are wired to the agent: choose one with --node ID, or use --input JSON\n{}",
                list.join("\n")
            ))
        }
    }
}

/// Adds images to the message of an agent.
pub(super) fn add_images(checked: &CheckedFlow, start: Start, images: Vec<String>) -> Result<Start, String> {
    match start {
        start if images.is_empty() => Ok(start),
        Start::Agent { node, payload } => {
            let agent = checked.agents.iter().find(|agent| agent.ix == node);
            if let Some(Verdict::Ready(ready)) = agent.map(|agent| &agent.verdict)
                && let Some(text) = refuse_images(&ready.spec)
            {
                return Err(text);
            }
            let message = [("payload".to_owned(), payload), ("images".to_owned(), images.into())];
            Ok(Start::Message { node, message: message.into_iter().collect() })
        }
        _ => Err("images need an agent: name it with --node ID".to_owned()),
    }
}

fn list_agents(checked: &CheckedFlow) -> String {
    let list: String =
        checked.agents.iter().take(50).map(|agent| format!("\n{}", describe(checked, agent.ix))).collect();
    if list.is_empty() { list } else { format!("\nthe agents of the flow, by id:{list}") }
}

fn describe(checked: &CheckedFlow, ix: NodeIx) -> String {
    let node = checked.flow.summary(ix);
    let (id, name) = (printable_line(node.id.as_str(), 80), printable_line(&node.name, 80));
    format!("  {id}  {} {name}", printable_line(&node.type_name, 60))
}

/// The problems of the agent that is started, if the checker refused it.
pub(super) fn refusals(checked: &CheckedFlow, start: &Start) -> Option<Vec<Diagnostic>> {
    let agent = checked.agents.iter().find(|agent| match start {
        Start::Agent { node, .. } | Start::Message { node, .. } => agent.ix == *node,
        Start::Inject { node, .. } => agent.injects.contains(node),
        // This command never starts a chat.
        Start::Chat { .. } => false,
    })?;
    match &agent.verdict {
        Verdict::Ready(_) => None,
        Verdict::Refused { problems, .. } => Some(problems.clone()),
    }
}
