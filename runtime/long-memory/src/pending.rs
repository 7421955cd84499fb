//! Turns that are not consolidated yet.

use redflow_contract::archive::{EntryKind, EntryState};
use redflow_ports::EntryFilter;

/// The most turns that the model reads at once.
pub(crate) const MAX_TURNS: usize = 12;

/// The milliseconds of a day.
pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The turns of a session that no fact was made of yet.
pub(crate) fn pending(session: Option<&str>) -> EntryFilter {
    EntryFilter {
        kinds: vec![EntryKind::Episode],
        states: vec![EntryState::Live],
        session: session.map(str::to_owned),
        ..EntryFilter::default()
    }
}
