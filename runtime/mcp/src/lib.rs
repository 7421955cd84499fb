//! The client of MCP servers: their tools, resources and prompts become tools and texts of agents.
//!
//! | module | what it owns |
//! |---|---|
//! | `settings` | what the servers need of the process |
//! | `hub` | all servers of a process; implements the ports |
//! | `logins` | sign-ins that have begun |
//! | `node` | the node `mcp-client` |
//! | `server` | one server: its state, its tools, who waits for it |
//! | `connection` | the task that keeps a server connected |
//! | `program` | a server that is a program, with its pipes and its end |
//! | `http` | a server at an address, with its tokens |
//! | `transport` | the bounds of a connection |
//! | `repair` | messages that the library reads wrongly |
//! | `lists` | reading lists, page by page |
//! | `definition` | a definition with its secrets, patterns and effect classes |
//! | `tools`, `schema`, `text` | what a server sends as entries of the registry: checked, cleaned and bounded |
//! | `pins` | approved definitions, and how another one is different |
//! | `call`, `content` | one call, the meaning of its end, and its result |
//! | `input` | what a server asks for before it gives a result |
//! | `times` | how long servers may take |
//! | `warnings` | what is logged about servers, once in a while |
//! | `resources`, `prompts`, `detail` | what else a server has |
//!
//! Everything that a server sends is from a stranger. It is bounded, no text of it is logged as it came, and nothing of
//! it is trusted: a definition counts only with its pin, and an annotation only makes a class stricter.

mod call;
mod connection;
mod content;
mod definition;
mod detail;
pub mod http;
mod hub;
mod input;
mod lists;
mod logins;
mod node;
mod pins;
mod program;
mod prompts;
mod repair;
mod resources;
mod schema;
mod server;
mod settings;
mod text;
mod times;
mod tools;
mod transport;
mod warnings;

pub use hub::McpHub;
pub use node::register;
pub use settings::{ConfineCommand, Confiner, HubSettings};
pub use times::ServerTimes;
