//! `buffer-memory` and `window-memory`: conversations in the process. They differ only in their default
//! limits.

use crate::repair;
use crate::sessions::{Owner, Sessions};
use crate::trim::Limits;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{BoxFuture, Memory};
use std::sync::Arc;
use std::time::Duration;

/// Seconds after which an unused conversation is removed, unless the node has its own value.
const DEFAULT_IDLE_SECONDS: u64 = 3_600;

pub(crate) struct ProcessMemory {
    sessions: Arc<Sessions>,
    owner: Owner,
}

impl ProcessMemory {
    pub(crate) fn new(sessions: Arc<Sessions>, node: &NodeId, limits: Limits, idle: Option<u64>) -> Self {
        let idle = Some(idle.unwrap_or(DEFAULT_IDLE_SECONDS))
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        let owner = Owner { node: node.clone(), limits, idle };
        Self { sessions, owner }
    }
}

impl Memory for ProcessMemory {
    fn recall<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, Failure>> {
        Box::pin(async move { Ok(repair::join_complete_turns(self.sessions.turns(&self.owner, session))) })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        run: &'a RunId,
        turn: &'a [ChatMessage],
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { self.sessions.append(&self.owner, session, run, turn) })
    }

    fn clear<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.sessions.clear(&self.owner, session);
            Ok(())
        })
    }
}
