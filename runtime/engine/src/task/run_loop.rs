//! The loop of the engine task: deliveries first, then completed work, commands and timers.

use super::command::Command;
use crate::flow::schedule::Timers;
use crate::origin::Origin;
use crate::run::control::{Control, engine_stopped};
use crate::run::exit::RunExit;
use crate::run::outgoing::Outgoing;
use crate::state::EngineState;
use crate::state::completion::{Completion, RecoveryPurpose};
use futures::StreamExt;
use redflow_ports::PendingRequest;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Deliveries in a row before runs get their turn.
const MAX_DELIVERIES_IN_A_ROW: usize = 64;

/// The time that deliveries in a row may take together.
const MAX_TIME_IN_A_ROW: Duration = Duration::from_millis(5);

impl EngineState {
    pub(super) async fn run_loop(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut outgoing: mpsc::Receiver<Outgoing>,
    ) {
        self.listen_for_requests();
        loop {
            let began = std::time::Instant::now();
            for _ in 0..MAX_DELIVERIES_IN_A_ROW {
                let Some(delivery) = self.queue.pop_front() else { break };
                self.deliver(delivery);
                if began.elapsed() > MAX_TIME_IN_A_ROW {
                    break;
                }
            }
            let is_idle = self.live_runs.is_empty() && self.queue.is_empty() && self.pending == 0;
            if is_idle && self.is_stopping() {
                break;
            }
            let has_deliveries = !self.queue.is_empty();
            tokio::select! {
                biased;
                Some(message) = outgoing.recv() => self.handle_outgoing(message),
                // Before commands, so that a command never meets a run that has just stopped.
                Some(completion) = self.work.next() => {
                    // Messages that a run sent before its end go out before its result.
                    while let Ok(message) = outgoing.try_recv() {
                        self.handle_outgoing(message);
                    }
                    self.handle_completion(completion);
                }
                command = commands.recv(), if !self.is_stopping() => match command {
                    Some(command) => self.handle_command(command),
                    None => break,
                },
                // Last, because work that has begun goes before scheduled work.
                node = self.timers.next_due(), if self.timers.is_armed() => self.handle_timer(&node),
                () = self.maintenance.next_idle(), if self.maintenance.is_armed() => self.handle_idle(),
                // Lets other tasks run: the process may have one thread for all.
                () = tokio::task::yield_now(), if has_deliveries => {}
            }
        }
        if let Some(reply) = self.shutdown_reply.take() {
            let _ = reply.send(());
        }
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Start { start, cancel, reply } => {
                let cascade = self.flow_calls.new_cascade(cancel, Some(reply));
                cascade.set_principal(self.ports.principal.clone());
                self.start(start, &Origin::external(cascade));
            }
            Command::StartAcknowledged(start) => self.accept_start(start),
            Command::BeginSchedules { reply } => {
                self.begin_schedules();
                let _ = reply.send(());
            }
            Command::Resume { runs, cancel, reply } => {
                self.load_unfinished_runs(RecoveryPurpose::Resume(runs, cancel, reply));
            }
            Command::Recover { cancel, reply } => {
                self.load_unfinished_runs(RecoveryPurpose::Recover(cancel, reply));
            }
            Command::Request { run, request, reply } => self.handle_request(run, request, reply),
            Command::Deploy { flow, reply } => {
                self.deploy(*flow);
                let _ = reply.send(());
            }
            Command::Shutdown { drain, reply } => {
                self.shutdown_reply = Some(reply);
                self.flow_calls.stop();
                self.timers = Timers::default();
                self.maintenance.clear();
                self.waiting.stop.cancel();
                self.suspend_live_runs(&Control::Suspend);
                self.computations.stop();
                self.work.push(Box::pin(async move {
                    tokio::time::sleep(drain).await;
                    Completion::DrainTimeElapsed
                }));
            }
        }
    }

    fn handle_completion(&mut self, completion: Completion) {
        match completion {
            Completion::Run { run, report, agent, exit, start_ack } => {
                if let Some(live) = self.live_runs.remove(&run) {
                    if let (Some(start_ack), RunExit::Duplicate(Some(earlier))) = (&start_ack, &exit) {
                        let agent = self.agent_summary(&earlier.agent);
                        start_ack.add_earlier_run(report, earlier, agent);
                    }
                    self.handle_run_exit(run, report, agent, exit, live);
                }
                // Only now, because a refused run must be among the reports when the start is answered.
                drop(start_ack);
            }
            Completion::EarlierRunFound(start, earlier) => {
                self.pending -= 1;
                self.handle_earlier_run(*start, earlier);
            }
            Completion::RequestsReceived(requests) => {
                self.pending += requests.len();
                for PendingRequest { id, run, request } in requests {
                    let (reply, answer) = oneshot::channel();
                    self.handle_request(run, request, reply);
                    self.work.push(Box::pin(async move {
                        Completion::RequestAnswered(
                            id,
                            answer.await.unwrap_or_else(|_| Err(engine_stopped())),
                        )
                    }));
                }
                self.listen_for_requests();
            }
            Completion::RequestAnswered(id, answer) => {
                self.pending -= 1;
                self.ports.store.answer_request(id, answer.err().map(|error| error.code));
            }
            Completion::AnswerStored { run, answer, reply } => {
                self.pending -= 1;
                // The caller may have stopped waiting.
                let _ = reply.send(answer);
                self.handle_later_answers(&run);
            }
            Completion::MemoryCleared(clear) => {
                self.pending -= 1;
                self.handle_memory_clear(*clear);
            }
            Completion::ToolsAwaited(agent, number) => {
                self.pending -= 1;
                self.handle_tools_awaited(&agent, number);
            }
            Completion::MemoryMaintained(job, outcome) => {
                self.pending -= 1;
                self.handle_maintenance_outcome(&job, outcome);
            }
            Completion::HostDelivered(delivery) => self.handle_host_delivery(*delivery),
            Completion::UnfinishedRunsLoaded(runs, purpose) => {
                self.pending -= 1;
                self.handle_unfinished_runs(runs, purpose);
            }
            Completion::FirstTimesFound(times) => self.timers.set(times),
            Completion::DrainTimeElapsed => {
                self.suspend_live_runs(&Control::SuspendNow);
                self.maintenance.stop.cancel();
                self.computations.give_up();
            }
        }
    }

    /// Waits for requests of other processes.
    fn listen_for_requests(&self) {
        if !self.ports.takes_requests {
            return;
        }
        let ports = Arc::clone(&self.ports);
        self.work.push(Box::pin(async move { Completion::RequestsReceived(ports.store.requests().await) }));
    }
}
