//! Performs several effects of one run at the same time.
//!
//! Facts are fed as they arrive. Those that are ready together are one batch, so that the disk is synced once.
//! The effects that are under way go on while a step is stored.

use super::control::{Activity, Control, StopReason, wait_for_stop};
use super::drive::RunDriver;
use super::effects::{FactBatch, call_not_made};
use super::exit::{RunExit, cannot_continue};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use redflow_contract::effect::Effect;
use redflow_contract::fact::Fact;
use redflow_contract::node::EffectClass;
use redflow_ports::{BoxFuture, failpoint};
use std::pin::Pin;
use std::sync::Arc;
use tokio::time::Sleep;
use tracing::Instrument as _;

/// The effects that are under way. Dropping it cancels their calls.
#[derive(Default)]
struct InFlight {
    calls: FuturesUnordered<BoxFuture<'static, (Fact, Option<EffectClass>)>>,
    /// The facts of calls that ended while a step was stored.
    ended: FactBatch,
}

impl InFlight {
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.ended.is_empty()
    }

    /// Does something that takes time, while the calls go on.
    async fn go_on_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(fact) = self.calls.next() => self.ended.push_back(fact),
            }
        }
    }

    /// The facts of all calls that have ended.
    fn take_ended(&mut self) -> FactBatch {
        while let Some(Some(next)) = self.calls.next().now_or_never() {
            self.ended.push_back(next);
        }
        std::mem::take(&mut self.ended)
    }

    /// Waits until a call has ended. Gives the facts of all that have.
    async fn next(&mut self) -> FactBatch {
        if self.ended.is_empty() {
            self.ended.extend(self.calls.next().await);
        }
        self.take_ended()
    }
}

impl RunDriver {
    /// Performs several effects, and those that follow, until none is under way. Gives the effects that
    /// remain, at most one of which has to be performed then.
    pub(super) async fn perform_together(
        &mut self,
        mut effects: Vec<Effect>,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<Vec<Effect>, RunExit> {
        let mut in_flight = InFlight::default();
        loop {
            let mut facts = self.start(effects, &mut in_flight);
            if facts.is_empty() {
                if in_flight.is_empty() {
                    return Err(RunExit::Suspended(None));
                }
                facts = self.next_facts(&mut in_flight, deadline.as_mut()).await?;
            }
            let must_end = facts.iter().any(|(fact, _)| fact.effect().is_none());
            effects = Vec::new();
            while !facts.is_empty() {
                let new = in_flight.go_on_during(self.feed_batch(&mut facts)).await;
                effects.extend(new.map_err(|error| RunExit::Suspended(Some(error)))?);
                if let Some(exit) = in_flight.go_on_during(self.emit(&mut effects)).await {
                    return Err(exit);
                }
            }
            if must_end {
                let error = cannot_continue(&"the machine did not end");
                return Err(RunExit::Suspended(Some(error)));
            }
            if in_flight.is_empty() && effects.len() <= 1 {
                return Ok(effects);
            }
        }
    }

    /// Starts effects. Gives the facts of calls that are not made, because the budget is used up or the engine
    /// stops.
    fn start(&self, effects: Vec<Effect>, in_flight: &mut InFlight) -> FactBatch {
        let mut facts = FactBatch::new();
        let suspend = self.requested_suspend();
        let mut refused = self.refused_calls(effects.iter());
        for effect in effects {
            let class = self.class_of(&effect);
            if let Some(fact) = refused.remove(&effect.id()) {
                facts.push_back((fact, class));
                continue;
            }
            let is_at_most_once = class == Some(EffectClass::AtMostOnce);
            match suspend {
                // The call was certainly not made. Without this fact a person would have to answer that.
                Some(Control::SuspendNow) if is_at_most_once => {
                    facts.push_back((call_not_made(&effect, self.ports.clock.now()), class));
                }
                // Performed when the run is resumed. The intent of an at-most-once call is stored, so it is
                // made while there is time.
                Some(_) if !is_at_most_once => {}
                _ => {
                    if class.is_some() {
                        failpoint("act.before");
                    }
                    let permit = match self.admit(&effect) {
                        Ok(permit) => permit,
                        Err(fact) => {
                            facts.push_back((*fact, class));
                            continue;
                        }
                    };
                    let performed = self.owned_context().perform(effect, class, permit);
                    in_flight.calls.push(performed.in_current_span().boxed());
                }
            }
        }
        facts
    }

    /// Waits for the next facts: those of all effects that have ended, or one that ends the run.
    async fn next_facts(
        &mut self,
        in_flight: &mut InFlight,
        deadline: Pin<&mut Sleep>,
    ) -> Result<FactBatch, RunExit> {
        // What a call has returned is stored before the run stops. Else the result would be lost.
        let ended = in_flight.take_ended();
        if !ended.is_empty() {
            return Ok(ended);
        }
        let clock = Arc::clone(&self.ports.clock);
        tokio::select! {
            biased;
            stop = wait_for_stop(&mut self.control, &self.cancel, Activity::Performing) => match stop {
                StopReason::Cancel(reason) => {
                    Ok([(Fact::CancelRequested { at: clock.now(), reason }, None)].into())
                }
                StopReason::Suspend => Err(RunExit::Suspended(None)),
            },
            () = deadline => Ok([(Fact::DeadlineReached { at: clock.now() }, None)].into()),
            facts = in_flight.next() => Ok(facts),
        }
    }
}
