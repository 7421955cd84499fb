//! Processes killed, or out of room or rights, while they keep events and flows.

use crate::flow_file::{flow, is, names, shelf};
use crate::kit::{begun_with_event, last, now, told_after, with_events};
use crate::processes::{as_nobody, in_role, killed_at, limited, set_mode};
use pretty_assertions::assert_eq;
use redflow_ports::{EventLog as _, FlowStore as _, RunStore as _, StoredFlow};
use redflow_store::{EventLogSettings, Store};
use std::path::Path;

fn open(dir: &Path) -> Store {
    Store::open_with_log(dir, EventLogSettings::default()).unwrap()
}

/// What a second process does here; see `processes::role`.
pub(crate) async fn play(role: &str, dir: &Path) {
    match role {
        "two batches with events" => {
            let store = open(dir);
            let mut journal = begun_with_event(&store, "a").await;
            journal.append(with_events(now(&["second"]), "a", [2, 3])).await.unwrap();
            panic!("the failpoint was passed");
        }
        "save a flow" => {
            let saved = shelf(dir).save(&large());
            println!("\n{}", saved.map_or_else(|error| error.to_string(), |()| "saved".to_owned()));
        }
        other => panic!("no role {other}"),
    }
}

/// A flow of some size, so that there is a middle to be stopped in.
fn large() -> StoredFlow {
    let mut large = flow("new");
    large.flows.extend([b' '; 200_000]);
    large
}

/// Events are there with their batch or not at all, and those of the next life follow them.
#[tokio::test]
async fn events_are_kept_with_their_batch_or_not_at_all() {
    for (point, kept) in [("store.before_commit=2", 1), ("store.after_commit=2", 2)] {
        let dir = tempfile::tempdir().unwrap();
        killed_at(point, "two batches with events", dir.path());
        let store = open(dir.path());
        let stored = store.load(&"a".into()).await.unwrap().unwrap();
        assert_eq!(stored.mark.batches, kept, "{point}");
        let expected: &[&str] = if kept == 1 { &["a 1"] } else { &["a 1", "a 2", "a 3"] };
        assert_eq!(told_after(&store, 0).await, expected, "{point}");
        let next = u32::try_from(expected.len()).unwrap() + 1;
        store.reopen(&stored).append(with_events(last(1), "a", [next])).await.unwrap();
        let all: Vec<String> = (1..=next).map(|seq| format!("a {seq}")).collect();
        assert_eq!(told_after(&store, 0).await, all, "{point}");
        assert_eq!(store.bounds().newest, u64::from(next));
    }
}

/// At whatever step a process dies: the old flow with its credentials, or the new one with its, and the next save
/// is not disturbed.
#[test]
fn a_flow_is_saved_whole_or_not_at_all() {
    // Four files are written: the credentials before, the credentials, the flow before, the flow.
    let mut points =
        vec![("flow_file.credentials_kept".to_owned(), false), ("flow_file.backed_up".to_owned(), false)];
    for nth in 1..=4 {
        points.push((format!("whole_file.written={nth}"), false));
        points.push((format!("whole_file.placed={nth}"), nth == 4));
    }
    for (point, is_new) in points {
        let dir = tempfile::tempdir().unwrap();
        let shelf = shelf(dir.path());
        shelf.save(&flow("older")).unwrap();
        shelf.save(&flow("old")).unwrap();
        killed_at(&point, "save a flow", dir.path());
        is(shelf.load().unwrap(), &if is_new { large() } else { flow("old") });
        shelf.save(&flow("next")).unwrap();
        is(shelf.load().unwrap(), &flow("next"));
        assert!(
            names(dir.path()).iter().all(|name| !name.ends_with(".part")),
            "{point}: {:?}",
            names(dir.path())
        );
        let before = std::fs::read(dir.path().join("flows.json.bak")).unwrap();
        assert!(before == if is_new { large() } else { flow("old") }.flows, "{point}");
    }
}

#[test]
fn without_room_the_old_flow_stays() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    shelf.save(&flow("old")).unwrap();
    // Room for the credentials, not for the flow; then for nothing.
    for blocks in [100, 0] {
        let said = limited(blocks, "save a flow", dir.path());
        assert!(said.contains("DATA_FULL: There is no room left for"), "{said}");
        is(shelf.load().unwrap(), &flow("old"));
        assert!(names(dir.path()).iter().all(|name| !name.ends_with(".part")), "{:?}", names(dir.path()));
    }
    shelf.save(&large()).unwrap();
    is(shelf.load().unwrap(), &large());
}

#[test]
fn where_nothing_can_be_written_the_old_flow_stays() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let shelf = shelf(&data);
    shelf.save(&StoredFlow { credentials: Default::default(), ..flow("old") }).unwrap();
    set_mode(&data.join("flows.json"), 0o644);
    set_mode(&data, 0o555);
    set_mode(place.path(), 0o755);
    let output = in_role(as_nobody(place.path()), "save a flow", &data).output().unwrap();
    set_mode(&data, 0o755);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("DATA_READ_ONLY"), "{said}");
    assert!(said.contains("cannot be written: allow it"), "{said}");
    assert_eq!(names(&data), ["flows.json"]);
}
