//! Turns that wait for the next day, because their user has as many new facts today as a day allows. They stay pending,
//! so no fact is lost.

use crate::day_limits::{MAX_NEW_FACTS, new_facts};
use crate::episode::next_version;
use crate::owner::Owner;
use crate::pending::{DAY_MS, MAX_TURNS, pending};
use crate::store::EntryStore;
use redflow_contract::Millis;
use redflow_contract::archive::{Entry, EntryState};
use redflow_contract::day::Day;
use redflow_ports::{ArchiveError, NewEntry};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// The pages of pending turns that are looked through for turns that do not wait.
const MAX_PAGES: usize = 20;
/// Where a turn notes until when it waits.
const WAITS_UNTIL: &str = "waitsUntil";

fn speaker(turn: &Entry) -> Owner {
    Owner::of_speaker(turn.user.as_deref(), turn.session.as_deref())
}

/// Whether a turn waits. It waits for a day at most: after a clock was ahead, its time would be too far away.
fn waits(turn: &Entry, now: Millis) -> bool {
    let until = turn.meta.get(WAITS_UNTIL).and_then(Value::as_u64).unwrap_or(0);
    until > now && until - now <= DAY_MS
}

/// The next version of a turn that waits for the next day.
pub(crate) fn waiting_version(mut turn: Entry, now: Millis) -> NewEntry {
    let tomorrow = Day::of(now).start().saturating_add(DAY_MS);
    turn.meta.insert(WAITS_UNTIL.to_owned(), json!(tomorrow));
    next_version(turn, EntryState::Live)
}

/// The oldest pending turns of a session that do not wait. A user's turns are read in their order, so all after one that
/// waits do too.
pub(crate) async fn pending_turns(
    store: &EntryStore,
    session: &str,
    now: Millis,
) -> Result<Vec<Entry>, ArchiveError> {
    let (mut turns, mut waiting, mut after) = (Vec::new(), HashSet::new(), None::<String>);
    for _ in 0..MAX_PAGES {
        let page = store.list(pending(Some(session)), after.as_deref(), MAX_TURNS).await?;
        after = page.last().map(|turn| turn.key.clone());
        let is_last = page.len() < MAX_TURNS;
        for turn in page {
            let speaker = speaker(&turn);
            if waits(&turn, now) {
                waiting.insert(speaker);
            } else if !waiting.contains(&speaker) {
                turns.push(turn);
            }
            if turns.len() == MAX_TURNS {
                return Ok(turns);
            }
        }
        if is_last {
            break;
        }
    }
    Ok(turns)
}

/// Which of some turns must wait: the first one whose new facts are too many for today, and all later ones of its user.
/// `new` has the number of new facts of each turn.
pub(crate) async fn waiting_turns(
    store: &EntryStore,
    turns: &[Entry],
    new: &[u64],
    now: Millis,
) -> Result<Vec<bool>, ArchiveError> {
    // How many facts each user may still get; none if the user waits.
    let mut rooms: HashMap<Owner, Option<u64>> = HashMap::new();
    let mut waiting = Vec::with_capacity(turns.len());
    for (turn, new) in turns.iter().zip(new) {
        let speaker = speaker(turn);
        let room = match rooms.get(&speaker) {
            Some(room) => *room,
            None if *new == 0 => {
                waiting.push(false);
                continue;
            }
            None => Some(MAX_NEW_FACTS.saturating_sub(new_facts(store, &speaker, now).await?)),
        };
        let left = room.and_then(|room| room.checked_sub(*new));
        waiting.push(left.is_none());
        rooms.insert(speaker, left);
    }
    Ok(waiting)
}
