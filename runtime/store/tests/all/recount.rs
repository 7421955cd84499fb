//! Bounds of searches in a large directory, and counting runs again.

use crate::kit::{deliver_run, finish_run, id, last_batch, start_run, waiting_batch};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::console::StatsBy;
use redflow_contract::day::Day;
use redflow_contract::run::RunStatus;
use redflow_contract::tally::RunTally;
use redflow_contract::usage::RunUsage;
use redflow_ports::{RunFilter, RunReader, StatsQuery};
use redflow_store::{PruneRequest, Reader, RecountReport, Store, prune, recount};
use std::ops::ControlFlow;
use std::path::Path;

fn plain(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("redflow.db")).unwrap()
}

/// Adds failed runs 1 to `count`; the number is the time of the start and of the end in seconds.
fn add_failures(dir: &Path, count: u32) {
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         INSERT INTO runs(run_id, instance, node_id, name, started_at, head, driver, status, code, ended_at, delivered,
                          batches, sum, parent)
         SELECT printf('%06d', i), 'local', 'agent', 'Desk', i * 1000, '', 1, 'failed', 'TIMEOUT', i * 1000, 1, 1, '',
                nullif('top', iif(i <= 3, 'top', '')) FROM n;"
    );
    plain(dir).execute_batch(&sql).unwrap();
}

/// A search looks at 20 000 runs, and says how far it came.
#[tokio::test]
async fn a_search_is_limited() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    add_failures(dir.path(), 20_010);
    let reader = Reader::open(dir.path()).unwrap();
    let any = || RunFilter { limit: 2, ..RunFilter::default() };
    let completed = Some(vec![RunStatus::Completed]);
    for filter in [
        RunFilter { roots: true, ..any() },
        RunFilter { statuses: completed.clone(), ..any() },
        RunFilter { statuses: completed.clone(), since: Some(0), ..any() },
        RunFilter { statuses: completed, prefix: Some("0".into()), ..any() },
        RunFilter { agent: Some("agent".into()), instance: Some("other".into()), ..any() },
    ] {
        let case = format!("{filter:?}");
        let page = reader.list(&filter).unwrap();
        assert_eq!(
            (page.runs.len(), page.next, page.searched_to),
            (0, Some(id("000011")), Some(11_000)),
            "{case}"
        );
        let rest = RunFilter { before: Some(id("000011")), ..filter.clone() };
        let page = reader.list(&rest).unwrap();
        let found: Vec<&str> = page.runs.iter().map(|run| run.run_id.as_str()).collect();
        let expected: &[&str] = if filter.roots { &["000003", "000002"] } else { &[] };
        assert_eq!((found.as_slice(), page.searched_to), (expected, None), "{case}");
        assert_eq!(page.next, filter.roots.then(|| id("000002")), "{case}");
    }
    // Where every row matches, nothing is looked at in vain.
    let agent = RunFilter { agent: Some("agent".into()), limit: 20_005, ..RunFilter::default() };
    assert_eq!(reader.list(&agent).unwrap().runs.len(), 20_005);
    drop(reader);

    let store = Store::open(dir.path()).unwrap();
    let query = StatsQuery { from: Day(0), to: Day(1), by: StatsBy::Code };
    let codes = RunReader::stats(&store, query).await.unwrap();
    assert_eq!(codes.rows.iter().map(|row| row.failed).sum::<u64>(), 20_000);
    assert_eq!(codes.searched_to, Some(11_000));
}

fn count(journal: &[u8]) -> Option<(RunTally, RunUsage)> {
    let mut usage = RunUsage::default();
    usage.model("model").calls += 2;
    usage.tool("mail").calls += 1;
    usage.last_model = "model".to_owned();
    let tally = RunTally { model_calls: 2, tool_calls: 1, ..RunTally::default() };
    (!String::from_utf8_lossy(journal).contains("bad")).then_some((tally, usage))
}

fn recount_all(dir: &Path) -> RecountReport {
    recount(dir, &mut count, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap()
}

fn sums(dir: &Path) -> Vec<String> {
    let sql = "SELECT day || ' ' || model || ' ' || runs || ' ' || calls FROM usage
               UNION ALL SELECT day || ' ' || tool || ' ' || calls FROM tool_usage";
    let plain = plain(dir);
    let mut statement = plain.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

const DAY: u64 = 24 * 60 * 60 * 1000;

#[tokio::test]
async fn a_recount_replaces_sums_and_tallies() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    deliver_run(&store, "first", DAY).await;
    deliver_run(&store, "second", DAY).await;
    finish_run(&store, "bad run", 2 * DAY).await;
    finish_run(&store, "third", 2 * DAY).await;
    start_run(&store, "waits").await.append(waiting_batch()).await.unwrap();
    let _open = start_run(&store, "open").await;
    let locked = recount(dir.path(), &mut count, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(locked.code, StoreCode::DataLocked);
    drop(store);
    // As a directory of a version that did not count.
    plain(dir.path()).execute_batch("DELETE FROM usage; UPDATE runs SET tally = NULL").unwrap();

    let mut seen = Vec::new();
    let mut stop = |done, all| {
        seen.push((done, all));
        if done == all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert_eq!(recount(dir.path(), &mut count, &mut stop).unwrap(), None);
    assert_eq!((seen, sums(dir.path())), (vec![(0, 6), (6, 6)], Vec::new()), "a stop leaves the sums");

    let report = recount_all(dir.path());
    assert_eq!(report, RecountReport { runs: 4, unreadable: 1, days: 2, kept_days: 0 });
    let expected = ["1 model 2 4", "2 model 1 2", "1 mail 2", "2 mail 1"];
    assert_eq!(sums(dir.path()), expected);
    let reader = Reader::open(dir.path()).unwrap();
    for (run, is_counted) in [("first", true), ("waits", true), ("bad run", false), ("open", false)] {
        let tally = reader.summary(&id(run)).unwrap().unwrap().tally;
        assert_eq!(tally.map(|tally| tally.model_calls), is_counted.then_some(2), "{run}");
        if run != "bad run" {
            reader.load(&id(run)).unwrap().unwrap();
        }
    }
    // A second recount changes nothing, and the runs go on.
    assert_eq!(recount_all(dir.path()), report);
    assert_eq!(sums(dir.path()), expected);
    let store = Store::open(dir.path()).unwrap();
    deliver_run(&store, "later", 2 * DAY).await;
    drop(store);
    assert_eq!(sums(dir.path())[1..3], ["2  1 0", "2 model 1 2"]);
}

/// Sums outlive their runs: a recount must not lose what was counted of removed runs.
#[tokio::test]
async fn a_recount_keeps_the_days_of_removed_runs() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for (run, day) in [("a", 1), ("b", 2), ("c", 2), ("d", 3)] {
        deliver_run(&store, run, day * DAY).await;
    }
    drop(store);
    recount_all(dir.path());
    let before = sums(dir.path());
    prune(dir.path(), PruneRequest { keep: Some(2), ..PruneRequest::default() }).unwrap();
    let report = recount_all(dir.path());
    assert_eq!(report, RecountReport { runs: 2, unreadable: 0, days: 1, kept_days: 2 });
    assert_eq!(sums(dir.path()), before);
    // Damaged runs are not counted, but their day stays too.
    plain(dir.path()).execute_batch("UPDATE batches SET lines = x'00'").unwrap();
    let report = recount_all(dir.path());
    assert_eq!(report, RecountReport { runs: 0, unreadable: 2, days: 0, kept_days: 3 });
    assert_eq!(sums(dir.path()), before);
}

/// A run whose parent was removed counts as one that no other run started.
#[tokio::test]
async fn a_removed_run_is_no_parent() {
    use redflow_ports::{NewRun, RunStore as _};
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    deliver_run(&store, "top", 1).await;
    let child = NewRun { cause: Some("top:1:agent:0".into()), ..crate::kit::new_run("child") };
    let mut journal = store.create(child.clone());
    journal.append(crate::kit::first_batch(&child)).await.unwrap();
    journal.append(last_batch(9)).await.unwrap();
    assert_eq!(store.load(&id("child")).await.unwrap().unwrap().summary.parent, Some(id("top")));
    let removed = prune(dir.path(), PruneRequest { older_than: Some(5), ..PruneRequest::default() }).unwrap();
    assert_eq!(removed.runs, 1);
    let summary = store.load(&id("child")).await.unwrap().unwrap().summary;
    assert_eq!((summary.parent, summary.status), (None, RunStatus::Completed));
    let roots = RunFilter { roots: true, ..RunFilter::default() };
    assert_eq!(store.list(roots).await.unwrap().runs.len(), 1);
}

/// For another process, which is killed before the new sums are written.
pub(crate) fn play_role(dir: &Path) {
    recount_all(dir);
    panic!("the process was not stopped at the failpoint");
}

#[cfg(unix)]
#[tokio::test]
async fn a_killed_recount_leaves_the_sums() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    deliver_run(&store, "run", DAY).await;
    drop(store);
    let before = sums(dir.path());
    crate::processes::kill_at("recount.before_commit=1", "recount", dir.path());
    assert_eq!(sums(dir.path()), before);
    assert_eq!(recount_all(dir.path()).runs, 1);
    assert_ne!(sums(dir.path()), before);
}

/// A process is killed while the last lines of its runs are written: each run and its sums are stored, or neither.
#[cfg(unix)]
#[tokio::test]
async fn a_kill_leaves_sums_of_exactly_the_stored_ends() {
    for write in 1..=6 {
        let dir = tempfile::tempdir().unwrap();
        let point = format!("store.{}_commit={write}", if write % 2 == 0 { "after" } else { "before" });
        crate::processes::kill_at(&point, "write", dir.path());
        let plain = plain(dir.path());
        let number = |sql: &str| plain.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let ended = number("SELECT count(*) FROM runs WHERE ended_at IS NOT NULL");
        assert_eq!(number("SELECT coalesce(sum(runs), 0) FROM usage"), ended, "{point}");
    }
}
