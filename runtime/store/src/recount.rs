//! Counts again what runs have used, from their journals.
//!
//! Owns the rule which days are replaced. Holds the driver's lock, so no run ends meanwhile. The sums of all days
//! change in one transaction: an interrupted recount leaves them as they were.

use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::lock::Lock;
use crate::runs::queries::RunQueries;
use crate::runs::usage::PendingUsage;
use redflow_contract::day::Day;
use redflow_contract::run::RunStatus;
use redflow_contract::tally::RunTally;
use redflow_contract::usage::RunUsage;
use redflow_ports::{StoreError, failpoint};
use rusqlite::{Connection, params};
use std::ops::ControlFlow;
use std::path::Path;

/// Runs whose tallies are written in one transaction, and after which the progress is reported.
const STEP: usize = 200;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecountReport {
    /// The runs that were counted.
    pub runs: u64,
    /// The runs that could not be counted, because their journals are damaged or not valid.
    pub unreadable: u64,
    /// The days whose sums are new.
    pub days: u64,
    /// The days whose sums stay, because they count more runs than are stored.
    pub kept_days: u64,
}

/// Reads from a journal what its run has used; none if the journal is not valid.
pub type CountRun<'a> = &'a mut dyn FnMut(&[u8]) -> Option<(RunTally, RunUsage)>;

/// Gets the number of runs that were looked at, and of all runs. Decides whether to go on.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>;

/// The new sums. Their names hide the tables of the database.
const TEMP_TABLES: &str = "PRAGMA temp_store = MEMORY;
     CREATE TEMP TABLE usage(
         day, instance, node_id, model, runs, failed, calls, input, output, cached, cost, ms, unpriced,
         PRIMARY KEY (day, instance, node_id, model)
     ) WITHOUT ROWID;
     CREATE TEMP TABLE tool_usage(
         day, instance, node_id, tool, calls, failed, ms, PRIMARY KEY (day, instance, node_id, tool)
     ) WITHOUT ROWID;
     CREATE TEMP TABLE kept(day INTEGER PRIMARY KEY);";

/// A day stays if it counts more runs than are stored: the journals of the others were removed.
const REPLACE: &str = "INSERT INTO temp.kept SELECT day FROM main.usage GROUP BY day
         HAVING sum(runs) > (SELECT coalesce(sum(runs), 0) FROM temp.usage AS new WHERE new.day = main.usage.day);
     DELETE FROM main.usage WHERE day NOT IN (SELECT day FROM temp.kept);
     DELETE FROM main.tool_usage WHERE day NOT IN (SELECT day FROM temp.kept);
     INSERT INTO main.usage SELECT * FROM temp.usage WHERE day NOT IN (SELECT day FROM temp.kept);
     INSERT INTO main.tool_usage SELECT * FROM temp.tool_usage WHERE day NOT IN (SELECT day FROM temp.kept);";

/// Counts the runs of a data directory again; none if `progress` stopped it. Then only tallies have changed.
///
/// # Errors
/// When a process drives the runs, or the directory cannot be used.
pub fn recount(
    dir: &Path,
    count: CountRun<'_>,
    progress: Progress<'_>,
) -> Result<Option<RecountReport>, StoreError> {
    let directory = Directory::at(dir)?;
    let _lock = Lock::take(&directory)?;
    let mut connection = database::open_driver(&directory)?;
    let checked = |error: rusqlite::Error| error::from_sqlite(directory.path(), &error);
    connection.execute_batch(TEMP_TABLES).map_err(checked)?;
    let mut report = RecountReport::default();
    let numbers = queries(&connection, &directory).numbers()?;
    let mut done = 0;
    for step in numbers.chunks(STEP) {
        if progress(done, numbers.len()).is_break() {
            return Ok(None);
        }
        let transaction = connection.transaction().map_err(checked)?;
        for number in step {
            recount_run(&transaction, &directory, *number, count, &mut report)?;
        }
        transaction.commit().map_err(checked)?;
        done += step.len();
    }
    if progress(done, numbers.len()).is_break() {
        return Ok(None);
    }
    let transaction = connection.transaction().map_err(checked)?;
    transaction.execute_batch(REPLACE).map_err(checked)?;
    let number = |sql: &str| transaction.query_row(sql, [], |row| database::from_sql_integer(row.get(0)?));
    report.kept_days = number("SELECT count(*) FROM temp.kept").map_err(checked)?;
    report.days =
        number("SELECT count(DISTINCT day) FROM main.usage WHERE day NOT IN (SELECT day FROM temp.kept)")
            .map_err(checked)?;
    failpoint("recount.before_commit");
    transaction.commit().map_err(checked)?;
    Ok(Some(report))
}

fn queries<'a>(connection: &'a Connection, directory: &'a Directory) -> RunQueries<'a> {
    RunQueries::new(connection, directory.path(), || false)
}

/// Counts one run, if it has ended or waits.
fn recount_run(
    connection: &Connection,
    directory: &Directory,
    number: i64,
    count: CountRun<'_>,
    report: &mut RecountReport,
) -> Result<(), StoreError> {
    let Some(run) = queries(connection, directory).check_numbered(number)? else { return Ok(()) };
    let summary = run.summary();
    let is_counted = summary.status.is_over() || summary.status == RunStatus::Waiting;
    let counted = if run.problem.is_none() && is_counted { count(&run.journal) } else { None };
    let Some((tally, usage)) = counted else {
        report.unreadable += u64::from(run.problem.is_some() || is_counted);
        return Ok(());
    };
    report.runs += 1;
    let write = || {
        let json = serde_json::to_string(&tally).unwrap_or_default();
        connection
            .prepare_cached("UPDATE runs SET tally = ?2 WHERE id = ?1 AND tally IS NOT ?2")?
            .execute(params![number, json])?;
        let Some(ended_at) = summary.ended_at else { return Ok(()) };
        let (day, failed) = (Day::of(ended_at), summary.status == RunStatus::Failed);
        let mut pending = PendingUsage::default();
        pending.add(day, &summary.agent, failed, &usage);
        pending.write(connection)
    };
    write().map_err(|error| error::from_sqlite(directory.path(), &error))
}
