//! The sidecar: a flow that runs, and the interface to it over HTTP and sockets.
//!
//! Owns routes, answers, the socket of events, and which flow is in force. Who may come in is `access`'s; what runs is
//! `engine`'s; where things are kept is behind `ports`. Knows no adapter.

mod active_flow;
mod admin;
mod answer;
mod attached;
mod body;
mod bridge;
mod cors;
mod cursor;
mod deploy;
mod flows;
mod guard;
mod hub;
mod info;
mod pages;
mod peer;
mod redflow_ui;
mod ring;
mod routes;
mod run_events;
mod runs;
mod settings;
mod sidecar;
mod socket;
mod starts;

pub use settings::{Parts, Settings};
pub use sidecar::{Sidecar, StartFailure};
