//! `redflow confine`: this process becomes the program of an MCP server, which can use only what it needs.

use crate::args::ConfineOptions;
use crate::exit::Exit;
use crate::terminal::fail;
use redflow_worker::{Confinement, check_namespaces};
use std::process::ExitCode;

/// The exit code of the program, if another process became it.
pub(crate) fn confine(options: &ConfineOptions) -> Result<ExitCode, Exit> {
    let ConfineOptions { check, namespaces, folder, read, write, network, command } = options;
    let failed = |error: redflow_worker::ConfineError| fail(&error.to_string());
    if *check {
        return check_namespaces().map_err(failed);
    }
    let (Some(folder), Some((program, arguments))) = (folder, command.split_first()) else {
        return Err(fail("name the folder with --folder, and the program after `--`"));
    };
    let confinement = Confinement {
        folder: folder.clone(),
        read: read.clone(),
        write: write.clone(),
        network_none: network.as_deref() == Some("none"),
        namespaces: *namespaces,
    };
    confinement.run(program, arguments).map_err(failed)
}
