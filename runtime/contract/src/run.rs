//! Runs as lists show them, and the requests that other processes make about them.

use crate::code::RunErrorCode;
use crate::effect::Ending;
use crate::fact::ToolResult;
use crate::id::{CallId, NodeRef, Principal, RunId};
use crate::tally::RunTally;
use crate::usage::RunUsage;
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSummary {
    /// The id of the run.
    pub run_id: RunId,
    /// The agent of the run.
    pub agent: NodeRef,
    /// The agent's name; empty if it has none.
    pub name: String,
    /// The status of the run.
    pub status: RunStatus,
    /// Why it failed; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<RunErrorCode>,
    /// The call whose outcome the run waits for, the oldest of several; absent if it waits for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingCall>,
    /// All calls whose outcome the run waits for, if there are several; the oldest comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<WaitingCall>>"))]
    pub questions: Vec<WaitingCall>,
    /// When it started.
    pub started_at: Millis,
    /// When it ended; absent if it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Millis>,
    /// Whether its result is delivered.
    pub delivered: bool,
    /// The file of its flow, to find the flow when the run is resumed; absent if the flow came from no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether a computation of the run held its process, so that no start resumes it. See `RUN_HUNG`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>"))]
    pub hung: bool,
    /// Who started it; absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// What it has used, once it has ended or waits; absent before, and if an earlier version ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<RunTally>,
    /// The run that started it, or whose message did; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// The number of runs that it has started; absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<u32>"))]
    pub children: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// A process works on it.
    Running,
    /// It has not ended, but its process stopped.
    Interrupted,
    /// It waits until a person gives the outcome of a call.
    Waiting,
    /// It ended with a final answer.
    Completed,
    /// A stop condition ended it.
    Stopped,
    /// It ended with an error.
    Failed,
    /// The store does not contain what was written. The run is left alone.
    Damaged,
}

impl RunSummary {
    /// Sets the calls that the run waits for, oldest first.
    pub fn set_questions(&mut self, questions: Vec<WaitingCall>) {
        self.waiting = questions.first().cloned();
        self.questions = if questions.len() > 1 { questions } else { Vec::new() };
    }

    /// All calls that the run waits for, oldest first.
    #[must_use]
    pub fn open_questions(&self) -> &[WaitingCall] {
        if self.questions.is_empty() { self.waiting.as_slice() } else { &self.questions }
    }
}

impl RunStatus {
    /// The status as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Damaged => "damaged",
        }
    }

    /// Whether the run has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Stopped | Self::Failed)
    }
}

/// A call whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitingCall {
    /// The id of the call.
    pub call_id: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The iteration of the run, from 1.
    pub iteration: u32,
    /// When the machine asked for the call.
    pub asked_at: Millis,
    /// The input of the call.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub input: Message,
}

/// The state of a run after a batch of journal lines, as far as a store needs it.
#[derive(Debug, Clone, PartialEq)]
pub enum RunState {
    /// The run goes on.
    Running,
    /// The run waits until a person gives the outcomes of these calls; the oldest comes first.
    Waiting(Vec<WaitingCall>),
    /// The run has ended.
    Finished {
        /// When it ended.
        at: Millis,
        /// How it ended.
        ending: Ending,
        /// What it has used, for the sums of its day.
        usage: Box<RunUsage>,
    },
}

/// A request that another process makes about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum RunRequest {
    /// Cancel the run.
    Cancel {
        /// Who cancels, or why.
        reason: String,
    },
    /// Give the outcome of the call that the run waits for.
    Resolve {
        /// The call. The outcome is never used for another call.
        call_id: CallId,
        /// The outcome.
        result: ToolResult,
    },
}

#[cfg(test)]
mod tests {
    use super::{RunRequest, RunStatus, RunSummary, WaitingCall};
    use crate::code::RunErrorCode;
    use crate::fact::ToolResult;
    use crate::id::{InstanceId, NodeRef};
    use crate::tally::RunTally;
    use pretty_assertions::assert_eq;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    fn check<T>(value: &T, expected: &Value)
    where
        T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        assert_eq!(serde_json::to_value(value).unwrap(), *expected);
        assert_eq!(serde_json::from_value::<T>(expected.clone()).unwrap(), *value);
    }

    #[test]
    fn a_status_serialises_as_its_text() {
        use RunStatus::{Completed, Failed, Interrupted, Running, Stopped, Waiting};
        let all = [Running, Interrupted, Waiting, Completed, Stopped, Failed];
        for status in all {
            check(&status, &json!(status.as_str()));
        }
        let over: Vec<RunStatus> = all.into_iter().filter(|status| status.is_over()).collect();
        assert_eq!(over, [Completed, Stopped, Failed]);
    }

    #[test]
    fn run_summaries_serialise() {
        let running = RunSummary {
            run_id: "0197".into(),
            agent: NodeRef { instance: InstanceId::local(), node_id: "agent".into() },
            name: "Counting".to_owned(),
            status: RunStatus::Running,
            code: None,
            waiting: None,
            questions: Vec::new(),
            started_at: 1_766_000_000_000,
            ended_at: None,
            delivered: false,
            source: Some("flows.json".to_owned()),
            hung: false,
            by: None,
            tally: None,
            parent: None,
            children: 0,
        };
        let expected = json!({
            "runId": "0197", "agent": {"instance": "local", "nodeId": "agent"}, "name": "Counting",
            "status": "running", "startedAt": 1_766_000_000_000_u64, "delivered": false,
            "source": "flows.json",
        });
        check(&running, &expected);

        let call = WaitingCall {
            call_id: "0197:2".into(),
            tool: "mail".to_owned(),
            iteration: 2,
            asked_at: 1_766_000_000_005,
            input: [("to".to_owned(), json!("Ada"))].into_iter().collect(),
        };
        let waiting = RunSummary { status: RunStatus::Waiting, waiting: Some(call), ..running.clone() };
        let mut expected_waiting = expected.clone();
        expected_waiting["status"] = json!("waiting");
        expected_waiting["waiting"] = json!({
            "callId": "0197:2", "tool": "mail", "iteration": 2, "askedAt": 1_766_000_000_005_u64,
            "input": {"to": "Ada"},
        });
        check(&waiting, &expected_waiting);

        let (code, ended_at) = (Some(RunErrorCode::JournalFailed), Some(1_766_000_000_009));
        let tally = Some(RunTally { iterations: 1, input_tokens: 7, cost: Some(0.5), ..RunTally::default() });
        let by = Some("cli".into());
        let failed =
            RunSummary { status: RunStatus::Failed, code, ended_at, delivered: true, by, tally, ..running };
        let mut expected_failed = expected;
        expected_failed["status"] = json!("failed");
        expected_failed["code"] = json!("JOURNAL_FAILED");
        expected_failed["endedAt"] = json!(1_766_000_000_009_u64);
        expected_failed["delivered"] = json!(true);
        expected_failed["by"] = json!("cli");
        expected_failed["tally"] = json!({
            "iterations": 1, "modelCalls": 0, "toolCalls": 0, "inputTokens": 7, "outputTokens": 0,
            "cachedTokens": 0, "cost": 0.5,
        });
        check(&failed, &expected_failed);
    }

    #[test]
    fn run_requests_serialise() {
        let resolve = |result| RunRequest::Resolve { call_id: "0197:2".into(), result };
        let cases = [
            (
                RunRequest::Cancel { reason: "by hand".to_owned() },
                json!({"type": "cancel", "reason": "by hand"}),
            ),
            // A call that returned null differs from a call without a result.
            (
                resolve(ToolResult::ok(Value::Null)),
                json!({"type": "resolve", "callId": "0197:2", "result": {"success": true, "output": null}}),
            ),
            (
                resolve(ToolResult::failed("It did not happen.")),
                json!({
                    "type": "resolve", "callId": "0197:2",
                    "result": {"success": false, "error": "It did not happen."},
                }),
            ),
        ];
        for (request, expected) in cases {
            check(&request, &expected);
        }
        for bad in [
            json!({"type": "cancel"}),
            json!({"type": "cancel", "reason": "", "more": 1}),
            json!({"type": "resolve", "result": {"success": true}}),
            json!({"type": "restart"}),
        ] {
            assert!(serde_json::from_value::<RunRequest>(bad.clone()).is_err(), "{bad}");
        }
    }
}
