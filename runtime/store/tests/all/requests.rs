//! What other processes ask of runs.

use crate::kit::{begun, finished, id, waits};
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
async fn a_request_is_given_once_and_answered() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _journal = begun(&store, "a").await;
    begun(&store, "b").await.append(waits()).await.unwrap();
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
    store.answer(first, None);
    store.answer(second, Some(StoreCode::RunNotWaiting));
    store.unfinished().await.unwrap();
    assert_eq!(request_outcome(dir.path(), first).unwrap(), Some(RequestOutcome::Done));
    assert_eq!(
        request_outcome(dir.path(), second).unwrap(),
        Some(RequestOutcome::Refused(StoreCode::RunNotWaiting))
    );

    // The next call waits for the next request.
    let path = dir.path().to_owned();
    let asked = tokio::task::spawn_blocking(move || submit_request(&path, &id("a"), &cancel(), 3).unwrap());
    let given = store.requests().await;
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].id, asked.await.unwrap());
}

#[tokio::test]
async fn two_who_wait_are_not_given_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _journal = begun(&store, "a").await;
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
async fn a_request_waits_for_a_driver_and_outlives_one() {
    let dir = tempfile::tempdir().unwrap();
    drop(begun(&Store::open(dir.path()).unwrap(), "a").await);
    let request = submit_request(dir.path(), &id("a"), &cancel(), 1).unwrap();
    for _ in 0..2 {
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(store.requests().await[0].id, request, "given again, because nobody answered");
    }
    let store = Store::open(dir.path()).unwrap();
    store.answer(request, None);
    drop(store);
    let connection = Connection::open(dir.path().join("redflow.db")).unwrap();
    let count =
        || connection.query_row("SELECT count(*) FROM requests", [], |row| row.get::<_, i64>(0)).unwrap();
    // It was asked in 1970, so the next driver forgets it; one that is younger stays.
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
async fn nothing_is_asked_of_a_run_that_cannot_do_it() {
    let dir = tempfile::tempdir().unwrap();
    let error = submit_request(dir.path(), &id("a"), &cancel(), 1).unwrap_err();
    assert_eq!(error.code, StoreCode::DataUnusable);
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "over", 1).await;
    assert_eq!(submit_request(dir.path(), &id("over"), &cancel(), 1).unwrap_err().code, StoreCode::RunOver);
    assert_eq!(
        submit_request(dir.path(), &id("none"), &cancel(), 1).unwrap_err().code,
        StoreCode::RunUnknown
    );
}

#[tokio::test]
async fn a_request_nobody_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _journal = begun(&store, "a").await;
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
    store.unfinished().await.unwrap();
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
