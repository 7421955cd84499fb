//! The stored items of the Redflow UI, and the credentials among them.
//!
//! Owns the copy in memory, and which node gets which credentials. Never gives a secret to another node.

use redflow_contract::Message;
use redflow_contract::catalogue::lookup;
use redflow_contract::edge::Role;
use redflow_contract::secret::{
    NODE_CREDENTIALS_PREFIX, PASSWORD_MASK, SHARED_CREDENTIAL_PREFIX, is_credential_detail,
};
use redflow_flow::{RawFlow, RawNode};
use redflow_ports::{Credentials, FileStoreError, UiStorage};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Values by their keys.
pub(crate) type Items = BTreeMap<String, Value>;

/// Prefixes of the keys that nodes are built with.
const NODE_PREFIXES: [&str; 3] = [NODE_CREDENTIALS_PREFIX, "node-config:", SHARED_CREDENTIAL_PREFIX];

/// All stored items. The deploy lock is held while they change.
pub(crate) struct StoredItems {
    storage: Arc<dyn UiStorage>,
    items: RwLock<Arc<Items>>,
}

impl StoredItems {
    pub(crate) fn open(storage: Arc<dyn UiStorage>) -> Result<Arc<Self>, FileStoreError> {
        let items = RwLock::new(Arc::new(storage.load()?));
        Ok(Arc::new(Self { storage, items }))
    }

    pub(crate) fn items(&self) -> Arc<Items> {
        Arc::clone(&self.items.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces all items, first on disk and then in memory.
    pub(super) fn replace(&self, items: Items) -> Result<(), FileStoreError> {
        self.storage.save(&items)?;
        *self.items.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(items);
        Ok(())
    }

    /// The credentials that the nodes of a flow are built with. Stored credentials of models, memories and
    /// tools override those of the flow.
    pub(crate) fn merge_credentials(&self, flow: &RawFlow, own: &Credentials) -> Credentials {
        merge_credentials(&self.items(), flow, own)
    }
}

/// See [`StoredItems::merge_credentials`].
pub(super) fn merge_credentials(items: &Items, flow: &RawFlow, own: &Credentials) -> Credentials {
    let mut all = own.clone();
    if items.is_empty() {
        return all;
    }
    let is_service =
        |node: &&RawNode| matches!(lookup(&node.type_name).role, Role::Model | Role::Memory | Role::Tool);
    for node in flow.nodes().iter().filter(is_service) {
        let (_, stored) = stored_credentials(items, node.id.as_str(), node.text("credentialId"));
        if !stored.is_empty() {
            all.entry(node.id.clone()).or_default().extend(stored);
        }
    }
    all
}

/// The stored credentials of a node, and the id of the shared ones among them. Its own credentials come
/// first, then the shared ones that its stored configuration names, or else those that the node names in
/// `credentialId`.
pub(super) fn stored_credentials(
    items: &Items,
    node: &str,
    credential_id: Option<&str>,
) -> (Option<String>, Message) {
    let get = |prefix: &str, id: &str| items.get(&format!("{prefix}{id}"));
    let config = get("node-config:", node).map(|config| unwrap(config, "config"));
    let config_id = config.and_then(|config| config.get("credentialId")).and_then(Value::as_str);
    let shared = config_id.filter(|id| !id.is_empty()).or(credential_id);
    let mut credentials = Message::new();
    if let Some(stored) = shared.and_then(|id| get(SHARED_CREDENTIAL_PREFIX, id)) {
        credentials.extend(secrets(unwrap(stored, "data")));
    }
    if let Some(stored) = get(NODE_CREDENTIALS_PREFIX, node) {
        credentials.extend(secrets(unwrap(stored, "value")));
    }
    (shared.map(str::to_owned), credentials)
}

/// The object in a property of that name, or else the value itself.
fn unwrap<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).filter(|inner| inner.is_object()).unwrap_or(value)
}

/// The properties of credentials that are secret.
fn secrets(value: &Value) -> impl Iterator<Item = (String, Value)> + '_ {
    let is_secret = |(name, value): &(&String, &Value)| {
        !is_credential_detail(name)
            && value.as_str().is_some_and(|text| !text.is_empty() && text != PASSWORD_MASK)
    };
    let properties = value.as_object().into_iter().flatten();
    properties.filter(is_secret).map(|(name, value)| (name.clone(), value.clone()))
}

/// The items that nodes are built with.
pub(super) fn node_items(items: &Items) -> Vec<(String, Value)> {
    let is_node_item =
        |(key, _): &(&String, &Value)| NODE_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    items.iter().filter(is_node_item).map(|(key, value)| (key.clone(), value.clone())).collect()
}
