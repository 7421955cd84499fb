//! Chat histories: the newest items of each chat node, in the database or in memory.

pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod queue;
pub(crate) mod rows;
