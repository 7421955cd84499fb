//! `/flow`: reads, adds, replaces and deletes one tab, or `global`, the nodes on no tab.
//!
//! Owns how a tab is taken out of the flow and put back. Changes are made under the deploy lock.

use super::assign_ids::{Node, assign_ids, text_property};
use super::deploy::{change, invalid};
use super::error::AdminResult;
use crate::active_flow::ActiveFlow;
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::request::Path;
use crate::response::{Problem, json, printable};
use crate::work_slots::{BodySlot, drop_elsewhere};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use redflow_access::{AuthMethod, Caller};
use redflow_contract::code::ApiCode;
use redflow_contract::limits::FlowLimits;
use redflow_flow::RawFlow;
use redflow_ports::Clock;
use serde_json::{Value, json as value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The id that stands for the nodes on no tab.
const GLOBAL: &str = "global";

/// The properties of a tab or subflow that list its nodes.
const LISTS: [&str; 3] = ["nodes", "configs", "subflows"];

pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path) -> AdminResult {
    let active = app.active_flow();
    if id != GLOBAL && !is_tab(&active, &id) {
        return Err(unknown_tab(&id).into());
    }
    let response = app.run_blocking(move || {
        let nodes = parse_nodes(&active)?;
        Ok(json(200, &if id == GLOBAL { global(nodes) } else { tab(&id, nodes) }))
    });
    Ok(response.await.and_then(|response: Result<Response, Problem>| response)?)
}

pub(crate) async fn add(State(app): State<Arc<App>>, headers: HeaderMap, body: RequestBody) -> AdminResult {
    let (sent, slot) = read_tab(&app, &headers, body).await?;
    let clock = Arc::clone(&app.clock);
    // Ignores the id in the body, as Node-RED does, because a tab may already have it.
    let id = clock.message_id();
    let tab_id = id.clone();
    change(app, slot, move |before, limits| {
        if !sent.contains_key("nodes") {
            return Err(invalid("A flow must have `nodes`, an array."));
        }
        let mut nodes = parse_nodes(before)?;
        let new = tab_nodes(&tab_id, sent, &nodes, &*clock)?;
        nodes.extend(new);
        to_flow(nodes, limits)
    })
    .await?;
    Ok(json(200, &value!({"id": id})))
}

pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Path(id): Path,
    headers: HeaderMap,
    body: RequestBody,
) -> AdminResult {
    let (sent, slot) = read_tab(&app, &headers, body).await?;
    let (clock, tab_id) = (Arc::clone(&app.clock), id.clone());
    change(app, slot, move |before, limits| {
        let nodes = parse_nodes(before)?;
        if tab_id == GLOBAL {
            let tabs: HashSet<&str> = tab_ids(before).collect();
            let is_on_tab = |node: &Node| {
                text_property(node, "type") == Some("tab")
                    || text_property(node, "z").is_some_and(|z| tabs.contains(z))
            };
            let new = global_nodes(sent, &nodes, &*clock)?;
            let rest = nodes.into_iter().filter(is_on_tab);
            return to_flow(rest.chain(new).collect(), limits);
        }
        if !is_tab(before, &tab_id) {
            return Err(unknown_tab(&tab_id));
        }
        let new = tab_nodes(&tab_id, sent, &nodes, &*clock)?;
        // The tab stays where it was. Node-RED puts it last, so that the tabs of an editor change places.
        let index = nodes.iter().take_while(|node| !belongs_to(node, &tab_id)).count();
        let mut rest: Vec<Node> = nodes.into_iter().filter(|node| !belongs_to(node, &tab_id)).collect();
        rest.splice(index..index, new);
        to_flow(rest, limits)
    })
    .await?;
    Ok(json(200, &value!({"id": id})))
}

pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path,
    body: RequestBody,
) -> AdminResult {
    body::expect_none(body, &app).await?;
    if id == GLOBAL {
        let text = "`global` cannot be deleted. PUT it without the nodes to remove.";
        return Err(Problem::new(ApiCode::RequestInvalid, text).into());
    }
    change(app, None, move |before, limits| {
        if !is_tab(before, &id) {
            return Err(unknown_tab(&id));
        }
        let rest = parse_nodes(before)?.into_iter().filter(|node| !belongs_to(node, &id));
        to_flow(rest.collect(), limits)
    })
    .await?;
    // The Redflow UI parses every response as JSON and takes an empty one for a failure.
    if caller.auth_method == AuthMethod::RedflowUi {
        return Ok(json(200, &value!({})));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn read_tab(app: &App, headers: &HeaderMap, body: RequestBody) -> Result<(Node, BodySlot), Problem> {
    let (document, slot) = body::read_flow(headers, body, app).await?;
    match document {
        Value::Object(sent) => Ok((sent, slot)),
        other => {
            drop_elsewhere(other);
            Err(invalid("The body must be an object: `{label, nodes}`."))
        }
    }
}

fn unknown_tab(id: &str) -> Problem {
    Problem::new(ApiCode::NotFound, format!("There is no tab `{}`. /flows lists them.", printable(id)))
}

/// The ids of all tabs, including those that only their nodes name.
fn tab_ids(active: &ActiveFlow) -> impl Iterator<Item = &str> {
    let tabs = active.list.flows.iter().filter(|flow| flow.type_name == "tab");
    tabs.map(|flow| flow.id.as_str()).filter(|id| !id.is_empty())
}

fn is_tab(active: &ActiveFlow, id: &str) -> bool {
    tab_ids(active).any(|tab| tab == id)
}

/// Whether a node is the tab, or is on it.
fn belongs_to(node: &Node, tab: &str) -> bool {
    text_property(node, "z") == Some(tab) || is_tab_node(node, tab)
}

fn is_tab_node(node: &Node, tab: &str) -> bool {
    text_property(node, "type") == Some("tab") && text_property(node, "id") == Some(tab)
}

fn parse_nodes(active: &ActiveFlow) -> Result<Vec<Node>, Problem> {
    serde_json::from_str(&active.nodes).map_err(|_| Problem::internal())
}

fn to_flow(nodes: Vec<Node>, limits: &FlowLimits) -> Result<RawFlow, Problem> {
    RawFlow::from_value(nodes.into_iter().map(Value::Object).collect(), limits).map_err(Problem::flow_refused)
}

/// To Node-RED a node without a position is a config node. But a node that a tool made without one still has
/// wires.
fn is_config(node: &Node) -> bool {
    let has = |key| node.contains_key(key);
    let is_node = (has("x") && has("y")) || has("wires") || text_property(node, "type") == Some("group");
    !is_node
}

/// Adds the lists of its nodes to a tab or subflow.
fn with_nodes(mut parent: Node, children: Vec<Node>) -> Node {
    let (configs, nodes): (Vec<Node>, Vec<Node>) = children.into_iter().partition(is_config);
    parent.insert("nodes".to_owned(), to_array(nodes));
    if !configs.is_empty() {
        parent.insert("configs".to_owned(), to_array(configs));
    }
    parent
}

fn to_array(nodes: Vec<Node>) -> Value {
    nodes.into_iter().map(Value::Object).collect()
}

fn tab(id: &str, nodes: Vec<Node>) -> Node {
    let mut tab = Node::new();
    tab.insert("id".to_owned(), Value::from(id));
    let mut children = Vec::new();
    for node in nodes {
        if is_tab_node(&node, id) {
            tab.extend(node.into_iter().filter(|(key, _)| key != "type" && !LISTS.contains(&key.as_str())));
        } else if text_property(&node, "z") == Some(id) {
            children.push(node);
        }
    }
    with_nodes(tab, children)
}

fn global(nodes: Vec<Node>) -> Node {
    let (subflows, rest): (Vec<Node>, Vec<Node>) =
        nodes.into_iter().partition(|node| text_property(node, "type") == Some("subflow"));
    let mut children: HashMap<String, Vec<Node>> = HashMap::new();
    for id in subflows.iter().filter_map(|subflow| text_property(subflow, "id")) {
        children.insert(id.to_owned(), Vec::new());
    }
    let mut configs = Vec::new();
    for node in rest.into_iter().filter(|node| text_property(node, "type") != Some("tab")) {
        match text_property(&node, "z").filter(|z| !z.is_empty()).map(str::to_owned) {
            None => configs.push(node),
            // A node that is not on a subflow is on a tab, even if the flow does not contain that tab.
            Some(z) => {
                if let Some(nodes) = children.get_mut(&z) {
                    nodes.push(node);
                }
            }
        }
    }
    let mut global = Node::new();
    global.insert("id".to_owned(), Value::from(GLOBAL));
    if !configs.is_empty() {
        global.insert("configs".to_owned(), to_array(configs));
    }
    if !subflows.is_empty() {
        let with_children = |subflow: Node| {
            let nodes = text_property(&subflow, "id").and_then(|id| children.remove(id)).unwrap_or_default();
            with_nodes(subflow, nodes)
        };
        let subflows = subflows.into_iter().map(with_children).collect();
        global.insert("subflows".to_owned(), to_array(subflows));
    }
    global
}

/// Removes a list of nodes from a body.
fn take_nodes(sent: &mut Node, key: &str) -> Result<Vec<Node>, Problem> {
    let nodes = match sent.shift_remove(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(nodes)) => nodes,
        Some(_) => return Err(invalid(format!("`{key}` must be an array of nodes."))),
    };
    let to_node = |node| match node {
        Value::Object(node) => Ok(node),
        _ => Err(invalid(format!("Every entry of `{key}` must be an object with a `type`."))),
    };
    nodes.into_iter().map(to_node).collect()
}

/// The nodes of a body that will be on a tab or subflow, each with an id.
fn take_children(sent: &mut Node, active_flow: &[Node], clock: &dyn Clock) -> Result<Vec<Node>, Problem> {
    let mut nodes = take_nodes(sent, "nodes")?;
    nodes.extend(take_nodes(sent, "configs")?);
    if nodes.iter().any(|node| matches!(text_property(node, "type"), Some("tab" | "subflow"))) {
        return Err(invalid(
            "A tab cannot contain tabs or subflows. Add each tab by its own request, subflows to `global`.",
        ));
    }
    assign_ids(&mut nodes, active_flow, &|| clock.message_id());
    Ok(nodes)
}

fn set_tab(nodes: &mut [Node], tab: &str) {
    for node in nodes {
        node.insert("z".to_owned(), Value::from(tab));
    }
}

/// The tab of a body: the tab node, then the nodes on it.
fn tab_nodes(
    id: &str,
    mut sent: Node,
    active_flow: &[Node],
    clock: &dyn Clock,
) -> Result<Vec<Node>, Problem> {
    let mut nodes = take_children(&mut sent, active_flow, clock)?;
    set_tab(&mut nodes, id);
    let mut tab = Node::new();
    tab.insert("id".to_owned(), Value::from(id));
    tab.insert("type".to_owned(), Value::from("tab"));
    let is_kept = |key: &str| !["id", "type", "subflows"].contains(&key);
    tab.extend(sent.into_iter().filter(|(key, _)| is_kept(key)));
    nodes.insert(0, tab);
    Ok(nodes)
}

/// The nodes of a body for `global`: config nodes, and subflows with their nodes.
fn global_nodes(mut sent: Node, active_flow: &[Node], clock: &dyn Clock) -> Result<Vec<Node>, Problem> {
    let mut nodes = take_nodes(&mut sent, "configs")?;
    let is_misplaced = |node: &Node| {
        matches!(text_property(node, "type"), Some("tab" | "subflow"))
            || text_property(node, "z").is_some_and(|z| !z.is_empty())
    };
    if nodes.iter().any(is_misplaced) {
        return Err(invalid(
            "`configs` of `global` must be on no tab: without `z`, and neither tabs nor subflows.",
        ));
    }
    assign_ids(&mut nodes, active_flow, &|| clock.message_id());
    for mut subflow in take_nodes(&mut sent, "subflows")? {
        if text_property(&subflow, "type") != Some("subflow") {
            return Err(invalid("Every entry of `subflows` must have the type `subflow`."));
        }
        let mut children = take_children(&mut subflow, active_flow, clock)?;
        let Some(id) = text_property(&subflow, "id").map(str::to_owned) else {
            return Err(invalid("Every entry of `subflows` must have an `id`."));
        };
        set_tab(&mut children, &id);
        nodes.push(subflow);
        nodes.extend(children);
    }
    Ok(nodes)
}
