//! What the Redflow UI stores, and the credentials among it.
//!
//! Owns the copy of it that counts, how it is changed, and which node takes which credentials out of it. Never gives a
//! secret to anybody but the node it is for.

use super::masked::{MASK, is_open};
use crate::active_flow::{ActiveFlow, FlowBuilder, Prepared};
use crate::answer::Problem;
use crate::sidecar::{App, blocking};
use redflow_contract::Message;
use redflow_contract::catalogue::lookup;
use redflow_contract::edge::Role;
use redflow_flow::{RawFlow, RawNode};
use redflow_ports::{Credentials, FileStoreError, UiStorage};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Values by their keys.
pub(crate) type Items = BTreeMap<String, Value>;

/// Keys of what nodes are built with.
const OF_NODES: [&str; 3] = ["node-credentials:", "node-config:", "credential:"];

/// What is stored. Changed by one at a time: whoever deploys.
pub(crate) struct Stored {
    drawer: Arc<dyn UiStorage>,
    items: RwLock<Arc<Items>>,
}

impl Stored {
    /// Reads what is there.
    pub(crate) fn open(drawer: Arc<dyn UiStorage>) -> Result<Arc<Self>, FileStoreError> {
        let items = RwLock::new(Arc::new(drawer.load()?));
        Ok(Arc::new(Self { drawer, items }))
    }

    pub(crate) fn items(&self) -> Arc<Items> {
        Arc::clone(&self.items.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps this from now on: on the disk first.
    fn replace(&self, items: Items) -> Result<(), FileStoreError> {
        self.drawer.save(&items)?;
        *self.items.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(items);
        Ok(())
    }

    /// The credentials that the nodes of a flow are built with: those of the flow, and over them what is stored for
    /// models, memories and tools.
    pub(crate) fn credentials(&self, flow: &RawFlow, own: &Credentials) -> Credentials {
        overlaid(&self.items(), flow, own)
    }
}

fn overlaid(items: &Items, flow: &RawFlow, own: &Credentials) -> Credentials {
    let mut all = own.clone();
    if items.is_empty() {
        return all;
    }
    let takes =
        |node: &&RawNode| matches!(lookup(&node.type_name).role, Role::Model | Role::Memory | Role::Tool);
    for node in flow.nodes().iter().filter(takes) {
        let (_, given) = given(items, node.id.as_str(), node.text("credentialId"));
        if !given.is_empty() {
            all.entry(node.id.clone()).or_default().extend(given);
        }
    }
    all
}

/// The credentials that are stored for a node, and the id of those it shares with others. What is its own comes first,
/// then what its stored configuration names, or else the node itself.
pub(crate) fn given(items: &Items, node: &str, named: Option<&str>) -> (Option<String>, Message) {
    let get = |start: &str, id: &str| items.get(&format!("{start}{id}"));
    let config = get("node-config:", node).map(|config| inner(config, "config"));
    let of_config = config.and_then(|config| config.get("credentialId")).and_then(Value::as_str);
    let shared = of_config.filter(|id| !id.is_empty()).or(named);
    let mut given = Message::new();
    if let Some(stored) = shared.and_then(|id| get("credential:", id)) {
        given.extend(secrets(inner(stored, "data")));
    }
    if let Some(stored) = get("node-credentials:", node) {
        given.extend(secrets(inner(stored, "value")));
    }
    (shared.map(str::to_owned), given)
}

/// What is wrapped in a property of that name, if it is.
fn inner<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).filter(|inner| inner.is_object()).unwrap_or(value)
}

/// The secrets among the properties of credentials.
fn secrets(value: &Value) -> impl Iterator<Item = (String, Value)> + '_ {
    let is_secret = |(name, value): &(&String, &Value)| {
        !is_open(name) && value.as_str().is_some_and(|text| !text.is_empty() && text != MASK)
    };
    let properties = value.as_object().into_iter().flatten();
    properties.filter(is_secret).map(|(name, value)| (name.clone(), value.clone()))
}

impl App {
    /// Changes what is stored. Credentials that change with it count at once: the flow in force is built anew with them.
    /// It stays the same flow, and its runs go on.
    pub(crate) async fn store<T, C>(&self, change: C) -> Result<T, Problem>
    where
        T: Send + 'static,
        C: FnOnce(&mut Items) -> Result<T, Problem> + Send + 'static,
    {
        let _turn = self.deploying.lock().await;
        let (flow_builder, active_flow) = (self.flow_builder.clone(), self.active_flow());
        let (done, prepared) = blocking(move || {
            let before = flow_builder.stored.items();
            let mut items = (*before).clone();
            let done = change(&mut items)?;
            flow_builder.stored.replace(items)?;
            Ok::<_, Problem>((done, rebuilt(&flow_builder, &active_flow, &before)?))
        })
        .await??;
        if let Some(Prepared { told, built, .. }) = prepared {
            let before = self.exchange(told.clone(), built).await;
            self.tell_changed(&before, &told);
        }
        Ok(done)
    }
}

/// The flow in force with what is stored now, if that changes the credentials of a node.
fn rebuilt(
    flow_builder: &FlowBuilder,
    active_flow: &ActiveFlow,
    before: &Items,
) -> Result<Option<Prepared>, Problem> {
    let after = flow_builder.stored.items();
    let of_nodes = |items: &Items| -> Vec<(String, Value)> {
        let is_of_node = |(key, _): &(&String, &Value)| OF_NODES.iter().any(|start| key.starts_with(start));
        items.iter().filter(is_of_node).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    if of_nodes(before) == of_nodes(&after) {
        return Ok(None);
    }
    let own = &active_flow.credentials;
    let raw = RawFlow::parse(active_flow.nodes.as_bytes(), &flow_builder.settings.flow_limits)
        .map_err(|_| Problem::internal())?;
    if overlaid(before, &raw, own) == overlaid(&after, &raw, own) {
        return Ok(None);
    }
    flow_builder.prepare(raw, own).map(Some).map_err(|_| Problem::internal())
}
