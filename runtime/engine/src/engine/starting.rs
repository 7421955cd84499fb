//! Starts that are acknowledged: whoever is told of a run can rely on it.
//!
//! Owns the order of things: a key that was used before comes first, then the flow of the moment says which
//! node it is, then its runs begin, and when the last of them is kept the asker is told.

use super::{Done, Loop, Reply};
use crate::open::{Earlier, earlier};
use crate::report::RunReport;
use crate::start::{StartError, StartOrder};
use crate::trail::{Begun, Chain, Trail};
use redflow_ports::StoreError;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A start that somebody waits for.
pub(super) struct Asked {
    pub(super) order: StartOrder,
    pub(super) cancel: CancellationToken,
    /// Takes the reports when nothing moves any more.
    pub(super) reports: Reply<Vec<RunReport>>,
    pub(super) reply: Reply<Result<Begun, StartError>>,
}

impl Loop {
    pub(super) fn take_order(&mut self, asked: Box<Asked>) {
        let Some(cause) = cause_of(&asked.order) else { return self.begin_order(*asked) };
        self.owed += 1;
        let ports = Arc::clone(&self.ports);
        self.works.push(Box::pin(async move {
            let found = earlier(&*ports.store, Some(&cause)).await;
            Done::LookedUp(asked, found)
        }));
    }

    pub(super) fn looked_up(&mut self, asked: Asked, found: Result<Option<Earlier>, StoreError>) {
        let answer = match found {
            Ok(None) if self.stopping.is_none() => return self.begin_order(asked),
            Ok(None) => Err(StartError::Stopping),
            Ok(Some(Earlier { run, agent })) => {
                let _ = asked.reports.send(Vec::new());
                Ok((vec![(run, self.summary(&agent))], Vec::new()))
            }
            Err(error) => Err(StartError::Store(error)),
        };
        // Whoever asked may have gone.
        let _ = asked.reply.send(answer);
    }

    fn begin_order(&mut self, asked: Asked) {
        let Asked { order, cancel, reports, reply } = asked;
        let chosen = self.flow.as_ref().ok_or(StartError::NoFlow).and_then(|flow| flow.choose_start(&order));
        match chosen {
            Ok(start) => {
                let chain = Chain::new(&self.ports, self.limits, cancel, Some(reports));
                self.start(start, &Trail::from_order(chain, cause_of(&order), reply));
            }
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }
}

/// What the run of a key is known by. No run has such an id, so no run causes it.
fn cause_of(order: &StartOrder) -> Option<String> {
    order.key.as_ref().map(|key| format!("api:{key}"))
}
