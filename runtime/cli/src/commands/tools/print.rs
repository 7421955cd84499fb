//! Tools and their calls as text.

use crate::text::printable_line;
use crate::times::{format_duration, format_time};
use owo_colors::{OwoColorize, Style};
use redflow_contract::node::EffectClass;
use redflow_contract::tool::{
    FilePermission, NetworkPermission, ToolEntry, ToolInvocation, ToolOrigin, ToolPermissions, ToolState,
};
use serde::Serialize;
use std::fmt::Write as _;

/// The most characters of an input, an output or a description.
const MAX_CHARS: usize = 200;

/// The most characters of a description in a list.
const MAX_LISTED_CHARS: usize = 60;

/// The columns are the id, the state, the origin, the effect class and the description.
pub(super) fn format_table(tools: &[ToolEntry]) -> String {
    let ids: Vec<String> = tools.iter().map(|tool| printable_line(&tool.id, 128)).collect();
    let width = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0).min(40);
    let mut out = String::new();
    for (tool, id) in tools.iter().zip(&ids) {
        let state = format!("{:<7}", state_name(tool.state));
        let line = format!(
            "{id:<width$}  {}  {:<8}  {:<12}  {}",
            state.style(state_style(tool.state)),
            origin_name(tool.origin),
            tool.effect.map_or("", effect_name),
            printable_line(&tool.description, MAX_LISTED_CHARS)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Everything about one tool.
pub(super) fn format_tool(tool: &ToolEntry) -> String {
    let mut rows = vec![("state", state_name(tool.state).style(state_style(tool.state)).to_string())];
    rows.extend(tool.reason.as_ref().map(|reason| ("reason", printable_line(reason, MAX_CHARS))));
    rows.push(("name", printable_line(&tool.name, MAX_CHARS)));
    let (origin, provider) = (origin_name(tool.origin), printable_line(&tool.provider, MAX_CHARS));
    rows.push(("from", if origin == provider { provider } else { format!("{origin}, {provider}") }));
    rows.extend(tool.instance.as_ref().map(|id| ("Node-RED", printable_line(id.as_str(), MAX_CHARS))));
    rows.push(("about", printable_line(&tool.description, 1024)));
    rows.push(("effect", tool.effect.map_or("decided per call", effect_name).to_owned()));
    rows.push(("timeout", format_duration(tool.timeout_ms)));
    if tool.retry.max > 0 {
        let backoff = format_duration(tool.retry.backoff_ms);
        rows.push(("retries", format!("{}, the first after {backoff}", tool.retry.max)));
    }
    rows.push(("needs", format_permissions(&tool.permissions)));
    rows.extend(tool.input_schema.as_ref().map(|schema| ("input", compact(schema))));
    rows.extend(tool.output_schema.as_ref().map(|schema| ("output", compact(schema))));
    rows.push(("digest", tool.digest.to_hex()));
    let mut text = format!("{} {}\n", "tool".bold(), printable_line(&tool.id, 128));
    for (label, value) in rows {
        let _ = writeln!(text, "  {label:<11}{value}");
    }
    text
}

/// A call on three lines: how it ended, its input, and its output or error.
pub(crate) fn format_call(call: &ToolInvocation) -> String {
    let outcome = if call.success { "ok".green().to_string() } else { "failed".red().to_string() };
    let mut words = vec![format_time(call.at), outcome];
    words.extend(call.code.map(|code| code.to_string()));
    words.push(format_duration(call.duration_ms));
    match call.tries {
        1 => {}
        0 => words.push("not tried".to_owned()),
        tries => words.push(format!("{tries} tries")),
    }
    words.extend(call.run_id.as_ref().map(|run| format!("run {}", printable_line(run.as_str(), 64))));
    words.extend(call.by.as_ref().map(|by| format!("by {}", printable_line(by.as_str(), 64))));
    let result = match (&call.error, &call.output) {
        (Some(error), _) => printable_line(error, MAX_CHARS),
        (None, Some(output)) => compact(output),
        (None, None) => String::new(),
    };
    let mut text = words.join("  ") + "\n";
    for line in [compact(&call.input), result].iter().filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "       {}", line.dimmed());
    }
    text
}

fn compact<T: Serialize>(value: &T) -> String {
    printable_line(&serde_json::to_string(value).unwrap_or_default(), MAX_CHARS)
}

fn format_permissions(permissions: &ToolPermissions) -> String {
    let ToolPermissions { network, files, process, secrets } = permissions;
    let mut words: Vec<String> = Vec::new();
    words.extend(match network {
        NetworkPermission::None => None,
        NetworkPermission::Hosts => Some("the network, named hosts".to_owned()),
        NetworkPermission::Public => Some("the network, public hosts".to_owned()),
    });
    words.extend(match files {
        FilePermission::None => None,
        FilePermission::Read => Some("files, to read".to_owned()),
        FilePermission::Write => Some("files, to write".to_owned()),
    });
    words.extend(process.then(|| "a program".to_owned()));
    words.extend(secrets.iter().map(|name| format!("the secret {}", printable_line(name, 64))));
    if words.is_empty() { "nothing".to_owned() } else { words.join("; ") }
}

fn origin_name(origin: ToolOrigin) -> &'static str {
    match origin {
        ToolOrigin::Builtin => "builtin",
        ToolOrigin::Flow => "flow",
        ToolOrigin::Node => "node",
        ToolOrigin::Mcp => "mcp",
        ToolOrigin::Agent => "agent",
        ToolOrigin::Manifest => "manifest",
    }
}

pub(crate) fn state_name(state: ToolState) -> &'static str {
    match state {
        ToolState::Ready => "ready",
        ToolState::Offline => "offline",
        ToolState::Changed => "changed",
        ToolState::Blocked => "blocked",
    }
}

fn state_style(state: ToolState) -> Style {
    match state {
        ToolState::Ready => Style::new().green(),
        ToolState::Offline | ToolState::Changed => Style::new().yellow(),
        ToolState::Blocked => Style::new().red(),
    }
}

pub(crate) fn effect_name(effect: EffectClass) -> &'static str {
    match effect {
        EffectClass::Read => "read",
        EffectClass::Idempotent => "idempotent",
        EffectClass::AtMostOnce => "at_most_once",
    }
}
