//! `/nodes`, `/settings` and `/diagnostics`: facts about this runtime in Node-RED's format.
//!
//! `version` is the Node-RED version whose Admin API this speaks, because tools compare it to choose their
//! requests. The version of the sidecar is under `redflow`. Never shows a path, an environment variable, or
//! whether a secret is set.

use crate::app::App;
use crate::response::json;
use axum::extract::State;
use axum::response::Response;
use redflow_contract::edge::Role;
use redflow_contract::{catalogue, iso_time, node};
use redflow_ports::Adapters;
use serde::Serialize;
use serde_json::{Value, json as value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The Node-RED whose Admin API this speaks.
const NODE_RED: &str = "4.1.0";

/// The module of Node-RED's own nodes.
const CORE: &str = "node-red";

/// The module of our nodes.
const OURS: &str = "@redflow/runtime";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A node set as Node-RED lists it.
#[derive(Serialize)]
struct NodeSet {
    id: String,
    name: &'static str,
    types: Vec<&'static str>,
    enabled: bool,
    local: bool,
    user: bool,
    module: &'static str,
    version: &'static str,
}

pub(crate) async fn nodes(State(app): State<Arc<App>>) -> Response {
    json(200, &node_sets(&app.flow_builder.adapters))
}

/// The node types that this build runs.
fn node_sets(adapters: &Adapters) -> Vec<NodeSet> {
    let listed = catalogue::CATALOGUE.iter().map(|row| row.name).filter(|name| adapters.can_run(name));
    let built = adapters.models.keys().chain(adapters.memories.keys()).chain(adapters.tools.keys());
    let types: BTreeSet<&str> = listed.chain(built.copied()).chain(adapters.nodes.keys().copied()).collect();
    let mut sets: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for name in types {
        let declaration = node::find(name);
        let is_ours = declaration.node_type.role != Role::Data || declaration.palette.is_some();
        let module = if is_ours { OURS } else { CORE };
        // Node-RED has its link nodes in one set, and every other type that runs here in its own set.
        let set = if module == CORE && name.starts_with("link ") { "link" } else { name };
        sets.entry((module, set)).or_default().push(name);
    }
    let to_set = |((module, name), types)| NodeSet {
        id: format!("{module}/{name}"),
        name,
        types,
        enabled: true,
        local: false,
        user: false,
        module,
        version: if module == CORE { NODE_RED } else { VERSION },
    };
    sets.into_iter().map(to_set).collect()
}

pub(crate) async fn settings() -> Response {
    let settings: Value = value!({
        "httpNodeRoot": "/",
        "version": NODE_RED,
        "redflow": {"version": VERSION},
        // No node that runs here has a context.
        "context": {"default": "", "stores": []},
        "libraries": [],
        "flowFilePretty": true,
        // The sidecar made the key itself.
        "flowEncryptionType": "system",
        "externalModules": {
            "palette": {"allowInstall": false, "allowUpdate": false, "allowUpload": false},
            "modules": {"allowInstall": false},
        },
        "diagnostics": {"enabled": true, "ui": false},
        "runtimeState": {"enabled": false, "ui": false},
    });
    json(200, &settings)
}

pub(crate) async fn diagnostics(State(app): State<Arc<App>>) -> Response {
    let report = value!({
        "report": "diagnostics",
        "scope": "basic",
        "time": {"utc": iso_time(app.clock.now())},
        "os": {"arch": arch(), "platform": platform()},
        "runtime": {
            "version": NODE_RED,
            "redflow": {"version": VERSION},
            "isStarted": app.is_ready(),
            "flows": {"state": "start", "started": true},
            "modules": {CORE: NODE_RED, OURS: VERSION},
            "settings": {
                "available": true,
                "apiMaxLength": app.settings.max_body_bytes,
                "disableEditor": true,
                "flowFilePretty": true,
                "httpAdminRoot": "/",
                "httpNodeRoot": "/",
            },
        },
    });
    json(200, &report)
}

/// The architecture by its Node.js name.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The platform by its Node.js name.
fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}
