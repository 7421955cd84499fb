//! What the console reads.

pub(crate) mod iterations;
pub(crate) mod journals;
