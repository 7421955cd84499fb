//! Processes killed while they remove or copy runs, and copies put back.

use crate::kit::{begun, delivered, first, last, new_run, now};
use crate::processes::{Other, copy_of, in_role, killed_at, this_binary};
use pretty_assertions::assert_eq;
use redflow_contract::id::RunId;
use redflow_ports::{Batch, RunStore};
use redflow_store::{Prune, Reader, Store, prune};
use std::path::Path;

/// Everything that is there is sound, and SQLite finds nothing wrong either.
#[track_caller]
fn all_sound(dir: &Path) -> Vec<RunId> {
    let plain = rusqlite::Connection::open(dir.join("redflow.db")).unwrap();
    let checked: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
    let orphans = "SELECT count(*) FROM batches WHERE run NOT IN (SELECT id FROM runs)";
    assert_eq!(plain.query_row(orphans, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    let reader = Reader::open(dir).unwrap();
    let runs = reader.run_ids().unwrap();
    for run in &runs {
        reader.load(run).unwrap().unwrap();
    }
    runs
}

#[tokio::test]
async fn killed_while_it_prunes() {
    let full = tempfile::tempdir().unwrap();
    let store = Store::open(full.path()).unwrap();
    for run in 0..450 {
        let run = new_run(&format!("run {run}"));
        let soon = |batch: Batch| Batch { durability: redflow_ports::Durability::Buffered, ..batch };
        let mut journal = store.create(run.clone());
        journal.append(soon(first(&run))).await.unwrap();
        journal.append(soon(last(1))).await.unwrap();
        store.delivered(&run.run_id);
    }
    drop(store);
    for (point, left) in [
        ("prune.before_commit=1", 450),
        ("prune.after_commit=1", 250),
        ("prune.before_commit=3", 50),
        ("prune.after_commit=3", 10),
        ("prune.shrinking=1", 10),
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(full.path().join("redflow.db"), dir.path().join("redflow.db")).unwrap();
        killed_at(point, "prune", dir.path());
        assert_eq!(all_sound(dir.path()).len(), left, "{point}");
        // The next one does the rest, and a driver goes on.
        let report = prune(dir.path(), Prune { keep: Some(10), ..Prune::default() }).unwrap();
        assert_eq!(report.runs, left as u64 - 10, "{point}");
        delivered(&Store::open(dir.path()).unwrap(), "new", 1).await;
        assert_eq!(all_sound(dir.path()).len(), 11, "{point}");
    }
}

#[tokio::test]
async fn killed_while_it_copies() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let store = Store::open(&dir).unwrap();
    let mut journal = begun(&store, "large").await;
    for _ in 0..30 {
        journal.append(now(&[&"x".repeat(1024 * 1024)])).await.unwrap();
    }
    delivered(&store, "small", 1).await;
    drop(store);
    let names = || {
        let names = std::fs::read_dir(outer.path()).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    // In the middle of it, as soon as a part has grown.
    let middle = || {
        let mut other = Other::start(in_role(this_binary(), "back up", &dir));
        let grown = |file: std::io::Result<std::fs::DirEntry>| {
            let file = file.unwrap();
            file.file_name().to_str().unwrap().ends_with(".part") && file.metadata().unwrap().len() > 1 << 20
        };
        while !std::fs::read_dir(outer.path()).unwrap().any(grown) {
            assert!(other.0.try_wait().unwrap().is_none(), "it ended before it could be killed");
        }
        other.kill();
    };
    let placed = || killed_at("backup.placed", "back up", &dir);
    let kills: [(&dyn Fn(), bool); 3] =
        [(&middle, false), (&|| killed_at("backup.copied", "back up", &dir), false), (&placed, true)];
    for (kill, is_placed) in kills {
        kill();
        assert_eq!(all_sound(&dir).len(), 2);
        let left = names();
        assert_eq!(left.contains(&"data.copy".to_owned()), is_placed, "{left:?}");
        assert_eq!(left.iter().filter(|name| name.ends_with(".part")).count(), 1, "{left:?}");
        if is_placed {
            // It has its name, so it is whole, whatever else bears it.
            let restored = outer.path().join("restored");
            std::fs::create_dir(&restored).unwrap();
            std::fs::rename(copy_of(&dir), restored.join("redflow.db")).unwrap();
            assert_eq!(all_sound(&restored).len(), 2);
        }
        // The next one is not in the least disturbed, and leaves nothing but itself.
        Reader::open(&dir).unwrap().backup(&copy_of(&dir)).unwrap();
        assert!(!names().iter().any(|name| name.contains(".part")), "{:?}", names());
        std::fs::remove_file(copy_of(&dir)).unwrap();
    }
}

/// To restore a copy is to remove `redflow.db-wal` and `redflow.db-shm` too: SQLite takes a log that lies beside
/// a database for its own, and what it then reads is neither the one nor the other. Nobody can tell it apart
/// from the state of a process that was killed, so it is for whoever restores to do.
#[tokio::test]
async fn a_copy_is_restored_without_the_log_of_another() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let store = Store::open(&dir).unwrap();
    for run in 0..50 {
        delivered(&store, &format!("before {run}"), 1).await;
    }
    drop(store);
    let copied = Reader::open(&dir).unwrap();
    copied.backup(&copy_of(&dir)).unwrap();
    let expected = copied.run_ids().unwrap();
    drop(copied);
    prune(&dir, Prune::default()).unwrap();
    let mut other = Other::start(in_role(this_binary(), "write", &dir));
    other.says("written");
    other.kill();
    let database = dir.join("redflow.db");
    std::fs::copy(copy_of(&dir), &database).unwrap();
    let sound = || {
        let reader = Reader::open(&dir).ok()?;
        let runs = reader.run_ids().ok()?;
        runs.iter().all(|run| matches!(reader.load(run), Ok(Some(_)))).then_some(runs)
    };
    assert_ne!(sound().as_ref(), Some(&expected));

    for file in ["redflow.db-wal", "redflow.db-shm"] {
        std::fs::remove_file(dir.join(file)).unwrap();
    }
    std::fs::copy(copy_of(&dir), &database).unwrap();
    assert_eq!(all_sound(&dir), expected);
    delivered(&Store::open(&dir).unwrap(), "after", 1).await;
    assert_eq!(all_sound(&dir).len(), 51);
}
