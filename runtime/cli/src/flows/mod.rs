//! `redflow flows`: the flow of a Node-RED without the bridge, fetched, deployed, compared.
//!
//! Owns which Node-RED is meant, how a flow file is read for it, and how differences are shown. Never deploys over a flow
//! that nobody has looked at, unless told to.

mod pull;
mod push;

use crate::Exit;
use crate::args_flows::{DiffOptions, FlowsCommand, FlowsOptions};
use crate::check::render_one;
use crate::config::Settings;
use crate::drive::runtime;
use crate::files::read_flow;
use crate::terminal::{complain, count, data, json, printable_line, refuse_api, talk};
use owo_colors::OwoColorize;
use redflow_contract::attached::{FlowDifferences, NodeDifference};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::id::NodeSummary;
use redflow_contract::limits::FlowLimits;
use redflow_flow::{RawFlow, differences};
use redflow_models::transport::{HttpSettings, ReqwestTransport, is_local};
use redflow_node_red::{DeployedFlow, NodeRed, TOKEN_VARIABLE};
use std::fmt::Write as _;
use std::path::Path;

/// Differences that are told one by one; `--json` has all.
const MOST_TOLD: usize = 200;

pub(crate) fn flows(options: &FlowsOptions, settings: &Settings) -> Exit {
    let done = match &options.command {
        FlowsCommand::Pull(options) => pull::pull(options, settings),
        FlowsCommand::Push(options) => push::push(options, settings),
        FlowsCommand::Diff(options) => diff(options, settings),
    };
    done.unwrap_or_else(|exit| exit)
}

/// The Node-RED that is named, with the token for it; none if none is.
pub(crate) fn node_red(settings: &Settings) -> Result<Option<NodeRed>, Exit> {
    let Some(url) = settings.server.node_red.value.clone() else { return Ok(None) };
    let token = settings.node_red_token.clone();
    if token.is_some() && url.scheme() == "http" && !is_local(&url) {
        let address = printable_line(url.as_str(), 200);
        let warning = "warning".yellow().bold().to_string();
        talk(&format!(
            "{warning}: the token in {TOKEN_VARIABLE} goes to {address} as plain text; use https://"
        ));
    }
    // A proxy is for what is elsewhere.
    let proxy = settings.http.proxy.clone().filter(|_| !is_local(&url));
    let http = HttpSettings { proxy, http1_only: true, ..settings.http.clone() };
    let made = ReqwestTransport::new(&http).and_then(|transport| {
        let client = transport.client(&url).clone();
        NodeRed::new(url, client, token)
    });
    made.map(Some).map_err(|text| {
        complain(&text);
        Exit::Unusable
    })
}

/// The same where there has to be one.
fn named(settings: &Settings) -> Result<NodeRed, Exit> {
    node_red(settings)?.ok_or_else(|| {
        complain("no Node-RED is named: give its address with --node-red URL, or in REDFLOW_NODE_RED");
        Exit::Unusable
    })
}

/// The flow that Node-RED has.
fn fetch(node_red: &NodeRed) -> Result<DeployedFlow, Exit> {
    runtime()?.block_on(node_red.flows()).map_err(|error| refuse_api(&error, &[]))
}

/// A flow file, as it is and read.
fn read(path: &Path) -> Result<(Vec<u8>, RawFlow), Exit> {
    let limits = FlowLimits::default();
    let unreadable =
        |problem: Box<Diagnostic>| CheckReport { diagnostics: vec![*problem], ..CheckReport::default() };
    let bytes = read_flow(path, limits.max_bytes).map_err(unreadable);
    let parsed =
        bytes.and_then(|bytes| RawFlow::parse(&bytes, &limits).map(|flow| (bytes, flow.into_flow_file())));
    parsed.map_err(|report| {
        tell_problems(path, report);
        Exit::Unusable
    })
}

fn tell_problems(path: &Path, report: CheckReport) {
    for diagnostic in report.diagnostics {
        talk(&render_one(&Diagnostic { file: Some(path.display().to_string()), ..diagnostic }));
    }
    for (code, number) in report.omitted {
        talk(&format!("… and {number} more of {code}"));
    }
}

fn diff(options: &DiffOptions, settings: &Settings) -> Result<Exit, Exit> {
    let node_red = named(settings)?;
    let (_, mine) = read(&options.file)?;
    let found = compare(&mine, fetch(&node_red)?)?;
    let told = if options.place.json { json(&found) } else { data(&text(&found)) };
    Ok(if found.is_empty() { told } else { told.max(Exit::Fault) })
}

/// How a file differs from what Node-RED has.
fn compare(mine: &RawFlow, deployed: DeployedFlow) -> Result<FlowDifferences, Exit> {
    let theirs = RawFlow::from_value(deployed.flows, &FlowLimits::default()).map_err(|report| {
        complain("the flow that Node-RED has cannot be read:");
        tell_problems(Path::new("Node-RED"), report);
        Exit::Unusable
    })?;
    Ok(differences(mine, &theirs))
}

/// Differences as people read them: `+` the file has it, `-` Node-RED has it, `~` both have it.
fn text(found: &FlowDifferences) -> String {
    if found.is_empty() {
        return "nothing differs\n".to_owned();
    }
    let added = found.added.iter().map(|node| format!("{} {}", "+".green().bold(), name(node)));
    let removed = found.removed.iter().map(|node| format!("{} {}", "-".red().bold(), name(node)));
    let changed = found.changed.iter().map(|NodeDifference { node, properties }| {
        let properties = printable_line(&properties.join(", "), 200);
        format!("{} {}: {properties}", "~".yellow().bold(), name(node))
    });
    let mut out = String::new();
    for line in added.chain(removed).chain(changed).take(MOST_TOLD) {
        let _ = writeln!(out, "{line}");
    }
    let all = found.added.len() + found.removed.len() + found.changed.len();
    if all > MOST_TOLD {
        let _ = writeln!(out, "… and {} more; --json has all", all - MOST_TOLD);
    }
    if found.reordered {
        let _ = writeln!(out, "{} the order of nodes", "~".yellow().bold());
    }
    let numbers =
        [(&found.added.len(), "added"), (&found.removed.len(), "removed"), (&found.changed.len(), "changed")];
    let numbers: Vec<String> =
        numbers.iter().map(|(number, what)| format!("{} {what}", count(**number, "node"))).collect();
    let _ = writeln!(out, "{}", numbers.join(", "));
    out
}

fn name(node: &NodeSummary) -> String {
    let (id, kind) = (printable_line(node.id.as_str(), 80), printable_line(&node.type_name, 60));
    if node.name.is_empty() {
        format!("{kind} {id}")
    } else {
        format!("{kind} `{}` ({id})", printable_line(&node.name, 80))
    }
}
