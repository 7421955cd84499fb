//! Data directories in every state: new, locked, foreign, damaged.

use crate::kit::{deliver_run, finish_run, finished_journal, id, start_run, text};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunRequest;
use redflow_ports::StoreError;
use redflow_store::{PruneRequest, Reader, Store, prune, submit_request};
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Checks that every way to use this directory fails with this error.
#[track_caller]
fn assert_all_refused(dir: &Path, code: StoreCode, words: &str) {
    let cancel = RunRequest::Cancel { reason: "test".into() };
    let tried: [(&str, Result<(), StoreError>); 4] = [
        ("open", Store::open(dir).map(drop)),
        ("read", Reader::open(dir).map(drop)),
        ("submit", submit_request(dir, &id("a"), &cancel, 1).map(drop)),
        ("prune", prune(dir, PruneRequest::default()).map(drop)),
    ];
    for (what, result) in tried {
        let error = result.expect_err(what);
        assert_eq!(error.code, code, "{what}: {error}");
        assert!(error.message.contains(words), "{what}: no `{words}` in {error}");
        assert!(error.message.ends_with('.'), "{error}");
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

// SECURITY: data-private
#[cfg(unix)]
#[tokio::test]
async fn all_files_are_private_to_their_owner() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("made").join("by us");
    let store = Store::open(&dir).unwrap();
    let _open = start_run(&store, "a").await;
    assert_eq!((mode(&outer.path().join("made")), mode(&dir)), (0o700, 0o700));
    for file in ["lock", "redflow.db", "redflow.db-wal", "redflow.db-shm"] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
}

// SECURITY: data-private
#[cfg(unix)]
#[test]
fn open_file_modes_are_restricted_and_the_directory_mode_stays() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    set_mode(dir.path(), 0o755);
    set_mode(&dir.path().join("redflow.db"), 0o664);
    set_mode(&dir.path().join("lock"), 0o644);
    let _store = Store::open(dir.path()).unwrap();
    assert_eq!(mode(dir.path()), 0o755);
    for file in ["lock", "redflow.db", "redflow.db-wal"] {
        assert_eq!(mode(&dir.path().join(file)), 0o600, "{file}");
    }
}

#[test]
fn one_driver_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert_eq!(error.code, StoreCode::DataLocked);
    assert!(error.message.contains(&format!("Process {} ", std::process::id())), "{error}");
    drop(store);
    assert_eq!(std::fs::read_to_string(dir.path().join("lock")).unwrap(), "", "the process id was removed");
    drop(Store::open(dir.path()).unwrap());
}

/// However many readers check for a driver, a driver can start.
#[test]
fn readers_never_keep_a_driver_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let reader = Reader::open(dir.path()).unwrap();
                while !done.load(Ordering::Relaxed) {
                    std::hint::black_box(reader.is_driven());
                }
            });
        }
        let opened: Vec<Result<(), StoreError>> =
            (0..30).map(|_| Store::open(dir.path()).map(drop)).collect();
        done.store(true, Ordering::Relaxed);
        assert_eq!(opened, vec![Ok(()); 30]);
    });
}

/// A reader that is stopped while it checks for a driver holds the lock for longer than a moment.
#[test]
fn a_driver_waits_for_readers_that_hold_the_lock_for_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let path = dir.path().join("lock");
    // The file as a killed driver leaves it.
    std::fs::write(&path, "4194304\n").unwrap();
    let reader = std::fs::File::open(&path).unwrap();
    reader.lock_shared().unwrap();
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| Store::open(dir.path()).map(drop));
        std::thread::park_timeout(Duration::from_millis(300));
        assert!(!opening.is_finished());
        reader.unlock().unwrap();
        assert_eq!(opening.join().unwrap(), Ok(()));
    });

    // If readers hold it all the time, the error names no driver.
    std::fs::write(&path, "4194304\n").unwrap();
    reader.lock_shared().unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert_eq!(error.code, StoreCode::DataLocked);
    assert!(error.message.contains("Other processes read the runs"), "{error}");
    assert!(!error.message.contains("4194304"), "{error}");
}

#[test]
fn an_empty_directory_is_reported_as_having_no_runs() {
    let dir = tempfile::tempdir().unwrap();
    for missing in [dir.path().to_owned(), dir.path().join("no such directory")] {
        let error = Reader::open(&missing).unwrap_err();
        assert_eq!(error.code, StoreCode::DataUnusable);
        assert!(error.message.contains("No runs are stored in"), "{error}");
        assert!(error.message.contains(missing.to_str().unwrap()), "{error}");
        assert!(Reader::find(&missing).unwrap().is_none());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "reading created something");
    // A driver that died before it created the tables.
    std::fs::write(dir.path().join("redflow.db"), "").unwrap();
    assert_eq!(Reader::open(dir.path()).unwrap_err().code, StoreCode::DataUnusable);
    drop(Store::open(dir.path()).unwrap());
    assert!(Reader::open(dir.path()).unwrap().run_ids().unwrap().is_empty());
}

#[test]
fn a_file_as_data_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = Store::open(&path).unwrap_err();
        assert_eq!(error.code, StoreCode::DataUnusable);
        assert!(error.message.contains("name a directory"), "{error}");
        assert_eq!(Reader::open(&path).unwrap_err().code, StoreCode::DataUnusable);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_database_of_another_program_is_not_touched() {
    for sql in [
        "CREATE TABLE theirs(x)",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 7; PRAGMA user_version = 1; CREATE TABLE runs(x)",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("redflow.db");
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let before = std::fs::read(&file).unwrap();
        #[cfg(unix)]
        set_mode(&file, 0o664);
        assert_all_refused(dir.path(), StoreCode::DataUnusable, "belongs to another program");
        assert_eq!(std::fs::read(&file).unwrap(), before, "{sql}");
        #[cfg(unix)]
        assert_eq!(mode(&file), 0o664, "{sql}");
    }
}

#[test]
fn a_newer_database_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("redflow.db");
    drop(Store::open(dir.path()).unwrap());
    Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let before = std::fs::read(&file).unwrap();
    assert_all_refused(dir.path(), StoreCode::DataNewer, "newer Redflow Runtime");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // Our file with an impossible version.
    Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 0").unwrap();
    assert_all_refused(dir.path(), StoreCode::DataCorrupt, "version");
}

#[tokio::test]
async fn a_truncated_or_garbled_database_is_reported_as_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("redflow.db");
    let store = Store::open(dir.path()).unwrap();
    for run in 0..50 {
        finish_run(&store, &format!("run {run}"), 1).await;
    }
    drop(store);
    let whole = std::fs::read(&file).unwrap();
    let pages = whole.len() / 4096;
    assert!(pages > 8, "{pages}");
    for keep in [2, 99, 511, 4096, 4097, 3 * 4096, whole.len() / 2 / 4096 * 4096, (pages - 1) * 4096] {
        std::fs::write(&file, &whole[..keep]).unwrap();
        assert_all_refused(dir.path(), StoreCode::DataCorrupt, "damaged");
    }
    for garbage in [vec![0x5a; 8192], b"not a database, but a text of some length".repeat(20)] {
        std::fs::write(&file, garbage).unwrap();
        assert_all_refused(dir.path(), StoreCode::DataCorrupt, "damaged");
    }
    // Garbage inside: the database opens, and a query that reads it fails.
    let mut holed = whole.clone();
    holed[4096 * 3..4096 * (pages - 1)].fill(0x5a);
    std::fs::write(&file, holed).unwrap();
    let read = Reader::open(dir.path()).and_then(|reader| reader.load(&id("run 30")));
    assert_eq!(read.unwrap_err().code, StoreCode::DataCorrupt);
    // The original file is sound.
    std::fs::write(&file, whole).unwrap();
    let stored = Reader::open(dir.path()).unwrap().load(&id("run 30")).unwrap().unwrap();
    assert_eq!(text(&stored.journal), finished_journal("run 30"));
}

/// SQLite would read some names as URIs with options.
#[tokio::test]
async fn a_directory_may_have_any_name() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("file:a?mode=memory&b#c%20d ü");
    let store = Store::open(&dir).unwrap();
    deliver_run(&store, "a", 1).await;
    drop(store);
    let reader = Reader::open(&dir).unwrap();
    assert_eq!(text(&reader.load(&id("a")).unwrap().unwrap().journal), finished_journal("a"));
    reader.backup(&outer.path().join("file:b?x")).unwrap();
    assert_eq!(prune(&dir, PruneRequest::default()).unwrap().runs, 1);
    assert_eq!(std::fs::read_dir(outer.path()).unwrap().count(), 2);
}
