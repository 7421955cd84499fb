//! Long memories: those of a data directory, which `redflow memory` and the sidecar use, and those of a sidecar.

mod local;
mod new_entry;
mod problems;
mod remote;
mod vectors;

pub(crate) use local::LocalMemories;
pub(crate) use remote::RemoteMemories;
