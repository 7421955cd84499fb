//! One call of a tool of a server, and what its end means.

use crate::content::{loose_result, result_of};
use crate::http::HttpFailure;
use crate::input::InputRounds;
use crate::lists::error_text;
use crate::repair::AMBIGUOUS_ANSWER;
use crate::resources;
use crate::schema::OutputSchema;
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
use std::sync::{Arc, OnceLock};
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
    /// The schema of its output, compiled at the first result; none if it has none.
    pub(crate) output_schema: OnceLock<Option<OutputSchema>>,
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

/// How a try of a call ended.
enum Attempt {
    Ended(ToolOutcome),
    /// The server has ended the session, and did not take the call.
    SessionEnd(ToolOutcome),
}

impl Attempt {
    fn outcome(self) -> ToolOutcome {
        match self {
            Self::Ended(outcome) | Self::SessionEnd(outcome) => outcome,
        }
    }
}

fn refused(code: ToolCode, text: impl Into<String>) -> ToolOutcome {
    ToolOutcome::Returned(ToolResult::refused(code, text))
}

impl McpTool {
    async fn make_call(&self, call: &ToolCall) -> ToolOutcome {
        let time = Duration::from_millis(call.timeout_ms.min(self.entry.timeout_ms));
        let deadline = Instant::now() + time;
        match self.try_call(call, deadline).await {
            // The server has ended the session before the call, so it goes into the next one, once.
            Attempt::SessionEnd(_) => self.try_call(call, deadline).await.outcome(),
            Attempt::Ended(outcome) => outcome,
        }
    }

    async fn try_call(&self, call: &ToolCall, deadline: Instant) -> Attempt {
        let left = deadline.saturating_duration_since(Instant::now());
        let connected = match self.server.connected(left).await {
            Ok(connected) => connected,
            Err(reason) => return Attempt::Ended(refused(ToolCode::McpUnavailable, reason)),
        };
        let most = self.max_result_bytes;
        Attempt::Ended(match self.kind {
            ServerToolKind::ListResources => resources::list(&connected, most, deadline).await,
            ServerToolKind::ReadResource => {
                let uri = call.input.get("uri").and_then(|uri| uri.as_str()).unwrap_or_default();
                resources::read(&connected, self.server.name(), uri, most, deadline).await
            }
            // The lists may have been read again since the run began, with the connection above too.
            ServerToolKind::Call => match self.check_definition() {
                Ok(()) => return self.send(&connected, call, deadline).await,
                Err((code, text)) => refused(code, text),
            },
        })
    }

    /// Refuses a tool that is no longer the one that the run began with.
    fn check_definition(&self) -> Result<(), (ToolCode, String)> {
        let (id, server) = (&self.entry.id, self.server.name());
        let handle = self.server.definition.handle();
        let Some(now) = self.server.current_entry(&self.name) else {
            let text = format!("The server `{server}` no longer has the tool `{id}`.");
            return Err((ToolCode::ToolUnavailable, text));
        };
        let reason = now.reason.as_deref().unwrap_or_default();
        match now.state {
            ToolState::Changed => {
                let text =
                    format!("The definition of the tool `{id}` has changed. {}", approval_text(handle));
                Err((ToolCode::ToolChanged, text))
            }
            ToolState::Blocked => {
                Err((ToolCode::ToolUnavailable, format!("The tool `{id}` cannot be used. {reason}")))
            }
            ToolState::Ready | ToolState::Offline if now.digest != self.entry.digest => {
                let text = format!("The tool `{id}` has changed since the run began.");
                Err((ToolCode::ToolChanged, text))
            }
            ToolState::Ready | ToolState::Offline => Ok(()),
        }
    }

    /// Calls the tool. What the server asks for first is declined.
    async fn send(&self, connected: &Connected, call: &ToolCall, deadline: Instant) -> Attempt {
        let mut params = CallToolRequestParams::new(self.name.clone());
        params.arguments = Some(call.input.clone().into_iter().collect());
        let mut rounds = InputRounds::default();
        // A server that asks has taken the call, and may have begun to do it.
        let mut is_taken = false;
        loop {
            let asked = match self.exchange(connected, call, params.clone(), deadline).await {
                Ok(ServerResult::InputRequiredResult(asked)) => asked,
                Ok(result) => return Attempt::Ended(self.returned(result)),
                Err(attempt) if is_taken => return Attempt::Ended(self.lost_after_question(attempt)),
                Err(attempt) => return attempt,
            };
            is_taken = true;
            match rounds.decline(&connected.warnings, asked).await {
                Ok(declined) => {
                    (params.input_responses, params.request_state) = (declined.responses, declined.state);
                }
                Err(error) => return Attempt::Ended(ToolOutcome::Returned(error.result())),
            }
        }
    }

    /// Sends a call, and waits for the answer.
    async fn exchange(
        &self,
        connected: &Connected,
        call: &ToolCall,
        params: CallToolRequestParams,
        deadline: Instant,
    ) -> Result<ServerResult, Attempt> {
        let mut meta = RequestMetaObject::new();
        meta.insert(KEY_META.to_owned(), call.idempotency_key.to_hex().into());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let sending = connected.peer.send_request_with_option(request, options);
        let handle = match tokio::time::timeout_at(deadline, sending).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(_)) => {
                let text =
                    format!("The call was not sent: the connection to `{}` was lost.", self.server.name());
                return Err(Attempt::Ended(refused(ToolCode::McpUnavailable, text)));
            }
            // It may be sent all the same.
            Err(_) => return Err(Attempt::Ended(self.lost("the server did not take it in time"))),
        };
        let mut pending = PendingCall(Some(handle));
        match tokio::time::timeout_at(deadline, pending.answer()).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(self.failed(connected, error)),
            // Dropping the pending call tells the server.
            Err(_) => Err(Attempt::Ended(self.lost("the server did not answer in time"))),
        }
    }

    fn returned(&self, result: ServerResult) -> ToolOutcome {
        let schema =
            self.output_schema.get_or_init(|| OutputSchema::compile(self.entry.output_schema.as_ref()?));
        let (most, schema) = (self.max_result_bytes, schema.as_ref());
        let result = match result {
            ServerResult::CallToolResult(result) => Some(result_of(result, most, schema)),
            // The library reads no result with one unknown block in it.
            ServerResult::CustomResult(result) => loose_result(result.0, most, schema),
            _ => None,
        };
        // The server may have done what the call asks.
        let Some(mut result) = result else {
            return self.lost("the answer of the server is not the result of a tool");
        };
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

    fn failed(&self, connected: &Connected, error: ServiceError) -> Attempt {
        let http = HttpFailure::of_call(&error);
        let is_session_end = http.as_ref().is_some_and(|failure| failure.is_session_end);
        let outcome = match &error {
            // The server may have done what the call asks.
            ServiceError::McpError(answer) if answer.code == AMBIGUOUS_ANSWER => self.lost(&answer.message),
            ServiceError::McpError(_) => ToolOutcome::Returned(ToolResult::failed(error_text(error))),
            ServiceError::TransportSend(sent)
                if http.as_ref().is_some_and(|failure| !failure.is_sent) || is_broken_pipe(sent) =>
            {
                let is_login = http.is_some_and(|failure| failure.needs_login) && self.server.has_login();
                let advice = if is_login { format!(" {}", self.server.login_text()) } else { String::new() };
                let text = format!("The call was not sent. {}{advice}", error_text(error));
                refused(ToolCode::McpUnavailable, text)
            }
            _ => self.lost(error_text(error).trim_end_matches('.')),
        };
        if is_session_end {
            self.server.forget_connection(connected);
            return Attempt::SessionEnd(outcome);
        }
        Attempt::Ended(outcome)
    }

    /// The end of a call whose server asked first. That its answer was not sent does not mean that nothing was done.
    fn lost_after_question(&self, attempt: Attempt) -> ToolOutcome {
        match attempt.outcome() {
            ToolOutcome::Returned(ToolResult { code: Some(ToolCode::McpUnavailable), .. }) => {
                self.lost("the connection was lost after the server had asked a question")
            }
            outcome => outcome,
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
