//! `redflow import` and `redflow export`: convert flow files between Node-RED and Redflow.
//!
//! Owns which files are read and written. The crate `flow` converts the flows.

use crate::args::{ExportOptions, ImportOptions, Shape};
use crate::context::clock;
use crate::diagnostics::{print_report, unreadable};
use crate::exit::{CommandResult, Exit};
use crate::files::{Overwrite, display_path, is_stdio, read_flow, write_file};
use crate::terminal::{fail, print_note, print_pretty_json};
use crate::text::{count, describe_io_error, printable_line};
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::id::NodeId;
use redflow_contract::iso_time;
use redflow_contract::limits::FlowLimits;
use redflow_flow::{RawFlow, TabFile, join_flows, split_by_tab, tab_names};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The most characters of a file name, without its extension.
const MAX_NAME: usize = 60;

/// The most tabs in an error message.
const MAX_LISTED: usize = 20;

pub(crate) fn import(options: &ImportOptions) -> CommandResult {
    let limits = FlowLimits::default();
    let flows = options.flows.iter().map(|path| read(path, &limits)).collect::<Result<Vec<_>, _>>()?;
    for (path, flow) in options.flows.iter().zip(&flows) {
        print_left_out(path, flow);
    }
    let array = join_flows(flows, &limits).map_err(|report| refuse(None, report))?;
    let with_credentials = count_credentials(&array);
    if with_credentials > 0 {
        let nodes = count(with_credentials, "node");
        print_note(&format!(
            "the credentials of {nodes} are unencrypted: deploy them once, and keep no copy"
        ));
    }
    write_files(&[(options.output.clone(), Value::from(array.to_json()))], options.force)
}

pub(crate) fn export(options: &ExportOptions) -> CommandResult {
    let limits = FlowLimits::default();
    let flow = read(&options.flow, &limits)?;
    print_left_out(&options.flow, &flow);
    let mut flow = flow.into_flow_file();
    let with_credentials = count_credentials(&flow);
    flow.take_credentials(&BTreeMap::new());
    let files = match options.to {
        Shape::NodeRed if options.tab.is_some() => {
            return Err(fail("--tab needs --to redflow: an array contains all tabs"));
        }
        Shape::NodeRed => vec![(options.output.clone(), Value::from(flow.to_json()))],
        Shape::Redflow => tab_files(flow, options, &limits)?,
    };
    if with_credentials > 0 {
        print_note(&format!("the credentials of {} are left out", count(with_credentials, "node")));
    }
    write_files(&files, options.force)
}

fn read(path: &Path, limits: &FlowLimits) -> Result<RawFlow, Exit> {
    let bytes = read_flow(path, limits.max_bytes).map_err(unreadable);
    bytes.and_then(|bytes| RawFlow::parse(&bytes, limits)).map_err(|report| refuse(Some(path), report))
}

/// Prints the problems of one flow, or of several together.
fn refuse(path: Option<&Path>, report: CheckReport) -> Exit {
    print_report(path, report);
    Exit::Unusable
}

/// Names the keys next to the nodes of a file, which no other shape has.
fn print_left_out(path: &Path, flow: &RawFlow) {
    let keys = flow.dropped_keys().join("`, `");
    if !keys.is_empty() {
        print_note(&format!("{}: `{}` is left out", display_path(path), printable_line(&keys, 200)));
    }
}

fn count_credentials(flow: &RawFlow) -> usize {
    flow.nodes().iter().filter(|node| node.props.contains_key("credentials")).count()
}

/// The files of the tabs, each with its path.
fn tab_files(
    flow: RawFlow,
    options: &ExportOptions,
    limits: &FlowLimits,
) -> Result<Vec<(PathBuf, Value)>, Exit> {
    let names = tab_names(&flow);
    let only = options.tab.as_ref().map(|tab| find_tab(&names, tab)).transpose()?;
    let now = iso_time(clock().now());
    let files = split_by_tab(flow, only.as_ref(), &now, limits);
    let files = files.map_err(|report| refuse(Some(&options.flow), report))?;
    let (output, is_stdout) = (&options.output, is_stdio(&options.output));
    match files.len() {
        0 => {
            let flow = display_path(&options.flow);
            Err(fail(&format!("{flow} has no nodes: there is nothing to export")))
        }
        1 if is_stdout || !is_folder(output) => {
            Ok(files.into_iter().map(|file| (output.clone(), file.document)).collect())
        }
        many if is_stdout => {
            let choose = "name a folder with -o, or one of them with --tab";
            Err(fail(&format!(
                "the flow has {many} tabs, and Redflow needs one file for each; {choose}:\n{}",
                list_tabs(&names)
            )))
        }
        _ => {
            let mut used = HashMap::new();
            let in_folder = |file: TabFile| (output.join(file_name(&file, &mut used)), file.document);
            Ok(files.into_iter().map(in_folder).collect())
        }
    }
}

/// The tab with this id, else the only tab with this label.
fn find_tab(names: &[(NodeId, String)], tab: &str) -> Result<NodeId, Exit> {
    if let Some((id, _)) = names.iter().find(|(id, _)| id.as_str() == tab) {
        return Ok(id.clone());
    }
    let matching: Vec<(NodeId, String)> = names.iter().filter(|(_, label)| label == tab).cloned().collect();
    let label = printable_line(tab, 60);
    match matching.as_slice() {
        [(id, _)] => Ok(id.clone()),
        [] => Err(fail(&format!("there is no tab `{label}`; there are:\n{}", list_tabs(names)))),
        several => Err(fail(&format!(
            "several tabs are called `{label}`; name one by its id:\n{}",
            list_tabs(several)
        ))),
    }
}

fn list_tabs(names: &[(NodeId, String)]) -> String {
    let line = |(id, label): &(NodeId, String)| {
        format!("  {}  {}", printable_line(id.as_str(), 60), printable_line(label, 60))
    };
    let mut lines: Vec<String> = names.iter().take(MAX_LISTED).map(line).collect();
    if names.len() > MAX_LISTED {
        lines.push(format!("  … and {} more", names.len() - MAX_LISTED));
    }
    lines.join("\n")
}

/// Whether a path is a folder, or ends like one.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// A safe and unique file name for a tab with any label: inside the folder, not hidden, never used twice.
/// `used` holds the next number for each name.
fn file_name(file: &TabFile, used: &mut HashMap<String, usize>) -> String {
    let safe = |c: char| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let plain: String = file.label.chars().take(MAX_NAME).map(safe).collect();
    let plain = plain.trim_matches('-');
    let plain = if plain.is_empty() { "tab" } else { plain };
    // Some file systems ignore the case of letters.
    let mut number = used.get(&plain.to_lowercase()).copied().unwrap_or(1);
    let name = loop {
        let name = if number == 1 { plain.to_owned() } else { format!("{plain}-{number}") };
        number += 1;
        if !used.contains_key(&name.to_lowercase()) {
            break name;
        }
    };
    used.entry(name.to_lowercase()).or_insert(2);
    used.insert(plain.to_lowercase(), number);
    name + ".json"
}

/// Writes all files, or none of them if one exists already.
fn write_files(files: &[(PathBuf, Value)], force: bool) -> CommandResult {
    let mut paths = files.iter().map(|(path, _)| path).filter(|path| !is_stdio(path));
    if let Some(path) = paths.find(|path| path.exists()).filter(|_| !force) {
        return Err(fail(&format!("{} exists already; --force overwrites it", display_path(path))));
    }
    for (path, document) in files {
        if is_stdio(path) {
            return Ok(print_pretty_json(document));
        }
        let text = serde_json::to_string_pretty(document).unwrap_or_default() + "\n";
        write_file(path, text.as_bytes(), Overwrite::from_force(force)).map_err(|error| {
            fail(&format!("cannot write {}: {}", display_path(path), describe_io_error(&error)))
        })?;
        print_note(&format!("wrote {}", display_path(path)));
    }
    Ok(Exit::Success)
}
