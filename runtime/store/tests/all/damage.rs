//! Damaged rows: every change of a stored run is found.

use crate::kit::{
    finish_run, finished_journal, first_batch, id, new_run, start_run, synced_batch, text, waiting_batch,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::effect::Ending;
use redflow_contract::run::{RunState, RunStatus};
use redflow_ports::{Batch, NewRun, RunStore as _};
use redflow_store::{IntactPart, Reader, RunFilter, Store};
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::path::Path;

/// A directory with the finished runs `a`, `b`, `c` and an open one; its reader, and a connection to damage
/// rows.
async fn stored_runs(dir: &Path) -> (Reader, Connection) {
    let store = Store::open(dir).unwrap();
    for run in ["a", "b", "c"] {
        finish_run(&store, run, 1).await;
    }
    start_run(&store, "open").await.append(synced_batch(&["second"])).await.unwrap();
    drop(store);
    let plain = Connection::open(dir.join("redflow.db")).unwrap();
    plain.execute_batch("PRAGMA synchronous = OFF").unwrap();
    (Reader::open(dir).unwrap(), plain)
}

fn assert_damaged(reader: &Reader, run: &str, what: &str) {
    let error = reader.load(&id(run)).expect_err(what);
    assert_eq!(error.code, StoreCode::DataCorrupt, "{what}: {error}");
    assert!(error.message.contains(&format!("Run {run} ")), "{what}: {error}");
}

fn assert_sound(reader: &Reader, run: &str) {
    assert_eq!(text(&reader.load(&id(run)).unwrap().unwrap().journal), finished_journal(run));
}

/// Sets one value of one row to each of these in turn, runs `check`, and restores the value.
fn for_each_value(
    plain: &Connection,
    table: &str,
    row: i64,
    column: &str,
    values: Vec<Value>,
    check: impl Fn(&str),
) {
    let name = format!("SELECT {column} FROM {table} WHERE id = ?1");
    let before: Value = plain.query_row(&name, [row], |row| row.get(0)).unwrap();
    // A damaged text may be no valid UTF-8, so it is passed as bytes and cast.
    let cast = if matches!(before, Value::Text(_)) { "CAST(?2 AS TEXT)" } else { "?2" };
    let set = format!("UPDATE {table} SET {column} = {cast} WHERE id = ?1");
    for value in values {
        assert_eq!(plain.prepare_cached(&set).unwrap().execute(params![row, value]).unwrap(), 1);
        check(&format!("{table} {row} {column}: {before:?} → {value:?}"));
    }
    plain.prepare_cached(&set).unwrap().execute(params![row, before]).unwrap();
}

fn flipped(value: &Value) -> Vec<Value> {
    let bytes = match value {
        Value::Integer(number) => return (0..64).map(|bit| Value::Integer(number ^ (1 << bit))).collect(),
        Value::Text(text) => text.as_bytes(),
        Value::Blob(blob) => blob,
        other => panic!("{other:?}"),
    };
    let flip = |bit: usize| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        Value::Blob(bytes)
    };
    (0..bytes.len() * 8).map(flip).collect()
}

fn truncated(value: &Value) -> Vec<Value> {
    let Value::Blob(bytes) = value else { panic!("{value:?}") };
    (0..bytes.len()).map(|end| Value::Blob(bytes[..end].to_vec())).collect()
}

fn value(plain: &Connection, table: &str, row: i64, column: &str) -> Value {
    plain.query_row(&format!("SELECT {column} FROM {table} WHERE id = ?1"), [row], |row| row.get(0)).unwrap()
}

fn rows_of(plain: &Connection, run: &str) -> Vec<i64> {
    let sql =
        "SELECT batches.id FROM batches JOIN runs ON runs.id = run WHERE run_id = ?1 ORDER BY batches.id";
    plain.prepare(sql).unwrap().query_map([run], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

// SECURITY: journal-intact
#[tokio::test]
async fn every_flipped_bit_and_every_cut_of_a_row_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = stored_runs(dir.path()).await;
    let tried = std::cell::Cell::new(0);
    let check = |what: &str| {
        tried.set(tried.get() + 1);
        assert_damaged(&reader, "b", what);
    };
    for row in rows_of(&plain, "b") {
        for column in ["lines", "sum", "seq", "epoch", "active_ms"] {
            let values = flipped(&value(&plain, "batches", row, column));
            for_each_value(&plain, "batches", row, column, values, check);
            assert_sound(&reader, "b");
        }
        let values = truncated(&value(&plain, "batches", row, "lines"));
        for_each_value(&plain, "batches", row, "lines", values, check);
        assert_sound(&reader, "b");
    }
    // The seal over the whole run.
    for column in ["batches", "sum"] {
        let values = flipped(&value(&plain, "runs", 2, column));
        for_each_value(&plain, "runs", 2, column, values, check);
        for_each_value(&plain, "runs", 2, column, vec![Value::Null], check);
    }
    assert_sound(&reader, "b");
    // `cargo xtask faults` prints this line.
    println!("FAULTS damaged rows={} found={0}", tried.get());
}

// SECURITY: journal-intact
#[tokio::test]
async fn damage_of_one_run_does_not_affect_other_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = stored_runs(dir.path()).await;
    plain.execute("UPDATE batches SET lines = x'00' WHERE id = ?1", [rows_of(&plain, "b")[1]]).unwrap();
    assert_damaged(&reader, "b", "lines");
    assert_sound(&reader, "a");
    assert_sound(&reader, "c");
    assert_eq!(reader.run_ids().unwrap().len(), 4);
    // An unreadable row does not hide other runs from a list.
    plain.execute("UPDATE runs SET status = 'sunning' WHERE run_id = 'c'", []).unwrap();
    let listed = reader.list(&RunFilter::default()).unwrap().runs;
    let status = |run: &str| listed.iter().find(|listed| listed.run_id == id(run)).unwrap().status;
    assert_eq!((listed.len(), status("c")), (4, RunStatus::Damaged));
    assert_ne!(status("a"), RunStatus::Damaged);
    assert_damaged(&reader, "c", "status");
    plain.execute("UPDATE runs SET status = 'completed' WHERE run_id = 'c'", []).unwrap();
    // The driver gets the same error.
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.load(&id("b")).await.unwrap_err().code, StoreCode::DataCorrupt);
    assert!(store.load(&id("c")).await.is_ok());
}

// SECURITY: journal-intact
#[tokio::test]
async fn missing_swapped_and_foreign_rows_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = stored_runs(dir.path()).await;
    let (a, b) = (rows_of(&plain, "a"), rows_of(&plain, "b"));
    let content = "run, seq, epoch, active_ms, lines, sum";
    let swap = |one: i64, two: i64, columns: &str| {
        let sql = format!(
            "CREATE TEMP TABLE pair AS SELECT id, {columns} FROM batches WHERE id IN ({one}, {two});
             UPDATE batches SET ({columns}) = (SELECT {columns} FROM pair WHERE pair.id = {one} + {two} - batches.id)
             WHERE id IN ({one}, {two});
             DROP TABLE pair;"
        );
        plain.execute_batch(&sql).unwrap();
    };
    plain.execute_batch("CREATE TEMP TABLE original AS SELECT * FROM batches").unwrap();
    let restore = || {
        plain.execute_batch("DELETE FROM batches; INSERT INTO batches SELECT * FROM original").unwrap();
        assert_sound(&reader, "a");
        assert_sound(&reader, "b");
    };
    swap(b[0], b[1], content);
    assert_damaged(&reader, "b", "two rows changed places");
    restore();
    swap(b[1], b[2], "lines, sum");
    assert_damaged(&reader, "b", "two rows changed their lines and sums");
    restore();
    swap(a[1], b[1], "seq, epoch, active_ms, lines, sum");
    assert_damaged(&reader, "a", "a row of another run, with its sum");
    assert_damaged(&reader, "b", "a row of another run, with its sum");
    restore();
    for (row, what) in [(b[0], "the first row is gone"), (b[1], "the middle row"), (b[2], "the last row")] {
        plain.execute("DELETE FROM batches WHERE id = ?1", [row]).unwrap();
        assert_damaged(&reader, "b", what);
        assert_sound(&reader, "a");
        restore();
    }
    plain.execute("DELETE FROM batches WHERE run = 2", []).unwrap();
    assert_damaged(&reader, "b", "all rows are gone");
    restore();
    plain.execute("UPDATE batches SET run = 2 WHERE id = ?1", [a[2]]).unwrap();
    assert_damaged(&reader, "a", "its last row is another's");
    assert_damaged(&reader, "b", "it has a row of another");
    restore();
    plain.execute("INSERT INTO batches SELECT NULL, run, seq, epoch, active_ms, lines, sum FROM batches WHERE id = ?1", [b[2]]).unwrap();
    assert_damaged(&reader, "b", "its last row is there twice");
    restore();
    plain.execute("DELETE FROM batches WHERE run = (SELECT id FROM runs WHERE run_id = 'open')", []).unwrap();
    assert_damaged(&reader, "open", "nothing is left of it");
    restore();

    // A limit: a lost end of a run that was running cannot be detected.
    plain.execute("DELETE FROM batches WHERE id = ?1", [rows_of(&plain, "open")[1]]).unwrap();
    assert_eq!(reader.load(&id("open")).unwrap().unwrap().mark.batches, 1);
}

// SECURITY: journal-intact
#[tokio::test]
async fn a_changed_plan_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = stored_runs(dir.path()).await;
    let check = |what: &str| assert_damaged(&reader, "b", what);
    for column in ["json", "digest"] {
        let before = value(&plain, "plans", 1, column);
        for_each_value(&plain, "plans", 1, column, flipped(&before).into_iter().step_by(7).collect(), check);
        assert_sound(&reader, "b");
    }
    for_each_value(&plain, "runs", 2, "plan", vec![Value::Null, Value::Integer(2)], check);
    // Another plan that is sound in itself.
    let digest = redflow_contract::digest::Digest::of(b"{}").to_hex();
    plain.execute("INSERT INTO plans VALUES (2, ?1, '{}')", [digest]).unwrap();
    for_each_value(&plain, "runs", 2, "plan", vec![Value::Integer(2)], check);
    assert_sound(&reader, "b");
}

/// A directory whose runs use every column: `waits`, `failed` (started by `waits`) and `open`, in that order.
async fn full_rows(dir: &Path) -> (Reader, Connection) {
    let store = Store::open(dir).unwrap();
    start_run(&store, "waits").await.append(waiting_batch()).await.unwrap();
    let run = NewRun { cause: Some("waits:1:agent:1".into()), ..new_run("failed") };
    let ending = Ending::Failed { code: RunErrorCode::Timeout };
    let mut journal = store.create(run.clone());
    journal.append(first_batch(&run)).await.unwrap();
    journal
        .append(Batch {
            state: RunState::Finished { at: 5, ending, usage: Box::default() },
            ..synced_batch(&["the end"])
        })
        .await
        .unwrap();
    drop(start_run(&store, "open").await);
    drop(store);
    let plain = Connection::open(dir.join("redflow.db")).unwrap();
    plain.execute_batch("PRAGMA synchronous = OFF").unwrap();
    (Reader::open(dir).unwrap(), plain)
}

/// Every change of the row of a run is found, and affects that run alone.
// SECURITY: journal-intact
#[tokio::test]
async fn every_changed_value_of_a_run_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = full_rows(dir.path()).await;
    let tried = std::cell::Cell::new(0);
    let fixed = ["instance", "node_id", "name", "started_at", "source", "head"].as_slice();
    let runs: [(i64, &str, Vec<&str>); 3] = [
        (1, "waits", [fixed, &["status", "waiting", "batches", "sum"]].concat()),
        (
            2,
            "failed",
            [fixed, &["cause", "cause_run", "status", "code", "ended_at", "batches", "sum"]].concat(),
        ),
        (3, "open", [fixed, &["status"]].concat()),
    ];
    let text = |text: &str| Value::Text(text.to_owned());
    for (row, run, columns) in &runs {
        let check = |what: &str| {
            tried.set(tried.get() + 1);
            assert_damaged(&reader, run, what);
            assert_eq!(reader.list(&RunFilter::default()).unwrap().runs.len(), 3, "{what}");
            assert!(reader.summary(&id(run)).unwrap().is_some(), "{what}");
        };
        for column in columns {
            for_each_value(
                &plain,
                "runs",
                *row,
                column,
                flipped(&value(&plain, "runs", *row, column)),
                check,
            );
        }
        // Columns that are null get a value, and the others become null.
        let (one, moment) = (vec![Value::Integer(1)], vec![Value::Integer(1), Value::Integer(-1)]);
        let absent = [
            ("cause", vec![text("waits:2:agent:1")]),
            ("cause_run", vec![text("waits")]),
            ("code", vec![text("TIMEOUT")]),
            ("waiting", vec![text("{}")]),
            ("ended_at", moment),
            ("batches", one),
            ("sum", vec![text("")]),
        ];
        for (column, values) in absent {
            match value(&plain, "runs", *row, column) {
                Value::Null => for_each_value(&plain, "runs", *row, column, values, check),
                _ => for_each_value(&plain, "runs", *row, column, vec![Value::Null], check),
            }
        }
        for_each_value(&plain, "runs", *row, "source", vec![Value::Null], check);
        for status in ["running", "waiting", "completed", "stopped", "failed"] {
            if value(&plain, "runs", *row, "status") != text(status) {
                for_each_value(&plain, "runs", *row, "status", vec![text(status)], check);
            }
        }
        assert!(reader.load(&id(run)).unwrap().is_some(), "{run} is restored");
    }
    assert!(tried.get() > 4000, "{}", tried.get());
}

/// A run with an unreadable id is listed, and can be queried, by a replacement text.
// SECURITY: journal-intact
#[tokio::test]
async fn a_changed_id_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = full_rows(dir.path()).await;
    let values = flipped(&value(&plain, "runs", 2, "run_id"));
    for_each_value(&plain, "runs", 2, "run_id", values, |what| {
        let listed = reader.list(&RunFilter::default()).unwrap().runs;
        let run = &listed[1].run_id;
        assert_eq!(reader.run_ids().unwrap()[1], *run, "{what}");
        assert!(reader.load(&id("failed")).unwrap().is_none(), "{what}");
        assert_damaged(&reader, run.as_str(), what);
        assert_eq!(reader.intact_part(run).unwrap().unwrap().journal, b"", "{what}");
    });
}

/// The reader and the driver list the readable values of a damaged row.
// SECURITY: journal-intact
#[tokio::test]
async fn an_unreadable_row_is_listed_as_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = full_rows(dir.path()).await;
    let before = reader.list(&RunFilter::default()).unwrap().runs;
    plain.execute("UPDATE runs SET name = CAST(x'41ff' AS TEXT), started_at = -1 WHERE id = 2", []).unwrap();
    let listed = reader.list(&RunFilter::default()).unwrap().runs;
    assert_eq!((&listed[0], &listed[2]), (&before[0], &before[2]));
    assert_eq!((listed[1].run_id.as_str(), listed[1].status), ("failed", RunStatus::Damaged));
    assert_eq!((listed[1].name.as_str(), listed[1].started_at), ("A\u{fffd}", 0));
    assert_eq!((&listed[1].agent, &listed[1].source), (&before[1].agent, &before[1].source));
    assert_eq!(reader.summary(&id("failed")).unwrap().as_ref(), Some(&listed[1]));
    let only = RunFilter { statuses: Some(vec![RunStatus::Damaged]), ..RunFilter::default() };
    assert_eq!(reader.list(&only).unwrap().runs, listed[1..2]);
    let store = Store::open(dir.path()).unwrap();
    let statuses =
        store.unfinished_runs().await.unwrap().into_iter().map(|run| run.status).collect::<Vec<_>>();
    assert_eq!(statuses, [RunStatus::Waiting, RunStatus::Damaged, RunStatus::Interrupted]);
    assert_eq!(store.find_by_cause("waits:1:agent:1").await.unwrap(), Some(id("failed")));

    // One unreadable value is enough.
    plain.execute("UPDATE runs SET name = 'Agent', started_at = 1000 WHERE id = 2", []).unwrap();
    assert_eq!(reader.summary(&id("failed")).unwrap().as_ref(), Some(&before[1]));
    let garbled = vec![Value::Blob(vec![0xff])];
    for (column, values) in [
        ("name", garbled.clone()),
        ("node_id", garbled.clone()),
        ("source", garbled.clone()),
        ("cause", garbled),
        ("started_at", vec![Value::Integer(-1)]),
        ("ended_at", vec![Value::Integer(-1), Value::Null]),
        ("batches", vec![Value::Null]),
    ] {
        for_each_value(&plain, "runs", 2, column, values, |what| {
            let summary = reader.summary(&id("failed")).unwrap().unwrap();
            assert_eq!(summary.status, RunStatus::Damaged, "{what}");
        });
    }
}

// SECURITY: journal-intact
#[tokio::test]
async fn the_intact_part_of_a_damaged_run_ends_at_the_first_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = stored_runs(dir.path()).await;
    let (whole, rows) = (finished_journal("b"), rows_of(&plain, "b"));
    let beginning = crate::kit::opening_lines(&crate::kit::new_run("b")).join("\n") + "\n";
    let middle = beginning.clone() + "middle\nlines\n";
    let part = || reader.intact_part(&id("b")).unwrap().unwrap();
    assert_eq!((text(&part().journal), part().problem), (whole.as_str(), None));
    assert_eq!(reader.intact_part(&id("no such run")).unwrap(), None);
    let check = |expected: &str, words: &str| {
        let IntactPart { journal, problem } = part();
        assert_eq!(text(&journal), expected, "{words}");
        assert_eq!(problem, reader.load(&id("b")).err());
        let problem = problem.unwrap();
        assert_eq!(problem.code, StoreCode::DataCorrupt);
        assert!(problem.message.contains(words), "{problem}");
    };
    let word = |text: &str| vec![Value::Text(text.to_owned())];
    // Damage in the journal: the journal up to it is sound.
    for (row, sound) in rows.iter().zip(["", &beginning, &middle]) {
        for_each_value(&plain, "batches", *row, "active_ms", vec![Value::Integer(8)], |_| {
            check(sound, "does not match its sum");
        });
    }
    // Damage outside the journal: the whole journal is sound.
    for_each_value(&plain, "runs", 2, "name", word("Another"), |_| check(&whole, "its agent, name, start"));
    for_each_value(&plain, "runs", 2, "head", word("00"), |_| check(&whole, "its agent, name, start"));
    for_each_value(&plain, "runs", 2, "name", vec![Value::Blob(vec![0xff])], |_| {
        check(&whole, "its name is unreadable")
    });
    for_each_value(&plain, "runs", 2, "status", word("stopped"), |_| {
        check(&whole, "does not match its seal")
    });
    for_each_value(&plain, "runs", 2, "status", word("melted"), |_| check(&whole, "its status is unknown"));
    for_each_value(&plain, "runs", 2, "batches", vec![Value::Integer(4)], |_| {
        check(&whole, "its last parts are missing")
    });
    for_each_value(&plain, "plans", 1, "json", word("{}"), |_| check("", "its plan does not match"));
    // Both: the damage in the journal counts.
    plain.execute("UPDATE runs SET name = 'Another' WHERE id = 2", []).unwrap();
    for_each_value(&plain, "batches", rows[1], "lines", vec![Value::Blob(b"x".to_vec())], |_| {
        check(&beginning, "its part 2")
    });
}

// SECURITY: journal-intact
#[tokio::test]
async fn a_row_that_contradicts_itself_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, plain) = stored_runs(dir.path()).await;
    let text = |text: &str| Value::Text(text.to_owned());
    let wrong = [
        ("status", vec![text("running"), text("waiting"), text("melted")]),
        ("code", vec![text("NO_SUCH_CODE")]),
        ("waiting", vec![text("{}"), text("[")]),
        ("ended_at", vec![Value::Null]),
    ];
    for (column, values) in wrong {
        for_each_value(&plain, "runs", 2, column, values, |what| {
            assert_damaged(&reader, "b", what);
            let summary = reader.summary(&id("b")).unwrap().unwrap();
            assert_eq!(summary.status, RunStatus::Damaged, "{what}");
            assert_sound(&reader, "a");
        });
    }
    assert_sound(&reader, "b");
}
