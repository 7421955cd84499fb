//! Routes that the console reads.

pub(crate) mod stats;
pub(crate) mod tree;
