//! `redflow flows push`. Never replaces a flow that the user has not seen, except with `--force`.

use super::diff::{compare, format_differences};
use super::target::{fetch, read, require_node_red};
use crate::args::PushOptions;
use crate::context::AppContext;
use crate::diagnostics::print_report;
use crate::errors::print_api_error;
use crate::exit::{CommandResult, Exit};
use crate::files::{Overwrite, display_path, is_stdio, write_file};
use crate::session::new_runtime;
use crate::terminal::{fail, print_error, print_json, print_note};
use crate::text::{count, describe_io_error};
use redflow_contract::code::Severity;
use redflow_contract::diagnostic::CheckReport;
use redflow_flow::RawFlow;
use redflow_node_red::NodeRed;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn push(options: &PushOptions, context: &AppContext) -> CommandResult {
    let node_red = require_node_red(&context.settings)?;
    let (bytes, flow) = read(&options.file)?;
    if !options.no_check {
        check(context, &options.file, &bytes)?;
    }
    let pulled = pulled_rev(&bytes);
    let rev = match &pulled {
        _ if options.force => print_differences(&flow, &node_red)?,
        Some(rev) => rev.clone(),
        None => {
            return Err(fail(&format!(
                "{} does not say which flow of Node-RED it is based on: it has no `rev`. Pull that flow with `redflow \
                 flows pull` and add your nodes to that file. Or see the differences with `redflow flows diff`, and \
                 push with --force",
                display_path(&options.file)
            )));
        }
    };
    let flows = Value::from(flow.to_json());
    let deployed = new_runtime()?.block_on(node_red.deploy(&flows, &rev, options.how.into()));
    let rev = deployed.map_err(print_api_error)?;
    let updated = if pulled.is_some() { update_rev(&options.file, &bytes, &rev) } else { Exit::Success };
    if options.target.json {
        return Ok(print_json(&json!({"revision": rev, "nodes": flow.nodes().len()})).max(updated));
    }
    print_note(&format!("deployed {} in Node-RED at {}", count(flow.nodes().len(), "node"), node_red.url()));
    let with_credentials = flow.nodes().iter().filter(|node| node.props.contains_key("credentials")).count();
    if with_credentials > 0 {
        let nodes = count(with_credentials, "node");
        print_note(&format!(
            "the credentials of {nodes} went along, and are unencrypted in the file: remove them from it"
        ));
    }
    Ok(updated)
}

/// The revision of Node-RED's flow that a file is based on.
fn pulled_rev(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Pulled {
        rev: String,
    }
    let pulled = serde_json::from_slice::<Pulled>(without_bom(bytes)).ok();
    pulled.map(|pulled| pulled.rev).filter(|rev| !rev.is_empty())
}

/// Prints errors and warnings. Errors prevent the deploy.
fn check(context: &AppContext, file: &Path, bytes: &[u8]) -> Result<(), Exit> {
    let report = context.check_report(bytes);
    let is_ok = report.ok;
    let diagnostics = report.diagnostics.into_iter().filter(|problem| problem.severity != Severity::Info);
    print_report(Some(file), CheckReport { diagnostics: diagnostics.collect(), ..report });
    if is_ok {
        return Ok(());
    }
    print_error("the flow has errors and is not deployed; --no-check deploys it anyway");
    Err(Exit::Failure)
}

/// Prints what the push changes, and gives the current revision. If another deploy follows, Node-RED refuses
/// the push.
fn print_differences(flow: &RawFlow, node_red: &NodeRed) -> Result<String, Exit> {
    let deployed = fetch(node_red)?;
    let rev = deployed.rev.clone();
    print_note(format_differences(&compare(flow, deployed)?).trim_end());
    Ok(rev)
}

/// Writes the new revision into the file, so that it can be pushed again.
fn update_rev(file: &Path, bytes: &[u8], rev: &str) -> Exit {
    if is_stdio(file) {
        return Exit::Success;
    }
    let mut document: Value = serde_json::from_slice(without_bom(bytes)).unwrap_or_default();
    document["rev"] = Value::from(rev);
    let text = serde_json::to_string_pretty(&document).unwrap_or_default() + "\n";
    match write_file(file, text.as_bytes(), Overwrite::Allowed) {
        Ok(()) => Exit::Success,
        Err(error) => fail(&format!(
            "the flow is deployed, but its revision cannot be written into {}: {}; pull before you push again",
            display_path(file),
            describe_io_error(&error)
        )),
    }
}

/// Removes the byte order mark that some editors write.
fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}
