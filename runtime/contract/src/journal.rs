//! The journal of a run: what was known, and digests of what was done about it. As a file: JSON lines, each
//! chained to the raw bytes of the one before.

use crate::digest::Digest;
use crate::fact::Fact;
use crate::id::{EffectId, NodeRef, RunId};
use crate::plan::AgentPlan;
use serde::{Deserialize, Serialize};

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JournalLine {
    /// The digest of the raw bytes of the line before; zeros in the first.
    pub prev: Digest,
    /// What is recorded.
    pub record: JournalRecord,
}

/// What a journal records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum JournalRecord {
    /// The first line.
    Header {
        /// The version of the contract's types.
        contract: u32,
        /// The version of the machine.
        machine: u32,
        /// The run.
        run_id: RunId,
        /// The agent.
        agent: NodeRef,
        /// The digest of the plan.
        plan_digest: Digest,
        /// The run that started this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        parent_run_id: Option<RunId>,
        /// The step of that run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        step_id: Option<String>,
    },
    /// The second line.
    Plan {
        /// What the run runs.
        plan: Box<AgentPlan>,
    },
    /// Something became known.
    Fact {
        /// What.
        fact: Box<Fact>,
    },
    /// Something was asked of the world.
    Effect {
        /// Its number.
        id: EffectId,
        /// Its type, for people.
        effect: String,
        /// The digest of it.
        digest: Digest,
    },
    /// The last line: the message that left port 3.
    Output {
        /// The digest of it.
        digest: Digest,
    },
}

impl JournalRecord {
    /// Its `kind`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Header { .. } => "header",
            Self::Plan { .. } => "plan",
            Self::Fact { .. } => "fact",
            Self::Effect { .. } => "effect",
            Self::Output { .. } => "output",
        }
    }
}
