//! `/flow`: one tab, read, added, replaced and taken away; and `global`, which is what is on no tab.
//!
//! Owns how a tab is cut out of the flow and put back. What is made of the flow is made while nobody else deploys.

use super::assign_ids::{Node, give_ids, text};
use super::deploy::{change, invalid};
use super::refusal::Answer;
use crate::active_flow::ActiveFlow;
use crate::answer::{Problem, json};
use crate::body::{self, Turn, printable};
use crate::deploy::refused;
use crate::routes::Path;
use crate::sidecar::{App, blocking};
use axum::body::Body;
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

/// What is on no tab goes by this name.
const GLOBAL: &str = "global";

/// The parts of a tab or subflow that are lists of its nodes.
const LISTS: [&str; 3] = ["nodes", "configs", "subflows"];

pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path) -> Answer {
    let told = app.active_flow();
    if id != GLOBAL && !is_tab(&told, &id) {
        return Err(unknown(&id).into());
    }
    let answer = blocking(move || {
        let nodes = nodes_of(&told)?;
        Ok(json(200, &if id == GLOBAL { global(nodes) } else { tab(&id, nodes) }))
    });
    Ok(answer.await.and_then(|answer: Result<Response, Problem>| answer)?)
}

pub(crate) async fn add(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Answer {
    let (sent, turn): (Node, Turn) = read(&app, &headers, body).await?;
    if !sent.contains_key("nodes") {
        return Err(invalid("A flow has `nodes`, an array.").into());
    }
    let clock = Arc::clone(&app.clock);
    // Whatever id was sent, as Node-RED does: it may be that of a tab there is.
    let id = clock.message_id();
    let of_tab = id.clone();
    change(app, turn, move |before, limits| {
        let mut nodes = nodes_of(before)?;
        let new = on_tab(&of_tab, sent, &nodes, &*clock)?;
        nodes.extend(new);
        flow(nodes, limits)
    })
    .await?;
    Ok(json(200, &value!({"id": id})))
}

pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Path(id): Path,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let (sent, turn): (Node, Turn) = read(&app, &headers, body).await?;
    let (clock, of_tab) = (Arc::clone(&app.clock), id.clone());
    change(app, turn, move |before, limits| {
        let nodes = nodes_of(before)?;
        if of_tab == GLOBAL {
            let tabs: HashSet<&str> = tab_ids(before).collect();
            let stays = |node: &Node| {
                text(node, "type") == Some("tab") || text(node, "z").is_some_and(|z| tabs.contains(z))
            };
            let new = on_no_tab(sent, &nodes, &*clock)?;
            let rest = nodes.into_iter().filter(stays);
            return flow(rest.chain(new).collect(), limits);
        }
        if !is_tab(before, &of_tab) {
            return Err(unknown(&of_tab));
        }
        let new = on_tab(&of_tab, sent, &nodes, &*clock)?;
        // Where it was before: Node-RED puts it last, and the tabs of an editor change places.
        let place = nodes.iter().take_while(|node| !is_on(node, &of_tab)).count();
        let mut rest: Vec<Node> = nodes.into_iter().filter(|node| !is_on(node, &of_tab)).collect();
        rest.splice(place..place, new);
        flow(rest, limits)
    })
    .await?;
    Ok(json(200, &value!({"id": id})))
}

pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path,
    body: Body,
) -> Answer {
    body::none(body, &app.settings).await?;
    if id == GLOBAL {
        let text = "`global` cannot be taken away. PUT it without what is to go.";
        return Err(Problem::new(ApiCode::RequestInvalid, text).into());
    }
    change(app, None, move |before, limits| {
        if !is_tab(before, &id) {
            return Err(unknown(&id));
        }
        let rest = nodes_of(before)?.into_iter().filter(|node| !is_on(node, &id));
        flow(rest.collect(), limits)
    })
    .await?;
    // The Redflow UI reads every answer as JSON, and takes none for a failure.
    if caller.by == AuthMethod::RedflowUi {
        return Ok(json(200, &value!({})));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<(Node, Turn), Problem> {
    let (document, turn) = body::flow(headers, body, &app.settings).await?;
    match document {
        Value::Object(sent) => Ok((sent, turn)),
        _ => Err(invalid("The body is an object: `{label, nodes}`.")),
    }
}

fn unknown(id: &str) -> Problem {
    Problem::new(ApiCode::NotFound, format!("There is no tab `{}`; /flows has them all.", printable(id)))
}

/// The ids of tabs, also of those that are only named by their nodes.
fn tab_ids(told: &ActiveFlow) -> impl Iterator<Item = &str> {
    let tabs = told.list.flows.iter().filter(|flow| flow.type_name == "tab");
    tabs.map(|flow| flow.id.as_str()).filter(|id| !id.is_empty())
}

fn is_tab(told: &ActiveFlow, id: &str) -> bool {
    tab_ids(told).any(|tab| tab == id)
}

/// Is the tab, or on it.
fn is_on(node: &Node, tab: &str) -> bool {
    text(node, "z") == Some(tab) || is_itself(node, tab)
}

fn is_itself(node: &Node, tab: &str) -> bool {
    text(node, "type") == Some("tab") && text(node, "id") == Some(tab)
}

fn nodes_of(told: &ActiveFlow) -> Result<Vec<Node>, Problem> {
    serde_json::from_str(&told.nodes).map_err(|_| Problem::internal())
}

fn flow(nodes: Vec<Node>, limits: &FlowLimits) -> Result<RawFlow, Problem> {
    RawFlow::from_value(nodes.into_iter().map(Value::Object).collect(), limits).map_err(refused)
}

/// To Node-RED a node without a place is a config node. Nodes that a tool made without one are wired all the same.
fn is_config(node: &Node) -> bool {
    let has = |key| node.contains_key(key);
    let is_node = (has("x") && has("y")) || has("wires") || text(node, "type") == Some("group");
    !is_node
}

/// A tab or subflow with its nodes in it.
fn filled(mut itself: Node, on_it: Vec<Node>) -> Node {
    let (configs, nodes): (Vec<Node>, Vec<Node>) = on_it.into_iter().partition(is_config);
    itself.insert("nodes".to_owned(), list(nodes));
    if !configs.is_empty() {
        itself.insert("configs".to_owned(), list(configs));
    }
    itself
}

fn list(nodes: Vec<Node>) -> Value {
    nodes.into_iter().map(Value::Object).collect()
}

fn tab(id: &str, nodes: Vec<Node>) -> Node {
    let mut itself = Node::new();
    itself.insert("id".to_owned(), Value::from(id));
    let mut on_it = Vec::new();
    for node in nodes {
        if is_itself(&node, id) {
            itself
                .extend(node.into_iter().filter(|(key, _)| key != "type" && !LISTS.contains(&key.as_str())));
        } else if text(&node, "z") == Some(id) {
            on_it.push(node);
        }
    }
    filled(itself, on_it)
}

fn global(nodes: Vec<Node>) -> Node {
    let (templates, rest): (Vec<Node>, Vec<Node>) =
        nodes.into_iter().partition(|node| text(node, "type") == Some("subflow"));
    let mut on_them: HashMap<String, Vec<Node>> = HashMap::new();
    for id in templates.iter().filter_map(|template| text(template, "id")) {
        on_them.insert(id.to_owned(), Vec::new());
    }
    let mut configs = Vec::new();
    for node in rest.into_iter().filter(|node| text(node, "type") != Some("tab")) {
        match text(&node, "z").filter(|z| !z.is_empty()).map(str::to_owned) {
            None => configs.push(node),
            // What is not on a subflow is on a tab, if only by naming it.
            Some(z) => {
                if let Some(on_it) = on_them.get_mut(&z) {
                    on_it.push(node);
                }
            }
        }
    }
    let mut itself = Node::new();
    itself.insert("id".to_owned(), Value::from(GLOBAL));
    if !configs.is_empty() {
        itself.insert("configs".to_owned(), list(configs));
    }
    if !templates.is_empty() {
        let with_nodes = |template: Node| {
            let on_it = text(&template, "id").and_then(|id| on_them.remove(id)).unwrap_or_default();
            filled(template, on_it)
        };
        let subflows = templates.into_iter().map(with_nodes).collect();
        itself.insert("subflows".to_owned(), list(subflows));
    }
    itself
}

/// The nodes of a list of a body, each with an id.
fn taken(sent: &mut Node, key: &str) -> Result<Vec<Node>, Problem> {
    let nodes = match sent.shift_remove(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(nodes)) => nodes,
        Some(_) => return Err(invalid(format!("`{key}` is an array of nodes."))),
    };
    let mut taken = Vec::with_capacity(nodes.len());
    for node in nodes {
        let Value::Object(node) = node else {
            return Err(invalid(format!("Every entry of `{key}` is an object with a `type`.")));
        };
        taken.push(node);
    }
    Ok(taken)
}

/// Nodes of a body that are to be on a tab or subflow.
fn contents(sent: &mut Node, active_flow: &[Node], clock: &dyn Clock) -> Result<Vec<Node>, Problem> {
    let mut nodes = taken(sent, "nodes")?;
    nodes.extend(taken(sent, "configs")?);
    if nodes.iter().any(|node| matches!(text(node, "type"), Some("tab" | "subflow"))) {
        return Err(invalid(
            "A tab holds neither tabs nor subflows. Add a tab by itself, subflows to `global`.",
        ));
    }
    give_ids(&mut nodes, active_flow, &|| clock.message_id());
    Ok(nodes)
}

fn put_on(nodes: &mut [Node], tab: &str) {
    for node in nodes {
        node.insert("z".to_owned(), Value::from(tab));
    }
}

/// A tab of a body: itself, and what is on it.
fn on_tab(id: &str, mut sent: Node, active_flow: &[Node], clock: &dyn Clock) -> Result<Vec<Node>, Problem> {
    let mut nodes = contents(&mut sent, active_flow, clock)?;
    put_on(&mut nodes, id);
    let mut itself = Node::new();
    itself.insert("id".to_owned(), Value::from(id));
    itself.insert("type".to_owned(), Value::from("tab"));
    let own = |key: &str| !["id", "type", "subflows"].contains(&key);
    itself.extend(sent.into_iter().filter(|(key, _)| own(key)));
    nodes.insert(0, itself);
    Ok(nodes)
}

/// What a body has for no tab: config nodes and subflows.
fn on_no_tab(mut sent: Node, active_flow: &[Node], clock: &dyn Clock) -> Result<Vec<Node>, Problem> {
    let mut nodes = taken(&mut sent, "configs")?;
    let is_misplaced = |node: &Node| {
        matches!(text(node, "type"), Some("tab" | "subflow"))
            || text(node, "z").is_some_and(|z| !z.is_empty())
    };
    if nodes.iter().any(is_misplaced) {
        return Err(invalid(
            "`configs` of `global` are on no tab: they have no `z`, and are neither tabs nor subflows.",
        ));
    }
    give_ids(&mut nodes, active_flow, &|| clock.message_id());
    for mut template in taken(&mut sent, "subflows")? {
        if text(&template, "type") != Some("subflow") {
            return Err(invalid("Every entry of `subflows` is of the type `subflow`."));
        }
        let mut on_it = contents(&mut template, active_flow, clock)?;
        let Some(id) = text(&template, "id").map(str::to_owned) else {
            return Err(invalid("Every entry of `subflows` has an `id`."));
        };
        put_on(&mut on_it, &id);
        nodes.push(template);
        nodes.extend(on_it);
    }
    Ok(nodes)
}
