//! What the sidecar serves for its own page, the console.

pub(crate) mod assets;
mod names;
