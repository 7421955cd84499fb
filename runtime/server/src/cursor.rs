//! Cursors: the id of an event log and a position in it. Opaque to clients.

use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::stream::CURSOR_START;
use redflow_ports::EventLog;

/// Writes the cursor of a position.
pub(crate) fn cursor(log: &str, position: u64) -> String {
    format!("{log}.{position:x}")
}

/// Reads the position out of a cursor. The log still has every event after it.
pub(crate) fn position(log: &dyn EventLog, cursor: &str) -> Result<u64, ApiError> {
    let bounds = log.bounds();
    if cursor == CURSOR_START {
        return Ok(bounds.oldest);
    }
    let unknown = || {
        let text = "The cursor is not from this sidecar's event log. The data directory was replaced or \
                    restored. Read the runs you need, then subscribe without `after`.";
        ApiError::new(ApiCode::CursorUnknown, text)
    };
    let (id, digits) = cursor.rsplit_once('.').ok_or_else(unknown)?;
    let position = u64::from_str_radix(digits, 16).map_err(|_| unknown())?;
    if id != log.id() || position > bounds.newest || digits.starts_with('+') {
        return Err(unknown());
    }
    if position < bounds.oldest {
        return Err(events_gone());
    }
    Ok(position)
}

/// The log has dropped the events that a reader needs next.
pub(crate) fn events_gone() -> ApiError {
    let text = "The events after the cursor are no longer stored. Read the runs you need, then subscribe \
                with `after: \"0\"` or without it. `server.events_kept` sets how many events are stored.";
    ApiError::new(ApiCode::EventsGone, text)
}
