//! `redflow flows push`.

use super::{compare, fetch, named, read, tell_problems, text};
use crate::args_flows::PushOptions;
use crate::config::Settings;
use crate::drive::runtime;
use crate::exchange::write;
use crate::files::{reason, shown};
use crate::terminal::{complain, count, json, refuse_api, talk};
use crate::{Exit, wiring};
use redflow_contract::code::Severity;
use redflow_contract::diagnostic::CheckReport;
use redflow_flow::RawFlow;
use redflow_node_red::NodeRed;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn push(options: &PushOptions, settings: &Settings) -> Result<Exit, Exit> {
    let node_red = named(settings)?;
    let (bytes, flow) = read(&options.file)?;
    if !options.no_check {
        check(&options.file, &bytes)?;
    }
    let pulled = pulled_rev(&bytes);
    let rev = match &pulled {
        _ if options.force => look_first(&flow, &node_red)?,
        Some(rev) => rev.clone(),
        None => {
            complain(&format!(
                "{} does not say which flow of Node-RED it was made from: it has no `rev`. Pull that flow with `redflow \
                 flows pull`, and put your nodes into its file; or see what would go with `redflow flows diff`, and push \
                 with --force",
                shown(&options.file)
            ));
            return Err(Exit::Unusable);
        }
    };
    let flows = Value::from(flow.to_json());
    let deployed = runtime()?.block_on(node_red.deploy(&flows, &rev, options.how.into()));
    let rev = deployed.map_err(|error| refuse_api(&error, &[]))?;
    let noted = if pulled.is_some() { note(&options.file, &bytes, &rev) } else { Exit::Well };
    if options.place.json {
        return Ok(json(&json!({"revision": rev, "nodes": flow.nodes().len()})).max(noted));
    }
    talk(&format!("deployed {} in Node-RED at {}", count(flow.nodes().len(), "node"), node_red.url()));
    let open = flow.nodes().iter().filter(|node| node.props.contains_key("credentials")).count();
    if open > 0 {
        let nodes = count(open, "node");
        talk(&format!(
            "the credentials of {nodes} went along, and stand in the file in the open: take them out of it"
        ));
    }
    Ok(noted)
}

/// Which flow of Node-RED a file was made from.
fn pulled_rev(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Pulled {
        rev: String,
    }
    serde_json::from_slice::<Pulled>(bare(bytes)).ok().map(|pulled| pulled.rev).filter(|rev| !rev.is_empty())
}

/// Errors keep a flow here; warnings are told.
fn check(file: &Path, bytes: &[u8]) -> Result<(), Exit> {
    let report = match wiring::check(bytes, wiring::profile(), &wiring::adapters()) {
        Ok(checked) => checked.report,
        Err(report) => report,
    };
    let is_ok = report.ok;
    let matters = report.diagnostics.into_iter().filter(|problem| problem.severity != Severity::Info);
    tell_problems(file, CheckReport { diagnostics: matters.collect(), ..report });
    if is_ok {
        return Ok(());
    }
    complain("the flow has errors and is not deployed; --no-check deploys it all the same");
    Err(Exit::Fault)
}

/// What is there now, after telling what would be lost. If another flow comes in between, Node-RED refuses.
fn look_first(flow: &RawFlow, node_red: &NodeRed) -> Result<String, Exit> {
    let deployed = fetch(node_red)?;
    let rev = deployed.rev.clone();
    talk(text(&compare(flow, deployed)?).trim_end());
    Ok(rev)
}

/// Writes into the file what Node-RED calls it now, so that it can be pushed again. All else stays.
fn note(file: &Path, bytes: &[u8], rev: &str) -> Exit {
    if file == Path::new("-") {
        return Exit::Well;
    }
    let mut document: Value = serde_json::from_slice(bare(bytes)).unwrap_or_default();
    document["rev"] = Value::from(rev);
    let text = serde_json::to_string_pretty(&document).unwrap_or_default() + "\n";
    match write(file, text.as_bytes(), true) {
        Ok(()) => Exit::Well,
        Err(error) => {
            complain(&format!(
                "it is deployed, but {} cannot be told so: {}; pull before you push again",
                shown(file),
                reason(&error)
            ));
            Exit::Unusable
        }
    }
}

/// Without the mark that some editors begin a file with.
fn bare(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}
