//! A client of a Node-RED without the bridge: its address, its Admin API, its `/comms`, and forwarded
//! requests.
//!
//! Owns the requests and the meaning of refusals. Every failure is an `ApiError`: `NODE_RED_UNREACHABLE` or
//! `NODE_RED_REFUSED`. Never follows a redirect, retries, reads without bound, or prints a token. Never reads
//! what a flow means.
//!
//! Node-REDs with our palette use `ws /bridge` instead; the crate `server` has it.

mod address;
mod client;
mod forward;
mod socket;

pub use address::{TOKEN_VARIABLE, parse_address};
pub use client::{DeployType, DeployedFlow, NodeRed};
pub use forward::{ProxyError, ProxyRequest, ProxyResponse};
pub use socket::{Comms, CommsEvent, Socket};
