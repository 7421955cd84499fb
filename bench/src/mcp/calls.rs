//! The cost of a tool call over pipes, compared with a call by plain rmcp. The server is another process.

use super::echo::{PIPES, PROBE};
use super::{TEXT, TOOL, hub};
use crate::clock::{Stopwatch, figure, median};
use crate::folder::Folder;
use crate::table::{Column, Table, target_word};
use crate::world::runtime;
use crate::{Extent, Failure};
use futures::future::try_join_all;
use redflow_contract::digest::Digest;
use redflow_contract::effect::{CallConversation, ToolCall};
use redflow_contract::mcp::McpServer;
use redflow_mcp::McpHub;
use redflow_ports::{McpServers as _, ProvidedTool, ToolOutcome, ToolProvider as _};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService, serve_client};
use serde_json::{Map, json};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{Child, Command};

const AT_ONCE: [usize; 2] = [1, 8];
const CALLS: usize = 4_000;

/// The highest cost of a call by our client, relative to plain rmcp.
const TARGET: f64 = 1.3;

const SERVER: &str = "bench";

/// What makes the calls. The server ends with it.
enum Caller {
    Ours { hub: Arc<McpHub>, tool: Box<ProvidedTool>, call: Box<ToolCall>, _folder: Folder },
    Raw { client: Box<RunningService<RoleClient, ()>>, _program: Box<Child> },
}

impl Caller {
    async fn ours() -> Result<Self, Failure> {
        let (folder, program) = (Folder::on_disk()?, std::env::current_exe()?);
        let command = Some(program.to_str().ok_or("the path of the program is no text")?.to_owned());
        let args = vec![PROBE.to_owned(), PIPES.to_owned()];
        let server = McpServer { command, args, ..McpServer::default() };
        let hub = hub(&[(SERVER.to_owned(), server)], None, Some(folder.path().to_owned()))?;
        hub.wait(&[SERVER.to_owned()], &[]).await;
        let id = format!("mcp.{SERVER}.{TOOL}");
        let tool =
            hub.tools().into_iter().find(|tool| tool.entry.id == id).ok_or("the server has no tool")?;
        let call = ToolCall {
            run_id: "run".into(),
            iteration: 1,
            call_id: "run:1".into(),
            tool: TOOL.to_owned(),
            node: "tool".into(),
            agent: "agent".into(),
            input: [("text".to_owned(), json!(TEXT))].into_iter().collect(),
            idempotency_key: Digest::of(b"call"),
            timeout_ms: 30_000,
            declared: None,
            operation: None,
            conversation: CallConversation::default(),
        };
        Ok(Self::Ours { hub, tool: Box::new(tool), call: Box::new(call), _folder: folder })
    }

    async fn raw() -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PROBE, PIPES]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut program = command.spawn()?;
        let (output, input) = (program.stdout.take(), program.stdin.take());
        let pipes = (output.ok_or("no output")?, input.ok_or("no input")?);
        Ok(Self::Raw { client: Box::new(serve_client((), pipes).await?), _program: Box::new(program) })
    }

    async fn call(&self) -> Result<(), Failure> {
        match self {
            Self::Ours { tool, call, .. } => match tool.tool.call(call).await {
                ToolOutcome::Returned(result) if result.output == Some(json!(TEXT)) => Ok(()),
                outcome => Err(format!("{outcome:?}").into()),
            },
            Self::Raw { client, .. } => {
                let arguments: Map<_, _> = [("text".to_owned(), json!(TEXT))].into_iter().collect();
                let params = CallToolRequestParams::new(TOOL).with_arguments(arguments);
                let result = client.call_tool(params).await?;
                match result.content.first().and_then(|content| content.as_text()) {
                    Some(text) if text.text == TEXT => Ok(()),
                    _ => Err("another text came back".into()),
                }
            }
        }
    }

    async fn drive(&self, calls: usize, at_once: usize) -> Result<(), Failure> {
        let call_some = || async {
            for _ in 0..calls / at_once {
                self.call().await?;
            }
            Ok::<(), Failure>(())
        };
        try_join_all((0..at_once).map(|_| call_some())).await.map(drop)
    }

    async fn end(self) {
        match self {
            Self::Ours { hub, .. } => hub.stop().await,
            Self::Raw { client, .. } => drop(client.cancel().await),
        }
    }
}

/// Microseconds of processor time per call, once the server is connected.
fn measure_round(is_ours: bool, calls: usize, at_once: usize) -> Result<f64, Failure> {
    runtime()?.block_on(async {
        // In a sidecar some timer always waits.
        let timer = tokio::spawn(tokio::time::sleep(Duration::from_secs(3600)));
        let caller = if is_ours { Caller::ours().await? } else { Caller::raw().await? };
        caller.drive(calls / 10, at_once).await?;
        let watch = Stopwatch::start();
        caller.drive(calls, at_once).await?;
        let micros = watch.spent().cpu / figure(calls as u64);
        caller.end().await;
        timer.abort();
        Ok(micros)
    })
}

pub(super) fn table(extent: Extent) -> Result<Table, Failure> {
    let (rounds, calls) = if extent == Extent::Quick { (1, 400) } else { (9, CALLS) };
    let columns = [
        ("atOnce", "at once", 0),
        ("rawMicros", "raw µs", 1),
        ("ownMicros", "our client µs", 1),
        ("ratio", "× raw", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table =
        Table::new("mcp", "tool calls over pipes, to a program that answers at once", columns.into());
    let mut met = true;
    for at_once in AT_ONCE {
        let (mut raw, mut own) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            raw.push(measure_round(false, calls, at_once)?);
            own.push(measure_round(true, calls, at_once)?);
        }
        let ratio = median(own.iter().zip(&raw).map(|(own, raw)| own / raw).collect());
        met &= ratio <= TARGET;
        table.row(vec![figure(at_once as u64).into(), median(raw).into(), median(own).into(), ratio.into()]);
    }
    table.note("µs: processor time of the calling process per call, with the kernel's; medians of rounds");
    table.note("raw: plain rmcp, without bounds, pins, schema, cleaning and deadline");
    table.note(format!("target: at most {TARGET} × raw at each: {}", target_word(met)));
    Ok(table)
}
