//! `redflow tools`, one file for each command.

mod check;

pub(crate) use check::check_manifest;
