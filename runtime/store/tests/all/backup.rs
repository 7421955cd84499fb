//! Backups of the database.

use crate::kit::{deliver_run, finish_run, finished_journal, id, start_run, synced_batch, text};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_ports::RunStore;
use redflow_store::{Reader, RunFilter, Store};
use std::path::Path;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_backup_made_while_runs_are_driven_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for run in 0..20 {
        deliver_run(&store, &format!("done {run}"), 1).await;
    }
    let mut open = start_run(&store, "open").await;
    let copies = tempfile::tempdir().unwrap();
    let file = copies.path().join("redflow.db");
    let reader = Reader::open(dir.path()).unwrap();
    let target = file.clone();
    let copying = tokio::task::spawn_blocking(move || reader.backup(&target));
    let mut run = 20;
    while !copying.is_finished() {
        open.append(synced_batch(&["meanwhile"])).await.unwrap();
        finish_run(&store, &format!("done {run}"), 1).await;
        run += 1;
    }
    let report = copying.await.unwrap().unwrap();
    assert_eq!(names(copies.path()), ["redflow.db"]);
    assert_eq!(report.bytes, std::fs::metadata(&file).unwrap().len());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    // It serves as another data directory, for a reader and for a driver.
    let reader = Reader::open(copies.path()).unwrap();
    let runs = reader.list(&RunFilter::default()).unwrap().runs;
    assert_eq!(runs.len() as u64, report.runs);
    assert!(runs.len() >= 21, "{report:?}");
    for run in &runs {
        let stored = reader.load(&run.run_id).unwrap().unwrap();
        if run.status == RunStatus::Completed {
            assert_eq!(text(&stored.journal), finished_journal(run.run_id.as_str()));
        }
    }
    let restored = Store::open(copies.path()).unwrap();
    let stored = restored.load(&id("open")).await.unwrap().unwrap();
    assert_eq!(stored.summary.status, RunStatus::Interrupted);
    restored.reopen(&stored).append(synced_batch(&["goes on from the copy"])).await.unwrap();
    finish_run(&restored, "new", 1).await;
}

#[tokio::test]
async fn a_backup_overwrites_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    deliver_run(&store, "a", 1).await;
    let reader = Reader::open(dir.path()).unwrap();
    let copies = tempfile::tempdir().unwrap();
    let file = copies.path().join("copy");
    std::fs::write(&file, "mine").unwrap();
    let error = reader.backup(&file).unwrap_err();
    assert_eq!(error.code, StoreCode::DataUnusable);
    assert!(error.message.contains("exists already"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(names(copies.path()), ["copy"]);
}

/// The error of a failed backup names the copy, not the data directory.
#[tokio::test]
async fn a_failed_backup_names_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    deliver_run(&Store::open(dir.path()).unwrap(), "a", 1).await;
    let reader = Reader::open(dir.path()).unwrap();
    let copies = tempfile::tempdir().unwrap();
    std::fs::write(copies.path().join("file"), "mine").unwrap();
    for target in ["no/such/folder", "file/below"] {
        let target = copies.path().join(target);
        let error = reader.backup(&target).unwrap_err();
        assert_eq!(error.code, StoreCode::DataUnusable);
        assert!(error.message.contains(&format!("The copy {} cannot be made", target.display())), "{error}");
        assert!(!error.message.contains("data directory"), "{error}");
    }
    assert_eq!(names(copies.path()), ["file"]);
}

/// A backup in the data directory would be lost with the data.
#[tokio::test]
async fn a_backup_into_the_data_directory_is_refused() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    deliver_run(&Store::open(&dir).unwrap(), "a", 1).await;
    std::fs::create_dir(dir.join("below")).unwrap();
    let reader = Reader::open(&dir).unwrap();
    let mut targets = vec![dir.join("copy"), dir.join("below/copy"), dir.join("below/../copy")];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&dir, outer.path().join("link")).unwrap();
        targets.push(outer.path().join("link/copy"));
    }
    let before = names(&dir);
    for target in targets {
        let error = reader.backup(&target).unwrap_err();
        assert_eq!(error.code, StoreCode::DataUnusable);
        assert!(error.message.contains("lies in the data directory itself"), "{error}");
    }
    assert_eq!(names(&dir), before);
    assert_eq!(reader.backup(&outer.path().join("copy")).unwrap().runs, 1);
}

/// A backup whose process died leaves a part file. The next backup to that place removes it, and nothing
/// else.
#[tokio::test]
async fn part_files_of_dead_backups_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    deliver_run(&Store::open(dir.path()).unwrap(), "a", 1).await;
    let reader = Reader::open(dir.path()).unwrap();
    let copies = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        std::fs::write(copies.path().join(name), "x").unwrap();
        std::fs::File::open(copies.path().join(name)).unwrap()
    };
    let left = format!("copy.{}-17.part", std::process::id());
    for name in [&left, "copy.1-2.part", "copy.mine.part", "copy.1-2-3.part", "copy.-.part", "other.1-2.part"]
    {
        make(name);
    }
    // A part file that a live process still writes.
    let live = make("copy.3-4.part");
    live.lock().unwrap();
    let report = reader.backup(&copies.path().join("copy")).unwrap();
    assert_eq!(report.runs, 1);
    let kept =
        ["copy", "copy.-.part", "copy.1-2-3.part", "copy.3-4.part", "copy.mine.part", "other.1-2.part"];
    assert_eq!(names(copies.path()), kept);
}
