//! The work of memories after runs: which waits, which goes on, and which becomes due when its conversation is idle.
//!
//! Two at a time. A conversation is in work once at most. Nothing here is stored: a memory knows itself which turns it
//! has not worked on.

use crate::run::maintenance_job::MaintenanceJob;
use redflow_contract::id::NodeId;
use redflow_ports::MaintenanceReason;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Memories that work at the same time.
const MAX_AT_ONCE: usize = 2;

/// Conversations that wait for their turn. A memory works on the others after their next turn, or when it is idle.
const MAX_WAITING: usize = 1_000;

/// Conversations with a timer.
const MAX_IDLE: usize = 10_000;

/// The memory and the conversation; none for all conversations of the memory.
type JobKey = (NodeId, Option<Arc<str>>);

fn key(job: &MaintenanceJob) -> JobKey {
    (job.node.id.clone(), job.session.clone())
}

#[derive(Default)]
pub(crate) struct MaintenanceQueue {
    waiting: VecDeque<MaintenanceJob>,
    active: HashSet<JobKey>,
    idle: HashMap<JobKey, (Instant, MaintenanceJob)>,
    /// The timers, the next one first.
    due: BTreeSet<(Instant, JobKey)>,
    /// Stops the work that goes on.
    pub(crate) stop: CancellationToken,
}

impl MaintenanceQueue {
    /// Adds work. The same conversation waits once, with the stronger reason.
    pub(crate) fn push(&mut self, job: MaintenanceJob) {
        let own = key(&job);
        if let Some(same) = self.waiting.iter_mut().find(|waiting| key(waiting) == own) {
            if job.reason != MaintenanceReason::Turn {
                *same = job;
            }
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(job);
        }
    }

    /// Takes the next work that may begin.
    pub(crate) fn begin_next(&mut self) -> Option<MaintenanceJob> {
        if self.active.len() >= MAX_AT_ONCE {
            return None;
        }
        let place = self.waiting.iter().position(|job| !self.is_in_work(&key(job)))?;
        let job = self.waiting.remove(place)?;
        self.active.insert(key(&job));
        Some(job)
    }

    /// Whether a memory works on this conversation, or on all of them.
    fn is_in_work(&self, (node, session): &JobKey) -> bool {
        let is_same = |other: &Option<Arc<str>>| other == session || other.is_none() || session.is_none();
        self.active.iter().any(|(active, other)| active == node && is_same(other))
    }

    pub(crate) fn end(&mut self, job: &MaintenanceJob) {
        self.active.remove(&key(job));
    }

    /// Sets the timer of a conversation anew.
    pub(crate) fn set_idle(&mut self, job: MaintenanceJob, at: Instant) {
        let key = key(&job);
        if let Some((before, _)) = self.idle.remove(&key) {
            self.due.remove(&(before, key.clone()));
        } else if self.idle.len() >= MAX_IDLE {
            return;
        }
        self.due.insert((at, key.clone()));
        self.idle.insert(key, (at, job));
    }

    pub(crate) fn is_armed(&self) -> bool {
        !self.due.is_empty()
    }

    /// Waits for the next conversation that is idle long enough. Never ends if there is none.
    pub(crate) async fn next_idle(&self) {
        match self.due.first() {
            Some((at, _)) => sleep_until(*at).await,
            None => std::future::pending().await,
        }
    }

    /// Takes the conversations whose time has come.
    pub(crate) fn take_idle(&mut self, now: Instant) -> Vec<MaintenanceJob> {
        let mut jobs = Vec::new();
        while let Some((at, key)) = self.due.first().cloned().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, key.clone()));
            jobs.extend(self.idle.remove(&key).map(|(_, job)| job));
        }
        jobs
    }

    /// Drops all timers.
    pub(crate) fn clear_timers(&mut self) {
        self.idle.clear();
        self.due.clear();
    }

    /// Drops what waits and all timers. Work that goes on ends as usual.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.clear_timers();
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_IDLE, MAX_WAITING, MaintenanceJob, MaintenanceQueue};
    use redflow_contract::id::NodeSummary;
    use redflow_ports::{MaintenanceReason, Memory, MemoryAnswer, Recall, Recalled, Turn};
    use std::future::ready;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::Instant;

    struct NoMemory;

    impl Memory for NoMemory {
        fn recall<'a>(&'a self, _: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
            Box::pin(ready(Ok(Recalled::default())))
        }
        fn append<'a>(&'a self, _: Turn<'a>) -> MemoryAnswer<'a, ()> {
            Box::pin(ready(Ok(())))
        }
        fn clear<'a>(&'a self, _: &'a str) -> MemoryAnswer<'a, ()> {
            Box::pin(ready(Ok(())))
        }
    }

    fn job(session: &str, reason: MaintenanceReason) -> MaintenanceJob {
        let node = NodeSummary { id: "m".into(), type_name: "long-memory".to_owned(), name: String::new() };
        MaintenanceJob {
            node,
            memory: Arc::new(NoMemory),
            session: Some(session.into()),
            reason,
            scrubber: Arc::default(),
        }
    }

    #[test]
    fn a_conversation_waits_once_and_is_in_work_once() {
        let mut queue = MaintenanceQueue::default();
        for reason in [MaintenanceReason::Turn, MaintenanceReason::Request, MaintenanceReason::Turn] {
            queue.push(job("a", reason));
        }
        let first = queue.begin_next().unwrap();
        assert_eq!(first.reason, MaintenanceReason::Request, "the stronger reason stays");
        assert!(queue.begin_next().is_none());
        queue.push(job("a", MaintenanceReason::Turn));
        assert!(queue.begin_next().is_none(), "the same conversation waits for the end of the first");
        for session in ["b", "c"] {
            queue.push(job(session, MaintenanceReason::Turn));
        }
        assert_eq!(queue.begin_next().unwrap().session.as_deref(), Some("b"));
        assert!(queue.begin_next().is_none(), "two at a time");
        queue.end(&first);
        let again = queue.begin_next().unwrap();
        assert_eq!(again.session.as_deref(), Some("a"));
        queue.end(&again);
        queue.push(MaintenanceJob { session: None, ..job("", MaintenanceReason::Time) });
        assert_eq!(queue.begin_next().unwrap().session.as_deref(), Some("c"));
        assert!(queue.begin_next().is_none(), "all conversations wait until none is in work");
    }

    #[tokio::test]
    async fn waiting_work_and_timers_are_bounded() {
        let mut queue = MaintenanceQueue::default();
        let now = Instant::now();
        for number in 0..MAX_IDLE + 5 {
            queue.push(job(&number.to_string(), MaintenanceReason::Turn));
            queue.set_idle(job(&number.to_string(), MaintenanceReason::Time), now);
        }
        assert_eq!(
            (queue.waiting.len(), queue.idle.len(), queue.due.len()),
            (MAX_WAITING, MAX_IDLE, MAX_IDLE)
        );
        queue.set_idle(job("0", MaintenanceReason::Time), now + Duration::from_secs(60));
        assert_eq!(queue.due.len(), MAX_IDLE);
        assert_eq!(queue.take_idle(now).len(), MAX_IDLE - 1);
        assert!(queue.is_armed());
        queue.clear();
        assert!(!queue.is_armed());
    }
}
