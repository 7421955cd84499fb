//! Node-RED's Admin API, as far as tools and the Redflow UI use it.
//!
//! Owns the shapes that are Node-RED's: versions, revisions, deployment types, its error codes. What is done is done
//! by the same parts as for `/api`.

mod assign_ids;
pub(crate) mod comms;
pub(crate) mod deploy;
pub(crate) mod editor_notices;
mod encode;
pub(crate) mod info;
pub(crate) mod inject;
mod refusal;
pub(crate) mod tabs;
