//! Lists, trees and sums of the runs in memory.

use super::{MemoryStore, Run, Runs, write_usage};
use crate::runs::search::MAX_ROWS_LOOKED_AT;
use crate::runs::stats::{self, FailedRun};
use crate::runs::tree::{RunLinks, walk};
use redflow_contract::api::RunList;
use redflow_contract::console::{RunTree, Stats, StatsBy};
use redflow_contract::day::Day;
use redflow_contract::id::RunId;
use redflow_contract::run::RunSummary;
use redflow_ports::{
    BoxFuture, RunFilter, RunReader, RunRecord, StatsQuery, StoreError, StoredRun, TreeQuery,
};
use std::convert::Infallible;
use std::future::ready;

impl MemoryStore {
    /// Runs, the newest first.
    #[must_use]
    pub fn list(&self, filter: &RunFilter) -> RunList {
        let runs = self.runs();
        let mut page = RunList { runs: Vec::new(), next: None, searched_to: None };
        let mut last = None;
        for (index, run) in runs.in_order(filter).into_iter().enumerate() {
            if index == MAX_ROWS_LOOKED_AT {
                page.next = last.map(|run: &RunSummary| run.run_id.clone());
                page.searched_to = last.map(|run| run.started_at);
                break;
            }
            last = Some(&run.summary);
            if !filter.matches(&run.summary) {
                continue;
            }
            if page.runs.len() == filter.limit {
                page.next = page.runs.last().map(|run| run.run_id.clone());
                break;
            }
            page.runs.push(runs.summary_of(run));
        }
        page
    }
}

impl Runs {
    /// The runs that a list may have, in its order.
    fn in_order(&self, filter: &RunFilter) -> Vec<&Run> {
        let before = match &filter.before {
            None => i64::MAX,
            // The filter names an unknown run: zero is below all numbers.
            Some(run) => self.numbers.get(run).copied().unwrap_or(0),
        };
        let Some(prefix) = &filter.prefix else {
            return self.by_number.range(..before).rev().map(|(_, run)| run.as_ref()).collect();
        };
        let is_listed = |run: &&Run| {
            let id = run.summary.run_id.as_str();
            let is_before = filter.before.as_ref().is_none_or(|run| before > 0 && id < run.as_str());
            id.starts_with(prefix) && is_before
        };
        let mut runs: Vec<&Run> = self.by_number.values().map(Box::as_ref).filter(is_listed).collect();
        runs.sort_by(|a, b| b.summary.run_id.as_str().cmp(a.summary.run_id.as_str()));
        runs
    }

    fn tree(&self, query: &TreeQuery) -> Option<RunTree> {
        let (top, _) = self.find(&query.run)?;
        let after = query.after.as_ref().map(|after| self.numbers.get(after).copied().unwrap_or_default());
        let Ok(tree) = walk(self, top, after, query.limit);
        Some(tree)
    }

    fn stats(&mut self, query: StatsQuery) -> Option<Stats> {
        if query.by == StatsBy::Code {
            let failures = self.finished.iter().rev().chain(self.needed.values().flatten());
            let failures = failures.filter_map(|number| {
                let summary = &self.by_number.get(number)?.summary;
                let (started_at, ended_at, code) = (summary.started_at, summary.ended_at?, summary.code?);
                let is_asked = (query.from..=query.to).contains(&Day::of(ended_at));
                is_asked.then(|| FailedRun { started_at, ended_at, code: code.as_str().to_owned() })
            });
            return Some(stats::count_failures(query, failures.collect()));
        }
        write_usage(self.usage.as_ref(), &mut self.pending_usage);
        let name_of = |instance: &str, node_id: &str| {
            let agents = self.by_number.values().rev().map(|run| &run.summary);
            let mut named = agents.filter(|run| {
                run.agent.instance.as_str() == instance && run.agent.node_id.as_str() == node_id
            });
            Ok(named.next().map(|run| run.name.clone()))
        };
        stats::read_usage(self.usage.as_ref()?, query, name_of).ok()
    }
}

impl RunLinks for Runs {
    type Error = Infallible;

    fn next_child(&self, parent: i64, after: i64) -> Result<Option<i64>, Infallible> {
        let run = self.by_number.get(&parent);
        let children = run.and_then(|run| self.children.get(&run.summary.run_id));
        Ok(children.and_then(|children| children.range(after + 1..).next().copied()))
    }

    fn parent(&self, run: i64) -> Result<Option<i64>, Infallible> {
        let parent = self.by_number.get(&run).and_then(|run| run.summary.parent.as_ref());
        Ok(parent.and_then(|parent| self.numbers.get(parent).copied()))
    }

    fn summary(&self, run: i64) -> Result<Option<RunSummary>, Infallible> {
        Ok(self.by_number.get(&run).map(|run| self.summary_of(run)))
    }
}

impl RunReader for MemoryStore {
    fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<RunList, StoreError>> {
        Box::pin(ready(Ok(Self::list(self, &filter))))
    }

    fn summary<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunSummary>, StoreError>> {
        let runs = self.runs();
        let found = runs.numbers.get(run).and_then(|number| runs.by_number.get(number));
        Box::pin(ready(Ok(found.map(|stored| runs.summary_of(stored)))))
    }

    fn tree(&self, query: TreeQuery) -> BoxFuture<'_, Result<Option<RunTree>, StoreError>> {
        Box::pin(ready(Ok(self.runs().tree(&query))))
    }

    fn stats(&self, query: StatsQuery) -> BoxFuture<'_, Result<Stats, StoreError>> {
        let stats = self.runs().stats(query).unwrap_or_else(|| stats::count_failures(query, Vec::new()));
        Box::pin(ready(Ok(stats)))
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
        let record = |StoredRun { summary, journal, .. }| RunRecord { summary, journal, problem: None };
        Box::pin(ready(Ok(self.runs().load(run).map(record))))
    }
}
