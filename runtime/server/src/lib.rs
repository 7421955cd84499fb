//! The sidecar: a flow that runs, and the interface to it over HTTP and sockets.
//!
//! Owns routes, answers, the socket of events, and which flow is in force. Who may come in is `door`'s; what runs is
//! `engine`'s; where things are kept is behind `ports`. Knows no adapter.

mod admin;
mod answer;
mod beside;
mod body;
mod bridge;
mod cors;
mod cursor;
mod deploying;
mod flows;
mod guard;
mod hub;
mod in_force;
mod knowledge;
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
