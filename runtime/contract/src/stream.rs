//! The events of a sidecar, and the messages of `ws /events`, protocol [`EVENTS_PROTOCOL`].
//!
//! Every durable event has a cursor: an opaque string. A reader that returns sends the last cursor it has,
//! and gets every later event once. Deltas have no cursor. A missed delta is lost; the durable event of the
//! answer replaces it.

use crate::Millis;
use crate::api::ProblemCode;
use crate::event::{FlowEvent, RunEvent};
use crate::id::RunId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The subprotocol of `ws /events`.
pub const EVENTS_PROTOCOL: &str = "redflow.events.v1";

/// The subprotocol of `ws /comms`, for browsers of admitted pages that pass their token as a second one.
pub const COMMS_PROTOCOL: &str = "redflow.comms.v1";

/// The prefix of a token that a browser passes as a subprotocol.
pub const TOKEN_PROTOCOL_PREFIX: &str = "redflow.token.";

/// The cursor before the first stored event.
pub const CURSOR_START: &str = "0";

/// A durable event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum StreamEvent {
    /// An event of a run.
    Run {
        /// The event.
        event: RunEvent,
    },
    /// An event of the flow around the runs.
    Flow {
        /// When it happened.
        at: Millis,
        /// The event.
        event: FlowEvent,
    },
}

impl StreamEvent {
    /// The `type` of an event, read from its JSON; none if the JSON is no event.
    #[must_use]
    pub fn type_in(json: &str) -> Option<Cow<'_, str>> {
        #[derive(Deserialize)]
        struct Outer<'a> {
            #[serde(borrow)]
            event: Inner<'a>,
        }
        #[derive(Deserialize)]
        struct Inner<'a> {
            #[serde(borrow, rename = "type")]
            type_name: Option<Cow<'a, str>>,
            #[serde(borrow)]
            event: Option<NestedEvent<'a>>,
        }
        #[derive(Deserialize)]
        struct NestedEvent<'a> {
            #[serde(borrow, rename = "type")]
            type_name: Cow<'a, str>,
        }
        let Outer { event } = serde_json::from_str(json).ok()?;
        event.event.map(|kind| kind.type_name).or(event.type_name)
    }
}

/// A piece of a model's answer. Deltas are never stored; the run's `model_answered` event replaces them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelDelta {
    /// The run that called the model.
    pub run_id: RunId,
    /// The iteration of the run, from 1.
    pub iteration: u32,
    /// The attempt of the call, from 1. A retried call starts its answer again.
    pub attempt: u32,
    /// The piece of text.
    pub text: String,
}

/// `msg.stream` of a message that leaves an agent's stream port. Such messages are never stored: a missed one is
/// lost, and the result has the whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StreamPart {
    /// What the payload is.
    #[serde(rename = "type")]
    pub kind: StreamPartKind,
    /// The run that sends it.
    pub run_id: RunId,
    /// The iteration of the run, from 1.
    pub iteration: u32,
    /// The attempt of the model call, from 1. A higher one begins the text of the iteration again.
    pub attempt: u32,
    /// The number of the message in its run, from 1, without gaps unless one was lost.
    pub seq: u32,
}

/// What the payload of a message from a stream port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StreamPartKind {
    /// The next piece of the model's text.
    Text,
    /// The name of a tool that is called.
    Tool,
    /// Empty: the run has ended.
    End,
}

/// A message from a reader to the sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum EventsRequest {
    /// Asks for events. Replaces an earlier subscription of this socket.
    Subscribe {
        /// Every event after this cursor; `"0"` for every stored event; absent for new events only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        after: Option<String>,
        /// Only events of these runs; absent for every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        runs: Option<Vec<RunId>>,
        /// Only events of these types, such as `tool_returned`; absent for every type. Deltas are no events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        types: Option<Vec<String>>,
        /// Whether to send deltas too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
        deltas: bool,
    },
    /// Asks for a `pong`.
    Ping {
        /// Comes back in the `pong`.
        id: String,
    },
}

/// A message from the sidecar to a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum EventsMessage {
    /// The socket is open.
    Hello {
        /// The version of the sidecar.
        version: String,
        /// The cursor of the newest event.
        cursor: String,
    },
    /// A durable event.
    Event {
        /// The cursor of this event.
        cursor: String,
        /// The event.
        event: Box<StreamEvent>,
    },
    /// Every stored event has been sent. Later events have just happened.
    CaughtUp {
        /// The cursor of the last event.
        cursor: String,
    },
    /// A piece of a model's answer.
    Delta {
        /// The piece.
        delta: ModelDelta,
    },
    /// The answer to `ping`.
    Pong {
        /// The id of the `ping`.
        id: String,
    },
    /// The last message before the sidecar closes the socket.
    Closing {
        /// The code of the reason.
        code: ProblemCode,
        /// What happened and what to do about it.
        message: String,
        /// Events after this cursor may not have arrived; absent without a subscription. A reader that has
        /// received later events continues after the last of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        cursor: Option<String>,
    },
}
