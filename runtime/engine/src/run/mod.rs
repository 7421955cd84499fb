//! One run of an agent: how it begins, works, stops, and continues after a crash.
//!
//! A run is a future. The task sees only its exit and the messages it sends.

mod admit;
pub(crate) mod begin;
mod budget;
mod call_tool;
pub(crate) mod computations;
pub(crate) mod control;
pub(crate) mod drive;
mod effect_context;
mod effects;
pub(crate) mod exit;
pub(crate) mod input_details;
pub(crate) mod maintenance_job;
pub(crate) mod measure;
pub(crate) mod outgoing;
pub(crate) mod rebuild;
pub(crate) mod resume;
pub(crate) mod session_key;
pub(crate) mod size;
pub(crate) mod slots;
mod stage;
pub(crate) mod stream;
mod together;
