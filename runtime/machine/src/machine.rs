//! The machine of one run: the engine feeds one fact and polls until there are no more effects.

use crate::status::{FeedError, Status};
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use redflow_contract::id::Principal;
use redflow_contract::tally::RunTally;
use redflow_contract::usage::RunUsage;
use std::fmt::Debug;

/// Who started a run, for which user, and in which session.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunCaller<'a> {
    /// The session key of the conversation; none without a memory.
    pub session: Option<&'a str>,
    /// Who started the run; none if it is unknown.
    pub by: Option<&'a Principal>,
    /// Whose message started the run; none if it is unknown.
    pub user: Option<&'a str>,
}

/// Decides what a run does next. It is a pure function of its facts: no clock, no random number, no I/O. So a
/// replay of the facts gives the same effects.
///
/// A machine may have several open effects, and takes their facts in any order.
///
/// ```
/// use redflow_contract::effect::{Effect, Ending};
/// use redflow_contract::{event::RunEvent, fact::Fact, id::EffectId, tally::RunTally};
/// use redflow_machine::{FeedError, Machine, Status};
///
/// /// Ends every run with the message that started it.
/// #[derive(Debug, Default)]
/// struct Echo(Option<Effect>, Option<Ending>);
///
/// impl Machine for Echo {
///     fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
///         let Fact::RunStarted { message, .. } = fact else { return Err(FeedError::NotStarted) };
///         let ending = Ending::Completed;
///         *self = Echo(Some(Effect::Finish { id: EffectId(1), ending, message: message.into() }), Some(ending));
///         Ok(())
///     }
///     fn poll(&mut self) -> Option<Effect> { self.0.take() }
///     fn status(&self) -> Status { self.1.map_or(Status::New, Status::Finished) }
///     fn tally(&self) -> RunTally { RunTally::default() }
///     fn set_observed(&mut self, _observed: bool) {}
///     fn take_events(&mut self) -> Vec<RunEvent> { Vec::new() }
/// }
///
/// let mut machine = Echo::default();
/// // A fact that does not fit changes nothing.
/// assert_eq!(machine.feed(Fact::DeadlineReached { at: 0 }), Err(FeedError::NotStarted));
/// assert_eq!((machine.status(), machine.poll()), (Status::New, None));
/// ```
pub trait Machine: Debug + Send {
    /// Feeds one fact. `cancel_requested` and `deadline_reached` must end the run, unless its answer exists and
    /// only one effect is open.
    ///
    /// # Errors
    /// When the fact does not fit. Then the machine has not changed.
    fn feed(&mut self, fact: Fact) -> Result<(), FeedError>;

    /// Takes the next effect; none if the machine waits for a fact.
    fn poll(&mut self) -> Option<Effect>;

    /// The current status.
    fn status(&self) -> Status;

    /// What the run has used so far. The effects that were emitted last are counted.
    fn tally(&self) -> RunTally;

    /// The same, by model and by tool. Empty if the machine does not tell its calls apart.
    fn usage(&self) -> RunUsage {
        RunUsage::default()
    }

    /// Who started the run, and in which session. Known after the first fact.
    fn caller(&self) -> RunCaller<'_> {
        RunCaller::default()
    }

    /// Sets whether the machine makes events for [`Machine::take_events`]. The default is no.
    fn set_observed(&mut self, observed: bool);

    /// Takes the events since the last call. Empty unless the machine is observed.
    fn take_events(&mut self) -> Vec<RunEvent>;
}
