//! `redflow models test`: calls a model once and reports a problem in one sentence.

use crate::args::{ModelTestOptions, ModelsCommand, ModelsOptions};
use crate::context::{AppContext, process_env};
use crate::exit::{CommandResult, Exit};
use crate::files::{display_path, read_flow};
use crate::session::new_runtime;
use crate::terminal::{fail, print_json, print_text};
use crate::text::printable_line;
use redflow_contract::Message;
use redflow_contract::catalogue::{CATALOGUE, lookup};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::edge::Role;
use redflow_contract::flow::Profile;
use redflow_contract::id::NodeSummary;
use redflow_contract::limits::FlowLimits;
use redflow_contract::model_test::ModelTest;
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::{is_reference, is_secret_name};
use redflow_flow::{ProcessSecrets, resolve_process_env};
use redflow_ports::{ChatModel, ModelRequest, NodeConfig};
use redflow_strategies::ActionTest;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

/// The prompt of the test. The agent has no tools, so the only valid action is `final`.
const QUESTION: &str = "This is a test of the connection. Return a FINAL action with the message \"ok\".";

pub(crate) fn models(options: &ModelsOptions, context: &AppContext) -> CommandResult {
    let ModelsCommand::Test(options) = &options.command;
    test(options, context).map_err(|text| fail(&text))
}

fn test(options: &ModelTestOptions, context: &AppContext) -> Result<Exit, String> {
    let (node, mut props) = match (&options.node, &options.type_name) {
        (Some(id), _) => node_of_flow(context, options.flow.as_deref(), id)?,
        (None, Some(type_name)) => (node_of_type(type_name)?, Message::new()),
        (None, None) => return Err("name a node of a flow, or a --type".to_owned()),
    };
    let settings: Message =
        options.set.iter().map(|setting| parse_setting(setting)).collect::<Result<_, _>>()?;
    props.extend(resolve_process_env(&settings, &process_env));
    check_properties(context, &node, &props)?;
    let secrets = RefCell::new(Scrubber::default());
    secrets.borrow_mut().add_properties(&props);
    let takes = |secret: &str| secrets.borrow_mut().add(secret);
    let config = NodeConfig { node: &node, props: &props, env: &process_env, on_secret: &takes };
    let build = context.adapters.models.get(node.type_name.as_str());
    let build = build.ok_or_else(|| format!("this build cannot run the type `{}`", node.type_name))?;
    let model = build(config).map_err(|error| error.to_string())?;
    let runtime = new_runtime().map_err(|_| "cannot start".to_owned())?;
    let mut report = runtime.block_on(test_model(&*model, &node.type_name));
    if let Some(error) = &mut report.error {
        secrets.borrow().failure(error);
    }
    let printed = if options.json { print_json(&report) } else { print_text(&format_result(&report)) };
    Ok(printed.max(if report.ok { Exit::Success } else { Exit::Failure }))
}

async fn test_model(model: &dyn ChatModel, type_name: &str) -> ModelTest {
    let test = ActionTest::new(QUESTION);
    let ActionTest { transcript, answer_kind } = &test;
    let request = ModelRequest { answer_kind, ..ModelRequest::for_text(transcript) };
    let since = Instant::now();
    let answer = model.call(request).await;
    let duration_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    let info = model.info();
    let mut report = ModelTest {
        ok: false,
        type_name: type_name.to_owned(),
        provider: info.provider.to_owned(),
        model: info.model.clone(),
        duration_ms,
        usage: None,
        answered_by: None,
        error: None,
    };
    match answer {
        Err(failure) => report.error = Some(failure),
        Ok(answer) => {
            report.usage = answer.usage;
            report.answered_by.clone_from(&answer.model);
            match test.check(&answer) {
                Ok(()) => report.ok = true,
                Err(error) => {
                    let message = format!("the answer is not a valid action: {}", error.message);
                    report.error = Some(Failure { code: error.code, message });
                }
            }
        }
    }
    report
}

fn format_result(report: &ModelTest) -> String {
    let name = |text: &str| printable_line(text, 200);
    let model = format!("{} `{}`", name(&report.type_name), name(&report.model));
    match &report.error {
        Some(error) => {
            format!("{model}: {}: {}\n", error.code, printable_line(&error.message, 600))
        }
        None => {
            let usage = report.usage.map(|usage| {
                format!(", {} tokens read, {} written", usage.input_tokens, usage.output_tokens)
            });
            let usage = usage.unwrap_or_default();
            format!("{model} answered with a valid action in {} ms{usage}\n", report.duration_ms)
        }
    }
}

/// A node of a flow, with its properties resolved as for a run.
fn node_of_flow(
    context: &AppContext,
    flow: Option<&Path>,
    id: &str,
) -> Result<(NodeSummary, Message), String> {
    let path = flow.ok_or("name the flow of the node with --flow FILE")?;
    let unusable = |why: &str| format!("the flow {} cannot be used: {why}", display_path(path));
    let bytes =
        read_flow(path, FlowLimits::default().max_bytes).map_err(|problem| unusable(&problem.message))?;
    let checked = context.check_with(&bytes, Profile::Strict).map_err(|report| {
        let first = report.diagnostics.first().map(|problem| problem.message.clone());
        unusable(&first.unwrap_or_default())
    })?;
    let (flow, id) = (checked.flow, printable_line(id, 200));
    let ix = flow.find(&id).ok_or_else(|| format!("the flow {} has no node `{id}`", display_path(path)))?;
    let node = flow.summary(ix);
    if lookup(&node.type_name).role != Role::Model {
        return Err(format!("`{id}` is not a model but a `{}`", printable_line(&node.type_name, 100)));
    }
    let props = flow.resolved_props(ix, &process_env, ProcessSecrets::InSecretProperties);
    Ok((node, props))
}

/// Checks the properties of the node as `redflow check` does.
fn check_properties(context: &AppContext, node: &NodeSummary, props: &Message) -> Result<(), String> {
    let mut alone = props.clone();
    alone.insert("id".to_owned(), json!("model"));
    alone.insert("type".to_owned(), json!(node.type_name));
    let flow = json!([{"id": "tab", "type": "tab"}, alone]).to_string();
    let report = match context.check_with(flow.as_bytes(), Profile::Strict) {
        Ok(checked) => checked.report,
        Err(report) => report,
    };
    match report.diagnostics.iter().find(|problem| problem.code == DiagnosticCode::ConfigInvalid) {
        Some(problem) => Err(problem.message.clone()),
        None => Ok(()),
    }
}

fn node_of_type(type_name: &str) -> Result<NodeSummary, String> {
    if lookup(type_name).role != Role::Model {
        let known = CATALOGUE.iter().filter(|row| row.role == Role::Model && !row.name.ends_with('*'));
        let known: Vec<&str> = known.map(|row| row.name).collect();
        let type_name = printable_line(type_name, 100);
        return Err(format!("`{type_name}` is not a type of model; there are {}", known.join(", ")));
    }
    Ok(NodeSummary { id: type_name.into(), type_name: type_name.to_owned(), name: String::new() })
}

/// Parses `NAME=VALUE`. The value is JSON if it can be, else text.
fn parse_setting(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("a --set is NAME=VALUE")?;
    if is_secret_name(name) && !is_reference(value) {
        return Err(format!(
            "everyone on this machine can read `{}` on the command line; write it as ${{NAME}} and set that \
             environment variable",
            printable_line(name, 100)
        ));
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}
