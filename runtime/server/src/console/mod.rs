//! What the sidecar serves for its own page, the console.

pub(crate) mod assets;
pub(crate) mod files;
pub(crate) mod graph;
pub(crate) mod iterations;
pub(crate) mod journals;
mod names;
pub(crate) mod report;
pub(crate) mod stats;
pub(crate) mod traces;
pub(crate) mod tree;
