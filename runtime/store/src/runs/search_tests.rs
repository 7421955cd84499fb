use super::{MAX_ROWS_LOOKED_AT, RunPosition, Search};
use redflow_contract::code::RunErrorCode;
use redflow_contract::run::RunStatus;
use redflow_ports::RunFilter;
use rusqlite::{Connection, params_from_iter};

fn position() -> RunPosition {
    RunPosition { number: 9, started_at: 5, run: "run".into() }
}

fn plan(connection: &Connection, which: &str, params: &[rusqlite::types::Value]) -> String {
    let mut statement =
        connection.prepare(&format!("EXPLAIN QUERY PLAN SELECT * FROM runs {which}")).unwrap();
    let lines = statement.query_map(params_from_iter(params), |row| row.get("detail")).unwrap();
    lines.collect::<Result<Vec<String>, _>>().unwrap().join("; ")
}

/// The cost of a page does not depend on the number of runs: nothing is sorted, and no other index is used.
#[test]
fn a_search_uses_one_index() {
    let connection = crate::database::open_in_memory().unwrap();
    let any = RunFilter::default;
    let only = |status: RunStatus| RunFilter { statuses: Some(vec![status]), ..any() };
    let agent = || Some("agent".into());
    let instance = || Some("local".into());
    let code = Some(RunErrorCode::Timeout);
    let prefix = || Some("01".to_owned());
    let by_start = "INDEX runs_by_start (started_at>? AND started_at<?)";
    let failed_by_start = "INDEX runs_failed_by_start (started_at>? AND started_at<?)";
    let cases = [
        (any(), "INTEGER PRIMARY KEY (rowid<?)"),
        (only(RunStatus::Waiting), "INDEX runs_waiting (id<?)"),
        (
            RunFilter { agent: agent(), since: Some(1), ..only(RunStatus::Waiting) },
            "INDEX runs_waiting (id<?)",
        ),
        (
            RunFilter { agent: agent(), since: Some(1), ..only(RunStatus::Running) },
            "INDEX runs_unfinished (id<?)",
        ),
        (only(RunStatus::Failed), "INDEX runs_failed (id<?)"),
        (RunFilter { code, instance: instance(), roots: true, ..any() }, "INDEX runs_failed (id<?)"),
        (
            RunFilter { agent: agent(), ..only(RunStatus::Failed) },
            "INDEX runs_failed_by_agent (node_id=? AND rowid<?)",
        ),
        (RunFilter { agent: agent(), code, ..any() }, "INDEX runs_failed_by_agent (node_id=? AND rowid<?)"),
        (
            RunFilter { agent: agent(), instance: instance(), ..any() },
            "INDEX runs_by_agent (node_id=? AND rowid<?)",
        ),
        (RunFilter { instance: instance(), ..any() }, "INDEX runs_by_instance (instance=? AND rowid<?)"),
        (RunFilter { roots: true, ..any() }, "INTEGER PRIMARY KEY (rowid<?)"),
        (only(RunStatus::Completed), "INTEGER PRIMARY KEY (rowid<?)"),
        (RunFilter { since: Some(1), ..any() }, by_start),
        (RunFilter { until: Some(9), agent: agent(), code, roots: true, ..any() }, failed_by_start),
        (RunFilter { since: Some(1), ..only(RunStatus::Failed) }, failed_by_start),
        (
            RunFilter { prefix: prefix(), since: Some(1), agent: agent(), ..any() },
            "INDEX sqlite_autoindex_runs_1 (run_id>? AND run_id<?)",
        ),
    ];
    for (filter, expected) in cases {
        let search = Search::new(&filter, Some(&position()), true);
        if let Some((which, params)) = search.last_row() {
            let found = plan(&connection, &which, params);
            assert_eq!(found.replace("COVERING ", ""), format!("SEARCH runs USING {expected}"), "{filter:?}");
        }
        let (which, params) = search.rows(Some(&position()));
        let found = plan(&connection, &which, &params);
        let (index, _) = expected.split_once(" (").unwrap();
        assert!(found.starts_with(&format!("SEARCH runs USING {index} (")), "{found}");
        assert!(!found.contains("TEMP B-TREE"), "{found}");
    }
}

/// The rows that an index finds all match, so their number needs no limit.
#[test]
fn a_search_without_conditions_has_no_last_row() {
    assert!(Search::new(&RunFilter::default(), None, true).last_row().is_none());
    let instance = RunFilter { instance: Some("local".into()), ..RunFilter::default() };
    assert!(Search::new(&instance, None, true).last_row().is_none());
    let roots = RunFilter { roots: true, ..RunFilter::default() };
    let search = Search::new(&roots, None, true);
    let (which, _) = search.last_row().unwrap();
    assert!(which.ends_with(&format!("OFFSET {}", MAX_ROWS_LOOKED_AT - 1)), "{which}");
    // An older file has no parents.
    assert!(Search::new(&roots, None, false).last_row().is_none());
}
