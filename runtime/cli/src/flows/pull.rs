//! `redflow flows pull`.

use super::{fetch, named};
use crate::Exit;
use crate::args_flows::PullOptions;
use crate::config::Settings;
use crate::exchange::write;
use crate::files::{read_file, reason, shown};
use crate::terminal::{complain, count, json, pretty_json, talk};
use redflow_node_red::DeployedFlow;
use serde_json::json;
use std::io::ErrorKind;
use std::path::Path;

pub(super) fn pull(options: &PullOptions, settings: &Settings) -> Result<Exit, Exit> {
    let node_red = named(settings)?;
    let deployed = fetch(&node_red)?;
    let nodes = deployed.flows.as_array().map_or(0, Vec::len);
    let file = &options.file;
    let DeployedFlow { flows, rev } = deployed;
    let whole = json!({"flows": flows, "rev": rev});
    if file == Path::new("-") {
        return Ok(if options.place.json { json(&whole) } else { pretty_json(&whole) });
    }
    let text = serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n";
    let is_same = put(file, text.as_bytes(), options.force)?;
    if options.place.json {
        let file = file.display().to_string();
        return Ok(json(&json!({"file": file, "revision": rev, "nodes": nodes, "written": !is_same})));
    }
    let what = if is_same { "is what Node-RED has" } else { "written" };
    talk(&format!("{} {what}: {}", shown(file), count(nodes, "node")));
    Ok(Exit::Well)
}

/// Writes a file. Gives whether it was the same already.
fn put(file: &Path, bytes: &[u8], force: bool) -> Result<bool, Exit> {
    let trouble = |text: String| {
        complain(&text);
        Exit::Unusable
    };
    match read_file(file, bytes.len()) {
        Ok(before) if before == bytes => return Ok(true),
        Ok(_) if !force => {
            return Err(trouble(format!(
                "{} is there and holds something else; `redflow flows diff` tells what, --force writes over it",
                shown(file)
            )));
        }
        Err(error) if error.kind() != ErrorKind::NotFound && !force => {
            return Err(trouble(format!("cannot read {}: {}", shown(file), reason(&error))));
        }
        _ => {}
    }
    let written = write(file, bytes, force);
    written.map_err(|error| trouble(format!("cannot write {}: {}", shown(file), reason(&error))))?;
    Ok(false)
}
