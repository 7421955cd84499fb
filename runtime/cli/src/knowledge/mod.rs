//! Knowledge bases: those of a data directory, which `redflow kb` and the sidecar use, and those of a sidecar.

mod blocking;
mod content;
mod embedder;
mod expired;
mod local;
mod remote;

pub(crate) use blocking::run_blocking;
pub(crate) use embedder::{Chosen, choose};
pub(crate) use expired::remove_expired_entries;
pub(crate) use local::LocalKnowledge;
pub(crate) use remote::RemoteKnowledge;
