//! `GET /api/runs/{id}/report`: what a run did, as a text that can be shown to others.
//!
//! Owns what a report has: steps, times, costs, sizes and codes, never what people, models, tools or providers said. So it
//! has no message of an error. The names in it are those of the flow, and pass the redactor.

use crate::app::App;
use crate::request::{Path, query_pairs, unknown_parameter};
use crate::response::{ApiResult, raw};
use crate::runs::{find_run, store_problem};
use axum::extract::{Extension, RawQuery, State};
use redflow_access::Caller;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::Usage;
use redflow_contract::id::RunId;
use redflow_contract::iso_time;
use redflow_contract::replay::{CallRecord, RunDetail};
use redflow_contract::run_error::RunError;
use redflow_contract::tally::RunTally;
use redflow_ports::{RunRecord, TextRedactor};
use serde::Serialize;
use std::sync::Arc;

/// The most bytes of a report.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Bytes that the rows leave free for what follows them.
const END_BYTES: usize = 16 * 1024;

/// What stands for a name that the model wrote and no tool of the agent has.
const UNKNOWN_TOOL: &str = "an unknown tool";

/// Characters of a name that are searched for secrets, and the most that are shown.
const MAX_SEARCHED: usize = 20_000;
const MAX_CELL: usize = 400;

pub(crate) async fn report(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    if let Some((name, _)) = query_pairs(query.as_deref()).first() {
        return Err(unknown_parameter(name));
    }
    let slot = app.work_slots.computation(&caller.name).await?;
    let RunRecord { summary, journal, problem } = find_run(&app, &RunId::from(run)).await?;
    let redactor = Arc::clone(&app.redactor);
    let write = move || {
        let detail = redflow_strategies::run_detail(summary, &journal, problem.map(store_problem));
        write_report(&detail, &*redactor)
    };
    let (text, _) = slot.run_blocking(write).await?;
    Ok(raw(200, "text/markdown; charset=utf-8", text))
}

fn write_report(detail: &RunDetail, redactor: &dyn TextRedactor) -> String {
    let mut report = ReportWriter { text: String::new(), redactor, tools: tools_of(detail) };
    report.add_head(detail);
    report.add_error(detail);
    let steps = detail.events.iter().map(|event| report.step(event, detail.summary.started_at));
    let steps: Vec<String> = steps.collect();
    report.add_table("Steps", "| ms | step | iteration | |\n|---:|---|---:|---|\n", &steps);
    let calls: Vec<String> = detail.calls.iter().map(|call| report.call(call)).collect();
    let head = "| call | iteration | tool | class | ms | tries | success | input, bytes | result, bytes |\n\
                |---|---:|---|---|---:|---:|---|---:|---:|\n";
    report.add_table("Tool calls", head, &calls);
    report.text
}

struct ReportWriter<'a> {
    text: String,
    redactor: &'a dyn TextRedactor,
    /// The names of the agent's tools.
    tools: &'a [String],
}

impl ReportWriter<'_> {
    fn add_head(&mut self, detail: &RunDetail) {
        let run = &detail.summary;
        let mut rows = vec![
            ("run", self.cell(run.run_id.as_str())),
            ("agent", format!("{} {}", self.cell(&run.name), self.cell(run.agent.node_id.as_str()))),
            ("Node-RED", self.cell(run.agent.instance.as_str())),
            ("status", run.status.as_str().to_owned()),
            ("started", iso_time(run.started_at)),
        ];
        if let Some(ended_at) = run.ended_at {
            rows.push(("ended", iso_time(ended_at)));
            rows.push(("duration", format!("{} ms", ended_at.saturating_sub(run.started_at))));
        }
        rows.extend(run.parent.as_ref().map(|parent| ("started by the run", self.cell(parent.as_str()))));
        let waiting = run.open_questions().iter().map(|call| self.tool(&call.tool)).collect::<Vec<_>>();
        if !waiting.is_empty() {
            rows.push(("waits for the outcome of", waiting.join(", ")));
        }
        let tally = run.tally.or_else(|| detail.events.iter().find_map(|event| final_tally(&event.event)));
        rows.extend(tally.as_ref().map(|tally| ("used", used(tally))));
        rows.push(("Redflow Runtime", env!("CARGO_PKG_VERSION").to_owned()));
        self.text.push_str(
            "# Report of a run\n\n\
             It shows what the run did, without what was said and without known secrets. It cannot be replayed: only the\n\
             journal proves a run.\n\n\
             | | |\n|---|---|\n",
        );
        for (name, value) in rows {
            self.text.push_str(&format!("| {name} | {value} |\n"));
        }
    }

    /// Adds why the run failed, and what is wrong with its journal.
    fn add_error(&mut self, detail: &RunDetail) {
        let error = detail.events.iter().find_map(|event| match &event.event {
            RunEventKind::RunFinished { error, .. } => error.as_ref(),
            _ => None,
        });
        let mut lines = Vec::new();
        match (error, detail.summary.code) {
            (Some(error), _) => lines.push(self.error(error)),
            (None, Some(code)) => lines.push(format!("{code}: {}", code.summary())),
            (None, None) => {}
        }
        let difference = detail.difference.as_ref();
        lines.extend(
            difference.map(|found| {
                format!("The journal is wrong at line {}: {}.", found.line, name_of(&found.what))
            }),
        );
        let problem = detail.problem.as_ref();
        lines.extend(problem.map(|problem| format!("{}: {}", problem.code, problem.code.summary())));
        if !lines.is_empty() {
            self.text.push_str(&format!("\n## Error\n\n{}\n", lines.join("\n\n")));
        }
    }

    /// The code of an error and what it means. A pointer would have keys that the model wrote.
    fn error(&self, error: &RunError) -> String {
        let rule = error.rule.as_deref().map(|rule| format!(", rule: {}", self.cell(rule)));
        let iteration = error.iteration;
        format!("{}: {} Iteration: {iteration}{}", error.code, error.code.summary(), rule.unwrap_or_default())
    }

    /// Adds a table with as many rows as there is room for, and counts the others.
    fn add_table(&mut self, title: &str, head: &str, rows: &[String]) {
        if rows.is_empty() {
            return;
        }
        self.text.push_str(&format!("\n## {title}\n\n{head}"));
        let mut left_out = 0_usize;
        for row in rows {
            if left_out > 0 || self.text.len() + row.len() + END_BYTES > MAX_BYTES {
                left_out += 1;
            } else {
                self.text.push_str(row);
            }
        }
        if left_out > 0 {
            self.text
                .push_str(&format!("\n{left_out} more rows are left out, because the report is full.\n"));
        }
    }

    fn step(&self, event: &RunEvent, started_at: u64) -> String {
        let (iteration, about) = self.describe(&event.event);
        let iteration = iteration.map(|number| number.to_string()).unwrap_or_default();
        let at = event.at.saturating_sub(started_at);
        format!("| {at} | {} | {iteration} | {} |\n", name_of(&event.event), about.join(", "))
    }

    /// The iteration of an event, and what is known of it besides words.
    fn describe(&self, event: &RunEventKind) -> (Option<u32>, Vec<String>) {
        use RunEventKind as Kind;
        match event {
            Kind::RunStarted { max_iterations, tools, .. } => {
                (None, vec![format!("iterations: at most {max_iterations}, tools: {}", tools.len())])
            }
            Kind::MemoryRecalled { messages, .. } => (None, vec![format!("messages: {messages}")]),
            Kind::MemoryCleared {} => (None, Vec::new()),
            Kind::MemoryFailed { error } => (None, vec![error.code.to_string()]),
            Kind::ImagesFetched { images } => (None, vec![format!("images: {images}")]),
            Kind::Summarised { iteration, messages, usage } => {
                let mut about = vec![format!("messages: {messages}")];
                about.extend(usage.as_ref().map(tokens));
                (Some(*iteration), about)
            }
            Kind::Concluding { iteration, reason } => (Some(*iteration), vec![name_of(reason)]),
            Kind::ModelCalled { iteration, .. } => (Some(*iteration), Vec::new()),
            Kind::ModelAnswered {
                iteration, tool, tools, confidence, duration_ms, usage, refused, ..
            } => {
                let mut about = vec![format!("{duration_ms} ms")];
                about.extend(tool.iter().chain(tools).map(|tool| self.tool(tool)));
                about.extend(confidence.map(|confidence| format!("confidence: {confidence}")));
                about.extend(usage.as_ref().map(tokens));
                about.extend((!refused.is_empty()).then(|| format!("refused fields: {}", refused.len())));
                (Some(*iteration), about)
            }
            Kind::ModelFellOver { iteration, model, code } => {
                (Some(*iteration), vec![self.cell(model), code.to_string()])
            }
            Kind::BudgetLow { budget, limit, spent } | Kind::BudgetReached { budget, limit, spent } => {
                (None, vec![format!("{}: {spent} of {limit}", budget.as_str())])
            }
            Kind::ToolCalled { iteration, tool, .. } | Kind::WaitingForOutcome { iteration, tool, .. } => {
                (Some(*iteration), vec![self.tool(tool)])
            }
            Kind::ToolReturned {
                iteration, tool, success, code, duration_ms, sources, image_bytes, ..
            } => {
                let mut about = vec![self.tool(tool), format!("{duration_ms} ms")];
                about.push(if *success { "succeeded" } else { "failed" }.to_owned());
                about.extend(code.map(|code| code.to_string()));
                about.extend((!sources.is_empty()).then(|| format!("sources: {}", sources.len())));
                about.extend((!image_bytes.is_empty()).then(|| format!("images: {}", image_bytes.len())));
                (Some(*iteration), about)
            }
            Kind::RunFinished { stop_reason, duration_ms, .. } => {
                (None, vec![name_of(stop_reason), format!("{duration_ms} ms")])
            }
        }
    }

    fn call(&self, call: &CallRecord) -> String {
        let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        let result = call.result.as_ref();
        let success = result.map_or("unknown", |result| if result.success { "yes" } else { "no" });
        let result_bytes = result.map(|result| {
            let error = result.error.as_ref().map_or(0, String::len);
            (error + result.output.as_ref().map_or(0, json_bytes)).to_string()
        });
        format!(
            "| {} | {} | {} | {} | {} | {} | {success} | {} | {} |\n",
            self.cell(call.call_id.as_str()),
            call.iteration,
            call.id.as_ref().map_or_else(|| self.tool(&call.tool), |id| self.cell(id)),
            call.effect.as_ref().map(name_of).unwrap_or_default(),
            number(call.duration_ms),
            number(call.tries.map(u64::from)),
            json_bytes(&call.input),
            result_bytes.unwrap_or_default(),
        )
    }

    fn tool(&self, name: &str) -> String {
        if self.tools.iter().any(|tool| tool == name) { self.cell(name) } else { UNKNOWN_TOOL.to_owned() }
    }

    /// Foreign text as a code span in a table: redacted, cut, on one line.
    fn cell(&self, text: &str) -> String {
        let start: String = text.chars().take(MAX_SEARCHED).collect();
        let redacted = self.redactor.redact(&start);
        let clean = redacted.chars().map(|c| match c {
            '`' => '\'',
            // Bidirectional marks would turn the text around them.
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                ' '
            }
            c => c,
        });
        let mut text: String = clean.take(MAX_CELL).collect();
        if redacted.chars().nth(MAX_CELL).is_some() {
            text.push('…');
        }
        match text.trim() {
            "" => String::new(),
            text => format!("`{}`", text.replace('|', "\\|")),
        }
    }
}

fn tools_of(detail: &RunDetail) -> &[String] {
    let started = detail.events.iter().find_map(|event| match &event.event {
        RunEventKind::RunStarted { tools, .. } => Some(tools.as_slice()),
        _ => None,
    });
    started.unwrap_or_default()
}

fn final_tally(event: &RunEventKind) -> Option<RunTally> {
    if let RunEventKind::RunFinished { tally, .. } = event { *tally } else { None }
}

fn used(tally: &RunTally) -> String {
    let mut text = format!(
        "iterations: {}, model calls: {}, tool calls: {}, tokens in: {} (cached: {}), out: {}",
        tally.iterations,
        tally.model_calls,
        tally.tool_calls,
        tally.input_tokens,
        tally.cached_tokens,
        tally.output_tokens
    );
    if tally.estimated {
        text.push_str(", estimated");
    }
    text + &match (tally.cost, tally.unpriced_calls) {
        (Some(cost), 0) => format!(", cost: {cost}"),
        (Some(cost), calls) => format!(", cost: at least {cost} (calls with unknown price: {calls})"),
        (None, _) if tally.tokens() > 0 => ", cost: unknown".to_owned(),
        (None, _) => String::new(),
    }
}

fn tokens(usage: &Usage) -> String {
    let cost = usage.cost.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string());
    format!("tokens in: {}, out: {}, cost: {cost}", usage.input_tokens, usage.output_tokens)
}

fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

/// The name of an event or of a reason in JSON.
fn name_of(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.get("type").unwrap_or(&value).as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{END_BYTES, MAX_BYTES, ReportWriter, write_report};
    use redflow_contract::replay::RunDetail;
    use redflow_ports::TextRedactor;
    use serde_json::{Value, json};

    /// Removes one name.
    struct NoAda;

    impl TextRedactor for NoAda {
        fn redact(&self, text: &str) -> String {
            text.replace("Ada", "[name]")
        }
    }

    fn detail(events: &[Value], calls: &Value) -> RunDetail {
        let agent = json!({"instance": "local", "nodeId": "agent"});
        let event = |(n, event): (usize, &Value)| json!({"runId": "0197", "seq": n + 1, "at": 1_766_000_000_000_u64 + n as u64, "agent": agent, "event": event});
        let events: Vec<Value> = events.iter().enumerate().map(event).collect();
        let summary = json!({"runId": "0197", "agent": agent, "name": "Ada's | `desk`", "status": "failed",
            "code": "INVALID_JSON", "startedAt": 1_766_000_000_000_u64, "endedAt": 1_766_000_001_500_u64, "delivered": true});
        let difference = json!({"line": 7, "what": "effect", "message": "SAID"});
        let problem = json!({"code": "DATA_CORRUPT", "message": "SAID"});
        let detail = json!({"summary": summary, "events": events, "calls": calls, "result": {"payload": "SAID"},
            "refusedAnswer": "SAID", "difference": difference, "problem": problem});
        serde_json::from_value(detail).unwrap()
    }

    // SECURITY: run-report
    #[test]
    fn a_report_shows_what_a_run_did_without_what_was_said() {
        let usage = json!({"inputTokens": 100, "outputTokens": 9, "cost": 0.25});
        let error = json!({"code": "INVALID_JSON", "message": "SAID", "pointer": "/SAID",
            "rule": "json", "iteration": 2});
        let tally = json!({"iterations": 2, "modelCalls": 2, "toolCalls": 1, "inputTokens": 200, "outputTokens": 18,
            "cachedTokens": 5, "cost": 0.5});
        let events = [
            json!({"type": "run_started", "name": "SAID", "maxIterations": 5, "tools": ["mail"], "by": "SAID"}),
            json!({"type": "memory_recalled", "messages": 3}),
            json!({"type": "model_called", "iteration": 1, "preview": "SAID"}),
            json!({"type": "model_fell_over", "iteration": 1, "model": "large", "code": "TIMEOUT"}),
            json!({"type": "model_answered", "iteration": 1, "action": "tool", "tool": "mail", "confidence": 0.5,
                   "durationMs": 7, "usage": usage, "preview": "SAID"}),
            json!({"type": "model_answered", "iteration": 1, "action": "tool", "tool": "SAID", "tools": ["SAID"],
                   "confidence": 0.5, "durationMs": 7}),
            json!({"type": "tool_called", "iteration": 1, "tool": "mail", "callId": "c1", "preview": "SAID"}),
            json!({"type": "waiting_for_outcome", "iteration": 1, "tool": "mail", "callId": "c1", "reason": "SAID"}),
            json!({"type": "tool_returned", "iteration": 1, "tool": "mail", "callId": "c1", "success": false,
                   "error": "SAID", "code": "TOOL_DENIED", "durationMs": 3, "preview": "SAID"}),
            json!({"type": "tool_returned", "iteration": 1, "tool": "mail", "callId": "c4", "success": true,
                   "durationMs": 3, "sources": [{"kind": "knowledge", "ref": "SAID", "trust": "external"}]}),
            json!({"type": "budget_low", "budget": "cost", "limit": 1.0, "spent": 0.8}),
            json!({"type": "run_finished", "completed": false, "stopReason": "error", "iterations": 2, "durationMs": 1500,
                   "tally": tally, "error": error}),
        ];
        let calls = json!([
            {"iteration": 1, "callId": "c1", "tool": "mail", "input": {"to": "SAID"}, "effect": "at_most_once",
             "result": {"success": false, "error": "SAID"}, "durationMs": 3, "tries": 1},
            {"iteration": 2, "callId": "c2", "tool": "mail", "input": {}, "result": null},
            {"iteration": 2, "callId": "c3", "tool": "SAID", "input": {}, "result": null},
        ]);
        let report = write_report(&detail(&events, &calls), &NoAda);
        assert!(!report.contains("SAID") && !report.contains("Ada"), "{report}");
        insta::assert_snapshot!(report);
    }

    #[test]
    fn a_report_has_a_limit_and_counts_what_it_leaves_out() {
        let tool = "é".repeat(400);
        let started = json!({"type": "run_started", "name": "", "maxIterations": 5, "tools": [tool]});
        let mut events =
            vec![json!({"type": "tool_called", "iteration": 1, "tool": tool, "callId": "c1"}); 6_000];
        events.insert(0, started);
        let report = write_report(&detail(&events, &json!([])), &NoAda);
        assert!(report.len() <= MAX_BYTES && report.len() > MAX_BYTES - 2 * END_BYTES, "{}", report.len());
        assert!(report.ends_with(" more rows are left out, because the report is full.\n"));
    }

    // SECURITY: run-report
    #[test]
    fn foreign_text_stays_in_its_cell() {
        let report = ReportWriter { text: String::new(), redactor: &NoAda, tools: &[] };
        for (text, expected) in [
            ("mail", "`mail`"),
            ("", ""),
            (" \n", ""),
            ("a|b", "`a\\|b`"),
            ("`</code><script>", "`'</code><script>`"),
            ("a\n# Title\r\u{0}b", "`a # Title  b`"),
            ("\u{202e}txt\u{2066}", "`txt`"),
        ] {
            assert_eq!(report.cell(text), expected, "{text:?}");
        }
        let long = report.cell(&format!("{}Ada", "x".repeat(398)));
        assert_eq!(long, format!("`{}[n…`", "x".repeat(398)));
    }
}
