//! Where runs are read and changed: a data directory or a sidecar.

mod errors;
mod local;
mod remote;
mod source;

pub(crate) use errors::{is_damaged_run, print_run_error, unknown_run};
pub(crate) use local::LocalRuns;
pub(crate) use remote::RemoteRuns;
pub(crate) use source::{Actor, Change, Replayed, RunSource};
