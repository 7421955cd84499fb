//! All metrics: their names, kinds, labels and help texts. No other place names one.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    RunsActive,
    Runs,
    RunDuration,
    RunIterations,
    ModelCalls,
    ModelCallDuration,
    ModelRetries,
    Tokens,
    Cost,
    UnpricedCalls,
    ToolCalls,
    ToolCallDuration,
    ToolsRefused,
    EgressRequests,
    McpCalls,
    McpUp,
    MemoryCalls,
    MemoryCallDuration,
    MemoryMessages,
    MemoryBytes,
    MemoryLookups,
    ArchiveSearchDuration,
    ArchiveEntries,
    Quarantined,
    Consolidations,
    EmbeddingCalls,
    Errors,
    HttpRequests,
    HttpDuration,
    Sockets,
    SocketsClosed,
    EventsSent,
    LoopDelay,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MetricKind {
    /// Goes up and down.
    Gauge,
    /// The last recorded value.
    Last,
    /// Goes up, in whole steps.
    Counter,
    /// Goes up, by any amount.
    Sum,
    /// Counts values up to each of these limits.
    Histogram(&'static [f64]),
}

const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const COUNTS: &[f64] = &[1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 50.0, 100.0];
const BYTES: &[f64] = &[256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0];

impl Metric {
    /// In the order of declaration, so that a metric is the index of its series.
    pub(crate) const ALL: &'static [Self] = &[
        Self::RunsActive,
        Self::Runs,
        Self::RunDuration,
        Self::RunIterations,
        Self::ModelCalls,
        Self::ModelCallDuration,
        Self::ModelRetries,
        Self::Tokens,
        Self::Cost,
        Self::UnpricedCalls,
        Self::ToolCalls,
        Self::ToolCallDuration,
        Self::ToolsRefused,
        Self::EgressRequests,
        Self::McpCalls,
        Self::McpUp,
        Self::MemoryCalls,
        Self::MemoryCallDuration,
        Self::MemoryMessages,
        Self::MemoryBytes,
        Self::MemoryLookups,
        Self::ArchiveSearchDuration,
        Self::ArchiveEntries,
        Self::Quarantined,
        Self::Consolidations,
        Self::EmbeddingCalls,
        Self::Errors,
        Self::HttpRequests,
        Self::HttpDuration,
        Self::Sockets,
        Self::SocketsClosed,
        Self::EventsSent,
        Self::LoopDelay,
    ];

    pub(crate) fn name(self) -> &'static str {
        self.definition().0
    }

    pub(crate) fn help(self) -> &'static str {
        self.definition().3
    }

    pub(crate) fn kind(self) -> MetricKind {
        self.definition().1
    }

    /// The names of its labels, in the order in which values are passed.
    pub(crate) fn labels(self) -> &'static [&'static str] {
        self.definition().2
    }

    /// The name, the kind, the labels and the help text.
    fn definition(self) -> (&'static str, MetricKind, &'static [&'static str], &'static str) {
        use MetricKind::{Counter, Gauge, Histogram, Last, Sum};
        match self {
            Self::RunsActive => ("redflow_runs_active", Gauge, &[], "Runs that are active now"),
            Self::Runs => ("redflow_runs_total", Counter, &["agent", "outcome", "code"], "Runs that ended"),
            Self::RunDuration => (
                "redflow_run_duration_seconds",
                Histogram(SECONDS),
                &["agent", "outcome"],
                "Active time of runs",
            ),
            Self::RunIterations => ("redflow_run_iterations", Histogram(COUNTS), &[], "Model calls of a run"),
            Self::ModelCalls => (
                "redflow_model_calls_total",
                Counter,
                &["provider", "model", "code"],
                "Model calls; a call with retries counts once",
            ),
            Self::ModelCallDuration => (
                "redflow_model_call_duration_seconds",
                Histogram(SECONDS),
                &["provider", "model"],
                "Duration of model calls",
            ),
            Self::ModelRetries => {
                ("redflow_model_retries_total", Counter, &["provider", "code"], "Retries of model calls")
            }
            Self::Tokens => (
                "redflow_tokens_total",
                Counter,
                &["provider", "model", "kind"],
                "Tokens; cached and cache_write are part of input, reasoning is part of output",
            ),
            Self::Cost => (
                "redflow_cost_total",
                Sum,
                &["provider", "model"],
                "Cost of tokens, in the currency of the price table",
            ),
            Self::UnpricedCalls => (
                "redflow_unpriced_calls_total",
                Counter,
                &["provider", "model"],
                "Model calls that are not in redflow_cost_total, because their price is not known",
            ),
            Self::ToolCalls => ("redflow_tool_calls_total", Counter, &["tool", "success"], "Tool calls"),
            Self::ToolCallDuration => (
                "redflow_tool_call_duration_seconds",
                Histogram(SECONDS),
                &["tool"],
                "Duration of tool calls",
            ),
            Self::ToolsRefused => (
                "redflow_tool_refused_total",
                Counter,
                &["tool", "code"],
                "Tool calls that the runtime refused or ended",
            ),
            Self::EgressRequests => (
                "redflow_egress_total",
                Counter,
                &["verdict"],
                "Requests of tools: answered, refused by a rule, or failed",
            ),
            Self::McpCalls => (
                "redflow_mcp_calls_total",
                Counter,
                &["server", "code"],
                "Calls of tools of MCP servers; the code is empty if the call succeeded",
            ),
            Self::McpUp => {
                ("redflow_mcp_up", Last, &["server"], "Whether an MCP server is connected, 1 or 0")
            }
            Self::MemoryCalls => {
                ("redflow_memory_calls_total", Counter, &["action", "success"], "Memory calls")
            }
            Self::MemoryCallDuration => (
                "redflow_memory_call_duration_seconds",
                Histogram(SECONDS),
                &["action"],
                "Duration of memory calls",
            ),
            Self::MemoryMessages => (
                "redflow_memory_messages",
                Histogram(COUNTS),
                &["action"],
                "Messages recalled or written in one call",
            ),
            Self::MemoryBytes => (
                "redflow_memory_bytes",
                Histogram(BYTES),
                &["action"],
                "Bytes recalled or written in one call",
            ),
            Self::MemoryLookups => (
                "redflow_memory_lookups_total",
                Counter,
                &["store", "result"],
                "Lookups in short and long memories, knowledge bases and the cache of vectors",
            ),
            Self::ArchiveSearchDuration => (
                "redflow_archive_search_seconds",
                Histogram(SECONDS),
                &["mode"],
                "Duration of searches in the archive, without making the vector of the question",
            ),
            Self::ArchiveEntries => {
                ("redflow_archive_entries", Last, &["kind"], "Entries of the archive, counted once a minute")
            }
            Self::Quarantined => (
                "redflow_quarantined",
                Last,
                &[],
                "Entries of long memories that wait for a review, counted once a minute",
            ),
            Self::Consolidations => (
                "redflow_consolidations_total",
                Counter,
                &["decision"],
                "What happened to facts that were found in conversations",
            ),
            Self::EmbeddingCalls => (
                "redflow_embedding_calls_total",
                Counter,
                &["provider", "model", "code"],
                "Requests for vectors; a request with retries counts once",
            ),
            Self::Errors => {
                ("redflow_errors_total", Counter, &["code"], "Runs that ended with an error, by its code")
            }
            Self::HttpRequests => {
                ("redflow_http_requests_total", Counter, &["route", "status"], "Answered HTTP requests")
            }
            Self::HttpDuration => (
                "redflow_http_request_duration_seconds",
                Histogram(SECONDS),
                &["route"],
                "Duration of HTTP requests",
            ),
            Self::Sockets => ("redflow_sockets_active", Gauge, &[], "Event sockets that are open now"),
            Self::SocketsClosed => (
                "redflow_sockets_closed_total",
                Counter,
                &["code"],
                "Event sockets that were closed, with the code if the sidecar closed them",
            ),
            Self::EventsSent => ("redflow_events_sent_total", Counter, &[], "Events sent to sockets"),
            Self::LoopDelay => (
                "redflow_loop_delay_seconds",
                Last,
                &[],
                "Worst delay of the thread that everything waits on, in the last minute",
            ),
        }
    }

    /// The name without the suffix that the text format adds to counters.
    pub(crate) fn family(self) -> &'static str {
        self.name().trim_end_matches("_total")
    }
}

/// Whether the values of a label come from flows. Other labels have a fixed set of values.
pub(crate) fn has_values_from_flows(label: &str) -> bool {
    matches!(label, "agent" | "provider" | "model" | "tool" | "server")
}
