//! Starts whose caller waits until their runs are stored.
//!
//! Owns the order of steps. The key is looked up first, then the node is found in the current flow, then the
//! runs begin. The caller gets its answer when the last of them is stored.

use crate::origin::{Origin, StartedRuns};
use crate::run::exit::find_earlier_run;
use crate::start::{CallerRequest, EarlierRun, StartError, StartKey};
use crate::state::EngineState;
use crate::state::completion::{Completion, PendingStart};
use redflow_ports::StoreError;
use std::sync::Arc;

impl EngineState {
    pub(super) fn accept_start(&mut self, start: Box<PendingStart>) {
        let Some(cause) = start.order.key.as_ref().map(StartKey::cause) else {
            return self.begin_start(*start);
        };
        self.pending += 1;
        let ports = Arc::clone(&self.ports);
        self.work.push(Box::pin(async move {
            let earlier = find_earlier_run(&*ports.store, Some(&cause)).await;
            Completion::EarlierRunFound(start, earlier)
        }));
    }

    pub(super) fn handle_earlier_run(
        &mut self,
        start: PendingStart,
        earlier: Result<Option<EarlierRun>, StoreError>,
    ) {
        let answer = match earlier {
            Ok(None) if !self.is_stopping() => return self.begin_start(start),
            Ok(None) => Err(StartError::Stopping),
            Ok(Some(earlier)) => {
                let checked = CallerRequest::new(&start.order).map_or(Ok(()), |own| own.check(&earlier));
                let _ = start.reports.send(Vec::new());
                let agent = self.agent_summary(&earlier.agent);
                checked.map(|()| StartedRuns { runs: vec![(earlier.run, agent)], refused: Vec::new() })
            }
            Err(error) => Err(StartError::Store(error)),
        };
        // The caller may have stopped waiting.
        let _ = start.reply.send(answer);
    }

    fn begin_start(&mut self, start: PendingStart) {
        let PendingStart { order, cancel, reports, reply } = start;
        let chosen = self.flow.as_ref().ok_or(StartError::NoFlow).and_then(|flow| flow.choose_start(&order));
        match chosen {
            Ok(start) => {
                let cascade = self.flow_calls.new_cascade(cancel, Some(reports));
                cascade.set_principal(order.by.clone().or_else(|| self.ports.principal.clone()));
                self.start(start, &Origin::acknowledged(cascade, &order, reply));
            }
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }
}
