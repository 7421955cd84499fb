//! `redflow worker`: this process reads one document for another `redflow`.

use crate::exit::{CommandResult, Exit};
use crate::terminal::fail;

pub(crate) fn worker(no_filter: bool) -> CommandResult {
    redflow_worker::run(!no_filter).map(|()| Exit::Success).map_err(|error| fail(&error.to_string()))
}
