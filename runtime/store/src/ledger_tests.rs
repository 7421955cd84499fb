use super::{Ledger, SWEEP};
use crate::directory::Directory;
use crate::journal::{Handle, Sent};
use crate::kit::{first, new_run};
use std::sync::Arc;

/// Begins a run and gives its handle, which holds the journal open.
fn begin(ledger: &mut Ledger, run: &str) -> Arc<Handle> {
    let run = new_run(run);
    let handle = Handle::new(run.run_id.clone());
    let batch = first(&run);
    let mut sent =
        Sent { handle: Arc::clone(&handle), start: Some(Box::new(run)), seq: 0, batch, bytes: 0, done: None };
    assert!(ledger.batch(&mut sent).is_ok());
    handle
}

#[test]
fn journals_that_nobody_holds_are_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::named(dir.path()).unwrap();
    directory.make_database().unwrap();
    let mut ledger = Ledger::new(dir.path(), crate::database::drive(&directory).unwrap()).unwrap();
    ledger.begin().unwrap();
    let held: Vec<_> = (0..10).map(|run| begin(&mut ledger, &format!("held {run}"))).collect();
    for run in 0..3 * SWEEP {
        begin(&mut ledger, &format!("dropped {run}"));
        assert!(ledger.open.len() <= SWEEP, "{}", ledger.open.len());
    }
    for handle in &held {
        assert!(ledger.open.contains_key(&handle.run));
        ledger.forget(handle);
        assert!(!ledger.open.contains_key(&handle.run));
    }
    ledger.commit().unwrap();
}
