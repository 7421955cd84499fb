//! What tests, benchmarks and xtask share. No shipped crate uses it.

mod binary;
pub mod hostile;
mod http;
mod process;
#[cfg(unix)]
mod program;
mod sink;
mod token_server;

pub use binary::redflow_binary;
pub use http::{HttpRequest, HttpServer, json_response};
pub use process::{Exit, LoggedProcess, remove_settings};
#[cfg(unix)]
pub use program::{kill_at_home, processes_at_home};
pub use sink::NoEvents;
pub use token_server::TokenServer;
