//! The events of a sidecar, and the messages of `ws /events`, protocol [`EVENTS_PROTOCOL`].
//!
//! Every durable event has a cursor: an opaque string. A reader that comes back names the last cursor it has and
//! gets everything after it, once. Deltas have no cursor: they are gone when they are missed, and the durable
//! event of the answer stands in their place.

use crate::Millis;
use crate::api::ProblemCode;
use crate::event::{FlowEvent, RunEvent};
use crate::id::RunId;
use serde::{Deserialize, Serialize};

/// The subprotocol of `ws /events`.
pub const EVENTS_PROTOCOL: &str = "redflow.events.v1";

/// The subprotocol of `ws /comms`, for browsers of admitted pages that pass their token as a second one.
pub const COMMS_PROTOCOL: &str = "redflow.comms.v1";

/// What comes before a token that is passed as a subprotocol, as browsers must.
pub const TOKEN_PROTOCOL_PREFIX: &str = "redflow.token.";

/// The cursor before the first event that is kept.
pub const CURSOR_START: &str = "0";

/// A durable event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum StreamEvent {
    /// Of a run.
    Run {
        /// What happened.
        event: RunEvent,
    },
    /// Of the flow around the runs.
    Flow {
        /// When.
        at: Millis,
        /// What happened.
        event: FlowEvent,
    },
}

/// A piece of a model's answer, as it comes in. Never kept; the run's `model_answered` event stands in the place of
/// all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelDelta {
    /// The run.
    pub run_id: RunId,
    /// The iteration.
    pub iteration: u32,
    /// Which try of the call this is, from 1: a call that is made again begins its answer anew.
    pub attempt: u32,
    /// The text.
    pub text: String,
}

/// What a reader says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum EventsRequest {
    /// Send events. Takes the place of an earlier subscription of this socket.
    Subscribe {
        /// Everything after this cursor; `"0"` for everything that is kept; absent for what happens from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        after: Option<String>,
        /// Only events of these runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        runs: Option<Vec<RunId>>,
        /// Also pieces of answers as they come in.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
        deltas: bool,
    },
    /// Answer with `pong`.
    Ping {
        /// Comes back.
        id: String,
    },
}

/// What the sidecar says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum EventsMessage {
    /// The socket is open.
    Hello {
        /// Of the sidecar.
        version: String,
        /// The newest event there is.
        cursor: String,
    },
    /// Something happened.
    Event {
        /// To go on after.
        cursor: String,
        /// What.
        event: Box<StreamEvent>,
    },
    /// Everything there was has been sent; what comes now has just happened.
    CaughtUp {
        /// To go on after.
        cursor: String,
    },
    /// A piece of an answer.
    Delta {
        /// Which.
        delta: ModelDelta,
    },
    /// The answer to `ping`.
    Pong {
        /// As it was sent.
        id: String,
    },
    /// The sidecar closes the socket after this.
    Closing {
        /// Why.
        code: ProblemCode,
        /// What happened and what to do.
        message: String,
        /// Nothing after it is sure to have arrived; absent if nothing was subscribed. A reader that has had later
        /// events goes on after the last of those.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        cursor: Option<String>,
    },
}
