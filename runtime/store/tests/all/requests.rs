//! Requests of other processes.

use crate::kit::{finish_run, id, start_run, waiting_batch};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::CallId;
use redflow_contract::run::RunRequest;
use redflow_ports::{PendingRequest, RunStore};
use redflow_store::{RequestOutcome, Store, request_outcome, submit_request};
use rusqlite::Connection;

fn cancel() -> RunRequest {
    RunRequest::Cancel { reason: "enough".into() }
}

fn resolve() -> RunRequest {
    let result = ToolResult::ok(serde_json::json!({"paid": true, "text": "ü"}));
    RunRequest::Resolve { call_id: CallId::from("call-1"), result }
}

#[tokio::test]
async fn a_request_is_returned_once_and_answered() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _journal = start_run(&store, "a").await;
    start_run(&store, "b").await.append(waiting_batch()).await.unwrap();
    let first = submit_request(dir.path(), &id("a"), &cancel(), 1).unwrap();
    let second = submit_request(dir.path(), &id("b"), &resolve(), 2).unwrap();
    assert_eq!(
        store.requests().await,
        [
            PendingRequest { id: first, run: id("a"), request: cancel() },
            PendingRequest { id: second, run: id("b"), request: resolve() },
        ]
    );
    assert_eq!(request_outcome(dir.path(), first).unwrap(), None);
    store.answer_request(first, None);
    store.answer_request(second, Some(StoreCode::RunNotWaiting));
    store.unfinished_runs().await.unwrap();
    assert_eq!(request_outcome(dir.path(), first).unwrap(), Some(RequestOutcome::Done));
    assert_eq!(
        request_outcome(dir.path(), second).unwrap(),
        Some(RequestOutcome::Refused(StoreCode::RunNotWaiting))
    );

    // The next call waits for the next request.
    let path = dir.path().to_owned();
    let submitted =
        tokio::task::spawn_blocking(move || submit_request(&path, &id("a"), &cancel(), 3).unwrap());
    let given = store.requests().await;
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].id, submitted.await.unwrap());
}

#[tokio::test]
async fn two_waiting_callers_get_different_requests() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _journal = start_run(&store, "a").await;
    let path = dir.path().to_owned();
    let one = submit_request(&path, &id("a"), &cancel(), 1).unwrap();
    let (mut left, mut right) = (store.requests(), store.requests());
    let (given, other) = tokio::select! {
        given = &mut left => (given, right),
        given = &mut right => (given, left),
    };
    assert_eq!(given.iter().map(|request| request.id).collect::<Vec<_>>(), [one]);
    let two = submit_request(&path, &id("a"), &cancel(), 1).unwrap();
    assert_eq!(other.await.iter().map(|request| request.id).collect::<Vec<_>>(), [two]);
}

#[tokio::test]
async fn a_request_waits_for_a_driver_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    drop(start_run(&Store::open(dir.path()).unwrap(), "a").await);
    let request = submit_request(dir.path(), &id("a"), &cancel(), 1).unwrap();
    for _ in 0..2 {
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(store.requests().await[0].id, request, "returned again, because no driver answered it");
    }
    let store = Store::open(dir.path()).unwrap();
    store.answer_request(request, None);
    drop(store);
    let connection = Connection::open(dir.path().join("redflow.db")).unwrap();
    let count =
        || connection.query_row("SELECT count(*) FROM requests", [], |row| row.get::<_, i64>(0)).unwrap();
    // It was submitted in 1970, so the next driver removes it; a younger one stays.
    connection
        .execute("INSERT INTO requests(run_id, body, at, answered) VALUES ('a', '{}', 1 << 60, 1)", [])
        .unwrap();
    assert_eq!(count(), 2);
    drop(Store::open(dir.path()).unwrap());
    assert_eq!(count(), 1);
    assert_eq!(
        request_outcome(dir.path(), request).unwrap(),
        Some(RequestOutcome::Refused(StoreCode::RunUnknown))
    );
}

#[tokio::test]
async fn requests_to_finished_or_unknown_runs_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = submit_request(dir.path(), &id("a"), &cancel(), 1).unwrap_err();
    assert_eq!(error.code, StoreCode::DataUnusable);
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "over", 1).await;
    assert_eq!(submit_request(dir.path(), &id("over"), &cancel(), 1).unwrap_err().code, StoreCode::RunOver);
    assert_eq!(
        submit_request(dir.path(), &id("none"), &cancel(), 1).unwrap_err().code,
        StoreCode::RunUnknown
    );
}

#[tokio::test]
async fn an_unreadable_request_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _journal = start_run(&store, "a").await;
    let connection = Connection::open(dir.path().join("redflow.db")).unwrap();
    let body = r#"{"type":"melt"}"#;
    connection.execute("INSERT INTO requests(run_id, body, at) VALUES ('a', ?1, 1)", [body]).unwrap();
    let strange = connection.last_insert_rowid();
    let sql = "INSERT INTO requests(run_id, body, at) VALUES (CAST(x'ff' AS TEXT), CAST(x'fe' AS TEXT), 1)";
    connection.execute(sql, []).unwrap();
    let garbled = connection.last_insert_rowid();
    let readable = submit_request(dir.path(), &id("a"), &cancel(), 1).unwrap();
    let given = store.requests().await;
    assert_eq!(given.iter().map(|request| request.id).collect::<Vec<_>>(), [readable]);
    store.unfinished_runs().await.unwrap();
    for request in [strange, garbled] {
        assert_eq!(
            request_outcome(dir.path(), request).unwrap(),
            Some(RequestOutcome::Refused(StoreCode::DataCorrupt))
        );
    }
    // A code that only a newer version knows.
    connection.execute("UPDATE requests SET refused = 'RUN_MELTED'", []).unwrap();
    assert_eq!(
        request_outcome(dir.path(), strange).unwrap(),
        Some(RequestOutcome::Refused(StoreCode::DataNewer))
    );
}
