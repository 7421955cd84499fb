//! `redflow confine`: this process becomes the program of an MCP server, which can use only what it needs.

use crate::args::ConfineOptions;
use crate::exit::Exit;
use crate::terminal::fail;
use redflow_worker::Confinement;

/// Returns only if the program cannot be started.
pub(crate) fn confine(options: &ConfineOptions) -> Exit {
    let ConfineOptions { folder, read, write, network, command } = options;
    let Some((program, arguments)) = command.split_first() else {
        return fail("name the program after `--`");
    };
    let confinement = Confinement {
        folder: folder.clone(),
        read: read.clone(),
        write: write.clone(),
        network_none: network.as_deref() == Some("none"),
    };
    fail(&confinement.run(program, arguments).to_string())
}
