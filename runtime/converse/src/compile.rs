//! Compiles an agent once per deploy: its prompt, its tools and the schema of its answer.
//!
//! All runs of the agent share the result.

use crate::answer_form::{schema_format, schema_prompt};
use crate::task::Task;
use redflow_contract::answer_kind::{AnswerKind, Reply, ReplyFormat, ReplyPurpose, ToolChoice};
use redflow_contract::id::NodeId;
use redflow_contract::node::{FINAL_ANSWER, FINISH_STEP, OnUnknown, OutputFormat};
use redflow_contract::plan::{AgentSpec, ConverseSpec, ToolSpec};
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_json_schema::{SchemaRules, UntrustedSchema};
use redflow_machine::{CompileError, compile_schema, compile_tool_schemas};
use std::sync::Arc;

/// A compiled agent. All its runs share it.
pub struct CompiledAgent {
    spec: Arc<AgentSpec>,
    /// The settings; the defaults if the spec has none.
    settings: ConverseSpec,
    /// The transcript that every run starts with.
    prefix: Transcript,
    /// In the order of the spec's tools; none for a tool that takes any object.
    input_schemas: Vec<Option<UntrustedSchema>>,
    output_schema: Option<UntrustedSchema>,
    /// What is asked of the model until the first tool result, and after it.
    answer_kinds: [AnswerKind; 2],
    has_final_tool: bool,
    /// The one task of the agent; none for an AI Agent.
    task: Option<Task>,
    version: u32,
}

impl CompiledAgent {
    /// Compiles an agent whose machine has a version of this build.
    ///
    /// # Errors
    /// The first schema that cannot be used.
    pub fn compile(spec: Arc<AgentSpec>, version: u32) -> Result<Arc<Self>, CompileError> {
        let settings = spec.converse.clone().unwrap_or_default();
        let input_schemas = compile_tool_schemas(&spec.tools, SchemaRules::Current)?;
        let output_schema = settings.output_schema.as_ref();
        let output_schema = output_schema
            .map(|schema| compile_schema(schema, SchemaRules::Current))
            .transpose()
            .map_err(CompileError::OutputSchema)?;
        let may_call = !spec.tools.is_empty() && settings.tool_choice != ToolChoice::None;
        let task = settings.task.as_ref().map(|task| Task::new(task, &spec, &settings, version));
        let has_final_tool = may_call && output_schema.is_some() && task.is_none();
        let prefix = prompt_prefix(&settings, has_final_tool, task.as_ref());
        let answer_kinds = answer_kinds(&spec, &settings, may_call, version);
        Ok(Arc::new(Self {
            spec,
            settings,
            prefix,
            input_schemas,
            output_schema,
            answer_kinds,
            has_final_tool,
            task,
            version,
        }))
    }

    /// The spec that it was compiled from.
    #[must_use]
    pub fn spec(&self) -> &Arc<AgentSpec> {
        &self.spec
    }

    /// The version of its machine.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn settings(&self) -> &ConverseSpec {
        &self.settings
    }

    pub(crate) fn prefix(&self) -> &Transcript {
        &self.prefix
    }

    /// The schema of the answer; none if any answer is valid.
    pub(crate) fn output_schema(&self) -> Option<&UntrustedSchema> {
        self.output_schema.as_ref()
    }

    /// Whether the answer must be JSON.
    pub(crate) fn wants_json(&self) -> bool {
        self.output_schema.is_some() || self.settings.output_format == OutputFormat::Json
    }

    /// Whether the model gives its answer with a tool.
    pub(crate) fn has_final_tool(&self) -> bool {
        self.has_final_tool
    }

    /// The one task of the agent; none for an AI Agent.
    pub(crate) fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    /// What is asked of the model of an AI Agent, before and after the first tool result.
    pub(crate) fn answer_kind(&self, after_result: bool) -> &AnswerKind {
        &self.answer_kinds[usize::from(after_result)]
    }

    /// The names of all tools that the model may call, also of the finishing tool of a task.
    pub(crate) fn tool_names(&self) -> impl Iterator<Item = &str> {
        let finishing = self.task.as_ref().map(|_| FINISH_STEP);
        self.spec.tools.iter().map(|tool| tool.name.as_str()).chain(finishing)
    }

    /// Finds a tool by name, with the schema of its input.
    pub(crate) fn tool(&self, name: &str) -> Option<(&ToolSpec, Option<&UntrustedSchema>)> {
        let index = self.spec.tools.iter().position(|tool| tool.name == name)?;
        Some((&self.spec.tools[index], self.input_schemas.get(index)?.as_ref()))
    }
}

/// The system prompt, with what the format of the answer needs.
fn prompt_prefix(settings: &ConverseSpec, has_final_tool: bool, task: Option<&Task>) -> Transcript {
    let mut prompt = settings.system_prompt.trim().to_owned();
    let mut add = |text: &str| {
        if !prompt.is_empty() {
            prompt.push_str("\n\n");
        }
        prompt.push_str(text);
    };
    match (&settings.output_schema, settings.output_format) {
        _ if let Some(task) = task => add(&task.prompt),
        (Some(_), _) if has_final_tool => {
            add("Give your final answer by calling the tool `final_answer`, alone and once.");
        }
        (Some(schema), _) => add(&schema_prompt(schema)),
        (None, OutputFormat::Json) => {
            add("Answer only with JSON, without any text or code fence around it.");
        }
        (None, OutputFormat::Text | OutputFormat::Full) => {}
    }
    let mut prefix = Transcript::default();
    if !prompt.is_empty() {
        prefix.push(Arc::new(ChatMessage::new(ChatRole::System, prompt)));
    }
    prefix
}

fn answer_kinds(spec: &AgentSpec, settings: &ConverseSpec, may_call: bool, version: u32) -> [AnswerKind; 2] {
    let schema = settings.output_schema.as_ref();
    let mut tools = spec.tools.clone();
    let final_tool = schema.filter(|_| may_call).map(|schema| ToolSpec {
        name: FINAL_ANSWER.to_owned(),
        description: "Gives the final answer to the user. Call it alone, when all other calls have returned."
            .to_owned(),
        input_schema: Some(schema.clone()),
        node: NodeId::from(FINAL_ANSWER),
        effect: None,
        timeout_ms: 0,
        on_unknown: OnUnknown::Fail,
        id: None,
        operation: None,
        digest: None,
        output_schema: None,
        retry: None,
        strict: None,
    });
    let has_final_tool = final_tool.is_some();
    let own_tools: Arc<[ToolSpec]> = tools.clone().into();
    tools.extend(final_tool);
    let tools: Arc<[ToolSpec]> = tools.into();
    // Servers that format their answer as JSON cannot call tools at the same time.
    let format = match schema {
        _ if may_call => ReplyFormat::Text,
        Some(schema) => schema_format(schema),
        None if settings.output_format == OutputFormat::Json => ReplyFormat::Json,
        None => ReplyFormat::Text,
    };
    let reply = |choice| {
        AnswerKind::Reply(Reply {
            tools: Arc::clone(&tools),
            only: None,
            choice,
            format: format.clone(),
            purpose: ReplyPurpose::Step,
        })
    };
    match settings.tool_choice {
        ToolChoice::None => [reply(ToolChoice::None), reply(ToolChoice::None)],
        // Every answer is a call: of a tool, or of the finishing tool. With `required` a tool comes first. Version 1
        // lists the finishing tool only afterwards.
        choice if has_final_tool => {
            let later = reply(ToolChoice::Required);
            let first = match (choice, later.clone()) {
                (ToolChoice::Required, AnswerKind::Reply(first)) if version == 1 => {
                    AnswerKind::Reply(Reply { tools: own_tools, ..first })
                }
                (_, first) => first,
            };
            [first, later]
        }
        choice => [reply(choice), reply(ToolChoice::Auto)],
    }
}

impl std::fmt::Debug for CompiledAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledAgent").field("spec", &self.spec).finish_non_exhaustive()
    }
}
