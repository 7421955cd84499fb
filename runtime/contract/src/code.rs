//! The six sets of codes: diagnostics of a flow, errors of a run, failures of a tool call, errors of stored runs,
//! errors of the archive, and errors of the sidecar's interface.
//!
//! Codes may be added; none may change its meaning. Each has a section on a page under `docs/codes`, which
//! `redflow explain CODE` prints.

mod pages;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal $class:expr, $line:literal;)+ } class $class_type:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
        pub enum $name {
            $(#[doc = $line] #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every code, in the order of its declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as text.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// What it means, in one line.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => $line),+ }
            }

            /// The section of the code on the page of its family, in Markdown.
            #[must_use]
            pub fn page(self) -> &'static str {
                pages::section(self.as_str()).unwrap_or_default()
            }

            /// The severity, the retry advice or the HTTP status of the code.
            #[must_use]
            pub fn class(self) -> $class_type {
                match self { $(Self::$variant => $class),+ }
            }

            /// Finds the code with this text.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The flow, or the agent it names, is refused.
    Error,
    /// The flow runs, but probably not as intended.
    Warning,
    /// A note.
    Info,
}

impl Severity {
    /// The severity as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Whether the same request can succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same request fails in the same way.
    Never,
    /// The request may succeed later without a change.
    Later,
}

codes! {
    /// A problem that the checker finds in a flow.
    DiagnosticCode {
        FlowUnreadable "FLOW_UNREADABLE" Severity::Error, "The flow file cannot be opened or read.";
        FlowNotJson "FLOW_NOT_JSON" Severity::Error, "The flow file is not one JSON value.";
        FlowTooLarge "FLOW_TOO_LARGE" Severity::Error, "The flow is larger than the limits allow.";
        FlowTooDeep "FLOW_TOO_DEEP" Severity::Error, "The flow is nested deeper than the limits allow.";
        FlowShapeUnknown "FLOW_SHAPE_UNKNOWN" Severity::Error, "The file is JSON, but none of the four shapes of a flow.";
        DuplicateKey "DUPLICATE_KEY" Severity::Error, "An object in the flow file names a key twice.";
        DuplicateId "DUPLICATE_ID" Severity::Error, "Two nodes share an id, or a node has none.";
        SubflowCycle "SUBFLOW_CYCLE" Severity::Error, "A subflow contains itself.";
        ConfigInvalid "CONFIG_INVALID" Severity::Error, "A node's properties break the schema of its type.";
        EdgeTargetMissing "EDGE_TARGET_MISSING" Severity::Error, "A wire or a binding names a node that does not exist.";
        EdgeSelf "EDGE_SELF" Severity::Error, "A node is wired to itself.";
        EdgeDuplicate "EDGE_DUPLICATE" Severity::Error, "The same wire is drawn twice.";
        PortOutOfRange "PORT_OUT_OF_RANGE" Severity::Error, "A wire leaves from a port the node does not have.";
        EdgeKindMismatch "EDGE_KIND_MISMATCH" Severity::Error, "A wire joins two ends that do not fit.";
        ResultOnMemoryPort "RESULT_ON_MEMORY_PORT" Severity::Error, "An output node is wired to the memory port instead of the result port.";
        EdgeForeignReply "EDGE_FOREIGN_REPLY" Severity::Error, "A service replies to an agent that did not bind it.";
        ModelMissing "MODEL_MISSING" Severity::Error, "An agent has no model.";
        ModelKeyMissing "MODEL_KEY_MISSING" Severity::Error, "A model has no API key, so the agents that use it cannot run.";
        ModelMultiple "MODEL_MULTIPLE" Severity::Error, "An agent has more than one model.";
        MemoryMultiple "MEMORY_MULTIPLE" Severity::Error, "An agent has more than one memory.";
        MemoryCycle "MEMORY_CYCLE" Severity::Error, "Memories name each other in a circle.";
        MemoryModelMissing "MEMORY_MODEL_MISSING" Severity::Error, "A memory that needs a model names none.";
        ToolNameInvalid "TOOL_NAME_INVALID" Severity::Error, "A tool's name is empty or not a valid function name.";
        ToolNameDuplicate "TOOL_NAME_DUPLICATE" Severity::Error, "Two tools of one agent share a name.";
        ToolNotConnected "TOOL_NOT_CONNECTED" Severity::Error, "`allowedTools` names a tool that is not connected.";
        ToolChainOpen "TOOL_CHAIN_OPEN" Severity::Error, "A flow used as a tool never returns.";
        CredentialUnbound "CREDENTIAL_UNBOUND" Severity::Error, "A tool has credentials, but no list of hosts that may get them.";
        ToolWithoutSchema "TOOL_WITHOUT_SCHEMA" Severity::Warning, "A tool has no JSON Schema for its input.";
        ToolNotStrict "TOOL_NOT_STRICT" Severity::Warning, "A tool asks for strict input, but its JSON Schema does not fit.";
        ToolConnectedNotAllowed "TOOL_CONNECTED_NOT_ALLOWED" Severity::Warning, "A connected tool is not in `allowedTools`.";
        MemoryNotUsed "MEMORY_NOT_USED" Severity::Warning, "A memory is connected to an agent that has none.";
        PromptTemplateIgnored "PROMPT_TEMPLATE_IGNORED" Severity::Warning, "`modelPromptTemplate` has no effect.";
        SessionShared "SESSION_SHARED" Severity::Warning, "All users of an agent share one conversation memory.";
        SecretInFlow "SECRET_IN_FLOW" Severity::Warning, "A key or password is written in the flow file.";
        PropertyUnknown "PROPERTY_UNKNOWN" Severity::Warning, "A model has a property that its type does not know.";
        DefaultAssumed "DEFAULT_ASSUMED" Severity::Warning, "A missing property took its default (profile `redflow`).";
        CollectionUnknown "COLLECTION_UNKNOWN" Severity::Warning, "There is no such collection in the archive.";
        EmbeddingsLexical "EMBEDDINGS_LEXICAL" Severity::Warning, "The search of a knowledge base finds words, not meaning.";
        McpServerUnknown "MCP_SERVER_UNKNOWN" Severity::Warning, "The manifest has no MCP server with this name.";
        ManifestInvalid "MANIFEST_INVALID" Severity::Error, "The manifest of tools is not valid.";
        NeedsNodeRed "NEEDS_NODE_RED" Severity::Info, "This build cannot run the node; Node-RED can.";
    } class Severity
}

codes! {
    /// Why a run ended without an answer.
    RunErrorCode {
        InvalidJson "INVALID_JSON" Retry::Never, "The model's answer is not exactly one JSON object.";
        InvalidAction "INVALID_ACTION" Retry::Never, "The model's answer is no valid action.";
        InvalidConfidence "INVALID_CONFIDENCE" Retry::Never, "The action's confidence is missing, no number, or outside 0 to 1.";
        ToolNotAllowed "TOOL_NOT_ALLOWED" Retry::Never, "The model asked for a tool that is not in `allowedTools`.";
        ToolInputInvalid "TOOL_INPUT_INVALID" Retry::Never, "The tool input breaks the tool's schema.";
        ModelRefused "MODEL_REFUSED" Retry::Never, "The model refused to answer.";
        ModelTruncated "MODEL_TRUNCATED" Retry::Never, "The model's answer was cut off.";
        IterationOverflow "ITERATION_OVERFLOW" Retry::Never, "The agent used all its iterations without a final answer.";
        ConfigInvalid "CONFIG_INVALID" Retry::Never, "The agent, or a node it binds, is configured wrongly.";
        ModelKeyMissing "MODEL_KEY_MISSING" Retry::Never, "A model has no API key, so the agents that use it cannot run.";
        EdgeRejected "EDGE_REJECTED" Retry::Never, "The agent's wires break the edge rules.";
        NeedsNodeRed "NEEDS_NODE_RED" Retry::Never, "The agent binds a node this build cannot run.";
        ModelError "MODEL_ERROR" Retry::Never, "The model call failed.";
        ModelNotFound "MODEL_NOT_FOUND" Retry::Never, "The provider does not know the model.";
        InvalidCredentials "INVALID_CREDENTIALS" Retry::Never, "The provider refused the credentials.";
        RateLimit "RATE_LIMIT" Retry::Later, "The provider asks for fewer requests.";
        QuotaExceeded "QUOTA_EXCEEDED" Retry::Never, "The provider's quota or balance is used up.";
        ImageInvalid "IMAGE_INVALID" Retry::Never, "An image of the message cannot be used or downloaded.";
        ContextLength "CONTEXT_LENGTH" Retry::Never, "The conversation is longer than the model can read.";
        ProviderUnavailable "PROVIDER_UNAVAILABLE" Retry::Later, "The provider cannot be reached or is overloaded.";
        Timeout "TIMEOUT" Retry::Later, "The run's deadline passed.";
        Cancelled "CANCELLED" Retry::Later, "The run was cancelled.";
        BudgetExceeded "BUDGET_EXCEEDED" Retry::Never, "The run's budget is used up.";
        QueueFull "QUEUE_FULL" Retry::Later, "Too many runs are waiting already.";
        ToolError "TOOL_ERROR" Retry::Never, "A tool failed in a way the run cannot go on from.";
        ToolUnavailable "TOOL_UNAVAILABLE" Retry::Later, "A tool that the agent names is not there.";
        McpUnavailable "MCP_UNAVAILABLE" Retry::Later, "The MCP server is not connected, or a person must sign in.";
        ToolOutcomeUnknown "TOOL_OUTCOME_UNKNOWN" Retry::Never, "It is unknown whether a tool call happened.";
        ApprovalRejected "APPROVAL_REJECTED" Retry::Never, "A person rejected the call.";
        ApprovalExpired "APPROVAL_EXPIRED" Retry::Later, "No person approved the call in time.";
        MemoryError "MEMORY_ERROR" Retry::Later, "The conversation memory failed.";
        OutputNotJson "OUTPUT_NOT_JSON" Retry::Never, "The answer was to be JSON and is not.";
        OutputInvalid "OUTPUT_INVALID" Retry::Never, "The answer breaks the agent's `outputSchema`.";
        RuntimeUnreachable "RUNTIME_UNREACHABLE" Retry::Later, "Node-RED could not reach the sidecar in time, so no run began.";
        JournalFailed "JOURNAL_FAILED" Retry::Later, "The run could not begin because its journal cannot be written.";
        Internal "INTERNAL" Retry::Never, "Redflow Runtime itself failed.";
    } class Retry
}

impl RunErrorCode {
    /// The HTTP status of a response to a request whose run failed with this code: 4xx if the request has to
    /// change, 504 if time ran out, else 5xx.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::ApprovalRejected => 403,
            Self::ContextLength => 413,
            Self::ModelRefused | Self::ImageInvalid => 422,
            Self::ConfigInvalid
            | Self::ModelKeyMissing
            | Self::EdgeRejected
            | Self::NeedsNodeRed
            | Self::ModelNotFound
            | Self::InvalidCredentials
            | Self::BudgetExceeded
            | Self::IterationOverflow
            | Self::Internal => 500,
            Self::InvalidJson
            | Self::InvalidAction
            | Self::InvalidConfidence
            | Self::ToolNotAllowed
            | Self::ToolInputInvalid
            | Self::ModelTruncated
            | Self::ModelError
            | Self::ToolError
            | Self::ToolOutcomeUnknown
            | Self::OutputNotJson
            | Self::OutputInvalid => 502,
            Self::RateLimit
            | Self::QuotaExceeded
            | Self::ProviderUnavailable
            | Self::Cancelled
            | Self::QueueFull
            | Self::ToolUnavailable
            | Self::McpUnavailable
            | Self::MemoryError
            | Self::RuntimeUnreachable
            | Self::JournalFailed => 503,
            Self::Timeout | Self::ApprovalExpired => 504,
        }
    }
}

codes! {
    /// Why a tool call failed, if the runtime itself refused or ended it. The model reads it in the result.
    ToolCode {
        EgressRefused "EGRESS_REFUSED" Retry::Never, "A rule for outgoing requests refused the address or the answer.";
        EgressTooLarge "EGRESS_TOO_LARGE" Retry::Never, "The response to a request is larger than the limits allow.";
        ToolDenied "TOOL_DENIED" Retry::Never, "The policy does not allow this call.";
        ToolRateLimited "TOOL_RATE_LIMITED" Retry::Later, "The policy allows fewer calls of this tool.";
        ToolUnavailable "TOOL_UNAVAILABLE" Retry::Later, "A tool that the agent names is not there.";
        McpUnavailable "MCP_UNAVAILABLE" Retry::Later, "The MCP server is not connected, or a person must sign in.";
        ToolChanged "TOOL_CHANGED" Retry::Never, "The definition of the tool is not the one that was approved, or that the run began with.";
        ToolOutputInvalid "TOOL_OUTPUT_INVALID" Retry::Never, "The output of the tool breaks its schema.";
        McpInputRequired "MCP_INPUT_REQUIRED" Retry::Never, "The MCP server wants something of a person or a model first, and the sidecar declines it.";
    } class Retry
}

codes! {
    /// Why an operation on stored runs or on the data directory failed.
    StoreCode {
        DataLocked "DATA_LOCKED" Retry::Later, "Another process drives the runs of this data directory.";
        DataReadOnly "DATA_READ_ONLY" Retry::Never, "The data directory cannot be written.";
        DataFull "DATA_FULL" Retry::Later, "There is no room left for the data directory.";
        DataCorrupt "DATA_CORRUPT" Retry::Never, "What is stored is not what was written.";
        DataNewer "DATA_NEWER" Retry::Never, "The data directory was written by a newer Redflow Runtime.";
        DataUnusable "DATA_UNUSABLE" Retry::Never, "The data directory cannot be used.";
        RunUnknown "RUN_UNKNOWN" Retry::Never, "There is no such run in the data directory.";
        RunOver "RUN_OVER" Retry::Never, "The run is over already.";
        RunNotWaiting "RUN_NOT_WAITING" Retry::Never, "The run does not wait for the outcome of that call.";
        RunBlocked "RUN_BLOCKED" Retry::Never, "The run cannot go on with this flow and this environment.";
        RunHung "RUN_HUNG" Retry::Never, "The run held its process, so it is not resumed by itself.";
        ResultInvalid "RESULT_INVALID" Retry::Never, "The result given for a call cannot be used.";
    } class Retry
}

codes! {
    /// Why an operation on the archive failed: its entries, documents and vectors.
    ArchiveCode {
        CollectionUnknown "COLLECTION_UNKNOWN" Retry::Never, "There is no such collection in the archive.";
        DocumentUnknown "DOCUMENT_UNKNOWN" Retry::Never, "There is no such document in the collection.";
        DocumentUnreadable "DOCUMENT_UNREADABLE" Retry::Never, "The document has no text that can be read.";
        DocumentTooLarge "DOCUMENT_TOO_LARGE" Retry::Never, "The document is larger than the limits allow.";
        MemoryConflict "MEMORY_CONFLICT" Retry::Later, "The entry has another version than the one that was expected.";
        EntryInvalid "ENTRY_INVALID" Retry::Never, "The entry cannot be stored as it is.";
        EmbedderMismatch "EMBEDDER_MISMATCH" Retry::Never, "The vectors of the collection come from another embedder.";
        EmbeddingsFailed "EMBEDDINGS_FAILED" Retry::Later, "The provider made no vectors of the texts.";
        TextRefused "TEXT_REFUSED" Retry::Never, "The provider of the embedder refuses a text.";
        ArchiveFull "ARCHIVE_FULL" Retry::Never, "There is no room left in the collection or on the disk.";
        ArchiveUnreadable "ARCHIVE_UNREADABLE" Retry::Never, "The file of the archive cannot be used.";
    } class Retry
}

impl ArchiveCode {
    /// The HTTP status of an answer with this code.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::CollectionUnknown | Self::DocumentUnknown => 404,
            Self::MemoryConflict | Self::EmbedderMismatch => 409,
            Self::DocumentTooLarge => 413,
            Self::DocumentUnreadable | Self::EntryInvalid | Self::TextRefused => 422,
            Self::ArchiveUnreadable => 500,
            Self::EmbeddingsFailed => 502,
            Self::ArchiveFull => 507,
        }
    }
}

codes! {
    /// Why the sidecar refused a request over HTTP or a socket, or did not start.
    ApiCode {
        Unauthorized "UNAUTHORIZED" 401, "The request carries no token, or one that is not known.";
        Forbidden "FORBIDDEN" 403, "The token may not do this.";
        HostRefused "HOST_REFUSED" 403, "The request was sent to a host name this sidecar does not answer to.";
        OriginRefused "ORIGIN_REFUSED" 403, "The request comes from a web page that is not admitted.";
        SignInRefused "SIGN_IN_REFUSED" 401, "The one-time code is wrong, used, or too old.";
        RouteUnknown "ROUTE_UNKNOWN" 404, "There is nothing at this address.";
        MethodRefused "METHOD_REFUSED" 405, "This address does not take this method.";
        NotFound "NOT_FOUND" 404, "There is no such flow, node or code.";
        ContentTypeRefused "CONTENT_TYPE_REFUSED" 415, "The body is not announced as plain JSON.";
        BodyTooLarge "BODY_TOO_LARGE" 413, "The body is larger than the limits allow.";
        BodyInvalid "BODY_INVALID" 400, "The body is not the JSON this address takes.";
        RequestInvalid "REQUEST_INVALID" 400, "The request itself is malformed.";
        RequestTimeout "REQUEST_TIMEOUT" 408, "The request did not arrive in time.";
        RateLimited "RATE_LIMITED" 429, "Too many requests were made with this token.";
        TooManyConnections "TOO_MANY_CONNECTIONS" 503, "No more connections are taken at the moment.";
        Stopping "STOPPING" 503, "The sidecar is starting or stopping.";
        RevisionConflict "REVISION_CONFLICT" 409, "Another flow has been deployed meanwhile.";
        FlowRefused "FLOW_REFUSED" 422, "The flow has errors, so nothing was deployed.";
        NodeNotStartable "NODE_NOT_STARTABLE" 422, "The node cannot be started like this.";
        IdempotencyKeyReused "IDEMPOTENCY_KEY_REUSED" 409, "An earlier start with this key asked for something else.";
        ChatNotConnected "CHAT_NOT_CONNECTED" 409, "The chat node is not wired to an agent.";
        ToolRefused "TOOL_REFUSED" 422, "The definition of the tool has errors, so nothing was registered.";
        ToolConflict "TOOL_CONFLICT" 409, "Another tool has this id or this name already.";
        McpFailed "MCP_FAILED" 502, "The MCP server, or the issuer of its tokens, cannot be used.";
        McpPinStale "MCP_PIN_STALE" 409, "The MCP server no longer sends the definition that was to be approved.";
        McpLoginRefused "MCP_LOGIN_REFUSED" 409, "A sign-in at the issuer of this MCP server cannot begin or end like this.";
        KeyNotSent "KEY_NOT_SENT" 409, "The key of the deployed node belongs to another address, so it was not sent.";
        StorageFull "STORAGE_FULL" 413, "The storage of the Redflow UI, or of registered tools, has no room for this.";
        CursorUnknown "CURSOR_UNKNOWN" 410, "The cursor is not one of this sidecar's events.";
        EventsGone "EVENTS_GONE" 410, "The events after the cursor are no longer kept.";
        ReaderTooSlow "READER_TOO_SLOW" 408, "The reader did not take its events in time.";
        MessageInvalid "MESSAGE_INVALID" 400, "A message on a socket is not one the protocol has.";
        MessageTooLarge "MESSAGE_TOO_LARGE" 413, "A message on a socket is larger than the limits allow.";
        ConfigFileInvalid "CONFIG_FILE_INVALID" 500, "The configuration cannot be used.";
        ListenFailed "LISTEN_FAILED" 500, "The sidecar cannot listen at its address.";
        SecretFileUnsafe "SECRET_FILE_UNSAFE" 500, "A file with a secret can be read or changed by others, or is not what it should be.";
        CredentialsUnreadable "CREDENTIALS_UNREADABLE" 500, "The stored credentials cannot be decrypted.";
        CredentialsFileInvalid "CREDENTIALS_FILE_INVALID" 422, "The credentials file is not one of Node-RED's, or the secret is another one.";
        SidecarUnreachable "SIDECAR_UNREACHABLE" 502, "No sidecar answers at this address.";
        ProtocolMismatch "PROTOCOL_MISMATCH" 400, "The palette module and the sidecar speak different versions of the bridge protocol.";
        InstanceTaken "INSTANCE_TAKEN" 409, "Another Node-RED with the same instance id is connected.";
        TooManyInstances "TOO_MANY_INSTANCES" 503, "The sidecar serves as many Node-REDs as it may already.";
        ReplyDropped "REPLY_DROPPED" 410, "A tool's reply came when no call waited for it.";
        NodeRedUnreachable "NODE_RED_UNREACHABLE" 502, "Node-RED does not answer at this address.";
        NodeRedRefused "NODE_RED_REFUSED" 502, "Node-RED refused what it was asked.";
    } class u16
}

/// The section of a code of any set on the page of its family, in Markdown.
#[must_use]
pub fn page(code: &str) -> Option<&'static str> {
    DiagnosticCode::parse(code)
        .map(DiagnosticCode::page)
        .or_else(|| RunErrorCode::parse(code).map(RunErrorCode::page))
        .or_else(|| ToolCode::parse(code).map(ToolCode::page))
        .or_else(|| StoreCode::parse(code).map(StoreCode::page))
        .or_else(|| ArchiveCode::parse(code).map(ArchiveCode::page))
        .or_else(|| ApiCode::parse(code).map(ApiCode::page))
}

/// What to do about a code of any set, in Markdown: the last part of its section.
#[must_use]
pub fn remedy(code: &str) -> Option<&'static str> {
    pages::remedy(page(code)?)
}

#[cfg(test)]
mod tests {
    use super::pages::PAGES;
    use super::{ApiCode, ArchiveCode, DiagnosticCode, RunErrorCode, StoreCode, ToolCode, page, remedy};
    use std::collections::BTreeSet;

    /// A section starts with its code and summary, then explains it, shows an example, and says what to do.
    fn check_page(code: &str, summary: &str, page: &str) {
        let mut lines = page.lines();
        assert_eq!(lines.next(), Some(format!("## {code}").as_str()));
        assert!(page.contains(summary), "{code}: the page must quote the summary: {summary}");
        for heading in ["### What it means", "### Example", "### How to fix it"] {
            let section =
                page.split(&format!("\n{heading}\n")).nth(1).and_then(|rest| rest.split("\n### ").next());
            assert!(section.is_some_and(|text| !text.trim().is_empty()), "{code}: nothing under {heading}");
        }
        let remedy = remedy(code).unwrap_or_default();
        assert!(
            page.ends_with(&format!("\n### How to fix it\n\n{remedy}\n")),
            "{code}: it must be the last part"
        );
        let whole = remedy.matches("\n```").count().is_multiple_of(2) && !remedy.starts_with("```");
        assert!(!remedy.is_empty() && whole, "{code}: it must stand alone: {remedy}");
    }

    #[test]
    fn every_code_has_a_page_and_round_trips() {
        for code in DiagnosticCode::ALL {
            check_page(code.as_str(), code.summary(), code.page());
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(DiagnosticCode::parse(code.as_str()), Some(*code));
        }
        for code in RunErrorCode::ALL {
            check_page(code.as_str(), code.summary(), code.page());
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(RunErrorCode::parse(code.as_str()), Some(*code));
        }
        for code in ToolCode::ALL {
            check_page(code.as_str(), code.summary(), code.page());
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(ToolCode::parse(code.as_str()), Some(*code));
        }
        for code in StoreCode::ALL {
            check_page(code.as_str(), code.summary(), code.page());
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(StoreCode::parse(code.as_str()), Some(*code));
        }
        for code in ArchiveCode::ALL {
            check_page(code.as_str(), code.summary(), code.page());
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(ArchiveCode::parse(code.as_str()), Some(*code));
            assert!((400..600).contains(&code.http_status()));
        }
        for code in ApiCode::ALL {
            check_page(code.as_str(), code.summary(), code.page());
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(ApiCode::parse(code.as_str()), Some(*code));
        }
        assert_eq!((page("NO_SUCH_CODE"), remedy("NO_SUCH_CODE")), (None, None));
    }

    #[test]
    fn a_failed_run_has_the_status_of_who_has_to_act() {
        let status = |text: &str| RunErrorCode::parse(text).unwrap().http_status();
        assert_eq!((status("CONTEXT_LENGTH"), status("MODEL_REFUSED")), (413, 422), "the caller");
        assert_eq!((status("MODEL_KEY_MISSING"), status("INTERNAL")), (500, 500), "the owner of the flow");
        assert_eq!((status("MODEL_ERROR"), status("PROVIDER_UNAVAILABLE")), (502, 503), "the provider");
        assert_eq!(status("TIMEOUT"), 504);
        assert!(RunErrorCode::ALL.iter().all(|code| (400..600).contains(&code.http_status())));
    }

    #[test]
    fn pages_name_the_result_port_without_a_number() {
        for code in RunErrorCode::ALL {
            let words: Vec<_> = code.page().split_whitespace().collect();
            let numbered = words.windows(3).any(|three| matches!(three, ["leaves", "port", _]));
            assert!(!numbered, "{}: it is port 3 of one agent and port 0 of another", code.as_str());
        }
    }

    /// The names of the pages in `docs/codes`, without the index.
    fn page_names() -> BTreeSet<String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/codes");
        let names =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "README.md").collect()
    }

    fn headings(page: &str) -> impl Iterator<Item = &str> {
        page.lines().filter_map(|line| line.strip_prefix("## "))
    }

    #[test]
    fn every_section_belongs_to_a_code_and_every_page_is_embedded() {
        assert_eq!(page_names().len(), PAGES.len());
        let mut codes = BTreeSet::new();
        for code in PAGES.iter().flat_map(|page| headings(page)) {
            assert!(page(code).is_some(), "`## {code}` explains no code");
            assert!(codes.insert(code), "{code} has two sections");
        }
    }

    #[test]
    fn the_index_leads_to_every_section() {
        let index = include_str!("../../../docs/codes/README.md");
        let mut links = 0;
        for name in page_names() {
            let path = format!("{}/../../docs/codes/{name}", env!("CARGO_MANIFEST_DIR"));
            let page = std::fs::read_to_string(path).unwrap();
            assert!(PAGES.contains(&page), "docs/codes/{name} is not embedded");
            for code in headings(&page) {
                let link = format!("[`{code}`]({name}#{})", code.to_lowercase());
                assert!(index.contains(&link), "docs/codes/README.md has no {link}");
                links += 1;
            }
        }
        assert_eq!(index.matches("[`").count(), links);
    }
}
