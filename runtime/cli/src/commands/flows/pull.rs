//! `redflow flows pull`.

use super::target::{fetch, require_node_red};
use crate::args::PullOptions;
use crate::config::Settings;
use crate::exit::{CommandResult, Exit};
use crate::files::{Overwrite, display_path, is_stdio, read_file, write_file};
use crate::terminal::{fail, print_json, print_note, print_pretty_json};
use crate::text::{count, describe_io_error};
use redflow_node_red::DeployedFlow;
use serde_json::json;
use std::io::ErrorKind;
use std::path::Path;

pub(super) fn pull(options: &PullOptions, settings: &Settings) -> CommandResult {
    let node_red = require_node_red(settings)?;
    let DeployedFlow { flows, rev } = fetch(&node_red)?;
    let nodes = flows.as_array().map_or(0, Vec::len);
    let file = &options.file;
    let document = json!({"flows": flows, "rev": rev});
    if is_stdio(file) {
        return Ok(if options.target.json { print_json(&document) } else { print_pretty_json(&document) });
    }
    let text = serde_json::to_string_pretty(&document).unwrap_or_default() + "\n";
    let written = write_if_different(file, text.as_bytes(), options.force)?;
    if options.target.json {
        let file = file.display().to_string();
        return Ok(print_json(&json!({"file": file, "revision": rev, "nodes": nodes, "written": written})));
    }
    let what = if written { "written" } else { "is what Node-RED has" };
    print_note(&format!("{} {what}: {}", display_path(file), count(nodes, "node")));
    Ok(Exit::Success)
}

/// Writes a file unless it has this content already. Gives whether it was written.
fn write_if_different(file: &Path, bytes: &[u8], force: bool) -> Result<bool, Exit> {
    let name = display_path(file);
    match read_file(file, bytes.len()) {
        Ok(content) if content == bytes => return Ok(false),
        Ok(_) if !force => {
            return Err(fail(&format!(
                "{name} exists with other content; `redflow flows diff` shows the differences, --force overwrites it"
            )));
        }
        Err(error) if error.kind() != ErrorKind::NotFound && !force => {
            return Err(fail(&format!("cannot read {name}: {}", describe_io_error(&error))));
        }
        _ => {}
    }
    write_file(file, bytes, Overwrite::from_force(force))
        .map_err(|error| fail(&format!("cannot write {name}: {}", describe_io_error(&error))))?;
    Ok(true)
}
