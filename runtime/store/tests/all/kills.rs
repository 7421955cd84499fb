//! Processes that are killed while they prune or back up runs, and restored backups.

use crate::kit::{deliver_run, first_batch, last_batch, new_run, start_run, synced_batch};
use crate::processes::{OtherProcess, backup_of, in_role, kill_at, this_binary};
use pretty_assertions::assert_eq;
use redflow_contract::id::RunId;
use redflow_ports::{Batch, RunStore};
use redflow_store::{PruneRequest, Reader, Store, prune};
use std::path::Path;

/// Checks that all stored runs are sound, and that SQLite finds no damage. Returns the runs.
#[track_caller]
fn assert_all_sound(dir: &Path) -> Vec<RunId> {
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
async fn a_killed_prune_leaves_sound_runs() {
    let full = tempfile::tempdir().unwrap();
    let store = Store::open(full.path()).unwrap();
    for run in 0..450 {
        let run = new_run(&format!("run {run}"));
        let buffered = |batch: Batch| Batch { durability: redflow_ports::Durability::Buffered, ..batch };
        let mut journal = store.create(run.clone());
        journal.append(buffered(first_batch(&run))).await.unwrap();
        journal.append(buffered(last_batch(1))).await.unwrap();
        store.mark_delivered(&run.run_id);
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
        kill_at(point, "prune", dir.path());
        assert_eq!(assert_all_sound(dir.path()).len(), left, "{point}");
        // The next call removes the rest, and a driver works as usual.
        let report = prune(dir.path(), PruneRequest { keep: Some(10), ..PruneRequest::default() }).unwrap();
        assert_eq!(report.runs, left as u64 - 10, "{point}");
        deliver_run(&Store::open(dir.path()).unwrap(), "new", 1).await;
        assert_eq!(assert_all_sound(dir.path()).len(), 11, "{point}");
    }
}

#[tokio::test]
async fn a_killed_backup_leaves_no_incomplete_copy() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let store = Store::open(&dir).unwrap();
    let mut journal = start_run(&store, "large").await;
    for _ in 0..30 {
        journal.append(synced_batch(&[&"x".repeat(1024 * 1024)])).await.unwrap();
    }
    deliver_run(&store, "small", 1).await;
    drop(store);
    let names = || {
        let names = std::fs::read_dir(outer.path()).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    // Killed in the middle, as soon as the part file has grown.
    let kill_in_the_middle = || {
        let mut other = OtherProcess::start(in_role(this_binary(), "back up", &dir));
        let grown = |file: std::io::Result<std::fs::DirEntry>| {
            let file = file.unwrap();
            file.file_name().to_str().unwrap().ends_with(".part") && file.metadata().unwrap().len() > 1 << 20
        };
        while !std::fs::read_dir(outer.path()).unwrap().any(grown) {
            assert!(other.0.try_wait().unwrap().is_none(), "the process ended before it could be killed");
        }
        other.kill();
    };
    let kill_after_placing = || kill_at("backup.placed", "back up", &dir);
    let kills: [(&dyn Fn(), bool); 3] = [
        (&kill_in_the_middle, false),
        (&|| kill_at("backup.copied", "back up", &dir), false),
        (&kill_after_placing, true),
    ];
    for (kill, is_placed) in kills {
        kill();
        assert_eq!(assert_all_sound(&dir).len(), 2);
        let left = names();
        assert_eq!(left.contains(&"data.copy".to_owned()), is_placed, "{left:?}");
        assert_eq!(left.iter().filter(|name| name.ends_with(".part")).count(), 1, "{left:?}");
        if is_placed {
            // A file with the final name is complete, even if the part file still exists.
            let restored = outer.path().join("restored");
            std::fs::create_dir(&restored).unwrap();
            std::fs::rename(backup_of(&dir), restored.join("redflow.db")).unwrap();
            assert_eq!(assert_all_sound(&restored).len(), 2);
        }
        // The next backup works as usual, and leaves no part file.
        Reader::open(&dir).unwrap().backup(&backup_of(&dir)).unwrap();
        assert!(!names().iter().any(|name| name.contains(".part")), "{:?}", names());
        std::fs::remove_file(backup_of(&dir)).unwrap();
    }
}

/// A user who restores a backup must also remove `redflow.db-wal` and `redflow.db-shm`. SQLite uses a
/// write-ahead log that lies beside a database as its own, and then reads a mix of both. That state looks
/// like the state after a kill, so the store cannot detect it.
#[tokio::test]
async fn a_backup_must_be_restored_without_the_old_write_ahead_log() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let store = Store::open(&dir).unwrap();
    for run in 0..50 {
        deliver_run(&store, &format!("before {run}"), 1).await;
    }
    drop(store);
    let copied = Reader::open(&dir).unwrap();
    copied.backup(&backup_of(&dir)).unwrap();
    let expected = copied.run_ids().unwrap();
    drop(copied);
    prune(&dir, PruneRequest::default()).unwrap();
    let mut other = OtherProcess::start(in_role(this_binary(), "write", &dir));
    other.wait_for_line("written");
    other.kill();
    let database = dir.join("redflow.db");
    std::fs::copy(backup_of(&dir), &database).unwrap();
    let sound = || {
        let reader = Reader::open(&dir).ok()?;
        let runs = reader.run_ids().ok()?;
        runs.iter().all(|run| matches!(reader.load(run), Ok(Some(_)))).then_some(runs)
    };
    assert_ne!(sound().as_ref(), Some(&expected));

    for file in ["redflow.db-wal", "redflow.db-shm"] {
        std::fs::remove_file(dir.join(file)).unwrap();
    }
    std::fs::copy(backup_of(&dir), &database).unwrap();
    assert_eq!(assert_all_sound(&dir), expected);
    deliver_run(&Store::open(&dir).unwrap(), "after", 1).await;
    assert_eq!(assert_all_sound(&dir).len(), 51);
}
