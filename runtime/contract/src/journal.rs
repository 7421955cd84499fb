//! The journal of a run: its facts, and the digests of its effects. As a file it is JSON lines, each with the
//! digest of the raw bytes of the line before.

use crate::digest::Digest;
use crate::fact::Fact;
use crate::id::{EffectId, NodeRef, RunId};
use crate::node::EffectClass;
use crate::plan::AgentPlan;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JournalLine {
    /// The digest of the raw bytes of the line before; zeros in the first line.
    pub prev: Digest,
    /// The content of the line.
    pub record: JournalRecord,
}

/// The content of a journal line.
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
        /// The strategy of the machine; absent for Agent Core's, `react`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        strategy: Option<String>,
        /// The id of the run.
        run_id: RunId,
        /// The agent of the run.
        agent: NodeRef,
        /// The digest of the plan.
        plan_digest: Digest,
        /// The run that started this one; absent if none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        parent_run_id: Option<RunId>,
        /// The step of that run; absent if none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        step_id: Option<String>,
    },
    /// The second line.
    Plan {
        /// The agent and everything it binds.
        plan: Box<AgentPlan>,
    },
    /// A fact that the machine was fed.
    Fact {
        /// The fact.
        fact: Box<Fact>,
    },
    /// An effect that the machine emitted.
    Effect {
        /// The number of the effect.
        id: EffectId,
        /// The type of the effect, for people.
        effect: Cow<'static, str>,
        /// The effect class of a tool call, as the engine determined it before the call. After a crash it
        /// decides whether the call may be made again. The machine does not know it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        class: Option<EffectClass>,
        /// The digest of the effect.
        digest: Digest,
    },
    /// The last line: the message that left the result port.
    Output {
        /// The digest of the message.
        digest: Digest,
    },
}

/// Writes the second line of a journal from the JSON of the plan. A store that keeps each plan once uses it
/// to put the line back. The text equals that of a [`JournalLine`].
#[must_use]
pub fn plan_line(prev: &Digest, plan_json: &str) -> String {
    format!(r#"{{"prev":"{prev}","record":{{"kind":"plan","plan":{plan_json}}}}}"#)
}

impl JournalRecord {
    /// The `kind` of the record in JSON.
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

#[cfg(test)]
mod tests {
    use super::{JournalLine, JournalRecord, plan_line};
    use crate::digest::Digest;
    use crate::id::{EffectId, NodeSummary};
    use crate::node::EffectClass;
    use crate::plan::{AgentPlan, EncodedPlan, PlanNode};
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    fn any_node() -> impl Strategy<Value = PlanNode> {
        let config = prop::collection::vec((any::<String>(), any_json()), 0..4);
        (any::<(String, String, String)>(), config).prop_map(|((id, type_name, name), config)| PlanNode {
            node: NodeSummary { id: id.as_str().into(), type_name, name },
            config: config.into_iter().collect(),
        })
    }

    fn any_plan() -> impl Strategy<Value = AgentPlan> {
        let memory = prop::option::of(any_node());
        (any_node(), any_node(), memory, prop::collection::vec(any_node(), 0..3)).prop_map(
            |(agent, model, memory, tools)| AgentPlan {
                agent,
                model,
                fallback_models: Vec::new(),
                services: Vec::new(),
                memory,
                tools,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A store that keeps a plan once must restore exactly the line that was written.
        #[test]
        fn a_plan_line_equals_the_serialised_record(plan in any_plan(), before in any::<Vec<u8>>()) {
            let prev = Digest::of(&before);
            let encoded = EncodedPlan::new(&plan).unwrap();
            prop_assert_eq!(encoded.digest(), Digest::of_json(&plan).unwrap());
            let record = JournalRecord::Plan { plan: Box::new(plan) };
            let written = serde_json::to_string(&JournalLine { prev, record: record.clone() }).unwrap();
            let line = plan_line(&prev, encoded.json());
            prop_assert_eq!(&line, &written);
            let read: JournalLine = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(read, JournalLine { prev, record });
        }
    }

    #[test]
    fn a_record_without_a_class_has_no_class_key() {
        let effect = |class| JournalRecord::Effect {
            id: EffectId(2),
            effect: "call_tool".into(),
            class,
            digest: Digest::ZERO,
        };
        let zeros = "0".repeat(64);
        let without = json!({"kind": "effect", "id": 2, "effect": "call_tool", "digest": zeros});
        let with = |class: &str| {
            let digest = &zeros;
            json!({"kind": "effect", "id": 2, "effect": "call_tool", "class": class, "digest": digest})
        };
        for (record, expected) in [
            (effect(None), without),
            (effect(Some(EffectClass::Read)), with("read")),
            (effect(Some(EffectClass::Idempotent)), with("idempotent")),
            (effect(Some(EffectClass::AtMostOnce)), with("at_most_once")),
        ] {
            // Compared as text, because the order of the keys is part of a journal.
            assert_eq!(serde_json::to_string(&record).unwrap(), expected.to_string());
            assert_eq!(serde_json::from_value::<JournalRecord>(expected).unwrap(), record);
        }
    }
}
