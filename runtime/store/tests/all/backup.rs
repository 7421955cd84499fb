//! Copies of the database.

use crate::kit::{begun, delivered, finished, finished_text, id, now, text};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_ports::RunStore;
use redflow_store::{ListFilter, Reader, Store};
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
async fn a_copy_made_while_runs_are_driven_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for run in 0..20 {
        delivered(&store, &format!("done {run}"), 1).await;
    }
    let mut open = begun(&store, "open").await;
    let copies = tempfile::tempdir().unwrap();
    let file = copies.path().join("redflow.db");
    let reader = Reader::open(dir.path()).unwrap();
    let target = file.clone();
    let copying = tokio::task::spawn_blocking(move || reader.backup(&target));
    let mut run = 20;
    while !copying.is_finished() {
        open.append(now(&["meanwhile"])).await.unwrap();
        finished(&store, &format!("done {run}"), 1).await;
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

    // It serves as another data directory, for those who look and for a driver.
    let reader = Reader::open(copies.path()).unwrap();
    let runs = reader.list(&ListFilter::default()).unwrap();
    assert_eq!(runs.len() as u64, report.runs);
    assert!(runs.len() >= 21, "{report:?}");
    for run in &runs {
        let stored = reader.load(&run.run_id).unwrap().unwrap();
        if run.status == RunStatus::Completed {
            assert_eq!(text(&stored.journal), finished_text(run.run_id.as_str()));
        }
    }
    let restored = Store::open(copies.path()).unwrap();
    let stored = restored.load(&id("open")).await.unwrap().unwrap();
    assert_eq!(stored.summary.status, RunStatus::Interrupted);
    restored.reopen(&stored).append(now(&["goes on from the copy"])).await.unwrap();
    finished(&restored, "new", 1).await;
}

#[tokio::test]
async fn nothing_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    delivered(&store, "a", 1).await;
    let reader = Reader::open(dir.path()).unwrap();
    let copies = tempfile::tempdir().unwrap();
    let file = copies.path().join("copy");
    std::fs::write(&file, "mine").unwrap();
    let error = reader.backup(&file).unwrap_err();
    assert_eq!(error.code, StoreCode::DataUnusable);
    assert!(error.message.contains("exists already"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(
        reader.backup(&copies.path().join("no/such/folder")).unwrap_err().code,
        StoreCode::DataUnusable
    );
    assert_eq!(names(copies.path()), ["copy"]);
}
