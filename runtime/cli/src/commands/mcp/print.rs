//! MCP servers as text.

use crate::commands::tools::{effect_name, state_name};
use crate::exit::Exit;
use crate::text::{count, printable, printable_line};
use crate::times::format_time;
use owo_colors::{OwoColorize, Style};
use redflow_contract::mcp::{
    McpConfinement, McpOrigin, McpServerDetail, McpServerState, McpServerSummary, McpToolInfo, McpTransport,
};
use redflow_contract::tool::ToolState;
use std::fmt::Write as _;

/// The most characters of a description in a list, and of other texts.
const MAX_LISTED_CHARS: usize = 60;
const MAX_CHARS: usize = 300;

/// The most lines of a diff.
pub(super) const MAX_DIFF_LINES: usize = 200;

/// Scripts see whether a server can be used.
pub(super) fn exit_of(server: &McpServerSummary) -> Exit {
    if server.state == McpServerState::Ready { Exit::Success } else { Exit::Failure }
}

/// The columns are what commands call a server, the state, the number of tools, and the program or address.
pub(super) fn format_servers(servers: &[McpServerSummary]) -> String {
    let width = servers.iter().map(|server| server.key.chars().count()).max().unwrap_or(0).min(40);
    let mut out = String::new();
    for server in servers {
        let state = format!("{:<12}", server_state(server.state));
        let changed = match server.changed {
            0 => String::new(),
            changed => format!(", {changed} to approve"),
        };
        let tools = count(usize::try_from(server.tools).unwrap_or(usize::MAX), "tool") + &changed;
        let _ = writeln!(
            out,
            "{:<width$}  {}  {tools:<10}  {}",
            printable_line(&server.key, MAX_CHARS),
            state.style(state_style(server.state)),
            printable_line(&server.target, MAX_CHARS)
        );
    }
    out
}

/// What follows for the programs among the servers from what the system lacks; none if nothing does.
pub(super) fn confinement_note(servers: &[McpServerSummary]) -> Option<String> {
    let confinement = servers.iter().find_map(|server| server.confinement.as_ref())?;
    let gaps: Vec<&str> = confinement.gaps.iter().map(|gap| gap.text()).collect();
    let label = confinement_label(confinement);
    (!gaps.is_empty()).then(|| format!("confined: {label}; {}", gaps.join("; ")))
}

fn confinement_label(confinement: &McpConfinement) -> String {
    let Some(landlock) = confinement.landlock else { return "no".to_owned() };
    let how_far = if confinement.gaps.is_empty() { "yes" } else { "in part" };
    let namespaces = if confinement.namespaces { "namespaces" } else { "no namespaces" };
    format!("{how_far} (Landlock {landlock}, {namespaces})")
}

/// Everything about one server.
pub(super) fn format_server(detail: &McpServerDetail) -> String {
    let server = &detail.summary;
    let mut rows = vec![("state", server_state(server.state).style(state_style(server.state)).to_string())];
    rows.extend(server.reason.as_ref().map(|reason| ("reason", printable_line(reason, 800))));
    rows.extend(server.since.map(|since| ("since", format_time(since))));
    rows.push((transport_label(server.transport), printable_line(&server.target, MAX_CHARS)));
    if let Some(confinement) = &server.confinement {
        rows.push(("confined", confinement_label(confinement)));
        rows.extend(confinement.gaps.iter().map(|gap| ("", gap.text().to_owned())));
    }
    rows.push(("from", origin_name(server.origin).to_owned()));
    rows.extend(server.server.as_ref().map(|text| ("server", printable_line(text, MAX_CHARS))));
    rows.extend(server.protocol.as_ref().map(|text| ("protocol", printable_line(text, 40))));
    let mut text = format!("{} {}\n", "MCP server".bold(), printable_line(&server.key, MAX_CHARS));
    for (label, value) in rows {
        let _ = writeln!(text, "  {label:<11}{value}");
    }
    if !detail.tools.is_empty() {
        let _ = writeln!(text, "\n{}", count(detail.tools.len(), "tool").bold());
        text += &indent(&format_tools(&detail.tools));
        for tool in &detail.tools {
            text += &format_diff(tool);
        }
    }
    if !detail.resources.is_empty() {
        let _ = writeln!(text, "\n{}", count(detail.resources.len(), "resource").bold());
        for resource in &detail.resources {
            let _ = writeln!(text, "  {}", printable_line(&resource.uri, MAX_CHARS));
        }
    }
    if !detail.prompts.is_empty() {
        let _ = writeln!(text, "\n{}", count(detail.prompts.len(), "prompt").bold());
        for prompt in &detail.prompts {
            let about = prompt.description.as_deref().unwrap_or_default();
            let needs = if prompt.needs_arguments { "needs arguments; " } else { "" };
            let name = printable_line(&prompt.name, 80);
            let line = format!("  {name}  {needs}{}", printable_line(about, MAX_LISTED_CHARS));
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// The columns are the name, the state, the effect class and the description.
pub(super) fn format_tools(tools: &[McpToolInfo]) -> String {
    let names: Vec<String> = tools.iter().map(|tool| printable_line(&tool.name, 128)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(40);
    let mut out = String::new();
    for (tool, name) in tools.iter().zip(&names) {
        let state = format!("{:<8}", tool_state(tool));
        let style = if tool.state == ToolState::Ready { Style::new().green() } else { Style::new().yellow() };
        let line = format!(
            "{name:<width$}  {}  {:<12}  {}",
            state.style(if tool.included { style } else { Style::new().dimmed() }),
            effect_name(tool.effect),
            printable_line(&tool.description, MAX_LISTED_CHARS)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn tool_state(tool: &McpToolInfo) -> &'static str {
    match (tool.included, tool.digest.is_some(), tool.pinned.is_some()) {
        (false, ..) => "left out",
        (true, false, _) => "gone",
        (true, true, false) if tool.state == ToolState::Changed => "new",
        _ => state_name(tool.state),
    }
}

/// What is different from the approved definition of a tool; empty if nothing is.
pub(super) fn format_diff(tool: &McpToolInfo) -> String {
    let Some(diff) = &tool.diff else { return String::new() };
    let mut text = format!("\n{} {}\n", "changed".yellow().bold(), printable_line(&tool.name, 128));
    for line in diff.lines().take(MAX_DIFF_LINES) {
        let style = match line.chars().next() {
            Some('-') => Style::new().red(),
            Some('+') => Style::new().green(),
            _ => Style::new(),
        };
        let _ = writeln!(text, "  {}", printable(line).style(style));
    }
    if diff.lines().nth(MAX_DIFF_LINES).is_some() {
        let _ = writeln!(text, "  … more lines: use --json");
    }
    text
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn server_state(state: McpServerState) -> &'static str {
    match state {
        McpServerState::Idle => "idle",
        McpServerState::Connecting => "connecting",
        McpServerState::Ready => "ready",
        McpServerState::Offline => "offline",
        McpServerState::LoginNeeded => "login needed",
        McpServerState::Blocked => "blocked",
    }
}

fn state_style(state: McpServerState) -> Style {
    match state {
        McpServerState::Ready => Style::new().green(),
        McpServerState::Idle | McpServerState::Connecting => Style::new(),
        McpServerState::Offline | McpServerState::LoginNeeded => Style::new().yellow(),
        McpServerState::Blocked => Style::new().red(),
    }
}

fn transport_label(transport: McpTransport) -> &'static str {
    match transport {
        McpTransport::Stdio => "program",
        McpTransport::Http => "address",
    }
}

fn origin_name(origin: McpOrigin) -> &'static str {
    match origin {
        McpOrigin::Manifest => "the manifest",
        McpOrigin::Added => "redflow mcp add",
        McpOrigin::Node => "a node of a flow",
    }
}

#[cfg(test)]
mod tests {
    use super::{McpConfinement, confinement_label};

    // SECURITY: mcp-gaps
    #[test]
    fn a_program_is_confined_only_as_far_as_the_system_can() {
        for (landlock, namespaces, label) in [
            (Some(7), true, "yes (Landlock 7, namespaces)"),
            (Some(7), false, "in part (Landlock 7, no namespaces)"),
            (Some(5), true, "in part (Landlock 5, namespaces)"),
            (None, true, "no"),
        ] {
            assert_eq!(confinement_label(&McpConfinement::of(landlock, namespaces)), label);
        }
    }
}
