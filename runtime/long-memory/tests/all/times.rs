//! Contradictions: what was said later counts, whatever the clock and the messages say about times.

use crate::consolidation::{done, maintain};
use crate::kit::{DAY, NOON, Place, ScriptedModel, TestTurn, decision, fact, model, proposals};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{Entry, EntryKind, EntryState, Trust};
use redflow_ports::{Archive as _, Memory, NewEntry};
use serde_json::{Value, json};
use std::sync::Arc;

/// The first moment of 2024.
const YEAR_2024: u64 = 1_704_067_200_000;

/// A model that quotes the town of a turn, and ends what is close. In Hamburg the user has lived since the day `since`.
fn towns(since: Option<&'static str>) -> Arc<ScriptedModel> {
    model(move |rules, text| {
        if rules.contains("`supersede`") {
            let line: Value = serde_json::from_str(text).unwrap();
            return Ok(decision("supersede", line["known"][0]["id"].as_str()).to_string());
        }
        let town = ["Berlin", "Hamburg"].into_iter().find(|town| text.contains(town)).unwrap();
        let said = format!("I live in the town {town}");
        let mut proposal = fact(&said, &said);
        if town == "Hamburg" {
            proposal["validFrom"] = json!(since);
        }
        Ok(proposals(&[proposal]).to_string())
    })
}

fn place() -> Place {
    // Words decide how close the texts are.
    Place { finds_meaning: false, ..Place::new() }
}

/// Says at a time of the clock where the user lives, in a message with a time of its own. Returns how many facts were
/// ended.
async fn say(place: &Place, memory: &Arc<dyn Memory>, town: &str, (clock, at): (u64, u64)) -> u32 {
    place.clock.set(clock);
    let turn = TestTurn { at, ..TestTurn::new(town) };
    turn.append(memory, &format!("I live in the town {town}"), "Noted.").await.unwrap();
    let [added, _, superseded, ..] = done(&maintain(memory).await);
    assert_eq!(added, 1);
    superseded
}

async fn find(place: &Place, town: &str) -> Entry {
    let all = place.all().await;
    let is_it = |entry: &&Entry| entry.kind == EntryKind::Fact && entry.text.contains(town);
    all.iter().find(is_it).unwrap().clone()
}

#[tokio::test]
async fn what_was_said_later_ends_what_was_said_before() {
    let now = |at: u64| (at, at);
    let rows = [
        ("a day later", now(NOON), now(NOON + DAY), None),
        ("true for longer", now(NOON), now(NOON + DAY), Some("2024-01-01")),
        ("the clock was set back", now(NOON + 30 * DAY), now(NOON), None),
        ("the clock was set back, and true for longer", now(NOON + 30 * DAY), now(NOON), Some("2024-01-01")),
        ("the first message is of the future", (NOON, NOON + 900 * DAY), now(NOON + DAY), None),
        ("both messages are of the future", (NOON, NOON + 900 * DAY), (NOON + DAY, NOON + 800 * DAY), None),
    ];
    for (what, berlin, hamburg, since) in rows {
        let place = place();
        let memory = place.with_model(&json!({}), &towns(since));
        assert_eq!(say(&place, &memory, "Berlin", berlin).await, 0, "{what}");
        assert_eq!(say(&place, &memory, "Hamburg", hamburg).await, 1, "{what}");
        assert_eq!(place.facts(EntryState::Live).await, ["I live in the town Hamburg"], "{what}");
        let (ended, new) = (find(&place, "Berlin").await, find(&place, "Hamburg").await);
        assert_eq!((ended.state, ended.valid_to), (EntryState::Superseded, Some(new.valid_from)), "{what}");
        // Nothing is true in the future only.
        assert!(ended.valid_from <= berlin.0 && new.valid_from <= hamburg.0, "{what}");
        assert_eq!(new.valid_from, if since.is_some() { YEAR_2024 } else { hamburg.0 }, "{what}");
    }
}

#[tokio::test]
async fn an_older_message_that_comes_later_ends_nothing() {
    for since in [None, Some("2024-01-01")] {
        let place = place();
        let memory = place.with_model(&json!({}), &towns(since));
        assert_eq!(say(&place, &memory, "Berlin", (NOON, NOON)).await, 0);
        // An old mail is imported.
        assert_eq!(say(&place, &memory, "Hamburg", (NOON + DAY, NOON - 10 * DAY)).await, 0);
        assert_eq!(place.facts(EntryState::Live).await.len(), 2);
    }
}

#[tokio::test]
async fn a_fact_of_an_earlier_version_was_said_when_it_was_stored_at_the_latest() {
    for valid_from in [NOON, NOON + 900 * DAY, NOON - DAY] {
        let place = place();
        let memory = place.with_model(&json!({}), &towns(None));
        say(&place, &memory, "Berlin", (NOON, NOON)).await;
        let made = find(&place, "Berlin").await;
        // It does not note when it was said.
        let known = NewEntry {
            user: made.user,
            session: made.session,
            trust: Trust::User,
            valid_from: Some(valid_from),
            ..NewEntry::new(made.key, made.kind, made.text)
        };
        place.archive.put("ltm/tab1/n7", vec![known]).await.unwrap();
        assert_eq!(say(&place, &memory, "Hamburg", (NOON + DAY, NOON + DAY)).await, 1, "{valid_from}");
    }
}
