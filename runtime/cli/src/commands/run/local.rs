//! `redflow run FLOW`: runs a flow in this process.

use super::prepare::{open_journals, open_store, read_flow, read_images, read_input};
use super::report::{Report, Target};
use super::start::{add_images, choose_start, refusals};
use crate::args::RunOptions;
use crate::context::AppContext;
use crate::diagnostics::print_diagnostics;
use crate::exit::CommandResult;
use crate::files::is_stdio;
use crate::hints::Hints;
use crate::session::{Job, Session, Work};
use crate::signals::RunLifetime;
use crate::terminal::fail;
use crate::timeline::{Timeline, Verbosity};
use redflow_ports::RunStore;
use redflow_store::MemoryStore;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

pub(super) fn run_flow(options: &RunOptions, context: &AppContext, flow: &Path) -> CommandResult {
    if is_stdio(flow) && options.input.as_deref() == Some("-") {
        return Err(fail("the flow and the input cannot both come from standard input"));
    }
    let loaded = read_flow(context, flow)?;
    let checked = &loaded.checked;
    let input = read_input(options)?;
    let (start, agent) = choose_start(checked, options.node.as_deref(), input).map_err(|text| fail(&text))?;
    let start = add_images(checked, start, read_images(options)?).map_err(|text| fail(&text))?;
    if let Some(problems) = refusals(checked, &start) {
        print_diagnostics(Some(flow), problems);
    }
    let mut journals = open_journals(options)?;
    let (store, lifetime): (Arc<dyn RunStore>, _) = if options.ephemeral {
        (Arc::new(MemoryStore::default()), RunLifetime::Ephemeral)
    } else {
        (Arc::new(open_store(options, context)?), RunLifetime::Stored)
    };

    let session = Session::start(lifetime)?;
    session.load_tools(context)?;
    let timeline = Timeline::new(Verbosity::from_quiet(options.quiet));
    let timeline = Arc::new(timeline.with_streams_of(loaded.streaming_agents().collect(), []));
    let job = Job {
        flow: Some(loaded),
        store,
        journals: journals.as_mut(),
        timeline: Arc::clone(&timeline),
        work: Work::Start(start),
    };
    let outcome = session.drive(context, job);
    session.stop_servers(context);
    let hints = Hints::local(options.data.data.as_deref()).with_flow(Some(flow), options.profile);
    let undelivered = HashMap::new();
    let report = Report { options, hints, outcome: &outcome, timeline: &timeline, undelivered: &undelivered };
    Ok(report.print(&Target::Agent(agent)))
}
