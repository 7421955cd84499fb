use super::{MIGRATIONS, immutable_uri, migrate, open_driver, open_reader, version};
use crate::directory::Directory;
use crate::reader::Reader;
use crate::runs::queries::RunQueries;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunSummary;
use redflow_ports::{RunFilter, ToolCallQuery};
use rusqlite::Connection;
use std::path::Path;

fn directory(path: &Path) -> Directory {
    let directory = Directory::at(path).unwrap();
    directory.create_database().unwrap();
    directory
}

fn text(connection: &Connection, sql: &str) -> String {
    connection
        .query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0))
        .map(|value| format!("{value:?}"))
        .unwrap()
}

#[test]
fn an_empty_file_becomes_the_newest_version() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let migrated = open_driver(&directory).unwrap();
    assert_eq!(version(&migrated, &directory).unwrap(), MIGRATIONS.len());
    let settings = [
        ("journal_mode", "Text(\"wal\")"),
        ("synchronous", "Integer(2)"),
        ("auto_vacuum", "Integer(2)"),
        ("busy_timeout", "Integer(5000)"),
        ("trusted_schema", "Integer(0)"),
        ("cell_size_check", "Integer(1)"),
        ("fullfsync", "Integer(1)"),
    ];
    for (name, value) in settings {
        assert_eq!(text(&migrated, &format!("PRAGMA {name}")), value, "{name}");
    }
    drop(migrated);
    // The second time there is nothing to do.
    let again = open_driver(&directory).unwrap();
    assert_eq!(text(&again, "SELECT count(*) FROM runs"), "Integer(0)");
    assert_eq!(text(&again, "PRAGMA auto_vacuum"), "Integer(2)");
}

#[test]
fn a_later_version_keeps_what_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut connection = open_driver(&directory).unwrap();
    connection.execute("UPDATE meta SET driver = 7", []).unwrap();
    let next = ["ALTER TABLE meta ADD COLUMN more TEXT NOT NULL DEFAULT 'new'; CREATE TABLE more(x)"];
    let steps: Vec<&str> = MIGRATIONS.iter().copied().chain(next).collect();
    migrate(&mut connection, MIGRATIONS.len(), &steps).unwrap();
    assert_eq!(text(&connection, "SELECT driver || more FROM meta"), "Text(\"7new\")");
    // This version does not know the newer one, and refuses to use it.
    let error = version(&connection, &directory).unwrap_err();
    assert_eq!(error.code, StoreCode::DataNewer);
    assert_eq!(text(&connection, "PRAGMA user_version"), format!("Integer({})", steps.len()));
}

/// Version 1 had no events. Its runs stay; they can be read before and after a driver migrates them.
#[test]
fn version_1_migrates_to_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut old = Connection::open(directory.database()).unwrap();
    migrate(&mut old, 0, &MIGRATIONS[..1]).unwrap();
    let run = "INSERT INTO runs(run_id, instance, node_id, name, started_at, head, driver, status)
               VALUES ('old', 'local', 'agent', '', 1, '', 0, 'running')";
    old.execute_batch(&format!("UPDATE meta SET driver = 7; {run}")).unwrap();
    drop(old);
    let reader = open_reader(&directory).unwrap();
    assert_eq!(version(&reader, &directory).unwrap(), 1);
    let queries = RunQueries::new(&reader, dir.path(), || false);
    assert_eq!(queries.newest(&RunFilter::default()).unwrap().runs.len(), 1);

    let migrated = open_driver(&directory).unwrap();
    assert_eq!(version(&migrated, &directory).unwrap(), MIGRATIONS.len());
    assert_eq!(text(&migrated, "SELECT driver FROM meta WHERE log IS NULL"), "Integer(7)");
    assert_eq!(text(&migrated, "SELECT run_id FROM runs"), "Text(\"old\")");
    assert_eq!(text(&migrated, "SELECT count(*) FROM events"), "Integer(0)");
    // A reader that was opened before still works.
    assert_eq!(queries.newest(&RunFilter::default()).unwrap().runs.len(), 1);
}

/// Version 2 had no chats. Its events stay.
#[test]
fn version_2_migrates_to_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut old = Connection::open(directory.database()).unwrap();
    migrate(&mut old, 0, &MIGRATIONS[..2]).unwrap();
    old.execute_batch("UPDATE meta SET log = 'l'; INSERT INTO events(body) VALUES ('{}')").unwrap();
    drop(old);
    assert_eq!(version(&open_reader(&directory).unwrap(), &directory).unwrap(), 2);

    let migrated = open_driver(&directory).unwrap();
    assert_eq!(version(&migrated, &directory).unwrap(), MIGRATIONS.len());
    assert_eq!(text(&migrated, "SELECT body FROM events"), "Text(\"{}\")");
    assert_eq!(text(&migrated, "SELECT log FROM meta"), "Text(\"l\")");
    assert_eq!(
        text(&migrated, "SELECT (SELECT count(*) FROM chats) + (SELECT count(*) FROM chat_items)"),
        "Integer(0)"
    );
}

/// Version 3 had no indexes by agent: runs are found without them too, only more slowly.
#[test]
fn version_3_migrates_to_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut old = Connection::open(directory.database()).unwrap();
    migrate(&mut old, 0, &MIGRATIONS[..3]).unwrap();
    let run = |id: &str, agent: &str| {
        format!(
            "INSERT INTO runs(run_id, instance, node_id, name, started_at, head, driver, status)
             VALUES ('{id}', 'local', '{agent}', '', 1, '', 0, 'running');"
        )
    };
    old.execute_batch(&[run("a", "one"), run("b", "two"), run("c", "one")].concat()).unwrap();
    drop(old);
    let reader = open_reader(&directory).unwrap();
    let queries = RunQueries::new(&reader, dir.path(), || false);
    let filter = RunFilter { agent: Some("one".into()), ..RunFilter::default() };
    let before = queries.newest(&filter).unwrap().runs;
    assert_eq!(before.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["c", "a"]);
    let migrated = open_driver(&directory).unwrap();
    assert_eq!(version(&migrated, &directory).unwrap(), MIGRATIONS.len());
    assert_eq!(queries.newest(&filter).unwrap().runs, before);
}

/// Version 4 had no tools of events. Its events stay; nothing is known about the tools that they ended.
#[test]
fn version_4_migrates_to_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut old = Connection::open(directory.database()).unwrap();
    migrate(&mut old, 0, &MIGRATIONS[..4]).unwrap();
    old.execute_batch("INSERT INTO events(run_id, body) VALUES ('a', '{}')").unwrap();
    drop(old);
    let calls = || {
        let query = ToolCallQuery { id: "mail".to_owned(), name: "mail".to_owned(), before: None, most: 9 };
        Reader::open(dir.path()).unwrap().tool_calls(&query).unwrap().len()
    };
    assert_eq!(calls(), 0);

    let migrated = open_driver(&directory).unwrap();
    assert_eq!(version(&migrated, &directory).unwrap(), MIGRATIONS.len());
    assert_eq!(text(&migrated, "SELECT body FROM events WHERE tool IS NULL"), "Text(\"{}\")");
    assert_eq!(calls(), 0);
    migrated.execute_batch("INSERT INTO events(run_id, tool, body) VALUES ('a', 'mail', '{}')").unwrap();
    assert_eq!(calls(), 1);
    let plan = "EXPLAIN QUERY PLAN SELECT id FROM events WHERE tool = 'mail' AND id < 9 ORDER BY id DESC";
    let plan: String = migrated.query_row(plan, [], |row| row.get(3)).unwrap();
    assert!(plan.contains("events_by_tool"), "{plan}");
}

/// Version 6 had no parents and no sums. A reader beside its driver finds no parents.
#[test]
fn version_6_migrates_to_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut old = Connection::open(directory.database()).unwrap();
    migrate(&mut old, 0, &MIGRATIONS[..6]).unwrap();
    let run = |id: &str, cause: &str| {
        format!(
            "INSERT INTO runs(run_id, instance, node_id, name, started_at, cause, cause_run, head, driver, status)
             VALUES ('{id}', 'local', 'agent', '', 1, {cause}, '', 0, 'running');"
        )
    };
    let runs = [run("a", "NULL, NULL"), run("b", "'a:1:agent:0', 'a'"), run("c", "'api:key', 'api'")];
    old.execute_batch(&runs.concat()).unwrap();
    drop(old);
    let reader = open_reader(&directory).unwrap();
    let queries = RunQueries::new(&reader, dir.path(), || false);
    let list = |roots: bool| {
        let runs = queries.newest(&RunFilter { roots, ..RunFilter::default() }).unwrap().runs;
        let describe = |run: &RunSummary| format!("{} {:?} {}", run.run_id, run.parent, run.children);
        runs.iter().map(describe).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(list(true), "c None 0, b None 0, a None 0");
    assert_eq!(queries.summary(&"a".into()).unwrap().unwrap().children, 0);
    let migrated = open_driver(&directory).unwrap();
    assert_eq!(version(&migrated, &directory).unwrap(), MIGRATIONS.len());
    assert_eq!(list(false), r#"c None 0, b Some(RunId("a")) 0, a None 1"#);
    assert_eq!(list(true), "c None 0, a None 1");
    assert_eq!(text(&migrated, "SELECT count(*) FROM usage"), "Integer(0)");
}

/// Version 8 did not count the calls without a known price. Calls without an answer had no tokens and no cost.
#[test]
fn version_8_migrates_to_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut old = Connection::open(directory.database()).unwrap();
    migrate(&mut old, 0, &MIGRATIONS[..8]).unwrap();
    let row = |model: &str, tokens: u32, cost: &str| {
        format!(
            "INSERT INTO usage VALUES (1, 'local', 'agent', '{model}', 1, 0, 5, {tokens}, {tokens}, 0, {cost}, 9);"
        )
    };
    old.execute_batch(&[row("priced", 7, "3"), row("unpriced", 7, "NULL"), row("", 0, "NULL")].concat())
        .unwrap();
    drop(old);
    let migrated = open_driver(&directory).unwrap();
    assert_eq!(version(&migrated, &directory).unwrap(), MIGRATIONS.len());
    let counts =
        "SELECT group_concat(model || ' ' || unpriced, ', ') FROM (SELECT * FROM usage ORDER BY model)";
    assert_eq!(text(&migrated, counts), "Text(\" 0, priced 0, unpriced 5\")");
}

#[test]
fn a_migration_step_is_applied_completely_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut connection = open_driver(&directory(dir.path())).unwrap();
    let next = ["CREATE TABLE more(x)", "CREATE TABLE half(x); CREATE TABLE more(x)"];
    let steps: Vec<&str> = MIGRATIONS.iter().copied().chain(next).collect();
    assert!(migrate(&mut connection, MIGRATIONS.len(), &steps).is_err());
    assert_eq!(text(&connection, "PRAGMA user_version"), format!("Integer({})", MIGRATIONS.len() + 1));
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('half', 'more')";
    assert_eq!(text(&connection, tables), "Integer(1)");
}

#[test]
fn missing_tables_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    open_driver(&directory).unwrap().execute_batch("DELETE FROM meta").unwrap();
    let connection = open_reader(&directory).unwrap();
    let queries = RunQueries::new(&connection, dir.path(), || false);
    assert_eq!(queries.unfinished().unwrap_err().code, StoreCode::DataCorrupt);
    open_driver(&directory).unwrap().execute_batch("DROP TABLE runs").unwrap();
    assert_eq!(queries.run_ids().unwrap_err().code, StoreCode::DataUnusable);
}

#[cfg(unix)]
#[test]
fn a_uri_escapes_any_path() {
    let uri = immutable_uri(Path::new("/a b/ü?#%/redflow.db"));
    assert_eq!(uri.to_str().unwrap(), "file:/a%20b/%c3%bc%3f%23%25/redflow.db?immutable=1");
}
