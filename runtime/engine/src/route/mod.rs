//! The path of a message: along the wires of the flow, into runs, and out of them.
//!
//! One queue serves all nodes. A delivery is an entry of the queue, not a task.

mod agent;
mod catch;
mod chats;
mod clear_memory;
mod deliver;
mod flow_tools;
mod host;
mod native;
mod send;
mod start;
mod tool_wait;
