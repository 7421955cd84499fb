//! What the Redflow UI uses beside Node-RED's Admin API.
//!
//! Owns the shapes that are Redflow's: frames, chats, storage. Never gives a secret back.

pub(crate) mod azure;
pub(crate) mod chat;
mod frame;
pub(crate) mod frames;
mod masked;
pub(crate) mod observability;
mod payloads;
mod preview;
pub(crate) mod storage;
pub(crate) mod stored;
