//! Calls of a long memory's tools.

use super::definitions::{MAX_LIMIT, Operation};
use redflow_contract::archive::{Entry, EntryKind, EntryState, SearchHit, SourceKind};
use redflow_contract::day::Day;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::node::EffectClass;
use redflow_contract::source::Source;
use redflow_contract::{Message, Millis, iso_time};
use redflow_ports::{AgentEntry, ArchiveError, BoxFuture, EntrySearch, MemoryEntries, Tool, ToolOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

/// The entries of a list, if the model does not say.
const DEFAULT_LIMIT: u64 = 20;
/// The most bytes of all entries of a result. The best ones are first.
const MAX_RESULT_BYTES: usize = 200 * 1024;
/// The milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Makes the calls of one tool.
pub(super) struct MemoryCall {
    pub(super) operation: Operation,
    pub(super) entries: Arc<dyn MemoryEntries>,
}

impl MemoryCall {
    async fn search(&self, call: &ToolCall) -> Result<ToolResult, String> {
        let input = &call.input;
        let search = EntrySearch {
            text: required(input, "query")?,
            mode: None,
            since: time(input, "since", false)?,
            until: time(input, "until", true)?,
            tags: tags(input),
            limit: limit(input).and_then(|limit| usize::try_from(limit).ok()),
        };
        let hits = self.entries.search(&call.conversation, search).await.map_err(|error| problem(&error))?;
        let shown = |hit: SearchHit| {
            let score = Some(hit.score);
            (display(&hit.entry, score), self.source(&hit.entry, score))
        };
        Ok(list(hits.into_iter().map(shown)))
    }

    fn source(&self, entry: &Entry, score: Option<f32>) -> Source {
        Source {
            kind: SourceKind::Memory,
            reference: format!("{}/{}", self.entries.name(), entry.key),
            version: Some(entry.version),
            digest: Some(entry.content_hash),
            score: score.map(rounded),
            trust: entry.trust,
        }
    }

    async fn get(&self, call: &ToolCall) -> Result<ToolResult, String> {
        let id = required(&call.input, "id")?;
        let found = self.entries.get(&call.conversation, &id).await.map_err(|error| problem(&error))?;
        let entry = found.ok_or_else(|| format!("there is no entry `{id}`: search for it, or list all"))?;
        Ok(ToolResult { sources: vec![self.source(&entry, None)], ..ToolResult::ok(display(&entry, None)) })
    }

    async fn list(&self, call: &ToolCall) -> Result<ToolResult, String> {
        let after = call.input.get("after").and_then(Value::as_str);
        let limit = usize::try_from(limit(&call.input).unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
        let found =
            self.entries.list(&call.conversation, after, limit).await.map_err(|error| problem(&error))?;
        Ok(list(found.iter().map(|entry| (display(entry, None), self.source(entry, None)))))
    }

    async fn put(&self, call: &ToolCall) -> Result<ToolResult, String> {
        let input = &call.input;
        let text = |name: &str| input.get(name).and_then(Value::as_str);
        let version = match input.get("expectedVersion").and_then(Value::as_u64) {
            Some(version) => {
                Some(u32::try_from(version).map_err(|_| "`expectedVersion` is no version".to_owned())?)
            }
            None => None,
        };
        let entry = AgentEntry {
            key: text("id").map(str::to_owned),
            text: required(input, "text")?,
            kind: kind(text("kind"))?,
            tags: tags(input),
            expected_version: version,
            run: call.run_id.clone(),
            call: call.idempotency_key,
        };
        let stored = self.entries.put(&call.conversation, entry).await.map_err(|error| problem(&error))?;
        let mut output = json!({"id": stored.key, "version": stored.version});
        if stored.state == EntryState::Quarantined {
            output["note"] =
                json!("The text addresses an assistant, so a person must approve it before it is found.");
        }
        Ok(ToolResult::ok(output))
    }
}

/// Some entries as a result. The engine would refuse a larger one as a whole.
fn list(entries: impl Iterator<Item = (Value, Source)>) -> ToolResult {
    let (mut results, mut sources, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (entry, source) in entries {
        bytes += entry.to_string().len();
        if bytes > MAX_RESULT_BYTES {
            break;
        }
        results.push(entry);
        sources.push(source);
    }
    ToolResult { sources, ..ToolResult::ok(json!({ "results": results })) }
}

/// An entry as the model reads it.
fn display(entry: &Entry, score: Option<f32>) -> Value {
    let mut shown = json!({
        "id": entry.key, "text": entry.text, "kind": entry.kind, "when": iso_time(entry.valid_from),
        "trust": entry.trust, "version": entry.version,
    });
    if !entry.tags.is_empty() {
        shown["tags"] = json!(entry.tags);
    }
    if let Some(score) = score {
        shown["score"] = json!(rounded(score));
    }
    shown
}

/// A score with three digits.
fn rounded(score: f32) -> f64 {
    f64::from((score * 1_000.0).round()) / 1_000.0
}

fn problem(error: &ArchiveError) -> String {
    format!("{}: {}", error.code, error.message)
}

fn required(input: &Message, name: &str) -> Result<String, String> {
    let text = input.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| format!("`{name}` must be a text"))
}

fn limit(input: &Message) -> Option<u64> {
    input.get("limit").and_then(Value::as_u64).map(|limit| limit.clamp(1, MAX_LIMIT))
}

fn tags(input: &Message) -> Vec<String> {
    let tags = input.get("tags").and_then(Value::as_array).into_iter().flatten();
    tags.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn kind(name: Option<&str>) -> Result<EntryKind, String> {
    let Some(name) = name else { return Ok(EntryKind::Fact) };
    serde_json::from_value(json!(name)).map_err(|_| "`kind` is none of the kinds of the schema".to_owned())
}

/// Reads a day, or a time such as `2026-11-16T08:00:00Z`.
fn time(input: &Message, name: &str, is_end: bool) -> Result<Option<Millis>, String> {
    let Some(text) = input.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    if let Some(day) = Day::parse(text) {
        return Ok(Some(if is_end { day.start() + DAY_MS - 1 } else { day.start() }));
    }
    let moment = clock_time(text);
    moment.map(Some).ok_or_else(|| {
        format!("`{name}` must be a day such as 2026-11-16, or a time such as 2026-11-16T08:00:00Z")
    })
}

/// A time in UTC: a day, `T`, hours, minutes and perhaps seconds.
fn clock_time(text: &str) -> Option<Millis> {
    let (day, clock) = text.split_once('T')?;
    let clock = clock.strip_suffix('Z')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let parts: Vec<u64> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    let is_time = hours < 24 && minutes < 60 && seconds < 60;
    is_time.then_some(Day::parse(day)?.start() + ((hours * 60 + minutes) * 60 + seconds) * 1_000)
}

impl Tool for MemoryCall {
    fn effect(&self, _: &Message) -> EffectClass {
        self.operation.effect()
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let result = match self.operation {
                Operation::Search => self.search(call).await,
                Operation::Get => self.get(call).await,
                Operation::List => self.list(call).await,
                Operation::Put => self.put(call).await,
            };
            ToolOutcome::Returned(
                result.unwrap_or_else(|problem| ToolResult::failed(format!("The memory failed: {problem}"))),
            )
        })
    }
}
