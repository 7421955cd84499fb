//! Connects the nodes of a resolved flow: their own wires, link pairs, and the ends of subflow instances.

use crate::raw::RawNode;
use crate::report::too_many;
use crate::resolved::{Instance, NodeIx, ResolvedFlow, Wire};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::phrases;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The highest output port that the wires of a subflow may name.
const MAX_PORT: u64 = 1_023;

/// Sets the wires of every node.
pub(crate) fn connect(
    flow: &mut ResolvedFlow,
    instances: &[Instance],
    max_wires: usize,
) -> Result<(), Box<Diagnostic>> {
    let mut wires_left = max_wires;
    let mut count = |number: usize| {
        wires_left =
            wires_left.checked_sub(number).ok_or_else(|| Box::new(too_many(phrases::wires(), max_wires)))?;
        Ok::<(), Box<Diagnostic>>(())
    };
    for ix in 0..flow.nodes.len() {
        let node = &flow.nodes[ix];
        if node.is_virtual {
            continue;
        }
        let mut wires = wires_from(flow, node.scope, flow.raw(ix).props.get("wires"));
        match flow.raw(ix).type_name.as_str() {
            "link out" => {
                let returns = flow.raw(ix).text("mode") == Some("return");
                wires = vec![if returns { Vec::new() } else { linked_targets(flow, ix) }];
            }
            _ => {
                let ports = node.kind.outputs.map_or(0, <[_]>::len);
                if wires.len() < ports {
                    wires.resize(ports, Vec::new());
                }
            }
        }
        count(wires.iter().map(Vec::len).sum())?;
        flow.nodes[ix].wires = wires;
    }
    join_link_ins(flow);
    let mut wirings: HashMap<usize, SubflowWiring> = HashMap::new();
    for instance in instances {
        let wiring = wirings
            .entry(instance.template)
            .or_insert_with(|| SubflowWiring::read(&flow.raw.nodes()[instance.template]));
        count(connect_ends(flow, instance, wiring))?;
    }
    for instance in instances {
        if let Some(wiring) = wirings.get(&instance.template) {
            count(connect_outputs(flow, instance, wiring))?;
        }
    }
    Ok(())
}

fn wires_from(flow: &ResolvedFlow, scope: usize, wires: Option<&Value>) -> Vec<Vec<Wire>> {
    let ports = wires.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let targets = |port: &Value| {
        let ids = port.as_array().map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(Value::as_str).map(|id| flow.find_from(scope, id)).collect()
    };
    ports.iter().map(targets).collect()
}

/// The link ins that a link out names. Node-RED ignores the saved `wires` of a link out.
fn linked_targets(flow: &ResolvedFlow, ix: NodeIx) -> Vec<Wire> {
    let mut seen = HashSet::new();
    link_ids(flow, ix)
        .map(|id| flow.find_from(flow.nodes[ix].scope, id))
        .filter(
            |wire| matches!(wire, Wire::To(to) if seen.insert(*to) && flow.raw(*to).type_name == "link in"),
        )
        .collect()
}

fn link_ids(flow: &ResolvedFlow, ix: NodeIx) -> impl Iterator<Item = &str> {
    let links = flow.raw(ix).props.get("links").and_then(Value::as_array);
    links.map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str)
}

/// Joins a link in to the link outs that only the link in names.
fn join_link_ins(flow: &mut ResolvedFlow) {
    let mut joins = Vec::new();
    let mut known: HashSet<(NodeIx, NodeIx)> = HashSet::new();
    for (ix, node) in flow.nodes.iter().enumerate() {
        match flow.raw(ix).type_name.as_str() {
            _ if node.is_virtual => {}
            "link out" => known.extend(node.wires.iter().flatten().filter_map(|wire| match wire {
                Wire::To(to) => Some((ix, *to)),
                Wire::Disabled | Wire::Missing(_) => None,
            })),
            "link in" => {
                joins.extend(link_ids(flow, ix).filter_map(|id| match flow.find_from(node.scope, id) {
                    Wire::To(from) => Some((from, ix)),
                    Wire::Disabled | Wire::Missing(_) => None,
                }))
            }
            _ => {}
        }
    }
    for (from, to) in joins {
        let source = flow.raw(from);
        let sends = source.type_name == "link out" && source.text("mode") != Some("return");
        if sends && known.insert((from, to)) {
            flow.nodes[from].wires[0].push(Wire::To(to));
        }
    }
}

/// The ids and ports in an entry of a subflow's `in` or `out` list.
fn read_ends(value: &Value) -> Vec<(String, usize)> {
    let wires = value.get("wires").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    wires
        .iter()
        .filter_map(|wire| {
            let id = wire.get("id")?.as_str()?.to_owned();
            let port = wire.get("port").and_then(Value::as_u64).unwrap_or(0);
            (port <= MAX_PORT).then_some((id, usize::try_from(port).ok()?))
        })
        .collect()
}

/// The wires between a subflow's own ports and the nodes inside it.
struct SubflowWiring {
    id: String,
    inputs: Vec<(String, usize)>,
    outputs: Vec<Vec<(String, usize)>>,
}

impl SubflowWiring {
    fn read(template: &RawNode) -> Self {
        let list = |key: &str| -> Vec<_> {
            let list = template.props.get(key).and_then(Value::as_array);
            list.map(Vec::as_slice).unwrap_or_default().iter().map(read_ends).collect()
        };
        let inputs = list("in").into_iter().next().unwrap_or_default();
        Self { id: template.id.to_string(), inputs, outputs: list("out") }
    }
}

/// Connects an instance's input to the nodes inside, and its outputs to the nodes outside. Returns the number
/// of wires it read.
fn connect_ends(flow: &mut ResolvedFlow, instance: &Instance, wiring: &SubflowWiring) -> usize {
    let inside = wiring.inputs.iter().map(|(id, _)| flow.find_from(instance.inner_scope, id)).collect();
    flow.nodes[instance.entry].wires = vec![inside];
    let mut read = wiring.inputs.len();
    let outside = wires_from(flow, instance.outer_scope, flow.raw.nodes()[instance.raw].props.get("wires"));
    for (out, targets) in instance.outputs.iter().zip(outside) {
        read += targets.len();
        flow.nodes[*out].wires = vec![targets];
    }
    read
}

/// Connects the nodes inside to an instance's outputs. Returns the number of wires it read.
fn connect_outputs(flow: &mut ResolvedFlow, instance: &Instance, wiring: &SubflowWiring) -> usize {
    let mut read = 0;
    for (out, sources) in instance.outputs.iter().zip(&wiring.outputs) {
        read += sources.len();
        for (id, port) in sources {
            let from = if *id == wiring.id {
                Some((instance.entry, 0))
            } else {
                match flow.find_from(instance.inner_scope, id) {
                    Wire::To(ix) => nested_output(flow, ix, *port),
                    Wire::Disabled | Wire::Missing(_) => None,
                }
            };
            let Some((from, port)) = from else { continue };
            let wires = &mut flow.nodes[from].wires;
            if wires.len() <= port {
                wires.resize(port + 1, Vec::new());
            }
            wires[port].push(Wire::To(*out));
        }
    }
    read
}

/// The sender for an output port: for a nested instance, the node that stands for that output; none if it has
/// no such output.
fn nested_output(flow: &ResolvedFlow, ix: NodeIx, port: usize) -> Option<(NodeIx, usize)> {
    let node = &flow.nodes[ix];
    if !node.is_virtual {
        return Some((ix, port));
    }
    flow.find(&format!("{}\noutput {port}", node.id)).map(|out| (out, 0))
}
