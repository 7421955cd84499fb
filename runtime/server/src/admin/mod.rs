//! Node-RED's Admin API, as far as tools and the Redflow UI use it.
//!
//! Owns the shapes that are Node-RED's: versions, revisions, deployment types, its error codes. What is done is done
//! by the same parts as for `/api`.

pub(crate) mod board;
pub(crate) mod comms;
mod copies;
pub(crate) mod deploy;
mod encode;
pub(crate) mod inject;
pub(crate) mod knowledge;
mod refusal;
pub(crate) mod tabs;
