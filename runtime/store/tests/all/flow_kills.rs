//! Processes that are killed, or have no room or permission, while they store events and flows.

use crate::flow_file::{assert_flow, flow, flow_file, names};
use crate::kit::{events_after, last_batch, start_run_with_event, synced_batch, with_events};
use crate::processes::{as_nobody, in_role, kill_at, output_with_file_limit, set_mode};
use pretty_assertions::assert_eq;
use redflow_ports::{EventLog as _, FlowStore as _, RunStore as _, StoredFlow};
use redflow_store::{EventLogSettings, Store};
use std::path::Path;

fn open(dir: &Path) -> Store {
    Store::open_with_log(dir, EventLogSettings::default()).unwrap()
}

/// The roles of the second process; see `processes::role`.
pub(crate) async fn play_role(role: &str, dir: &Path) {
    match role {
        "two batches with events" => {
            let store = open(dir);
            let mut journal = start_run_with_event(&store, "a").await;
            journal.append(with_events(synced_batch(&["second"]), "a", [2, 3])).await.unwrap();
            panic!("the process was not stopped at the failpoint");
        }
        "save a flow" => {
            let saved = flow_file(dir).save(&large_flow());
            println!("\n{}", saved.map_or_else(|error| error.to_string(), |()| "saved".to_owned()));
        }
        other => panic!("no role {other}"),
    }
}

/// A flow that is large enough to be interrupted in the middle.
fn large_flow() -> StoredFlow {
    let mut large = flow("new");
    large.flows.extend([b' '; 200_000]);
    large
}

/// Events are stored with their batch or not at all, and those of the next process follow them.
#[tokio::test]
async fn events_are_stored_with_their_batch_or_not_at_all() {
    for (point, batches) in [("store.before_commit=2", 1), ("store.after_commit=2", 2)] {
        let dir = tempfile::tempdir().unwrap();
        kill_at(point, "two batches with events", dir.path());
        let store = open(dir.path());
        let stored = store.load(&"a".into()).await.unwrap().unwrap();
        assert_eq!(stored.mark.batches, batches, "{point}");
        let expected: &[&str] = if batches == 1 { &["a 1"] } else { &["a 1", "a 2", "a 3"] };
        assert_eq!(events_after(&store, 0).await, expected, "{point}");
        let next = u32::try_from(expected.len()).unwrap() + 1;
        store.reopen(&stored).append(with_events(last_batch(1), "a", [next])).await.unwrap();
        let all: Vec<String> = (1..=next).map(|seq| format!("a {seq}")).collect();
        assert_eq!(events_after(&store, 0).await, all, "{point}");
        assert_eq!(store.bounds().newest, u64::from(next));
    }
}

/// At whatever step the process dies, the old or the new flow is stored with its own credentials. The next
/// save works as usual.
#[test]
fn a_flow_is_saved_completely_or_not_at_all() {
    // A save writes four files: the old credentials, the credentials, the old flow, the flow.
    let mut points =
        vec![("flow_file.credentials_kept".to_owned(), false), ("flow_file.backed_up".to_owned(), false)];
    for nth in 1..=4 {
        points.push((format!("whole_file.written={nth}"), false));
        points.push((format!("whole_file.placed={nth}"), nth == 4));
    }
    for (point, is_new) in points {
        let dir = tempfile::tempdir().unwrap();
        let flows = flow_file(dir.path());
        flows.save(&flow("older")).unwrap();
        flows.save(&flow("old")).unwrap();
        kill_at(&point, "save a flow", dir.path());
        assert_flow(flows.load().unwrap(), &if is_new { large_flow() } else { flow("old") });
        flows.save(&flow("next")).unwrap();
        assert_flow(flows.load().unwrap(), &flow("next"));
        assert!(
            names(dir.path()).iter().all(|name| !name.ends_with(".part")),
            "{point}: {:?}",
            names(dir.path())
        );
        let before = std::fs::read(dir.path().join("flows.json.bak")).unwrap();
        assert!(before == if is_new { large_flow() } else { flow("old") }.flows, "{point}");
    }
}

#[test]
fn on_a_full_disk_the_old_flow_stays() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    flows.save(&flow("old")).unwrap();
    // Room for the credentials, not for the flow; then for nothing.
    for blocks in [100, 0] {
        let output = output_with_file_limit(blocks, "save a flow", dir.path());
        assert!(output.contains("DATA_FULL: There is no room left for"), "{output}");
        assert_flow(flows.load().unwrap(), &flow("old"));
        assert!(names(dir.path()).iter().all(|name| !name.ends_with(".part")), "{:?}", names(dir.path()));
    }
    flows.save(&large_flow()).unwrap();
    assert_flow(flows.load().unwrap(), &large_flow());
}

#[test]
fn in_a_read_only_directory_the_old_flow_stays() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let flows = flow_file(&data);
    flows.save(&StoredFlow { credentials: Default::default(), ..flow("old") }).unwrap();
    set_mode(&data.join("flows.json"), 0o644);
    set_mode(&data, 0o555);
    set_mode(place.path(), 0o755);
    let output = in_role(as_nobody(place.path()), "save a flow", &data).output().unwrap();
    set_mode(&data, 0o755);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("DATA_READ_ONLY"), "{printed}");
    assert!(printed.contains("cannot be written: allow it"), "{printed}");
    assert_eq!(names(&data), ["flows.json"]);
}
