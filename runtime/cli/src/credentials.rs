//! `redflow credentials`: between Node-RED's credentials file and the credentials of the flow here.
//!
//! Owns where they come from and go to, and what is said of that: how many, never which. Their form is the store's.

use crate::args_credentials::{
    CredentialsCommand, CredentialsOptions, ExportOptions, ImportOptions, PlaceOptions,
};
use crate::check::render_one;
use crate::config::Settings;
use crate::files::{read_bounded, read_file, reason, shown};
use crate::terminal::{complain, count, json, refuse, refuse_api, talk};
use crate::{Exit, wiring};
use redflow_contract::api::ApiError;
use redflow_contract::code::StoreCode;
use redflow_contract::limits::FlowLimits;
use redflow_flow::RawFlow;
use redflow_ports::{Credentials, FileStoreError, FlowStore as _, StoreError, StoredFlow, UiStorage as _};
use redflow_store::{
    DriverLock, FlowFile, MAX_NODE_RED_BYTES, NodeRedFile, UiStorageFile, place_node_red, read_node_red,
    write_node_red,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The most bytes of a file with a secret.
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Where the secret is if no file is named.
const VARIABLE: &str = "REDFLOW_CREDENTIAL_SECRET";

/// What the Redflow UI calls the credentials of a node, and those that nodes share.
const OF_NODES: [&str; 2] = ["node-credentials:", "credential:"];

pub(crate) fn credentials(options: &CredentialsOptions, settings: &Settings) -> Exit {
    let done = match &options.command {
        CredentialsCommand::Import(options) => import(options, settings),
        CredentialsCommand::Export(options) => export(options, settings),
    };
    done.unwrap_or_else(|exit| exit)
}

fn import(options: &ImportOptions, settings: &Settings) -> Result<Exit, Exit> {
    let secret = secret(&options.place)?;
    let bytes = read_file(&options.file, MAX_NODE_RED_BYTES).map_err(|error| {
        complain(&format!("{} cannot be read: {}", shown(&options.file), reason(&error)));
        Exit::Unusable
    })?;
    let read =
        read_node_red(&bytes, secret.as_ref().map(ExposeSecret::expose_secret)).map_err(refuse_shelf)?;
    let data = settings.data_dir().map_err(|error| refuse(&error))?;
    // A sidecar that runs has its own copy, and would write over what is put there.
    let _alone = DriverLock::take(&data).map_err(|error| refuse(&error))?;
    let (shelf, flows) = shelf(settings, data)?;
    let StoredFlow { flows: bytes, mut credentials } = load(&shelf, &flows)?;
    let known = ids(&bytes, &flows)?;
    let NodeRedFile { credentials: found, odd_nodes, empty_values } = read;
    let (mut nodes, mut values, mut unknown) = (0, 0, 0);
    for (id, own) in found {
        if known.contains(id.as_str()) {
            nodes += 1;
            values += own.len();
            credentials.entry(id).or_default().extend(own);
        } else {
            unknown += 1;
        }
    }
    if nodes > 0 {
        shelf.save(&StoredFlow { flows: bytes, credentials }).map_err(refuse_shelf)?;
    }
    if options.place.json {
        let told = json!({"nodes": nodes, "credentials": values, "unknownNodes": unknown, "oddNodes": odd_nodes,
                          "emptyValues": empty_values});
        return Ok(json(&told));
    }
    talk(&format!(
        "imported {} of {} into {}",
        count(values, "credential"),
        count(nodes, "node"),
        shown(&flows)
    ));
    let left_out = [
        (unknown, "node", "not in the flow"),
        (odd_nodes, "node", "with something that is no credentials"),
        (empty_values, "value", "empty, or only the mask of a secret"),
    ];
    for (number, noun, why) in left_out.into_iter().filter(|(number, ..)| *number > 0) {
        talk(&format!("left out {}: {why}", count(number, noun)));
    }
    Ok(Exit::Well)
}

fn export(options: &ExportOptions, settings: &Settings) -> Result<Exit, Exit> {
    let secret = if options.plain { None } else { secret(&options.place)? };
    if secret.is_none() && !options.plain {
        complain(&format!(
            "no secret to encrypt with: name its file with --secret-file, set {VARIABLE}, or write in the open with \
             --plain"
        ));
        return Err(Exit::Unusable);
    }
    let data = settings.data_dir().map_err(|error| refuse(&error))?;
    let (shelf, flows) = shelf(settings, data.clone())?;
    let credentials: Credentials = load(&shelf, &flows)?.credentials;
    let bytes = write_node_red(&credentials, secret.as_ref().map(ExposeSecret::expose_secret));
    place_node_red(&options.file, &bytes.map_err(refuse_shelf)?, options.force).map_err(refuse_shelf)?;
    let (nodes, values) = (credentials.len(), credentials.values().map(serde_json::Map::len).sum());
    if options.place.json {
        tell_stored(&data);
        return Ok(json(&json!({"nodes": nodes, "credentials": values, "encrypted": secret.is_some()})));
    }
    let how = if secret.is_some() { "encrypted" } else { "in the open" };
    talk(&format!(
        "exported {} of {} to {}, {how}",
        count(values, "credential"),
        count(nodes, "node"),
        shown(&options.file)
    ));
    tell_stored(&data);
    Ok(Exit::Well)
}

/// Says what is not in it though nodes are built with it: who leaves for Node-RED would miss it there.
fn tell_stored(data: &Path) {
    let is_of_node = |key: &&String| OF_NODES.iter().any(|start| key.starts_with(start));
    match UiStorageFile::new(data).load().map(|items| items.keys().filter(is_of_node).count()) {
        Ok(0) => {}
        Ok(stored) => talk(&format!(
            "left out {}: stored by the Redflow UI; enter {} in Node-RED again",
            count(stored, "credential"),
            if stored == 1 { "it" } else { "them" }
        )),
        Err(FileStoreError { code, .. }) => {
            talk(&format!(
                "left out what the Redflow UI has stored, which cannot be read: {}",
                code.as_str()
            ));
        }
    }
}

/// Node-RED's secret, if one is given.
fn secret(options: &PlaceOptions) -> Result<Option<SecretString>, Exit> {
    let Some(path) = &options.secret_file else {
        return Ok(wiring::process_env(VARIABLE).filter(|text| !text.is_empty()).map(SecretString::from));
    };
    let unusable = |why: &str| {
        complain(&format!("the secret cannot be read from {}: {why}", shown(path)));
        Exit::Unusable
    };
    let bytes = read_bounded(path, MAX_SECRET_BYTES).map_err(|error| unusable(&reason(&error)))?;
    if bytes.len() > MAX_SECRET_BYTES {
        return Err(unusable("it is too large"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unusable("it is no text"))?;
    // Editors end a file with a line feed, which is not part of it.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() { Err(unusable("it is empty")) } else { Ok(Some(SecretString::from(text))) }
}

fn shelf(settings: &Settings, data: PathBuf) -> Result<(FlowFile, PathBuf), Exit> {
    let flows = settings.flows_file().map_err(|error| refuse(&error))?;
    Ok((FlowFile::new(flows.clone(), data), flows))
}

fn load(shelf: &FlowFile, flows: &Path) -> Result<StoredFlow, Exit> {
    let none = || {
        let text = format!(
            "There is no flow in {} yet, and credentials belong to the nodes of one: name its file with --flows, or \
             deploy it first.",
            flows.display()
        );
        refuse(&StoreError::new(StoreCode::DataUnusable, text))
    };
    shelf.load().map_err(refuse_shelf)?.ok_or_else(none)
}

/// The ids of all nodes of a flow.
fn ids(flow: &[u8], path: &Path) -> Result<HashSet<String>, Exit> {
    let raw = RawFlow::parse(flow, &FlowLimits::default()).map_err(|report| {
        report.diagnostics.iter().for_each(|problem| talk(&render_one(problem)));
        complain(&format!("the flow {} cannot be used", shown(path)));
        Exit::Unusable
    })?;
    Ok(raw.nodes().iter().map(|node| node.id.to_string()).collect())
}

fn refuse_shelf(FileStoreError { code, message }: FileStoreError) -> Exit {
    refuse_api(&ApiError { code, message, report: None, revision: None }, &[])
}
