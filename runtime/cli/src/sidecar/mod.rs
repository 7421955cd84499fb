//! The sidecar that a command uses instead of the data directory: `--url URL`.

mod client;
mod connect;
mod events;
mod follow;

pub(crate) use client::{SidecarClient, run_path};
pub(crate) use connect::{LocalTarget, connect, connect_local, local_address, select_sidecar};
pub(crate) use events::EventReader;
pub(crate) use follow::Follower;
