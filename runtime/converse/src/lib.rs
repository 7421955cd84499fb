//! AI Agent, the strategy `converse`.
//!
//! Owns the conversation with a model that calls tools natively: the groups of tool calls, the check of the final
//! answer, and the message of the result. Everything here is a pure function of the facts: no clock, no random
//! number, no I/O.
//!
//! # How an AI Agent calls several tools
//!
//! The answer of a model becomes a group of calls (`group`). Calls that cannot be made have their result at once.
//! Of the others, `parallelTools` are open effects, and the rest waits in the machine. Their intents are one
//! batch. Facts come in any order, and the machine keeps the results until the group is complete. Then it appends
//! them in the order of the calls, so no transcript depends on which tool was faster. A run waits for a person
//! only when nothing of the group moves any more.
//!
//! # How an agent for one thing finishes
//!
//! `ai-simple-agent`, `ai-extractor`, `ai-classifier` and `ai-summarizer` are AI Agents whose spec has a `task`.
//! The crate `flow` makes the prompt and the schema of the result; the machine is the same. With tools, the model
//! gives its result with the tool `finish_step`. Without tools it answers with JSON, `{"result": …}`, by a schema,
//! or with text. JSON in a text that follows the schema counts instead of a call too, because some models cannot
//! be forced to call a tool.
//!
//! The machine estimates the tokens of the conversation: what the provider reported last, and the bytes since. At
//! 70 % of `maxTokenLimit` it asks the model for a summary, which replaces old messages (`summary`). At 90 %, or
//! with one iteration left, a message says that only `finish_step` can be called. The list of tools stays as it
//! is, because Claude binds its thoughts to it; `Reply::only` lets the adapter send one tool to other models. The
//! call for a summary is no iteration, and its purpose is part of its digest.
//!
//! # Images and output
//!
//! The machine reads the images from the message that `images` names. It checks them by their first bytes and
//! decodes nothing. An https address becomes the effect `fetch_images`. An image is held once: it moves from the
//! message into the transcript, whose segments all requests share.
//!
//! An agent with `outputFormat: "full"` that fails sends the full output with `response: null`. Otherwise
//! `finishReason` would never be `error`. The error is in `msg.error`.

mod answer_form;
mod compile;
mod final_answer;
mod group;
mod plan_check;
mod requested_call;
mod run;
mod strategy;
mod summary;
mod task;
mod task_result;
mod text_call;

pub use compile::CompiledAgent;
pub use strategy::Converse;

/// The version of the machine of new runs, which journals record. What a machine of one version does with given
/// facts never changes.
///
/// Version 2 asks an agent for one thing without tools for JSON or text instead of a call, takes a result that is
/// written as text, keeps the list of tools as it is, and says when a cost is unknown.
pub const MACHINE_VERSION: u32 = 2;
