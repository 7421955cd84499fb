//! Agents for one thing: how they give their results, and what is asked of their models.

use crate::answer_form::{result_format, schema_prompt};
use redflow_contract::answer_kind::{AnswerKind, Reply, ReplyFormat, ReplyPurpose, ToolChoice};
use redflow_contract::id::NodeId;
use redflow_contract::node::{FINISH_RESULT, FINISH_STEP, OnUnknown};
use redflow_contract::plan::{AgentSpec, ConverseSpec, TaskKind, TaskSpec, ToolSpec};
use redflow_json_schema::wrap_schema;
use serde_json::{Value, json};

/// The prompt of version 1, which takes other tools off the list at the end.
const VERSION_1_PROMPT: &str = "Give your result by calling the tool `finish_step`, alone and once. If it is \
    the only tool, call it now, with the best result that you can give.";

const TOOL_PROMPT: &str = "Give your result by calling the tool `finish_step`, alone and once.";

const TEXT_PROMPT: &str = "Answer only with the result, without any text around it.";

/// How the model of an agent for one thing gives its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultForm {
    /// It calls the tool `finish_step`.
    Call,
    /// It answers with JSON: an object with the key `result`.
    Json,
    /// It answers with the result as text.
    Text,
}

impl ResultForm {
    /// What the agent tells the model after what is wrong with its result.
    pub(crate) fn ask_again(self) -> &'static str {
        match self {
            Self::Call => "Call `finish_step` again, with the whole result.",
            Self::Json => "Answer again, only with the whole JSON.",
            Self::Text => "Answer again, only with the whole result.",
        }
    }
}

/// The task of an agent, compiled once.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) kind: TaskKind,
    pub(crate) form: ResultForm,
    /// What the agent tells the model after its own prompt.
    pub(crate) prompt: String,
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
    pub(crate) fn new(task: &TaskSpec, spec: &AgentSpec, settings: &ConverseSpec, version: u32) -> Self {
        let own: Vec<ToolSpec> = spec.tools.iter().filter(|tool| tool.name != FINISH_STEP).cloned().collect();
        let schema = settings.output_schema.as_ref();
        let input = wrap_schema(schema.cloned().unwrap_or_else(|| json!({"type": "string"})), FINISH_RESULT);
        let form = result_form(task.kind, schema, version == 1 || !own.is_empty());
        let prompt = match form {
            ResultForm::Call if version == 1 => VERSION_1_PROMPT.to_owned(),
            ResultForm::Call => TOOL_PROMPT.to_owned(),
            ResultForm::Json => schema_prompt(&input),
            ResultForm::Text => TEXT_PROMPT.to_owned(),
        };
        let (working, concluding) = match form {
            ResultForm::Call => calling_replies(own, finishing_tool(input), version),
            ResultForm::Json => {
                let (format, purpose) = (result_format(&input), ReplyPurpose::Result);
                let reply = Reply { choice: ToolChoice::None, format, purpose, ..Reply::default() };
                (reply.clone(), reply)
            }
            ResultForm::Text => {
                let reply = Reply { choice: ToolChoice::None, ..Reply::default() };
                (reply.clone(), reply)
            }
        };
        let (choice, purpose) = (ToolChoice::None, ReplyPurpose::Summary);
        Self {
            kind: task.kind,
            form,
            prompt,
            max_tokens: task.max_token_limit.into(),
            working: AnswerKind::Reply(working),
            concluding: AnswerKind::Reply(concluding),
            summary: AnswerKind::Reply(Reply { choice, purpose, ..Reply::default() }),
        }
    }

    pub(crate) fn answer_kind(&self, concludes: bool) -> &AnswerKind {
        if concludes { &self.concluding } else { &self.working }
    }

    pub(crate) fn summary_kind(&self) -> &AnswerKind {
        &self.summary
    }
}

fn result_form(kind: TaskKind, schema: Option<&Value>, calls: bool) -> ResultForm {
    let is_summary = |schema: &Value| kind == TaskKind::Summarize && schema["type"] == "string";
    if calls {
        ResultForm::Call
    } else if schema.is_none_or(is_summary) {
        ResultForm::Text
    } else {
        ResultForm::Json
    }
}

/// What is asked of a model that gives its result by a call: while it may work, and once it can only finish. Version 1
/// takes the other tools off the list.
fn calling_replies(mut own: Vec<ToolSpec>, finish: ToolSpec, version: u32) -> (Reply, Reply) {
    let choice = if own.is_empty() { ToolChoice::Required } else { ToolChoice::Auto };
    let last = [finish.clone()];
    own.push(finish);
    let working = Reply { tools: own.into(), choice, format: ReplyFormat::Text, ..Reply::default() };
    let concluding = Reply { choice: ToolChoice::Required, ..working.clone() };
    let concluding = if version == 1 {
        Reply { tools: last.into(), ..concluding }
    } else {
        Reply { only: Some(FINISH_STEP.to_owned()), ..concluding }
    };
    (working, concluding)
}

fn finishing_tool(input: Value) -> ToolSpec {
    ToolSpec {
        name: FINISH_STEP.to_owned(),
        description: "Gives the result and ends the work. Call it alone, when all other calls have returned."
            .to_owned(),
        input_schema: Some(input),
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
