//! `redflow run`.

use crate::args::RunOptions;
use crate::check::render_one;
use crate::files::{read_bounded, read_flow, reason, shown};
use crate::journal::{FileJournals, NoJournals};
use crate::terminal::{complain, data, json, printable, printable_line, talk};
use crate::timeline::Timeline;
use crate::{Exit, interrupt, wiring};
use redflow_contract::Message;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::effect::Ending;
use redflow_contract::id::NodeId;
use redflow_contract::json::{JsonLimits, JsonProblem, parse_strict};
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_contract::run_error::MessageError;
use redflow_engine::{Engine, EngineLimits, Ports, RunEnd, RunReport, Start, SystemClock, build_flow};
use redflow_flow::{CheckedFlow, NodeIx, Verdict};
use redflow_ports::JournalStore;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(crate) fn run(options: &RunOptions) -> Exit {
    match prepare(options) {
        Ok(prepared) => drive(options, prepared),
        Err(exit) => exit,
    }
}

struct Prepared {
    checked: CheckedFlow,
    start: Start,
    /// The agent that was asked for; none if an inject node was.
    agent: Option<NodeId>,
    journals: Arc<dyn JournalStore>,
}

/// Everything that can be refused before anything runs.
fn prepare(options: &RunOptions) -> Result<Prepared, Exit> {
    let unusable = |text: String| {
        complain(&text);
        Exit::Unusable
    };
    if options.flow == Path::new("-") && options.input.as_deref() == Some("-") {
        return Err(unusable("the flow and the input cannot both come from standard input".to_owned()));
    }
    let file = options.flow.display().to_string();
    let say = |diagnostics: Vec<Diagnostic>| {
        for diagnostic in diagnostics {
            talk(&render_one(&Diagnostic { file: Some(file.clone()), ..diagnostic }));
        }
    };
    let bytes = read_flow(&options.flow, FlowLimits::default().max_bytes).map_err(|problem| {
        say(vec![*problem]);
        Exit::Unusable
    })?;
    let adapters = wiring::adapters();
    let checked = wiring::check(&bytes, options.profile.into(), &adapters).map_err(|report| {
        say(report.diagnostics);
        Exit::Unusable
    })?;
    let input = options.input.as_deref().map(read_input).transpose().map_err(unusable)?;
    let (start, agent) = choose_start(&checked, options.node.as_deref(), input).map_err(unusable)?;
    if let Some(problems) = refusals(&checked, &start) {
        say(problems);
    }
    let journals: Arc<dyn JournalStore> = match &options.journal {
        Some(path) => Arc::new(FileJournals::create(path).map_err(unusable)?),
        None => Arc::new(NoJournals),
    };
    Ok(Prepared { checked, start, agent, journals })
}

/// The payload: a JSON value, `@file`, or `-` for standard input.
fn read_input(text: &str) -> Result<Value, String> {
    let limits = RunLimits::default();
    let most = usize::try_from(limits.max_message_bytes).unwrap_or(usize::MAX);
    let path = if text == "-" { Some("-") } else { text.strip_prefix('@') };
    let bytes = match path {
        Some(path) => read_bounded(Path::new(path), most).map_err(|error| {
            format!("cannot read the input {}: {}", shown(Path::new(path)), reason(&error))
        })?,
        None => text.as_bytes().to_vec(),
    };
    parse_strict(&bytes, JsonLimits { max_bytes: most, max_depth: 100 }).map_err(|problem| match problem {
        JsonProblem::TooLarge { limit, .. } => format!("the input has more than {limit} bytes"),
        JsonProblem::TooDeep { limit, .. } => format!("the input nests deeper than {limit} levels"),
        JsonProblem::DuplicateKeys { pointers, .. } => {
            format!("the input names a key twice: {}", printable_line(&pointers.join(", "), 200))
        }
        JsonProblem::NotJson { message, line, column } => format!(
            "the input is not JSON: {message} (line {line}, column {column}); text needs quotes: --input '\"hello\"'"
        ),
    })
}

/// Which node to start and with what, and the agent that was asked for.
fn choose_start(
    checked: &CheckedFlow,
    node: Option<&str>,
    input: Option<Value>,
) -> Result<(Start, Option<NodeId>), String> {
    let flow = &checked.flow;
    let chosen = match node {
        Some(id) => flow.find(id).ok_or_else(|| {
            format!("there is no node `{}` in the flow{}", printable_line(id, 80), agents(checked))
        })?,
        None => match checked.agents.as_slice() {
            [] => return Err("there is no agent in the flow".to_owned()),
            [only] => only.ix,
            _ => {
                return Err(format!(
                    "the flow has several agents: choose one with --node ID{}",
                    agents(checked)
                ));
            }
        },
    };
    let type_name = flow.raw(chosen).type_name.as_str();
    if type_name == "inject" && !flow.nodes[chosen].is_virtual {
        return Ok((Start::Inject { node: chosen, payload: input }, None));
    }
    if flow.nodes[chosen].kind.role != Role::Agent {
        return Err(format!(
            "`{}` is a {} node: only an agent or an inject node can be started{}",
            printable_line(flow.nodes[chosen].id.as_str(), 80),
            printable_line(type_name, 60),
            agents(checked)
        ));
    }
    let agent = Some(flow.nodes[chosen].id.clone());
    if let Some(payload) = input {
        return Ok((Start::Agent { node: chosen, payload }, agent));
    }
    let injects =
        checked.agents.iter().find(|agent| agent.ix == chosen).map(|agent| agent.injects.as_slice());
    match injects.unwrap_or_default() {
        [only] => Ok((Start::Inject { node: *only, payload: None }, agent)),
        [] => Err("no inject node is wired to the agent: give it something with --input JSON".to_owned()),
        several => {
            let list: Vec<String> = several.iter().map(|ix| describe(checked, *ix)).collect();
            Err(format!(
                "several inject nodes are wired to the agent: choose one with --node ID, or use --input JSON\n{}",
                list.join("\n")
            ))
        }
    }
}

fn agents(checked: &CheckedFlow) -> String {
    let list: String =
        checked.agents.iter().take(50).map(|agent| format!("\n{}", describe(checked, agent.ix))).collect();
    if list.is_empty() { list } else { format!("\nthe agents of the flow, by id:{list}") }
}

fn describe(checked: &CheckedFlow, ix: NodeIx) -> String {
    let node = checked.flow.summary(ix);
    let (id, name) = (printable_line(node.id.as_str(), 80), printable_line(&node.name, 80));
    format!("  {id}  {} {name}", printable_line(&node.type_name, 60))
}

/// What the checker holds against the agent that is to be started.
fn refusals(checked: &CheckedFlow, start: &Start) -> Option<Vec<Diagnostic>> {
    let agent = checked.agents.iter().find(|agent| match start {
        Start::Agent { node, .. } => agent.ix == *node,
        Start::Inject { node, .. } => agent.injects.contains(node),
    })?;
    match &agent.verdict {
        Verdict::Ready(_) => None,
        Verdict::Refused { problems, .. } => Some(problems.clone()),
    }
}

fn drive(options: &RunOptions, prepared: Prepared) -> Exit {
    let Prepared { checked, start, agent, journals } = prepared;
    let built = build_flow(checked, &wiring::adapters(), &wiring::process_env);
    let cancel = CancellationToken::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match interrupt::listen(cancel.clone()).and(runtime) {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("cannot start: {}", reason(&error)));
            return Exit::Unusable;
        }
    };
    let timeline = Arc::new(Timeline::new(options.quiet));
    let events = Arc::clone(&timeline);
    let ports = Ports { clock: Arc::new(SystemClock), events, journals, env: wiring::process_env };
    let engine = Engine::new(built, ports, EngineLimits::default());
    let reports = runtime.block_on(engine.run(start, &cancel));
    conclude(options, agent.as_ref(), &reports, &timeline, cancel.is_cancelled())
}

/// What the chosen agent did decides how the command ends. Where none was chosen, because an inject node was
/// fired, the result is that of the first agent it reached and the worst end counts; it need not reach any.
fn conclude(
    options: &RunOptions,
    chosen: Option<&NodeId>,
    reports: &[RunReport],
    timeline: &Timeline,
    cancelled: bool,
) -> Exit {
    let asked = |report: &&RunReport| chosen.is_none_or(|id| report.agent.id == *id);
    let Some(report) = reports.iter().find(asked) else {
        if cancelled {
            complain("cancelled before the run began");
            return Exit::Fault;
        }
        if chosen.is_none() && !options.json {
            return Exit::Well;
        }
        complain("no agent was reached, so there is no result");
        return Exit::Unusable;
    };
    let exit = match &report.end {
        RunEnd::Finished { ending, message } => {
            let failed = matches!(ending, Ending::Failed { .. });
            let written = print_result(options, message, failed);
            if failed {
                explain_failure(report, message, timeline);
            }
            written.max(if failed { Exit::Fault } else { Exit::Well })
        }
        RunEnd::Refused { message, .. } => {
            print_result(options, message, true);
            explain_failure(report, message, timeline);
            Exit::Unusable
        }
        RunEnd::Waiting { .. } => cannot_end(report, timeline),
        RunEnd::Aborted { message } => print_result(options, message, true).max(cannot_end(report, timeline)),
    };
    let others = reports.iter().filter(|other| other.run_id != report.run_id);
    let end_of = |other: &RunReport| match &other.end {
        RunEnd::Finished { ending: Ending::Failed { .. }, .. } if chosen.is_none() => Exit::Fault,
        RunEnd::Refused { .. } if chosen.is_none() => Exit::Unusable,
        _ => cannot_end(other, timeline),
    };
    let worst = others.map(end_of).max().unwrap_or(Exit::Well);
    if exit == Exit::Well { worst } else { exit }
}

/// Says why a run has no end of its own.
fn cannot_end(report: &RunReport, timeline: &Timeline) -> Exit {
    match &report.end {
        RunEnd::Finished { .. } | RunEnd::Refused { .. } => Exit::Well,
        RunEnd::Waiting { call_id, tool, .. } => {
            complain(&format!(
                "the run {} waits: nobody knows whether the call {} of `{}` happened",
                report.run_id,
                printable_line(call_id.as_str(), 80),
                printable_line(tool, 60)
            ));
            Exit::Waiting
        }
        RunEnd::Aborted { message } => {
            explain_failure(report, message, timeline);
            Exit::Fault
        }
    }
}

fn print_result(options: &RunOptions, message: &Message, failed: bool) -> Exit {
    if options.json {
        return json(message);
    }
    if failed {
        return Exit::Well;
    }
    let text = match message.get("payload") {
        Some(Value::String(text)) => printable(text),
        Some(other) => printable(&serde_json::to_string_pretty(other).unwrap_or_default()),
        None => String::new(),
    };
    data(&(text + "\n"))
}

/// The coded error, on stderr; nothing if it was told already because no Catch node took it.
fn explain_failure(report: &RunReport, message: &Message, timeline: &Timeline) {
    let error = message.get("error").cloned().map(serde_json::from_value::<MessageError>);
    if let Some(Ok(error)) = error {
        timeline.failure(&report.agent, &error);
    }
}
