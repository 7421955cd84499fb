//! One call of a tool of a server, and what its end means.

use crate::content::result_of;
use crate::http::HttpFailure;
use crate::lists::error_text;
use crate::resources;
use crate::server::{Connected, ServerHandle};
use crate::tools::{ServerToolKind, approval_text};
use redflow_contract::archive::{SourceKind, Trust};
use redflow_contract::code::ToolCode;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::node::EffectClass;
use redflow_contract::source::Source;
use redflow_contract::tool::{ToolEntry, ToolState};
use redflow_contract::{Message, digest::Digest};
use redflow_ports::{BoxFuture, Measurement, Tool, ToolOutcome};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, RequestMetaObject, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use rmcp::transport::DynamicTransportError;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The name of the idempotency key in a call. A server that knows it never does the same call twice.
pub(crate) const KEY_META: &str = "redflow/key";

/// The code of a call that succeeded, in metrics.
const NO_CODE: &str = "";

/// The code of a call whose outcome is unknown, in metrics.
const UNKNOWN_CODE: &str = "unknown";

/// The code of a call that the tool says has failed, in metrics.
const FAILED_CODE: &str = "failed";

/// A tool of a server. It keeps the server connected.
pub(crate) struct McpTool {
    pub(crate) server: Arc<ServerHandle>,
    pub(crate) kind: ServerToolKind,
    /// The name that the server gives it.
    pub(crate) name: String,
    pub(crate) entry: Arc<ToolEntry>,
    pub(crate) max_result_bytes: usize,
}

impl Tool for McpTool {
    fn effect(&self, _input: &Message) -> EffectClass {
        self.entry.effect.unwrap_or(EffectClass::AtMostOnce)
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let mut outcome = self.make_call(call).await;
            if let ToolOutcome::Returned(result) = &mut outcome {
                self.server.scrubber().result(result);
            }
            let code = match &outcome {
                ToolOutcome::Unknown { .. } => UNKNOWN_CODE,
                ToolOutcome::Returned(ToolResult { success: true, .. }) => NO_CODE,
                ToolOutcome::Returned(result) => result.code.map_or(FAILED_CODE, ToolCode::as_str),
            };
            let server = self.server.name();
            self.server.shared.settings.meter.record(Measurement::McpCall { server, code });
            outcome
        })
    }
}

fn refused(code: ToolCode, text: impl Into<String>) -> ToolOutcome {
    ToolOutcome::Returned(ToolResult::refused(code, text))
}

impl McpTool {
    async fn make_call(&self, call: &ToolCall) -> ToolOutcome {
        let time = Duration::from_millis(call.timeout_ms.min(self.entry.timeout_ms));
        let deadline = Instant::now() + time;
        let connected = match self.server.connected(time).await {
            Ok(connected) => connected,
            Err(reason) => return refused(ToolCode::McpUnavailable, reason),
        };
        match self.kind {
            ServerToolKind::ListResources => resources::list(&connected, self.max_result_bytes).await,
            ServerToolKind::ReadResource => {
                let uri = call.input.get("uri").and_then(|uri| uri.as_str()).unwrap_or_default();
                resources::read(&connected, self.server.name(), uri, self.max_result_bytes).await
            }
            // The lists may have been read again since the run began, with the connection above too.
            ServerToolKind::Call => match self.check_definition() {
                Ok(()) => self.send(&connected, call, deadline).await,
                Err((code, text)) => refused(code, text),
            },
        }
    }

    /// Refuses a tool that is no longer the one that the run began with.
    fn check_definition(&self) -> Result<(), (ToolCode, String)> {
        let (id, server) = (&self.entry.id, self.server.name());
        let Some(now) = self.server.current_entry(&self.name) else {
            let text = format!("The server `{server}` no longer has the tool `{id}`.");
            return Err((ToolCode::ToolUnavailable, text));
        };
        let reason = now.reason.as_deref().unwrap_or_default();
        match now.state {
            ToolState::Changed => {
                let text =
                    format!("The definition of the tool `{id}` has changed. {}", approval_text(server));
                Err((ToolCode::ToolChanged, text))
            }
            ToolState::Blocked => {
                Err((ToolCode::ToolUnavailable, format!("The tool `{id}` cannot be used. {reason}")))
            }
            ToolState::Ready | ToolState::Away if now.digest != self.entry.digest => {
                let text = format!("The tool `{id}` has changed since the run began.");
                Err((ToolCode::ToolChanged, text))
            }
            ToolState::Ready | ToolState::Away => Ok(()),
        }
    }

    async fn send(&self, connected: &Connected, call: &ToolCall, deadline: Instant) -> ToolOutcome {
        let mut params = CallToolRequestParams::new(self.name.clone());
        params.arguments = Some(call.input.clone().into_iter().collect());
        let mut meta = RequestMetaObject::new();
        meta.insert(KEY_META.to_owned(), call.idempotency_key.to_hex().into());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let sent = connected.peer.send_request_with_option(request, options).await;
        let Ok(handle) = sent else {
            let text = format!("The call was not sent: the connection to `{}` was lost.", self.server.name());
            return refused(ToolCode::McpUnavailable, text);
        };
        let mut pending = PendingCall(Some(handle));
        match tokio::time::timeout_at(deadline, pending.answer()).await {
            Ok(Ok(result)) => self.returned(result),
            Ok(Err(error)) => self.failed(error),
            // Dropping the pending call tells the server.
            Err(_) => self.lost("the server did not answer in time"),
        }
    }

    fn returned(&self, result: ServerResult) -> ToolOutcome {
        let failed = |text: &str| ToolOutcome::Returned(ToolResult::failed(text));
        match result {
            ServerResult::CallToolResult(result) => {
                let mut result = result_of(result, self.max_result_bytes);
                if result.success {
                    result.sources.push(Source {
                        kind: SourceKind::Tool,
                        reference: self.entry.id.clone(),
                        version: None,
                        digest: result.output.as_ref().and_then(|output| Digest::of_json(output).ok()),
                        score: None,
                        trust: Trust::External,
                    });
                }
                ToolOutcome::Returned(result)
            }
            ServerResult::InputRequiredResult(_) => {
                failed("The tool asks a person for something, which this sidecar declines.")
            }
            _ => failed("The answer of the server is not the result of a tool."),
        }
    }

    fn failed(&self, error: ServiceError) -> ToolOutcome {
        let http = HttpFailure::of_call(&error);
        match &error {
            ServiceError::McpError(_) => ToolOutcome::Returned(ToolResult::failed(error_text(error))),
            ServiceError::TransportSend(sent)
                if http.as_ref().is_some_and(|failure| !failure.is_sent) || is_broken_pipe(sent) =>
            {
                refused(ToolCode::McpUnavailable, format!("The call was not sent. {}", error_text(error)))
            }
            _ => self.lost(error_text(error).trim_end_matches('.')),
        }
    }

    /// The call was sent, and no answer came.
    fn lost(&self, why: &str) -> ToolOutcome {
        let server = self.server.name();
        let text = format!("The call was sent to the MCP server `{server}`, but {}", lower_first(why));
        match self.entry.effect {
            Some(EffectClass::Read) => refused(ToolCode::McpUnavailable, format!("{text}.")),
            _ => ToolOutcome::Unknown { reason: text },
        }
    }
}

/// Whether a program had closed its input. Then it never got a whole line.
fn is_broken_pipe(error: &DynamicTransportError) -> bool {
    let error = error.error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// A call without an answer. Dropping it tells the server that the answer is no longer needed.
struct PendingCall(Option<RequestHandle<RoleClient>>);

impl PendingCall {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        // The notice may wait for a server that does not read.
        runtime.spawn(tokio::time::timeout(CANCEL_TIME, handle.cancel(Some("the time is over".to_owned()))));
    }
}

/// The longest time for the notice that a call has ended.
const CANCEL_TIME: Duration = Duration::from_secs(5);
