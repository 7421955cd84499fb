//! Forgets runs in memory: the same runs as in the database.

use super::{Run, Runs};
use crate::removed_runs::RemovedRuns;
use crate::runs::removal::last_undelivered_end;
use crate::runs::row::causing_run;
use redflow_contract::Millis;
use redflow_contract::id::RunId;
use redflow_contract::memory::DataOwner;
use redflow_ports::ForgottenRuns;
use std::collections::{BTreeSet, HashSet};

impl Runs {
    /// Removes the runs of an owner that are over, apart from those that another run may start again.
    pub(super) fn forget(&mut self, owner: &DataOwner) -> (ForgottenRuns, RemovedRuns) {
        let mut left = self.owned(owner);
        let mut removed = RemovedRuns::default();
        let mut forgotten = ForgottenRuns::default();
        let last_undelivered_end = last_undelivered_end();
        // A removed run no longer holds the runs that it started, so another pass may find more.
        loop {
            let removable: Vec<i64> = left
                .iter()
                .copied()
                .filter(|number| self.is_removable(*number, last_undelivered_end))
                .collect();
            for number in &removable {
                if let Some(run) = self.by_number.get(number) {
                    let (summary, journal) = (&run.summary, &run.journal);
                    let ended_at = summary.ended_at.unwrap_or(summary.started_at);
                    removed.add(summary.run_id.clone(), summary.started_at, ended_at, journal);
                }
                self.remove(*number);
                left.remove(number);
                forgotten.removed += 1;
            }
            if removable.is_empty() {
                break;
            }
        }
        self.finished.retain(|number| self.by_number.contains_key(number));
        for needed in self.needed.values_mut() {
            needed.retain(|number| self.by_number.contains_key(number));
        }
        forgotten.unfinished = left.len() as u64;
        (forgotten, removed)
    }

    /// Adds the runs that are named, but were removed earlier, and those of the messages that start a run that stays.
    pub(super) fn add_named(
        &self,
        named: impl IntoIterator<Item = RunId>,
        messages: &HashSet<String>,
        removed: &mut RemovedRuns,
    ) {
        let missing = named.into_iter().filter(|run| !self.numbers.contains_key(run));
        missing.for_each(|run| removed.add_missing(run));
        for run in self.by_number.values() {
            removed.keep_messages(&run.journal, messages);
        }
    }

    fn is_removable(&self, number: i64, last_undelivered_end: Millis) -> bool {
        self.by_number.get(&number).is_some_and(|run| {
            let starter = run.cause.as_deref().and_then(causing_run).map(RunId::from);
            let is_old = run.summary.ended_at.is_some_and(|at| at <= last_undelivered_end);
            run.summary.status.is_over()
                && (run.summary.delivered || is_old)
                && !starter.is_some_and(|starter| self.may_start_again(&starter))
        })
    }

    /// The runs of an owner. A run belongs to the owner of the run that started it, unless it names another user.
    fn owned(&self, owner: &DataOwner) -> BTreeSet<i64> {
        let is_owned = |run: &Run| match owner {
            DataOwner::User(user) => run.user.as_ref() == Some(user),
            DataOwner::Session(session) => run.session.as_ref() == Some(session),
            DataOwner::Source(source) => run.summary.run_id.as_str() == source,
        };
        let owned = self.by_number.iter().filter(|(_, run)| is_owned(run));
        let mut found: Vec<(i64, Option<&String>)> =
            owned.map(|(number, run)| (*number, run.user.as_ref())).collect();
        let mut numbers = BTreeSet::new();
        while let Some((number, user)) = found.pop() {
            let is_new = numbers.insert(number);
            if !is_new || matches!(owner, DataOwner::Source(_)) {
                continue;
            }
            let children = self.by_number.get(&number).and_then(|run| self.children.get(&run.summary.run_id));
            for child in children.into_iter().flatten() {
                let child_user = self.by_number.get(child).and_then(|run| run.user.as_ref());
                if child_user.is_none() || child_user == user {
                    found.push((*child, child_user.or(user)));
                }
            }
        }
        numbers
    }
}
