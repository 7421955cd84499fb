//! The routes that the Redflow UI uses in addition to Node-RED's Admin API.
//!
//! Owns Redflow's formats: frames, chats, storage. Never sends a secret to a client.

pub(crate) mod azure;
pub(crate) mod chat;
mod frame;
pub(crate) mod frames;
mod masking;
pub(crate) mod missed;
pub(crate) mod observability;
mod payloads;
mod preview;
pub(crate) mod storage;
pub(crate) mod stored_items;
pub(crate) mod wires;
