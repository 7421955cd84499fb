//! Strict mocks of the providers. Each refuses what its provider documents that it refuses, with the recorded body, and
//! remembers what it sent, so that it notices what does not come back as it was.
//!
//! They follow the documentation of the providers and share no code with our wires. So a mistake in a wire cannot hide
//! behind the same mistake here. Where the documentation is unclear, they accept.

mod anthropic;
mod anthropic_answer;
mod anthropic_replay;
mod bad_input;
mod chat;
mod chat_answer;
mod chat_fields;
mod chat_messages;
mod fields;
mod gemini;
mod gemini_answer;
mod known;
mod mock;
mod models;
mod ollama;
mod process;
mod refusals;
mod replay;
mod response;
mod responses;
mod responses_answer;
mod responses_input;
mod schema;
mod script;
mod server;
mod site;
mod state;
mod table;
mod table_rows;
mod transport;
