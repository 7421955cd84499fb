use super::{MIGRATIONS, drive, migrate, read, unchanging, version};
use crate::directory::Directory;
use redflow_contract::code::StoreCode;
use redflow_ports::RunFilter;
use rusqlite::Connection;
use std::path::Path;

fn directory(path: &Path) -> Directory {
    let directory = Directory::named(path).unwrap();
    directory.make_database().unwrap();
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
    let made = drive(&directory).unwrap();
    assert_eq!(version(&made, &directory).unwrap(), MIGRATIONS.len());
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
        assert_eq!(text(&made, &format!("PRAGMA {name}")), value, "{name}");
    }
    drop(made);
    // The second time there is nothing to do.
    let again = drive(&directory).unwrap();
    assert_eq!(text(&again, "SELECT count(*) FROM runs"), "Integer(0)");
    assert_eq!(text(&again, "PRAGMA auto_vacuum"), "Integer(2)");
}

#[test]
fn a_later_version_keeps_what_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut connection = drive(&directory).unwrap();
    connection.execute("UPDATE meta SET driver = 7", []).unwrap();
    let next = ["ALTER TABLE meta ADD COLUMN more TEXT NOT NULL DEFAULT 'new'; CREATE TABLE more(x)"];
    let steps: Vec<&str> = MIGRATIONS.iter().copied().chain(next).collect();
    migrate(&mut connection, MIGRATIONS.len(), &steps).unwrap();
    assert_eq!(text(&connection, "SELECT driver || more FROM meta"), "Text(\"7new\")");
    // This version, which does not know it, now leaves it alone.
    let error = version(&connection, &directory).unwrap_err();
    assert_eq!(error.code, StoreCode::DataNewer);
    assert_eq!(text(&connection, "PRAGMA user_version"), format!("Integer({})", steps.len()));
}

/// The version before events were kept: its runs stay, can be looked at before anybody drives them, and go on.
#[test]
fn version_1_becomes_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut old = Connection::open(directory.database()).unwrap();
    migrate(&mut old, 0, &MIGRATIONS[..1]).unwrap();
    let run = "INSERT INTO runs(run_id, instance, node_id, name, started_at, head, driver, status)
               VALUES ('old', 'local', 'agent', '', 1, '', 0, 'running')";
    old.execute_batch(&format!("UPDATE meta SET driver = 7; {run}")).unwrap();
    drop(old);
    let looking = read(&directory).unwrap();
    assert_eq!(version(&looking, &directory).unwrap(), 1);
    let tables = crate::read::Tables::new(&looking, dir.path(), || false);
    assert_eq!(tables.newest(&RunFilter::default()).unwrap().len(), 1);

    let made = drive(&directory).unwrap();
    assert_eq!(version(&made, &directory).unwrap(), MIGRATIONS.len());
    assert_eq!(text(&made, "SELECT driver FROM meta WHERE log IS NULL"), "Integer(7)");
    assert_eq!(text(&made, "SELECT run_id FROM runs"), "Text(\"old\")");
    assert_eq!(text(&made, "SELECT count(*) FROM events"), "Integer(0)");
    // Whoever was looking still can.
    assert_eq!(tables.newest(&RunFilter::default()).unwrap().len(), 1);
}

/// The version before chats were kept: its events stay.
#[test]
fn version_2_becomes_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    let mut old = Connection::open(directory.database()).unwrap();
    migrate(&mut old, 0, &MIGRATIONS[..2]).unwrap();
    old.execute_batch("UPDATE meta SET log = 'l'; INSERT INTO events(body) VALUES ('{}')").unwrap();
    drop(old);
    assert_eq!(version(&read(&directory).unwrap(), &directory).unwrap(), 2);

    let made = drive(&directory).unwrap();
    assert_eq!(version(&made, &directory).unwrap(), MIGRATIONS.len());
    assert_eq!(text(&made, "SELECT body FROM events"), "Text(\"{}\")");
    assert_eq!(text(&made, "SELECT log FROM meta"), "Text(\"l\")");
    assert_eq!(
        text(&made, "SELECT (SELECT count(*) FROM chats) + (SELECT count(*) FROM chat_items)"),
        "Integer(0)"
    );
}

/// The version before runs were found by their agents: without the indexes they are found too, only more slowly.
#[test]
fn version_3_becomes_the_newest() {
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
    let looking = read(&directory).unwrap();
    let tables = crate::read::Tables::new(&looking, dir.path(), || false);
    let of = RunFilter { agent: Some("one".into()), ..RunFilter::default() };
    let before = tables.newest(&of).unwrap();
    assert_eq!(before.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["c", "a"]);
    let made = drive(&directory).unwrap();
    assert_eq!(version(&made, &directory).unwrap(), MIGRATIONS.len());
    assert_eq!(tables.newest(&of).unwrap(), before);
}

#[test]
fn a_version_comes_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut connection = drive(&directory(dir.path())).unwrap();
    let next = ["CREATE TABLE more(x)", "CREATE TABLE half(x); CREATE TABLE more(x)"];
    let steps: Vec<&str> = MIGRATIONS.iter().copied().chain(next).collect();
    assert!(migrate(&mut connection, MIGRATIONS.len(), &steps).is_err());
    assert_eq!(text(&connection, "PRAGMA user_version"), format!("Integer({})", MIGRATIONS.len() + 1));
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('half', 'more')";
    assert_eq!(text(&connection, tables), "Integer(1)");
}

#[test]
fn tables_that_are_gone_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let directory = directory(dir.path());
    drive(&directory).unwrap().execute_batch("DELETE FROM meta").unwrap();
    let connection = read(&directory).unwrap();
    let tables = crate::read::Tables::new(&connection, dir.path(), || false);
    assert_eq!(tables.unfinished().unwrap_err().code, StoreCode::DataCorrupt);
    drive(&directory).unwrap().execute_batch("DROP TABLE runs").unwrap();
    assert_eq!(tables.run_ids().unwrap_err().code, StoreCode::DataUnusable);
}

#[cfg(unix)]
#[test]
fn an_address_holds_any_name() {
    let address = unchanging(Path::new("/a b/ü?#%/redflow.db"));
    assert_eq!(address.to_str().unwrap(), "file:/a%20b/%c3%bc%3f%23%25/redflow.db?immutable=1");
}
