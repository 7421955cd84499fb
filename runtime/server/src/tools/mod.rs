//! `/api/tools`: lists, shows, registers, removes and calls tools.

mod calls;
mod find;
mod internal;
mod list;
mod registration;

pub(crate) use calls::calls;
pub(crate) use find::{ToolChoice, denying_rule};
pub(crate) use internal::internal_tool;
pub(crate) use list::{call, call_tool, list, one};
pub(crate) use registration::{register, remove};
