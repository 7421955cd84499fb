//! What the sidecar serves for its own page, the console.

pub(crate) mod assets;
pub(crate) mod files;
mod names;
