//! The order of the runs below a run: each after its parent, those of one parent in the order they started.
//!
//! Owns the walk and its bounds. Finds each run by an index, so a page costs the same in a large tree.

use redflow_contract::console::{RunTree, TreeRun};
use redflow_contract::run::RunSummary;

/// How far below the first run the tree goes.
pub(super) const MAX_DEPTH: u32 = 16;

/// Finds runs for the walk. Runs are named by their numbers.
pub(super) trait RunLinks {
    type Error;

    /// The first child of a run whose number is larger than this one.
    fn next_child(&self, parent: i64, after: i64) -> Result<Option<i64>, Self::Error>;

    /// The parent of a run.
    fn parent(&self, run: i64) -> Result<Option<i64>, Self::Error>;

    /// The run as a list shows it.
    fn summary(&self, run: i64) -> Result<Option<RunSummary>, Self::Error>;
}

/// Walks from one run of the tree on. `after` is the last run of the previous page.
pub(super) fn walk<F: RunLinks>(
    links: &F,
    top: i64,
    after: Option<i64>,
    limit: usize,
) -> Result<RunTree, F::Error> {
    let mut tree = RunTree { runs: Vec::new(), next: None };
    // The runs from the top down to the current one.
    let Some(mut path) = path_to(links, top, after.unwrap_or(top))? else { return Ok(tree) };
    while let Some(run) = next_run(links, &mut path)? {
        if tree.runs.len() == limit {
            tree.next = tree.runs.last().map(|last| last.run.run_id.clone());
            break;
        }
        let depth = u32::try_from(path.len() - 1).unwrap_or(u32::MAX);
        tree.runs.extend(links.summary(run)?.map(|run| TreeRun { run, depth }));
    }
    Ok(tree)
}

/// The runs from the top down to a run; none if it is not below the top.
fn path_to<F: RunLinks>(links: &F, top: i64, run: i64) -> Result<Option<Vec<i64>>, F::Error> {
    let mut path = vec![run];
    let mut current = run;
    while current != top {
        match links.parent(current)? {
            Some(parent) if path.len() <= MAX_DEPTH as usize => path.push(parent),
            _ => return Ok(None),
        }
        current = path[path.len() - 1];
    }
    path.reverse();
    Ok(Some(path))
}

/// Moves to the run that follows: the first child, else the next run with the same parent, else that of the
/// parent.
fn next_run<F: RunLinks>(links: &F, path: &mut Vec<i64>) -> Result<Option<i64>, F::Error> {
    let mut after = 0;
    while let Some(&parent) = path.last() {
        let child = if path.len() <= MAX_DEPTH as usize { links.next_child(parent, after)? } else { None };
        if let Some(child) = child {
            path.push(child);
            return Ok(Some(child));
        }
        path.pop();
        after = parent;
    }
    Ok(None)
}
