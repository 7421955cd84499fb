//! Cursors: which log, and where in it. Opaque to everyone else.

use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::stream::CURSOR_START;
use redflow_ports::EventLog;

/// The cursor of a position.
pub(crate) fn cursor(log: &str, position: u64) -> String {
    format!("{log}.{position:x}")
}

/// The position of a cursor: everything after it is still kept.
pub(crate) fn position(log: &dyn EventLog, cursor: &str) -> Result<u64, ApiError> {
    let bounds = log.bounds();
    if cursor == CURSOR_START {
        return Ok(bounds.oldest);
    }
    let unknown = || {
        let text = "The cursor is not one of this sidecar's events: its data directory is another one, or was \
                    restored. Read what you need of the runs, then subscribe without `after`.";
        ApiError::new(ApiCode::CursorUnknown, text)
    };
    let (id, place) = cursor.rsplit_once('.').ok_or_else(unknown)?;
    let position = u64::from_str_radix(place, 16).map_err(|_| unknown())?;
    if id != log.id() || position > bounds.newest || place.starts_with('+') {
        return Err(unknown());
    }
    if position < bounds.oldest {
        return Err(gone());
    }
    Ok(position)
}

/// What a reader asks for is no longer there.
pub(crate) fn gone() -> ApiError {
    let text = "The events after the cursor are no longer kept. Read what you need of the runs, then subscribe \
                with `after: \"0\"` or without it. `server.events_kept` says how many are kept.";
    ApiError::new(ApiCode::EventsGone, text)
}
