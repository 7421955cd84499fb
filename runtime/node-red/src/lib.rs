//! A Node-RED from outside, without the bridge: its address, its Admin API, its `/comms`.
//!
//! Owns how it is asked and what its refusals mean. Every failure is an `ApiError`: `NODE_RED_UNREACHABLE` or
//! `NODE_RED_REFUSED`. Never follows a redirect, asks twice, reads without bound, or shows a token. What the flows
//! mean is not known here.

mod address;
mod client;
mod forward;
mod socket;

pub use address::parse_address;
pub use client::{DeployType, DeployedFlow, NodeRed, TOKEN_VARIABLE};
pub use forward::{ProxyError, ProxyRequest, ProxyResponse};
pub use socket::{Comms, CommsEvent, Socket};
