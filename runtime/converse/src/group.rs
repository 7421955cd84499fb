//! The tool calls of one answer. They run at the same time, and their results are appended in the order of the
//! calls.

use redflow_contract::envelope::CallOutcome;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, EffectId};
use redflow_contract::node::OnUnknown;
use redflow_contract::{Message, Millis};

/// The tool calls of one answer, in their order.
#[derive(Debug, Default)]
pub(crate) struct CallGroup(pub(crate) Vec<GroupCall>);

/// One tool call of an answer.
#[derive(Debug)]
pub(crate) struct GroupCall {
    pub(crate) id: CallId,
    /// The id that the model's message has.
    pub(crate) provider_id: String,
    pub(crate) tool: String,
    pub(crate) input: Message,
    /// The arguments as the model wrote them.
    pub(crate) arguments: String,
    pub(crate) on_unknown: OnUnknown,
    pub(crate) state: CallState,
}

/// A call that was made one or more times in a row.
#[derive(Debug)]
pub(crate) struct RepeatedCall {
    pub(crate) tool: String,
    pub(crate) input: Message,
    pub(crate) times: u32,
}

/// How far a call is.
#[derive(Debug)]
pub(crate) enum CallState {
    /// It waits until fewer calls are open.
    Queued,
    /// Its effect is under way.
    Open { effect: EffectId, at: Millis },
    /// A person must give its outcome.
    Unknown { effect: EffectId, at: Millis },
    /// It has a result.
    Done(CallEnd),
}

/// The end of a call.
#[derive(Debug)]
pub(crate) struct CallEnd {
    pub(crate) result: ToolResult,
    pub(crate) outcome: Option<CallOutcome>,
    pub(crate) began_at: Millis,
    pub(crate) duration_ms: u64,
}

impl CallEnd {
    /// The end of a call that was not made.
    pub(crate) fn not_made(reason: impl Into<String>, at: Millis) -> Self {
        Self { result: ToolResult::failed(reason), outcome: None, began_at: at, duration_ms: 0 }
    }
}

impl CallGroup {
    /// The call whose effect is under way.
    pub(crate) fn open_call(&self, id: EffectId) -> Option<usize> {
        self.0.iter().position(|call| matches!(call.state, CallState::Open { effect, .. } if effect == id))
    }

    /// The call whose outcome a person must give.
    pub(crate) fn asked_call(&self, id: EffectId) -> Option<usize> {
        self.0.iter().position(|call| matches!(call.state, CallState::Unknown { effect, .. } if effect == id))
    }

    pub(crate) fn count_open(&self) -> usize {
        self.0.iter().filter(|call| matches!(call.state, CallState::Open { .. })).count()
    }

    pub(crate) fn next_queued(&self) -> Option<usize> {
        self.0.iter().position(|call| matches!(call.state, CallState::Queued))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.iter().all(|call| matches!(call.state, CallState::Done(_)))
    }

    /// Whether nothing moves and a person is asked.
    pub(crate) fn waits(&self) -> bool {
        let moves = |call: &GroupCall| matches!(call.state, CallState::Open { .. } | CallState::Queued);
        !self.is_done() && !self.0.iter().any(moves)
    }
}
