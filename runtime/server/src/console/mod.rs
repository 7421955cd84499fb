//! What the console reads.

pub(crate) mod graph;
pub(crate) mod iterations;
pub(crate) mod journals;
pub(crate) mod report;
