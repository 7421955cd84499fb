use super::Tables;
use crate::kit::{begun, finished, id};
use crate::{Reader, Store};
use redflow_contract::run::RunStatus;
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
    let listed = tables().newest(|_| true, usize::MAX).unwrap();
    assert_eq!((asked.get(), listed.len()), (1, 4), "once for all of them");
    // And so it is for whoever looks from outside.
    assert!(Reader::open(dir.path()).unwrap().is_driven());
}
