use super::{RunTables, SWEEP};
use crate::directory::Directory;
use crate::kit::{first_batch, new_run};
use crate::runs::batch::{JournalHandle, QueuedBatch};
use std::sync::Arc;

/// Starts a run and returns its handle, which keeps the journal open.
fn start_run(tables: &mut RunTables, run: &str) -> Arc<JournalHandle> {
    let run = new_run(run);
    let handle = JournalHandle::new(run.run_id.clone());
    let batch = first_batch(&run);
    let new_run = Some(Box::new(run));
    let mut queued =
        QueuedBatch { handle: Arc::clone(&handle), new_run, seq: 0, batch, bytes: 0, done: None };
    assert!(tables.append_batch(&mut queued).is_ok());
    handle
}

#[test]
fn journals_without_a_handle_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::at(dir.path()).unwrap();
    directory.create_database().unwrap();
    let connection = crate::database::open_driver(&directory).unwrap();
    let mut tables = RunTables::take_over(dir.path(), connection).unwrap();
    tables.begin().unwrap();
    let held: Vec<_> = (0..10).map(|run| start_run(&mut tables, &format!("held {run}"))).collect();
    for run in 0..3 * SWEEP {
        start_run(&mut tables, &format!("dropped {run}"));
        assert!(tables.journals.len() <= SWEEP, "{}", tables.journals.len());
    }
    for handle in &held {
        assert!(tables.journals.contains_key(&handle.run));
        tables.close_journal(handle);
        assert!(!tables.journals.contains_key(&handle.run));
    }
    tables.commit().unwrap();
}
