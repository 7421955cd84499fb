//! Puts runs into the task: new ones, and resumed ones.

use super::completion::{Completion, Reply};
use super::{EngineState, LiveRun};
use crate::cascade::Cascade;
use crate::run::begin::{RunInput, begin};
use crate::run::control::Control;
use crate::run::drive::RunContext;
use crate::run::input_details::KnownUser;
use crate::run::resume::{ResumeIntent, ResumeRequest, resume_run};
use redflow_contract::id::{NodeId, RunId};
use redflow_ports::StoreError;
use std::sync::Arc;
use tokio::sync::watch;

impl EngineState {
    /// Begins a run and drives it.
    pub(crate) fn spawn_run(&mut self, run: RunId, report: usize, input: RunInput) {
        let agent = input.agent.compiled.spec().agent.node_id.clone();
        let context = self.add_live_run(run.clone(), agent, Arc::clone(&input.origin.cascade), None);
        context.user.set(input.details.as_ref().and_then(|details| details.user.as_deref()));
        let start_ack = input.origin.start_ack();
        self.work.push(Box::pin(async move {
            let (exit, start_ack) = match begin(context, input).await {
                Ok((mut driver, effects, ticket)) => {
                    if let Some(start_ack) = start_ack {
                        start_ack.add_stored_run(report, run.clone(), driver.agent().summary());
                    }
                    (driver.wait_and_work(effects, ticket).await, None)
                }
                Err(exit) => (exit, start_ack),
            };
            Completion::Run { run, report, agent: None, exit, start_ack }
        }));
    }

    /// Resumes a run and drives it, unless it is live already.
    pub(crate) fn spawn_resume(
        &mut self,
        run: RunId,
        agent: NodeId,
        intent: ResumeIntent,
        cascade: &Arc<Cascade>,
        reply: Option<Reply<Result<(), StoreError>>>,
    ) {
        if self.live_runs.contains_key(&run) {
            return;
        }
        let report = cascade.add_run(run.clone());
        let context = self.add_live_run(run.clone(), agent.clone(), Arc::clone(cascade), Some(&intent));
        let (flow, rebuilt, slots) = (self.flow.clone(), Arc::clone(&self.rebuilt), self.slots.clone());
        let cascade = Arc::clone(cascade);
        let request = ResumeRequest { intent, agent, flow, rebuilt, slots, cascade, reply };
        self.work.push(Box::pin(async move {
            let (agent, exit) = resume_run(context, request).await;
            Completion::Run { run, report, agent, exit, start_ack: None }
        }));
    }

    /// `intent` is none for a new run.
    fn add_live_run(
        &mut self,
        run: RunId,
        agent: NodeId,
        cascade: Arc<Cascade>,
        intent: Option<&ResumeIntent>,
    ) -> RunContext {
        let first = if self.is_stopping() { Control::Suspend } else { Control::Continue };
        let (control, commands) = watch::channel(first);
        let user = KnownUser::default();
        let context = RunContext {
            run: run.clone(),
            ports: Arc::clone(&self.ports),
            control: commands,
            cancel: cascade.cancel.clone(),
            outgoing: self.outgoing.clone(),
            observer: cascade.observer.clone(),
            computations: Arc::clone(&self.computations),
            user: user.clone(),
        };
        let live = LiveRun {
            agent,
            control,
            cascade,
            user,
            resumed: intent.is_some(),
            is_orphan: matches!(intent, Some(ResumeIntent::Remove)),
            cancel_replies: Vec::new(),
        };
        self.live_runs.insert(run, live);
        context
    }
}
