//! Node-RED's Admin API, as far as tools and the Redflow UI use it.
//!
//! Owns the formats of that API: versions, revisions, deployment types and error codes. The work is done by
//! the same modules as for `/api`.

mod assign_ids;
pub(crate) mod comms;
pub(crate) mod deploy;
pub(crate) mod editor_notices;
mod encode;
mod error;
pub(crate) mod info;
pub(crate) mod inject;
pub(crate) mod notice_writer;
pub(crate) mod tabs;
