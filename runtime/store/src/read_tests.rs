use super::{
    NEWEST, NEWEST_FAILED, NEWEST_FAILED_OF_AGENT, NEWEST_OF_AGENT, NEWEST_OF_INSTANCE, NEWEST_OPEN, Tables,
    UNFINISHED,
};
use crate::kit::{begun, finished, id};
use crate::{Reader, Store};
use redflow_contract::run::RunStatus;
use redflow_ports::RunFilter;
use std::cell::Cell;

/// To look whether there is a driver is to touch its lock, so that is done no more than needed.
#[tokio::test]
async fn a_driver_is_looked_for_only_if_it_matters() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "over", 1).await;
    let _open = (begun(&store, "open").await, begun(&store, "too").await);
    let old = "INSERT INTO runs(run_id, instance, node_id, name, started_at, head, driver, status)
               VALUES ('old', 'local', 'agent', '', 1, '', 0, 'running')";
    store.sql(old).await;
    let connection = crate::database::read(&crate::directory::Directory::named(dir.path()).unwrap()).unwrap();
    let asked = Cell::new(0);
    let tables = || {
        asked.set(0);
        Tables::new(&connection, dir.path(), || {
            asked.set(asked.get() + 1);
            true
        })
    };
    tables().load(&id("over")).unwrap().unwrap();
    assert_eq!(asked.get(), 0, "it is over");
    let summary = tables().summary(&id("old")).unwrap().unwrap();
    assert_eq!((asked.get(), summary.status), (0, RunStatus::Interrupted), "its driver is long gone");
    let stored = tables().load(&id("open")).unwrap().unwrap();
    assert_eq!((asked.get(), stored.summary.status), (1, RunStatus::Running));
    let listed = tables().newest(&RunFilter::default()).unwrap();
    assert_eq!((asked.get(), listed.len()), (1, 4), "once for all of them");
    // And so it is for whoever looks from outside.
    assert!(Reader::open(dir.path()).unwrap().is_driven());
}

/// A page of many runs costs what the page costs: nothing is sorted, and the page begins where it should.
#[tokio::test]
async fn lists_are_found_by_their_index() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let connection = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    let plan = |sql: &str| -> String {
        let mut asked = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let params = vec![1; asked.parameter_count()];
        let lines = asked.query_map(rusqlite::params_from_iter(params), |row| row.get("detail")).unwrap();
        lines.collect::<Result<Vec<String>, _>>().unwrap().join("; ")
    };
    assert_eq!(
        plan(&format!("SELECT * FROM runs {NEWEST}")),
        "SEARCH runs USING INTEGER PRIMARY KEY (rowid<?)"
    );
    let unfinished = plan(&format!("SELECT * FROM runs {UNFINISHED}"));
    assert!(unfinished.contains("runs_unfinished"), "{unfinished}");
    for (which, found) in [
        (NEWEST_OPEN, "INDEX runs_unfinished (id<?)"),
        (NEWEST_FAILED, "INDEX runs_failed (id<?)"),
        (NEWEST_FAILED_OF_AGENT, "INDEX runs_failed_by_agent (node_id=? AND rowid<?)"),
        (NEWEST_OF_AGENT, "INDEX runs_by_agent (node_id=? AND rowid<?)"),
        (NEWEST_OF_INSTANCE, "INDEX runs_by_instance (instance=? AND rowid<?)"),
    ] {
        assert_eq!(plan(&format!("SELECT * FROM runs {which}")), format!("SEARCH runs USING {found}"));
    }
    let number = plan("SELECT id FROM runs WHERE run_id = ?1");
    assert!(number.contains("USING COVERING INDEX"), "{number}");
    let events = plan("SELECT id, run_id, body FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3");
    assert_eq!(events, "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
}
