//! `redflow credentials`: copies credentials between Node-RED's file and the flow of the sidecar.
//!
//! It prints how many credentials it copies, never which. The store owns their formats.

use crate::args::{
    CredentialsCommand, CredentialsExportOptions, CredentialsImportOptions, CredentialsOptions,
    CredentialsTarget,
};
use crate::config::Settings;
use crate::context::{AppContext, process_env};
use crate::diagnostics::print_report;
use crate::errors::{print_file_error, print_store_error};
use crate::exit::{CommandResult, Exit};
use crate::files::{display_path, read_bounded, read_file};
use crate::terminal::{fail, print_json, print_note};
use crate::text::{count, describe_io_error};
use redflow_contract::code::StoreCode;
use redflow_contract::limits::FlowLimits;
use redflow_contract::secret::{NODE_CREDENTIALS_PREFIX, SHARED_CREDENTIAL_PREFIX};
use redflow_flow::RawFlow;
use redflow_ports::{Credentials, FileStoreError, FlowStore as _, StoreError, StoredFlow, UiStorage as _};
use redflow_store::{
    DriverLock, ExistingFile, FlowFile, MAX_NODE_RED_BYTES, NodeRedCredentials, UiStorageFile,
    decode_node_red, encode_node_red, place_node_red,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The largest file with a secret in bytes.
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// The variable with the secret, if no file is named.
const VARIABLE: &str = "REDFLOW_CREDENTIAL_SECRET";

/// The prefixes under which the Redflow UI stores credentials of one node and of several nodes.
const UI_PREFIXES: [&str; 2] = [NODE_CREDENTIALS_PREFIX, SHARED_CREDENTIAL_PREFIX];

pub(crate) fn credentials(options: &CredentialsOptions, context: &AppContext) -> CommandResult {
    match &options.command {
        CredentialsCommand::Import(options) => import(options, &context.settings),
        CredentialsCommand::Export(options) => export(options, &context.settings),
    }
}

fn import(options: &CredentialsImportOptions, settings: &Settings) -> CommandResult {
    let secret = read_secret(&options.target)?;
    let bytes = read_file(&options.file, MAX_NODE_RED_BYTES).map_err(|error| {
        fail(&format!("{} cannot be read: {}", display_path(&options.file), describe_io_error(&error)))
    })?;
    let imported = decode_node_red(&bytes, secret.as_ref().map(ExposeSecret::expose_secret))
        .map_err(print_file_error)?;
    let data = settings.data_dir().map_err(print_store_error)?;
    // A running sidecar has its own copy and would overwrite the import, so none may run.
    let _lock = DriverLock::take(&data).map_err(print_store_error)?;
    let (store, flows) = flow_store(settings, data)?;
    let StoredFlow { flows: bytes, mut credentials } = load_flow(&store, &flows)?;
    let known = node_ids(&bytes, &flows)?;
    let NodeRedCredentials { credentials: found, odd_nodes, empty_values } = imported;
    let (mut nodes, mut values, mut unknown) = (0, 0, 0);
    for (id, node_credentials) in found {
        if known.contains(id.as_str()) {
            nodes += 1;
            values += node_credentials.len();
            credentials.entry(id).or_default().extend(node_credentials);
        } else {
            unknown += 1;
        }
    }
    if nodes > 0 {
        store.save(&StoredFlow { flows: bytes, credentials }).map_err(print_file_error)?;
    }
    if options.target.json {
        return Ok(print_json(&json!({
            "nodes": nodes, "credentials": values, "unknownNodes": unknown, "oddNodes": odd_nodes,
            "emptyValues": empty_values,
        })));
    }
    print_note(&format!(
        "imported {} of {} into {}",
        count(values, "credential"),
        count(nodes, "node"),
        display_path(&flows)
    ));
    let left_out = [
        (unknown, "node", "not in the flow"),
        (odd_nodes, "node", "with invalid credentials"),
        (empty_values, "value", "empty, or the mask of a secret"),
    ];
    for (number, noun, why) in left_out.into_iter().filter(|(number, ..)| *number > 0) {
        print_note(&format!("left out {}: {why}", count(number, noun)));
    }
    Ok(Exit::Success)
}

fn export(options: &CredentialsExportOptions, settings: &Settings) -> CommandResult {
    let secret = if options.plain { None } else { read_secret(&options.target)? };
    if secret.is_none() && !options.plain {
        return Err(fail(&format!(
            "no secret to encrypt with: name its file with --secret-file, set {VARIABLE}, or write unencrypted with \
             --plain"
        )));
    }
    let data = settings.data_dir().map_err(print_store_error)?;
    let (store, flows) = flow_store(settings, data.clone())?;
    let credentials: Credentials = load_flow(&store, &flows)?.credentials;
    let bytes = encode_node_red(&credentials, secret.as_ref().map(ExposeSecret::expose_secret));
    let bytes = bytes.map_err(print_file_error)?;
    let existing = if options.force { ExistingFile::Replace } else { ExistingFile::Keep };
    place_node_red(&options.file, &bytes, existing).map_err(print_file_error)?;
    let (nodes, values) = (credentials.len(), credentials.values().map(serde_json::Map::len).sum());
    if options.target.json {
        print_ui_credentials(&data);
        return Ok(print_json(
            &json!({"nodes": nodes, "credentials": values, "encrypted": secret.is_some()}),
        ));
    }
    let how = if secret.is_some() { "encrypted" } else { "unencrypted" };
    print_note(&format!(
        "exported {} of {} to {}, {how}",
        count(values, "credential"),
        count(nodes, "node"),
        display_path(&options.file)
    ));
    print_ui_credentials(&data);
    Ok(Exit::Success)
}

/// Prints how many credentials of the Redflow UI are not in the file. Nodes use them, so Node-RED needs them
/// too.
fn print_ui_credentials(data: &Path) {
    let is_of_node = |key: &&String| UI_PREFIXES.iter().any(|start| key.starts_with(start));
    match UiStorageFile::new(data).load().map(|items| items.keys().filter(is_of_node).count()) {
        Ok(0) => {}
        Ok(stored) => print_note(&format!(
            "left out {}: stored by the Redflow UI; enter {} again in Node-RED",
            count(stored, "credential"),
            if stored == 1 { "it" } else { "them" }
        )),
        Err(FileStoreError { code, .. }) => {
            print_note(&format!(
                "left out the credentials of the Redflow UI, which cannot be read: {}",
                code.as_str()
            ));
        }
    }
}

/// Reads Node-RED's secret from the file or the environment.
fn read_secret(target: &CredentialsTarget) -> Result<Option<SecretString>, Exit> {
    let Some(path) = &target.secret_file else {
        return Ok(process_env(VARIABLE).filter(|text| !text.is_empty()).map(SecretString::from));
    };
    let unusable = |why: &str| fail(&format!("the secret cannot be read from {}: {why}", display_path(path)));
    let bytes = read_bounded(path, MAX_SECRET_BYTES).map_err(|error| unusable(&describe_io_error(&error)))?;
    if bytes.len() > MAX_SECRET_BYTES {
        return Err(unusable("it is too large"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unusable("it is not UTF-8 text"))?;
    // Editors end a file with a line feed, which is not part of the secret.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() { Err(unusable("it is empty")) } else { Ok(Some(SecretString::from(text))) }
}

fn flow_store(settings: &Settings, data: PathBuf) -> Result<(FlowFile, PathBuf), Exit> {
    let flows = settings.flows_file().map_err(print_store_error)?;
    Ok((FlowFile::new(flows.clone(), data), flows))
}

fn load_flow(store: &FlowFile, flows: &Path) -> Result<StoredFlow, Exit> {
    let missing = || {
        let text = format!(
            "There is no flow in {} yet, and credentials belong to the nodes of a flow: name its file with --flows, \
             or deploy it first.",
            flows.display()
        );
        print_store_error(StoreError::new(StoreCode::DataUnusable, text))
    };
    store.load().map_err(print_file_error)?.ok_or_else(missing)
}

fn node_ids(flow: &[u8], path: &Path) -> Result<HashSet<String>, Exit> {
    let raw = RawFlow::parse(flow, &FlowLimits::default()).map_err(|report| {
        print_report(None, report);
        fail(&format!("the flow {} cannot be used", display_path(path)))
    })?;
    Ok(raw.nodes().iter().map(|node| node.id.to_string()).collect())
}
