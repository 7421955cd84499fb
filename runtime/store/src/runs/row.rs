//! A row of `runs`, as far as it can be read.
//!
//! Owns how unexpected values are handled: they are a problem of their run, never of the list that holds the
//! run. Never reads the journal.

use super::checksum::{EndSeal, RunHead};
use crate::database::{runs_have_parents, runs_have_tallies};
use crate::error;
use redflow_contract::code::RunErrorCode;
use redflow_contract::digest::Digest;
use redflow_contract::id::{InstanceId, NodeId, NodeRef, Principal, RunId};
use redflow_contract::run::{RunStatus, RunSummary, WaitingCall};
use redflow_ports::StoreError;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::de::DeserializeOwned;

const COLUMNS: &str = "id, run_id, plan, instance, node_id, name, started_at, cause, cause_run, source, head, \
                       driver, status, code, waiting, ended_at, delivered, batches, sum";

/// The columns of a row. Those that an older version of the file does not have are null.
pub(super) fn columns(connection: &Connection) -> rusqlite::Result<String> {
    let later = if runs_have_tallies(connection)? {
        "started_by, tally"
    } else {
        "NULL AS started_by, NULL AS tally"
    };
    let parent = if runs_have_parents(connection)? { "parent" } else { "NULL AS parent" };
    Ok(format!("{COLUMNS}, {later}, {parent}"))
}

pub(crate) struct RunRow {
    pub(super) number: i64,
    pub(super) plan: Option<i64>,
    /// The number of the process that drove it last.
    driver: Option<i64>,
    /// The stored checksum of the columns that never change.
    pub(super) head: Option<Digest>,
    /// Its status is `damaged` until [`Self::check`] succeeds.
    pub(super) summary: RunSummary,
    started_at: i64,
    cause: Option<String>,
    cause_run: Option<String>,
    status: String,
    code: Option<String>,
    waiting: Option<String>,
    ended_at: Option<i64>,
    /// The number of batches and the seal over all of them, from when the run stopped.
    sealed: Option<(i64, String)>,
    /// The first value that could not be read.
    problem: Option<String>,
}

impl RunRow {
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let number = row.get("id")?;
        let mut values = RowReader { row, problem: None };
        let started_at = values.required("started_at", RowReader::number)?;
        let ended_at = values.optional("ended_at", RowReader::number)?;
        let sealed =
            (values.optional("batches", RowReader::number)?, values.optional("sum", RowReader::text)?);
        if sealed.0.is_some() != sealed.1.is_some() {
            values.add_problem("its seal is not whole");
        }
        let head = values.required("head", RowReader::text)?;
        // Times are never negative. A negative one is reported, and shown as zero or none.
        for (column, time) in [("started_at", Some(started_at)), ("ended_at", ended_at)] {
            if time.is_some_and(|time| time < 0) {
                values.add_problem(&format!("its {column} is below zero"));
            }
        }
        let driver = values.optional("driver", RowReader::number)?;
        let summary = RunSummary {
            run_id: RunId::from(values.id(number)?),
            agent: NodeRef {
                instance: InstanceId::from(values.required("instance", RowReader::text)?),
                node_id: NodeId::from(values.required("node_id", RowReader::text)?),
            },
            name: values.required("name", RowReader::text)?,
            status: RunStatus::Damaged,
            code: None,
            waiting: None,
            questions: Vec::new(),
            started_at: u64::try_from(started_at).unwrap_or_default(),
            ended_at: ended_at.and_then(|time| u64::try_from(time).ok()),
            delivered: values.required("delivered", RowReader::number)? != 0,
            source: values.optional("source", RowReader::text)?,
            hung: ended_at.is_none() && driver.is_some_and(|driver| driver < 0),
            by: values.optional("started_by", RowReader::text)?.map(Principal::from),
            tally: values.optional("tally", RowReader::json)?,
            parent: values.optional("parent", RowReader::text)?.map(RunId::from),
            children: 0,
        };
        Ok(Self {
            number,
            plan: values.optional("plan", RowReader::number)?,
            // It is negative if the run held that process.
            driver: driver.map(i64::saturating_abs),
            head: Digest::parse_hex(&head),
            summary,
            started_at,
            cause: values.optional("cause", RowReader::text)?,
            cause_run: values.optional("cause_run", RowReader::text)?,
            status: values.required("status", RowReader::text)?,
            code: values.optional("code", RowReader::text)?,
            waiting: values.optional("waiting", RowReader::text)?,
            ended_at,
            sealed: sealed.0.zip(sealed.1),
            problem: values.problem,
        })
    }

    /// Checks that the row does not contradict itself, and sets the status in its summary. `is_live` tells
    /// whether the driver with this number is alive.
    pub(super) fn check(&mut self, is_live: impl FnOnce(Option<i64>) -> bool) -> Result<(), StoreError> {
        let run = &self.summary.run_id;
        let damaged = |reason: &str| Err(error::damaged_run(run, reason));
        if let Some(problem) = &self.problem {
            return damaged(problem);
        }
        if self.cause_run.as_deref() != self.cause.as_deref().and_then(causing_run) {
            return damaged("its cause and the run that caused it contradict each other");
        }
        let Some(mut status) = parse_status(&self.status) else { return damaged("its status is unknown") };
        let is_consistent = status.is_over() == self.ended_at.is_some()
            && (status == RunStatus::Failed) == self.code.is_some()
            && (status == RunStatus::Waiting) == self.waiting.is_some()
            && (status == RunStatus::Interrupted) != self.sealed.is_some();
        if !is_consistent {
            return damaged("its status and its end contradict each other");
        }
        let code = self.code.as_deref().map(RunErrorCode::parse);
        if code == Some(None) {
            return damaged("its code is unknown");
        }
        let questions = match self.waiting.as_deref().map(parse_questions).transpose() {
            Ok(questions) => questions.unwrap_or_default(),
            Err(_) => return damaged("the call it waits for is unreadable"),
        };
        if status == RunStatus::Interrupted && is_live(self.driver) {
            status = RunStatus::Running;
        }
        (self.summary.status, self.summary.code) = (status, code.flatten());
        self.summary.set_questions(questions);
        Ok(())
    }

    /// Whether the process with this number may be writing the run, as far as a damaged row tells.
    pub(crate) fn may_belong_to(&self, driver: i64) -> bool {
        let is_over = self.ended_at.is_some() && parse_status(&self.status).is_some_and(RunStatus::is_over);
        !is_over && self.driver.is_none_or(|last| last == driver)
    }

    /// The checksum that [`head`](Self::head) should be.
    pub(super) fn computed_head(&self) -> Digest {
        let RunSummary { run_id, agent, name, source, .. } = &self.summary;
        let head = RunHead {
            run: run_id.as_str(),
            instance: agent.instance.as_str(),
            node_id: agent.node_id.as_str(),
            name,
            started_at: self.started_at,
            cause: self.cause.as_deref(),
            source: source.as_deref(),
        };
        head.checksum()
    }

    /// What is wrong with the end of the run, given all its batches and the last checksum.
    pub(super) fn end_problem(&self, batches: i64, last: &Digest) -> Option<&'static str> {
        let (count, checksum) = self.sealed.as_ref()?;
        let seal = EndSeal {
            status: &self.status,
            code: self.code.as_deref(),
            waiting: self.waiting.as_deref(),
            ended_at: self.ended_at,
            batches: *count,
        };
        if *count != batches {
            Some("its last parts are missing")
        } else if seal.checksum(last).to_hex() != *checksum {
            Some("where it stopped does not match its seal")
        } else {
            None
        }
    }
}

/// The run that a cause names, if it names one.
pub(super) fn causing_run(cause: &str) -> Option<&str> {
    cause.split_once(':').map(|(run, _)| run)
}

/// The calls that a run waits for, as the row has them: one call, or a list of several.
pub(super) fn questions_to_json(calls: &[WaitingCall]) -> Option<String> {
    match calls {
        [call] => serde_json::to_string(call).ok(),
        calls => serde_json::to_string(calls).ok(),
    }
}

fn parse_questions(json: &str) -> serde_json::Result<Vec<WaitingCall>> {
    if json.starts_with('[') { serde_json::from_str(json) } else { Ok(vec![serde_json::from_str(json)?]) }
}

/// Parses a stored status. The row does not tell whether an unfinished run is running or interrupted.
fn parse_status(stored: &str) -> Option<RunStatus> {
    Some(match stored {
        "running" => RunStatus::Interrupted,
        "waiting" => RunStatus::Waiting,
        "completed" => RunStatus::Completed,
        "stopped" => RunStatus::Stopped,
        "failed" => RunStatus::Failed,
        _ => return None,
    })
}

/// An id that cannot be read contains this. Ids that the engine assigns do not.
pub(super) const UNREADABLE: char = char::REPLACEMENT_CHARACTER;

/// The id of the run in this row; a replacement text if it cannot be read.
pub(super) fn readable_id(value: ValueRef<'_>, number: i64) -> String {
    match value {
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => format!("{UNREADABLE}{number}"),
    }
}

/// Reads values whatever they are, and remembers the first unexpected one.
struct RowReader<'a, 'b> {
    row: &'a rusqlite::Row<'b>,
    problem: Option<String>,
}

impl RowReader<'_, '_> {
    fn add_problem(&mut self, problem: &str) {
        self.problem.get_or_insert_with(|| problem.to_owned());
    }

    /// Reads a nullable value. `read` returns the value, if it can be shown at all, and whether it is sound.
    fn optional<T>(
        &mut self,
        column: &str,
        read: impl FnOnce(ValueRef<'_>) -> (Option<T>, bool),
    ) -> rusqlite::Result<Option<T>> {
        let (value, is_sound) = match self.row.get_ref(column)? {
            ValueRef::Null => (None, true),
            value => read(value),
        };
        if !is_sound {
            self.add_problem(&format!("its {column} is unreadable"));
        }
        Ok(value)
    }

    fn required<T: Default>(
        &mut self,
        column: &str,
        read: impl FnOnce(ValueRef<'_>) -> (Option<T>, bool),
    ) -> rusqlite::Result<T> {
        let value = self.optional(column, read)?;
        if value.is_none() {
            self.add_problem(&format!("its {column} is missing"));
        }
        Ok(value.unwrap_or_default())
    }

    fn id(&mut self, number: i64) -> rusqlite::Result<String> {
        let checked = self.required("run_id", Self::text);
        checked.and(self.row.get_ref("run_id")).map(|value| readable_id(value, number))
    }

    fn number(value: ValueRef<'_>) -> (Option<i64>, bool) {
        let number = value.as_i64().ok();
        (number, number.is_some())
    }

    fn json<T: DeserializeOwned>(value: ValueRef<'_>) -> (Option<T>, bool) {
        let read = value.as_str().ok().and_then(|text| serde_json::from_str(text).ok());
        let is_sound = read.is_some();
        (read, is_sound)
    }

    fn text(value: ValueRef<'_>) -> (Option<String>, bool) {
        match value {
            ValueRef::Text(bytes) => {
                let is_sound = std::str::from_utf8(bytes).is_ok();
                (Some(String::from_utf8_lossy(bytes).into_owned()), is_sound)
            }
            _ => (None, false),
        }
    }
}
