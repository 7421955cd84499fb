use super::{CHILDREN, NEXT_CHILD, RunQueries, UNFINISHED};
use crate::kit::{finish_run, id, start_run};
use crate::runs::stats::FAILURES;
use crate::{Reader, Store};
use redflow_contract::run::RunStatus;
use redflow_ports::RunFilter;
use std::cell::Cell;

/// Checking for a driver touches its lock, so it is done no more than needed.
#[tokio::test]
async fn the_lock_is_checked_only_if_the_answer_depends_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "over", 1).await;
    let _open = (start_run(&store, "open").await, start_run(&store, "too").await);
    let old = "INSERT INTO runs(run_id, instance, node_id, name, started_at, head, driver, status)
               VALUES ('old', 'local', 'agent', '', 1, '', 0, 'running')";
    store.sql(old).await;
    let directory = crate::directory::Directory::at(dir.path()).unwrap();
    let connection = crate::database::open_reader(&directory).unwrap();
    let checks = Cell::new(0);
    let queries = || {
        checks.set(0);
        RunQueries::new(&connection, dir.path(), || {
            checks.set(checks.get() + 1);
            true
        })
    };
    queries().load(&id("over")).unwrap().unwrap();
    assert_eq!(checks.get(), 0, "it is over");
    let summary = queries().summary(&id("old")).unwrap().unwrap();
    assert_eq!((checks.get(), summary.status), (0, RunStatus::Interrupted), "its driver has ended");
    let stored = queries().load(&id("open")).unwrap().unwrap();
    assert_eq!((checks.get(), stored.summary.status), (1, RunStatus::Running));
    let listed = queries().newest(&RunFilter::default()).unwrap();
    assert_eq!((checks.get(), listed.runs.len()), (1, 4), "once for all of them");
    // A reader in another process sees the same.
    assert!(Reader::open(dir.path()).unwrap().is_driven());
}

/// The cost of a page does not depend on the number of runs: nothing is sorted or skipped.
#[tokio::test]
async fn lists_use_an_index() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let connection = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    let plan = |sql: &str| -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let params = vec![1; statement.parameter_count()];
        let lines = statement.query_map(rusqlite::params_from_iter(params), |row| row.get("detail")).unwrap();
        lines.collect::<Result<Vec<String>, _>>().unwrap().join("; ")
    };
    let unfinished = plan(&format!("SELECT * FROM runs {UNFINISHED}"));
    assert!(unfinished.contains("runs_unfinished"), "{unfinished}");
    assert_eq!(plan(CHILDREN), "SEARCH runs USING COVERING INDEX runs_by_parent (parent=?)");
    let child = plan(NEXT_CHILD);
    assert!(
        child.starts_with("SEARCH runs USING COVERING INDEX runs_by_parent (parent=? AND rowid>?)"),
        "{child}"
    );
    let failures = plan(FAILURES);
    assert_eq!(failures, "SEARCH runs USING COVERING INDEX runs_failed_by_end (ended_at>? AND ended_at<?)");
    let usage = plan("SELECT model FROM usage WHERE day BETWEEN ?1 AND ?2");
    assert_eq!(usage, "SEARCH usage USING PRIMARY KEY (day>? AND day<?)");
    let number = plan("SELECT id FROM runs WHERE run_id = ?1");
    assert!(number.contains("USING COVERING INDEX"), "{number}");
    let events = plan("SELECT id, run_id, body FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3");
    assert_eq!(events, "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
}
