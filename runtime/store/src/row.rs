//! A row of `runs`, as far as it can be read.
//!
//! Owns what becomes of a value that nobody wrote like that: it is a problem of its run, never of the list the
//! run is in. Never looks into the journal.

use crate::error;
use crate::sum::{Head, Seal};
use redflow_contract::code::RunErrorCode;
use redflow_contract::digest::Digest;
use redflow_contract::id::{InstanceId, NodeId, NodeRef, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::StoreError;
use rusqlite::types::ValueRef;

pub(crate) const COLUMNS: &str = "id, run_id, plan, instance, node_id, name, started_at, cause, cause_run, \
                                  source, head, driver, status, code, waiting, ended_at, delivered, batches, sum";

/// A row of `runs`.
pub(crate) struct Found {
    pub(crate) number: i64,
    pub(crate) plan: Option<i64>,
    /// Who drove it last.
    pub(crate) driver: Option<i64>,
    /// The sum of what never changes, as it is stored.
    pub(crate) head: Option<Digest>,
    /// `damaged` until it is [judged](Self::judge).
    pub(crate) summary: RunSummary,
    started_at: i64,
    cause: Option<String>,
    cause_run: Option<String>,
    status: String,
    code: Option<String>,
    waiting: Option<String>,
    ended_at: Option<i64>,
    /// How many batches it has and the seal over all, as of when it stopped.
    sealed: Option<(i64, String)>,
    /// What could not be read.
    problem: Option<String>,
}

impl Found {
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let number = row.get("id")?;
        let mut look = Look { row, problem: None };
        let started_at = look.must("started_at", Look::number)?;
        let ended_at = look.may("ended_at", Look::number)?;
        let sealed = (look.may("batches", Look::number)?, look.may("sum", Look::text)?);
        if sealed.0.is_some() != sealed.1.is_some() {
            look.is_wrong("its seal is not whole");
        }
        let head = look.must("head", Look::text)?;
        // What was never below zero is shown as nothing.
        for (column, moment) in [("started_at", Some(started_at)), ("ended_at", ended_at)] {
            if moment.is_some_and(|moment| moment < 0) {
                look.is_wrong(&format!("its {column} is below zero"));
            }
        }
        let summary = RunSummary {
            run_id: RunId::from(look.id(number)?),
            agent: NodeRef {
                instance: InstanceId::from(look.must("instance", Look::text)?),
                node_id: NodeId::from(look.must("node_id", Look::text)?),
            },
            name: look.must("name", Look::text)?,
            status: RunStatus::Damaged,
            code: None,
            waiting: None,
            started_at: u64::try_from(started_at).unwrap_or_default(),
            ended_at: ended_at.and_then(|moment| u64::try_from(moment).ok()),
            delivered: look.must("delivered", Look::number)? != 0,
            source: look.may("source", Look::text)?,
        };
        Ok(Self {
            number,
            plan: look.may("plan", Look::number)?,
            driver: look.may("driver", Look::number)?,
            head: Digest::parse_hex(&head),
            summary,
            started_at,
            cause: look.may("cause", Look::text)?,
            cause_run: look.may("cause_run", Look::text)?,
            status: look.must("status", Look::text)?,
            code: look.may("code", Look::text)?,
            waiting: look.may("waiting", Look::text)?,
            ended_at,
            sealed: sealed.0.zip(sealed.1),
            problem: look.problem,
        })
    }

    /// Says where the run is, if the row does not contradict itself. `runs` tells whether this driver's runs
    /// are running.
    pub(crate) fn judge(&mut self, runs: impl FnOnce(Option<i64>) -> bool) -> Result<(), StoreError> {
        let run = &self.summary.run_id;
        let wrong = |what: &str| Err(error::damaged_run(run, what));
        if let Some(problem) = &self.problem {
            return wrong(problem);
        }
        if self.cause_run.as_deref() != self.cause.as_deref().and_then(causing) {
            return wrong("its cause and the run that caused it contradict each other");
        }
        let Some(mut status) = status(&self.status) else { return wrong("its status is unknown") };
        let fits = status.is_over() == self.ended_at.is_some()
            && (status == RunStatus::Failed) == self.code.is_some()
            && (status == RunStatus::Waiting) == self.waiting.is_some()
            && (status == RunStatus::Interrupted) != self.sealed.is_some();
        if !fits {
            return wrong("its status and its end contradict each other");
        }
        let code = self.code.as_deref().map(RunErrorCode::parse);
        if code == Some(None) {
            return wrong("its code is unknown");
        }
        let waiting = match self.waiting.as_deref().map(serde_json::from_str).transpose() {
            Ok(waiting) => waiting,
            Err(_) => return wrong("the call it waits for is unreadable"),
        };
        if status == RunStatus::Interrupted && runs(self.driver) {
            status = RunStatus::Running;
        }
        (self.summary.status, self.summary.code, self.summary.waiting) = (status, code.flatten(), waiting);
        Ok(())
    }

    /// Whether the process with this number may be writing it, as far as one can tell from a damaged row.
    pub(crate) fn may_be_held(&self, driver: i64) -> bool {
        let over = self.ended_at.is_some() && status(&self.status).is_some_and(RunStatus::is_over);
        !over && self.driver.is_none_or(|found| found == driver)
    }

    /// The sum that [`head`](Self::head) should be.
    pub(crate) fn real_head(&self) -> Digest {
        let RunSummary { run_id, agent, name, source, .. } = &self.summary;
        let head = Head {
            run: run_id.as_str(),
            instance: agent.instance.as_str(),
            node_id: agent.node_id.as_str(),
            name,
            started_at: self.started_at,
            cause: self.cause.as_deref(),
            source: source.as_deref(),
        };
        head.sum()
    }

    /// What is wrong with its end, if these are all its batches.
    pub(crate) fn wrong_end(&self, batches: i64, last: &Digest) -> Option<&'static str> {
        let Some((count, sum)) = &self.sealed else { return None };
        let seal = Seal {
            status: &self.status,
            code: self.code.as_deref(),
            waiting: self.waiting.as_deref(),
            ended_at: self.ended_at,
            batches: *count,
        };
        if *count != batches {
            Some("its last parts are missing")
        } else if seal.sum(last).to_hex() != *sum {
            Some("where it stopped does not match its seal")
        } else {
            None
        }
    }
}

/// The run that caused a run, if its cause names one.
pub(crate) fn causing(cause: &str) -> Option<&str> {
    cause.split_once(':').map(|(run, _)| run)
}

/// A status as it is stored. Whether a run that goes on is running or interrupted is not.
fn status(stored: &str) -> Option<RunStatus> {
    Some(match stored {
        "running" => RunStatus::Interrupted,
        "waiting" => RunStatus::Waiting,
        "completed" => RunStatus::Completed,
        "stopped" => RunStatus::Stopped,
        "failed" => RunStatus::Failed,
        _ => return None,
    })
}

/// An id that cannot be read has this in it. One that somebody gave has not.
pub(crate) const UNREADABLE: char = char::REPLACEMENT_CHARACTER;

/// The id of the run in this row; what stands for it if it cannot be read.
pub(crate) fn id(value: ValueRef<'_>, number: i64) -> String {
    match value {
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => format!("{UNREADABLE}{number}"),
    }
}

/// Reads values whatever they are, and remembers the first that is not what it should be.
struct Look<'a, 'b> {
    row: &'a rusqlite::Row<'b>,
    problem: Option<String>,
}

impl Look<'_, '_> {
    fn is_wrong(&mut self, what: &str) {
        self.problem.get_or_insert_with(|| what.to_owned());
    }

    /// A value, if it is of this kind or can be shown as such, and whether it was written like that.
    fn may<T>(
        &mut self,
        column: &str,
        read: impl FnOnce(ValueRef<'_>) -> (Option<T>, bool),
    ) -> rusqlite::Result<Option<T>> {
        let (value, readable) = match self.row.get_ref(column)? {
            ValueRef::Null => (None, true),
            value => read(value),
        };
        if !readable {
            self.is_wrong(&format!("its {column} is unreadable"));
        }
        Ok(value)
    }

    fn must<T: Default>(
        &mut self,
        column: &str,
        read: impl FnOnce(ValueRef<'_>) -> (Option<T>, bool),
    ) -> rusqlite::Result<T> {
        let value = self.may(column, read)?;
        if value.is_none() {
            self.is_wrong(&format!("its {column} is missing"));
        }
        Ok(value.unwrap_or_default())
    }

    fn id(&mut self, number: i64) -> rusqlite::Result<String> {
        let readable = self.must("run_id", Self::text);
        readable.and(self.row.get_ref("run_id")).map(|value| id(value, number))
    }

    fn number(value: ValueRef<'_>) -> (Option<i64>, bool) {
        let number = value.as_i64().ok();
        (number, number.is_some())
    }

    fn text(value: ValueRef<'_>) -> (Option<String>, bool) {
        match value {
            ValueRef::Text(bytes) => {
                let readable = std::str::from_utf8(bytes).is_ok();
                (Some(String::from_utf8_lossy(bytes).into_owned()), readable)
            }
            _ => (None, false),
        }
    }
}
