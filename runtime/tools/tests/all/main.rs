//! `http-request-tool` against real servers: over TCP and TLS, with a scripted resolver.

mod credentials;
mod faults;
mod kit;
mod manifest_tools;
mod requests;
