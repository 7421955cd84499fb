//! `redflow run`.

use crate::advice::Advice;
use crate::args::{Arguments, ProfileName, RunOptions};
use crate::check::render_one;
use crate::conclude::{Asked, Conclusion};
use crate::config::Settings;
use crate::drive::{Drive, Session, Work};
use crate::flow_of::Flow;
use crate::input::{Wanted, read_json};
use crate::interrupt::Runs;
use crate::journal::JournalFiles;
use crate::start::{choose_start, refusals};
use crate::terminal::{complain, refuse_with, talk};
use crate::timeline::Timeline;
use crate::{Exit, remote, resume};
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::limits::RunLimits;
use redflow_ports::RunStore;
use redflow_store::{MemoryStore, Store};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(options: &RunOptions, settings: &Settings) -> Exit {
    let RunOptions { flow, resume, .. } = options;
    let works_here = flow.is_some() || resume.is_some() || options.ephemeral || options.data.data.is_some();
    let ended =
        options.sidecar.sidecar(settings, works_here).and_then(|sidecar| match (sidecar, resume, flow) {
            (Some(sidecar), ..) => Ok(remote::run(options, &sidecar)),
            (None, Some(run), flow) => resume::resume(options, run, flow.as_deref()),
            (None, None, Some(flow)) => start(options, flow),
            (None, None, None) => Err(flow_missing()),
        });
    ended.unwrap_or_else(|exit| exit)
}

/// As the parser says it of what is always needed.
fn flow_missing() -> Exit {
    let mut command = Arguments::command();
    command.build();
    let text = "give a flow: <FLOW>, or a sidecar that has one: --url <URL>";
    let run =
        command.find_subcommand_mut("run").map(|run| run.error(ErrorKind::MissingRequiredArgument, text));
    let _ = run.map(|error| error.print());
    Exit::Unusable
}

/// Everything that can be refused is, before anything runs.
fn start(options: &RunOptions, flow: &Path) -> Result<Exit, Exit> {
    if flow == Path::new("-") && options.input.as_deref() == Some("-") {
        return Err(unusable("the flow and the input cannot both come from standard input"));
    }
    let given = read_checked(flow)?;
    let checked = &given.checked;
    let limits = RunLimits::default();
    let wanted =
        Wanted { what: "input", max_bytes: limits.max_message_bytes, max_depth: limits.max_value_depth };
    let input = options.input.as_deref().map(|text| read_json(text, wanted)).transpose();
    let input = input.map_err(|text| unusable(&text))?;
    let (start, agent) =
        choose_start(checked, options.node.as_deref(), input).map_err(|text| unusable(&text))?;
    if let Some(problems) = refusals(checked, &start) {
        say(flow, problems);
    }
    let mut journals = open_journals(options)?;
    let store: Arc<dyn RunStore> =
        if options.ephemeral { Arc::new(MemoryStore::default()) } else { Arc::new(open_store(options)?) };

    let session = Session::begin(if options.ephemeral { Runs::Lost } else { Runs::Kept })?;
    let timeline = Arc::new(Timeline::new(options.quiet, false));
    let drive =
        Drive { flow: Some(given), store, journals: journals.as_mut(), timeline: Arc::clone(&timeline) };
    let rest = session.drive(drive, Work::Start(start));
    let profile = options.profile.unwrap_or(ProfileName::Strict);
    let advice = Advice { flow: Some(flow), profile, ..Advice::of(&options.data) };
    let unsent = HashMap::new();
    let conclusion = Conclusion { options, advice, rest: &rest, timeline: &timeline, unsent: &unsent };
    Ok(conclusion.of(&Asked::Agent(agent)))
}

/// Reads and checks the flow the user named; says what is wrong with it.
pub(crate) fn read_checked(flow: &Path) -> Result<Flow, Exit> {
    Flow::read(flow).map_err(|problems| {
        say(flow, problems);
        Exit::Unusable
    })
}

fn say(flow: &Path, diagnostics: Vec<Diagnostic>) {
    let file = flow.display().to_string();
    for diagnostic in diagnostics {
        talk(&render_one(&Diagnostic { file: Some(file.clone()), ..diagnostic }));
    }
}

/// The file for the journal, if one is asked for.
pub(crate) fn open_journals(options: &RunOptions) -> Result<Option<JournalFiles>, Exit> {
    options.journal.as_deref().map(JournalFiles::create).transpose().map_err(|text| unusable(&text))
}

/// The data directory, to drive its runs.
pub(crate) fn open_store(options: &RunOptions) -> Result<Store, Exit> {
    options.data.directory().and_then(|dir| Store::open(&dir)).map_err(|error| {
        // What is to be resumed is nowhere else.
        let elsewhere = || "use another --data DIR, or --ephemeral to keep nothing; a sidecar that has it runs its flow with --url URL"
                .to_owned();
        refuse_with(&error, options.resume.is_none().then(elsewhere).as_slice())
    })
}

fn unusable(text: &str) -> Exit {
    complain(text);
    Exit::Unusable
}
