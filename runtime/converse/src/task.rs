//! Agents for one thing: the tool that they finish with, and what is asked of their models.

use redflow_contract::answer_kind::{AnswerKind, Reply, ReplyFormat, ReplyPurpose, ToolChoice};
use redflow_contract::id::NodeId;
use redflow_contract::node::{FINISH_RESULT, FINISH_STEP, OnUnknown};
use redflow_contract::plan::{AgentSpec, ConverseSpec, TaskKind, TaskSpec, ToolSpec};
use redflow_json_schema::wrap_schema;
use serde_json::{Value, json};

/// What every agent for one thing is told after its own prompt.
pub(crate) const FINISH_PROMPT: &str = "Give your result by calling the tool `finish_step`, alone and once. If it is \
    the only tool, call it now, with the best result that you can give.";

/// The task of an agent, compiled once.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) kind: TaskKind,
    /// The most tokens of the conversation.
    pub(crate) max_tokens: u64,
    /// What is asked of the model while it may work.
    working: AnswerKind,
    /// What is asked of the model once it can only finish.
    concluding: AnswerKind,
    /// What is asked of the model for a summary.
    summary: AnswerKind,
}

impl Task {
    pub(crate) fn new(task: &TaskSpec, spec: &AgentSpec, settings: &ConverseSpec) -> Self {
        let finish = finishing_tool(settings.output_schema.as_ref());
        let own = spec.tools.iter().filter(|tool| tool.name != FINISH_STEP);
        let tools: Vec<ToolSpec> = own.cloned().chain([finish.clone()]).collect();
        let choice = if tools.len() == 1 { ToolChoice::Required } else { ToolChoice::Auto };
        let reply = |tools: Vec<ToolSpec>, choice, purpose| {
            AnswerKind::Reply(Reply { tools: tools.into(), choice, format: ReplyFormat::Text, purpose })
        };
        Self {
            kind: task.kind,
            max_tokens: task.max_token_limit.into(),
            working: reply(tools, choice, ReplyPurpose::Step),
            concluding: reply(vec![finish], ToolChoice::Required, ReplyPurpose::Step),
            summary: reply(Vec::new(), ToolChoice::None, ReplyPurpose::Summary),
        }
    }

    pub(crate) fn answer_kind(&self, concludes: bool) -> &AnswerKind {
        if concludes { &self.concluding } else { &self.working }
    }

    pub(crate) fn summary_kind(&self) -> &AnswerKind {
        &self.summary
    }
}

fn finishing_tool(schema: Option<&Value>) -> ToolSpec {
    let result = schema.cloned().unwrap_or_else(|| json!({"type": "string"}));
    ToolSpec {
        name: FINISH_STEP.to_owned(),
        description: "Gives the result and ends the work. Call it alone, when all other calls have returned."
            .to_owned(),
        input_schema: Some(wrap_schema(result, FINISH_RESULT)),
        node: NodeId::from(FINISH_STEP),
        effect: None,
        timeout_ms: 0,
        on_unknown: OnUnknown::Fail,
        id: None,
        operation: None,
        digest: None,
        output_schema: None,
        retry: None,
        strict: None,
    }
}
