//! `redflow flows diff`.

use super::target::{fetch, read, require_node_red};
use crate::args::DiffOptions;
use crate::config::Settings;
use crate::diagnostics::{node_label, print_report};
use crate::exit::{CommandResult, Exit};
use crate::terminal::{fail, print_json, print_text};
use crate::text::{count, printable_line};
use owo_colors::OwoColorize;
use redflow_contract::attached::{FlowDifferences, NodeDifference};
use redflow_contract::limits::FlowLimits;
use redflow_flow::{RawFlow, differences};
use redflow_node_red::DeployedFlow;
use std::fmt::Write as _;
use std::path::Path;

/// The most differences that are printed; `--json` has all.
const MAX_DIFFERENCES: usize = 200;

pub(super) fn diff(options: &DiffOptions, settings: &Settings) -> CommandResult {
    let node_red = require_node_red(settings)?;
    let (_, flow) = read(&options.file)?;
    let found = compare(&flow, fetch(&node_red)?)?;
    let printed =
        if options.target.json { print_json(&found) } else { print_text(&format_differences(&found)) };
    Ok(if found.is_empty() { printed } else { printed.max(Exit::Failure) })
}

/// Compares a flow file with the flow of Node-RED.
pub(super) fn compare(flow: &RawFlow, deployed: DeployedFlow) -> Result<FlowDifferences, Exit> {
    let deployed = RawFlow::from_value(deployed.flows, &FlowLimits::default()).map_err(|report| {
        let exit = fail("the flow of Node-RED cannot be read:");
        print_report(Some(Path::new("Node-RED")), report);
        exit
    })?;
    Ok(differences(flow, &deployed))
}

/// One line per node: `+` only in the file, `-` only in Node-RED, `~` different.
pub(super) fn format_differences(found: &FlowDifferences) -> String {
    if found.is_empty() {
        return "nothing differs\n".to_owned();
    }
    let added = found.added.iter().map(|node| format!("{} {}", "+".green().bold(), node_label(node)));
    let removed = found.removed.iter().map(|node| format!("{} {}", "-".red().bold(), node_label(node)));
    let changed = found.changed.iter().map(|NodeDifference { node, properties }| {
        let properties = printable_line(&properties.join(", "), 200);
        format!("{} {}: {properties}", "~".yellow().bold(), node_label(node))
    });
    let mut out = String::new();
    for line in added.chain(removed).chain(changed).take(MAX_DIFFERENCES) {
        let _ = writeln!(out, "{line}");
    }
    let all = found.added.len() + found.removed.len() + found.changed.len();
    if all > MAX_DIFFERENCES {
        let _ = writeln!(out, "… and {} more; --json has all", all - MAX_DIFFERENCES);
    }
    if found.reordered {
        let _ = writeln!(out, "{} the order of nodes", "~".yellow().bold());
    }
    let numbers =
        [(found.added.len(), "added"), (found.removed.len(), "removed"), (found.changed.len(), "changed")];
    let numbers = numbers.map(|(number, what)| format!("{} {what}", count(number, "node")));
    let _ = writeln!(out, "{}", numbers.join(", "));
    out
}
