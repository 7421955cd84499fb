//! `redflow models test`: calls a model, and prints what was sent, what came back and what the server is.

use crate::args::{ModelTestOptions, ModelsCommand, ModelsOptions};
use crate::context::{AppContext, process_env};
use crate::exit::{CommandResult, Exit};
use crate::files::{display_path, read_flow};
use crate::session::new_runtime;
use crate::terminal::{fail, print_json, print_text, print_warning};
use crate::text::printable_line;
use crate::timeline::format_tokens;
use redflow_contract::Message;
use redflow_contract::catalogue::{CATALOGUE, lookup};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::deployed_model::{ModelPrice, PriceSource};
use redflow_contract::edge::Role;
use redflow_contract::flow::Profile;
use redflow_contract::id::NodeSummary;
use redflow_contract::limits::FlowLimits;
use redflow_contract::model_test::{MAX_ANSWER_CHARS, ModelTest, SchemaUse, SentFormat};
use redflow_contract::secret::{is_reference, is_secret_name};
use redflow_flow::{ProcessSecrets, resolve_process_env};
use redflow_server::ModelTester;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// How long a test may take, with all its calls. A slow machine may need minutes; `timeout` of the node ends each call.
const MAX_TEST_TIME: Duration = Duration::from_secs(30 * 60);

/// The most characters of a warning, which may quote a name of any length.
const MAX_WARNING_CHARS: usize = 600;

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
    let tester = ModelTester::new(&context.adapters, &process_env, &node, &props)?;
    let runtime = new_runtime().map_err(|_| "cannot start".to_owned())?;
    let report = runtime.block_on(tester.test(MAX_TEST_TIME));
    let printed = if options.json { print_json(&report) } else { print_text(&format_result(&report)) };
    Ok(printed.max(if report.ok { Exit::Success } else { Exit::Failure }))
}

/// The result in one line, then what was sent, what came back and what is known of the server.
fn format_result(report: &ModelTest) -> String {
    let name = |text: &str| printable_line(text, 200);
    let model = format!("{} `{}`", name(&report.type_name), name(&report.model));
    let mut out = match &report.error {
        Some(error) => format!("{model}: {}: {}\n", error.code, printable_line(&error.message, 600)),
        None => format!("{model} answered with a valid action in {} ms\n", report.duration_ms),
    };
    let mut row = |label: &str, parts: Vec<String>| {
        if !parts.is_empty() {
            out += &format!("  {label:<8} {}\n", parts.join(", "));
        }
    };
    if let Some(sent) = &report.sent {
        let format = match sent.response_format {
            SentFormat::JsonSchema => "JSON by a schema",
            SentFormat::JsonObject => "any JSON object",
            SentFormat::Text => "any text",
        };
        let tokens = sent.max_tokens.map(|tokens| format!("at most {tokens} tokens"));
        let mut parts = vec![name(&sent.address)];
        parts.extend(sent.interface.clone());
        parts.extend(sent.interface_for_tools.as_ref().map(|other| format!("with tools {other}")));
        parts.push(format.to_owned());
        parts.extend(tokens);
        row("asked", parts);
        row("refused", sent.refused.iter().map(|field| name(field)).collect());
    }
    let mut parts: Vec<String> = report.server.iter().map(ToString::to_string).collect();
    parts.extend(report.context_window.map(|window| format!("context window of {window} tokens")));
    let other = report.default_model.as_ref().filter(|model| **model != report.model);
    parts.extend(other.map(|model| format!("its own model is `{}`", name(model))));
    row("server", parts);
    let schema = report.schema.map(|schema| match schema {
        SchemaUse::Honoured => "the server follows it",
        SchemaUse::Ignored => {
            "the server ignores it, so answers can be invalid; try another interface or server"
        }
        SchemaUse::NotSent => "not sent",
    });
    row("schema", schema.into_iter().map(str::to_owned).collect());
    let mut parts: Vec<String> = Vec::new();
    if let Some(usage) = &report.usage {
        parts.push(format_tokens(usage));
    }
    parts.extend(report.tokens_per_second.map(|rate| format!("{rate} a second")));
    row("used", parts);
    let unknown = || "not known; set `inputPrice` and `outputPrice` at the node, or `[prices]`".to_owned();
    row("price", vec![report.price.as_ref().map_or_else(unknown, format_price)]);
    row("answer", report.answer.iter().map(|answer| printable_line(answer, MAX_ANSWER_CHARS)).collect());
    out
}

/// The prices of a million tokens, and where they come from. Those of the cache are named only if they differ.
fn format_price(price: &ModelPrice) -> String {
    let ModelPrice { source, input, output, cached, cache_write, ref tiers } = *price;
    let mut text = format_prices([Some(input), Some(output), cached, cache_write]);
    for tier in tiers {
        let prices = format_prices([Some(tier.input), Some(tier.output), tier.cached, tier.cache_write]);
        let _ = write!(text, "; with more than {} tokens read: {prices}", tier.above);
    }
    text + match source {
        PriceSource::Node => " (set at the node)",
        PriceSource::Configuration => " (set in the configuration)",
        PriceSource::BuiltIn => " (built in, in US dollars)",
    }
}

fn format_prices([input, output, cached, cache_write]: [Option<f64>; 4]) -> String {
    let prices = [
        (input, "for a million tokens read"),
        (output, "written"),
        (cached, "from the cache"),
        (cache_write, "stored in it"),
    ];
    let parts = prices.iter().filter_map(|(price, what)| Some(format!("{} {what}", (*price)?)));
    parts.collect::<Vec<_>>().join(", ")
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
    let mut props = flow.resolved_props(ix, &process_env, ProcessSecrets::InSecretProperties);
    flow.add_shared_key(ix, &node.type_name, &mut props, &process_env);
    Ok((node, props))
}

/// Checks the properties of the node as `redflow check` does. Warns about those that its type does not know.
fn check_properties(context: &AppContext, node: &NodeSummary, props: &Message) -> Result<(), String> {
    let mut alone = props.clone();
    alone.insert("id".to_owned(), json!("model"));
    alone.insert("type".to_owned(), json!(node.type_name));
    let flow = json!([{"id": "tab", "type": "tab"}, alone]).to_string();
    let report = match context.check_with(flow.as_bytes(), Profile::Strict) {
        Ok(checked) => checked.report,
        Err(report) => report,
    };
    if let Some(problem) =
        report.diagnostics.iter().find(|problem| problem.code == DiagnosticCode::ConfigInvalid)
    {
        return Err(problem.message.clone());
    }
    // The model is called all the same, as a run does.
    for problem in report.diagnostics.iter().filter(|problem| problem.code == DiagnosticCode::PropertyUnknown)
    {
        let text = format!("{}. {}", problem.message, problem.help);
        print_warning(&printable_line(&text, MAX_WARNING_CHARS));
    }
    Ok(())
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
