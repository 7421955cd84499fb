//! `redflow import` and `redflow export`: flows between Node-RED and Redflow.
//!
//! Owns which file is read and written. What becomes of a flow on the way is `flow`'s.

use crate::args_exchange::{ExportOptions, ImportOptions, Shape};
use crate::check::render_one;
use crate::files::{read_flow, reason, shown};
use crate::terminal::{complain, count, pretty_json, printable_line, talk};
use crate::{Exit, wiring};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::id::NodeId;
use redflow_contract::iso_time;
use redflow_contract::limits::FlowLimits;
use redflow_flow::{RawFlow, TabFile, by_tab, join, tab_names};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Characters of a file's name, without its ending.
const MAX_NAME: usize = 60;

/// Tabs that are listed to choose from.
const MAX_LISTED: usize = 20;

pub(crate) fn import(options: &ImportOptions) -> Exit {
    let limits = FlowLimits::default();
    let mut flows = Vec::new();
    for path in &options.flows {
        match read(path, &limits) {
            Ok(flow) => flows.push(flow),
            Err(report) => return refuse(Some(path), report),
        }
    }
    for (path, flow) in options.flows.iter().zip(&flows) {
        tell_left_out(path, flow);
    }
    let array = match join(flows, &limits) {
        Ok(array) => array,
        Err(report) => return refuse(None, report),
    };
    let with_credentials = credentials_in(&array);
    if with_credentials > 0 {
        let nodes = count(with_credentials, "node");
        talk(&format!("the credentials of {nodes} stand in the open: deploy them once, and keep no copy"));
    }
    put(&[(options.output.clone(), Value::from(array.to_json()))], options.force)
}

pub(crate) fn export(options: &ExportOptions) -> Exit {
    let limits = FlowLimits::default();
    let flow = match read(&options.flow, &limits) {
        Ok(flow) => flow,
        Err(report) => return refuse(Some(&options.flow), report),
    };
    tell_left_out(&options.flow, &flow);
    let mut flow = flow.into_flow_file();
    let with_credentials = credentials_in(&flow);
    flow.take_credentials(&BTreeMap::new());
    let files = match options.to {
        Shape::NodeRed if options.tab.is_some() => {
            complain("--tab is for --to redflow: an array holds all tabs");
            return Exit::Unusable;
        }
        Shape::NodeRed => Ok(vec![(options.output.clone(), Value::from(flow.to_json()))]),
        Shape::Redflow => tabs(flow, options, &limits),
    };
    let files = match files {
        Ok(files) => files,
        Err(exit) => return exit,
    };
    if with_credentials > 0 {
        talk(&format!("the credentials of {} are left out", count(with_credentials, "node")));
    }
    put(&files, options.force)
}

fn read(path: &Path, limits: &FlowLimits) -> Result<RawFlow, CheckReport> {
    let unreadable =
        |problem: Box<Diagnostic>| CheckReport { diagnostics: vec![*problem], ..CheckReport::default() };
    let bytes = read_flow(path, limits.max_bytes).map_err(unreadable)?;
    RawFlow::parse(&bytes, limits)
}

/// Says what is wrong with a flow, or with several together.
fn refuse(path: Option<&PathBuf>, report: CheckReport) -> Exit {
    for diagnostic in report.diagnostics {
        let file = path.map(|path| path.display().to_string());
        talk(&render_one(&Diagnostic { file, ..diagnostic }));
    }
    for (code, number) in report.omitted {
        talk(&format!("… and {number} more of {code}"));
    }
    Exit::Unusable
}

/// Names what stands beside the nodes of a file and is in no shape but its own.
fn tell_left_out(path: &Path, flow: &RawFlow) {
    let beside = flow.beside().join("`, `");
    if !beside.is_empty() {
        talk(&format!("{}: `{}` is left out", shown(path), printable_line(&beside, 200)));
    }
}

fn credentials_in(flow: &RawFlow) -> usize {
    flow.nodes().iter().filter(|node| node.props.contains_key("credentials")).count()
}

/// The files of tabs, and where each goes.
fn tabs(flow: RawFlow, options: &ExportOptions, limits: &FlowLimits) -> Result<Vec<(PathBuf, Value)>, Exit> {
    let names = tab_names(&flow);
    let only = options.tab.as_ref().map(|tab| chosen(&names, tab)).transpose()?;
    let now = iso_time(wiring::clock().now());
    let files = by_tab(flow, only.as_ref(), &now, limits);
    let files = files.map_err(|report| refuse(Some(&options.flow), report))?;
    let (output, is_stdout) = (&options.output, options.output == Path::new("-"));
    match files.len() {
        0 => {
            complain(&format!("{} has no nodes: there is nothing to export", shown(&options.flow)));
            Err(Exit::Unusable)
        }
        1 if is_stdout || !is_folder(output) => {
            Ok(files.into_iter().map(|file| (output.clone(), file.document)).collect())
        }
        many if is_stdout => {
            let choose = "name a folder with -o, or one of them with --tab";
            complain(&format!(
                "the flow has {many} tabs, and Redflow one file for each; {choose}:\n{}",
                list(&names)
            ));
            Err(Exit::Unusable)
        }
        _ => {
            let mut taken = HashMap::new();
            let place = |file: TabFile| (output.join(file_name(&file, &mut taken)), file.document);
            Ok(files.into_iter().map(place).collect())
        }
    }
}

/// The tab with this id, else the only one with this label.
fn chosen(names: &[(NodeId, String)], tab: &str) -> Result<NodeId, Exit> {
    if let Some((id, _)) = names.iter().find(|(id, _)| id.as_str() == tab) {
        return Ok(id.clone());
    }
    let called: Vec<(NodeId, String)> = names.iter().filter(|(_, label)| label == tab).cloned().collect();
    let shown = printable_line(tab, 60);
    match called.as_slice() {
        [(id, _)] => Ok(id.clone()),
        [] => {
            complain(&format!("there is no tab `{shown}`; there are:\n{}", list(names)));
            Err(Exit::Unusable)
        }
        several => {
            complain(&format!("several tabs are called `{shown}`; name one by its id:\n{}", list(several)));
            Err(Exit::Unusable)
        }
    }
}

fn list(names: &[(NodeId, String)]) -> String {
    let line = |(id, label): &(NodeId, String)| {
        format!("  {}  {}", printable_line(id.as_str(), 60), printable_line(label, 60))
    };
    let mut lines: Vec<String> = names.iter().take(MAX_LISTED).map(line).collect();
    if names.len() > MAX_LISTED {
        lines.push(format!("  … and {} more", names.len() - MAX_LISTED));
    }
    lines.join("\n")
}

/// Whether a path is a folder, or is written as one.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// A name for the file of a tab, whatever the tab is called: no other folder, nothing hidden, no name twice. Of each
/// name that is taken it is known which number comes next.
fn file_name(file: &TabFile, taken: &mut HashMap<String, usize>) -> String {
    let safe = |c: char| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let plain: String = file.label.chars().take(MAX_NAME).map(safe).collect();
    let plain = plain.trim_matches('-');
    let plain = if plain.is_empty() { "tab" } else { plain };
    // Some file systems do not tell capitals from small letters.
    let mut number = taken.get(&plain.to_lowercase()).copied().unwrap_or(1);
    let name = loop {
        let name = if number == 1 { plain.to_owned() } else { format!("{plain}-{number}") };
        number += 1;
        if !taken.contains_key(&name.to_lowercase()) {
            break name;
        }
    };
    taken.entry(name.to_lowercase()).or_insert(2);
    taken.insert(plain.to_lowercase(), number);
    name + ".json"
}

/// Writes all files, or none of them if one is there already.
fn put(files: &[(PathBuf, Value)], force: bool) -> Exit {
    let is_file = |path: &&PathBuf| path.as_path() != Path::new("-");
    let there = files.iter().map(|(path, _)| path).filter(is_file).find(|path| path.exists());
    if let Some(path) = there.filter(|_| !force) {
        complain(&format!("{} is there already; --force writes over it", shown(path)));
        return Exit::Unusable;
    }
    for (path, document) in files {
        if path == Path::new("-") {
            return pretty_json(document);
        }
        let text = serde_json::to_string_pretty(document).unwrap_or_default() + "\n";
        if let Err(error) = write(path, text.as_bytes(), force) {
            complain(&format!("cannot write {}: {}", shown(path), reason(&error)));
            return Exit::Unusable;
        }
        talk(&format!("wrote {}", shown(path)));
    }
    Exit::Well
}

pub(crate) fn write(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    if force && std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return replace(&std::fs::canonicalize(path)?, bytes);
    }
    let mut how = OpenOptions::new();
    // Not even one that came a moment ago is written over.
    how.write(true).create(force).create_new(!force);
    how.open(path)?.write_all(bytes)
}

/// Puts a file in the place of another: whole, or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let rights = std::fs::metadata(path)?.permissions();
    let placed = OpenOptions::new().write(true).create_new(true).open(&fresh).and_then(|mut file| {
        file.write_all(bytes)?;
        file.set_permissions(rights)?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)
    });
    if placed.is_err() {
        // It may not even be there.
        let _ = std::fs::remove_file(&fresh);
    }
    placed
}
