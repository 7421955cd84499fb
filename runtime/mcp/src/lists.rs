//! Reads the lists of a server, page by page and bounded.

use crate::definition::ServerDefinition;
use crate::text::clean_line;
use crate::times::ServerTimes;
use crate::tools::{SentTools, ToolCollector};
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourcesRequest, ListToolsRequest, PaginatedRequestParams,
    Prompt, Resource, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// How long the library has to end a request whose time is over.
const END_TIME: Duration = Duration::from_secs(1);

/// The most tools of a server that are looked at.
pub(crate) const MAX_SEEN_TOOLS: usize = 10_000;

/// The most pages of a list.
pub(crate) const MAX_PAGES: usize = 200;

/// The most resources and prompts of a server that are shown.
pub(crate) const MAX_LISTED: usize = 200;

/// The most bytes of a mark for the next page.
const MAX_CURSOR_BYTES: usize = 8_192;

/// The most characters of a text of the server in an error.
const MAX_ERROR_CHARS: usize = 300;

/// When a list was read, and how long the server says that it is valid.
pub(crate) struct ReadList {
    pub(crate) at: Instant,
    pub(crate) valid: Option<Duration>,
}

/// How long the pages of a list may take.
#[derive(Clone, Copy)]
pub(crate) struct ListTime {
    deadline: Instant,
    page: Duration,
}

impl ListTime {
    pub(crate) fn new(times: ServerTimes) -> Self {
        Self::until(Instant::now() + times.list, times)
    }

    /// The pages end before a time.
    pub(crate) fn until(deadline: Instant, times: ServerTimes) -> Self {
        Self { deadline, page: times.page }
    }

    /// The longest time for the next page.
    fn of_page(self) -> Duration {
        self.page.min(self.deadline.saturating_duration_since(Instant::now()))
    }
}

/// Reads the tools of a server.
///
/// # Errors
/// Why they cannot be read.
pub(crate) async fn read_tools(
    definition: &ServerDefinition,
    peer: &Peer<RoleClient>,
    info: Option<&ServerPeerInfo>,
    times: ServerTimes,
) -> Result<(SentTools, ReadList), String> {
    let at = Instant::now();
    let time = ListTime::new(times);
    let mut collector = ToolCollector::new(definition);
    let mut valid = None;
    if info.is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok((collector.finish(), ReadList { at, valid }));
    }
    let mut cursor = None;
    for page in 1.. {
        let request = ListToolsRequest { params: page_of(cursor), ..Default::default() };
        let answer = ask(peer, ClientRequest::ListToolsRequest(request), time.of_page()).await?;
        let (tools, next, ttl) = match answer {
            ServerResult::ListToolsResult(result) => {
                let tools =
                    result.tools.into_iter().map(|tool| serde_json::to_value(tool).unwrap_or_default());
                (tools.collect::<Vec<_>>(), result.next_cursor, result.ttl_ms)
            }
            // The library reads no list with one wrong tool in it.
            ServerResult::CustomResult(result) => loose_page(result.0)?,
            _ => return Err(WRONG_LIST.to_owned()),
        };
        for tool in tools.iter().take(MAX_SEEN_TOOLS.saturating_sub(collector.seen())) {
            collector.add(tool);
        }
        valid = [valid, ttl.map(Duration::from_millis)].into_iter().flatten().min();
        cursor = next.filter(|cursor| !cursor.is_empty());
        let Some(next) = &cursor else { break };
        if collector.seen() >= MAX_SEEN_TOOLS || page >= MAX_PAGES || next.len() > MAX_CURSOR_BYTES {
            collector
                .note(format!("The list of tools is too long: only {} were looked at.", collector.seen()));
            break;
        }
    }
    Ok((collector.finish(), ReadList { at, valid }))
}

const WRONG_LIST: &str = "Its list of tools is not one of the protocol.";

type ToolPage = (Vec<Value>, Option<String>, Option<u64>);

fn loose_page(result: Value) -> Result<ToolPage, String> {
    let Value::Object(mut result) = result else { return Err(WRONG_LIST.to_owned()) };
    let Some(Value::Array(tools)) = result.remove("tools") else { return Err(WRONG_LIST.to_owned()) };
    let next = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Ok((tools, next, result.get("ttlMs").and_then(Value::as_u64)))
}

/// Reads the first resources of a server, within a time.
///
/// # Errors
/// Why they cannot be read.
pub(crate) async fn read_resources(
    peer: &Peer<RoleClient>,
    most: usize,
    time: ListTime,
) -> Result<Vec<Resource>, String> {
    let request =
        |params| ClientRequest::ListResourcesRequest(ListResourcesRequest { params, ..Default::default() });
    let page = |result| match result {
        ServerResult::ListResourcesResult(page) => Some((page.resources, page.next_cursor)),
        _ => None,
    };
    let wrong = "Its list of resources is not one of the protocol.";
    read_pages(peer, most, time, request, page, wrong).await
}

/// Reads the first prompts of a server, within a time.
///
/// # Errors
/// Why they cannot be read.
pub(crate) async fn read_prompts(peer: &Peer<RoleClient>, time: ListTime) -> Result<Vec<Prompt>, String> {
    let request =
        |params| ClientRequest::ListPromptsRequest(ListPromptsRequest { params, ..Default::default() });
    let page = |result| match result {
        ServerResult::ListPromptsResult(page) => Some((page.prompts, page.next_cursor)),
        _ => None,
    };
    read_pages(peer, MAX_LISTED, time, request, page, "Its list of prompts is not one of the protocol.").await
}

async fn read_pages<T>(
    peer: &Peer<RoleClient>,
    most: usize,
    time: ListTime,
    request: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
    page: impl Fn(ServerResult) -> Option<(Vec<T>, Option<String>)>,
    wrong: &str,
) -> Result<Vec<T>, String> {
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let answer = ask(peer, request(page_of(cursor)), time.of_page()).await?;
        let (items, next) = page(answer).ok_or_else(|| wrong.to_owned())?;
        all.extend(items.into_iter().take(most - all.len()));
        cursor = next.filter(|cursor| !cursor.is_empty() && cursor.len() <= MAX_CURSOR_BYTES);
        if cursor.is_none() || all.len() >= most {
            break;
        }
    }
    Ok(all)
}

fn page_of(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)))
}

/// Asks for something that has no effect. It goes past the library's cache, which would give old lists.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn ask(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
    time: Duration,
) -> Result<ServerResult, String> {
    let exchange = async {
        let sent = peer.send_request_with_option(request, PeerRequestOptions::with_timeout(time)).await;
        sent.map_err(error_text)?.await_response().await.map_err(error_text)
    };
    // A server that does not read holds up the sending, too.
    tokio::time::timeout(time + END_TIME, exchange).await.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()))
}

const NO_ANSWER: &str = "The server did not answer in time.";

/// What failed, for people. The texts of the server are cleaned.
#[expect(clippy::needless_pass_by_value, reason = "it is used with `map_err`")]
pub(crate) fn error_text(error: ServiceError) -> String {
    match &error {
        ServiceError::McpError(error) => {
            let text = clean_line(&error.message, MAX_ERROR_CHARS);
            format!("The server answered with an error: {text} (code {}).", error.code.0)
        }
        ServiceError::Timeout { .. } => NO_ANSWER.to_owned(),
        ServiceError::UnexpectedResponse => "The answer of the server is not one of the protocol.".to_owned(),
        other => match crate::http::HttpFailure::of_call(other) {
            Some(failure) => format!("{}.", clean_line(failure.text.trim_end_matches('.'), MAX_ERROR_CHARS)),
            None => "The connection to the server was lost.".to_owned(),
        },
    }
}
