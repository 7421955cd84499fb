//! Resources: as results of two tools, and as texts for memories.

use crate::content::{bounded_text, contents_value};
use crate::input::{AskError, InputRounds};
use crate::lists::{ListTime, ask, read_resources};
use crate::server::Connected;
use crate::text::{clean, clean_and_cut, cut_bytes};
use redflow_contract::Millis;
use redflow_contract::archive::{SourceKind, Trust};
use redflow_contract::digest::Digest;
use redflow_contract::fact::ToolResult;
use redflow_contract::mcp::{MAX_MCP_DESCRIPTION_CHARS, McpResourceInfo};
use redflow_contract::source::Source;
use redflow_ports::{ContextSpan, ToolOutcome};
use rmcp::model::{
    ClientRequest, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResult, Resource,
    ResourceContents, ServerResult,
};
use std::time::Duration;
use tokio::time::Instant;

/// The most bytes of a text that a memory gets.
pub(crate) const MAX_SPAN_BYTES: usize = 65_536;

/// The most resources that a tool lists.
pub(crate) const MAX_TOOL_RESOURCES: usize = 500;

/// The most characters of an address.
const MAX_URI_CHARS: usize = 2_048;

/// The most characters of a name.
const MAX_NAME_CHARS: usize = 200;

/// What people and models see of a resource.
pub(crate) fn info_of(resource: &Resource) -> McpResourceInfo {
    let name = resource.title.as_deref().unwrap_or(&resource.name);
    let text = |text: &String, most| clean_and_cut(text, most);
    McpResourceInfo {
        uri: text(&resource.uri, MAX_URI_CHARS),
        name: clean_and_cut(name, MAX_NAME_CHARS),
        description: resource.description.as_ref().map(|all| text(all, MAX_MCP_DESCRIPTION_CHARS)),
        mime: resource.mime_type.as_ref().map(|mime| text(mime, MAX_NAME_CHARS)),
    }
}

/// The result of `list_resources`.
pub(crate) async fn list(connected: &Connected, most: usize, deadline: Instant) -> ToolOutcome {
    let time = ListTime::until(deadline, connected.times);
    ToolOutcome::Returned(match read_resources(&connected.peer, MAX_TOOL_RESOURCES, time).await {
        Ok(all) => {
            let infos: Vec<_> = all.iter().map(info_of).collect();
            let value = serde_json::to_value(&infos).unwrap_or_default();
            let text = value.to_string();
            ToolResult::ok(if text.len() <= most { value } else { bounded_text(&text, most) })
        }
        Err(reason) => ToolResult::failed(reason),
    })
}

/// The result of `read_resource`.
pub(crate) async fn read(
    connected: &Connected,
    server: &str,
    uri: &str,
    most: usize,
    deadline: Instant,
) -> ToolOutcome {
    let time = deadline.saturating_duration_since(Instant::now());
    ToolOutcome::Returned(match fetch(connected, uri, time).await {
        Ok(read) => {
            let output = contents_value(&read.contents, most);
            let source = Source {
                kind: SourceKind::Mcp,
                reference: format!("{server}/{uri}"),
                version: None,
                digest: Digest::of_json(&output).ok(),
                score: None,
                trust: Trust::External,
            };
            ToolResult { sources: vec![source], ..ToolResult::ok(output) }
        }
        Err(error) => error.result(),
    })
}

/// The text of a resource, for memories.
///
/// # Errors
/// Why it cannot be read.
pub(crate) async fn span(connected: &Connected, uri: &str, now: Millis) -> Result<ContextSpan, String> {
    let read = fetch(connected, uri, connected.times.page).await.map_err(|error| error.text)?;
    let texts: Vec<&str> = read.contents.iter().filter_map(text_of).collect();
    if texts.is_empty() {
        return Err("The resource has no text.".to_owned());
    }
    let text = cut_bytes(&clean(&texts.join("\n\n")), MAX_SPAN_BYTES).to_owned();
    let digest = Digest::of(text.as_bytes());
    let expires_at = read.ttl_ms.map(|ttl| now.saturating_add(Millis::try_from(ttl).unwrap_or(Millis::MAX)));
    Ok(ContextSpan { text, digest, expires_at })
}

fn text_of(contents: &ResourceContents) -> Option<&str> {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => Some(text),
        _ => None,
    }
}

async fn fetch(connected: &Connected, uri: &str, time: Duration) -> Result<ReadResourceResult, AskError> {
    if connected.info.as_ref().is_some_and(|info| info.capabilities.resources.is_none()) {
        return Err(AskError::failed("The server has no resources."));
    }
    if uri.is_empty() || uri.len() > MAX_URI_CHARS {
        return Err(AskError::failed(format!("An address has 1 to {MAX_URI_CHARS} bytes.")));
    }
    let (mut params, mut rounds) = (ReadResourceRequestParams::new(uri), InputRounds::default());
    loop {
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params.clone()));
        match ask(&connected.peer, request, time).await.map_err(AskError::failed)? {
            ServerResult::ReadResourceResult(result) => return Ok(result),
            ServerResult::InputRequiredResult(asked) => {
                let declined = rounds.decline(&connected.warnings, asked).await?;
                (params.input_responses, params.request_state) = (declined.responses, declined.state);
            }
            _ => return Err(AskError::failed("The answer of the server is not a resource.")),
        }
    }
}
