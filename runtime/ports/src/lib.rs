//! The traits between the engine and the outside world. Adapters implement them; this crate has no behaviour.
//!
//! | module | what it owns |
//! |---|---|
//! | `model`, `tool`, `memory`, `named_services` | the services of an agent |
//! | `memories` | long memories, for people |
//! | `archive`, `embedder` | entries that are searched by words and by meaning |
//! | `flow_node` | ordinary Node-RED nodes that this build runs |
//! | `adapters` | the builder for each node type |
//! | `run_store`, `run_reader` | stored runs: written by the engine, read by everyone else |
//! | `event_log`, `flow_store`, `manifest_store`, `chat_store`, `ui_storage` | what else a sidecar stores |
//! | `event_sink`, `flow_step`, `meter` | what observers and metrics receive |
//! | `text_redactor` | what texts lose before they leave the sidecar |
//! | `image` | images that a message names by their addresses |
//! | `host` | the Node-RED that owns the flow around the agents |
//! | `clock`, `failpoint` | time, ids, and places where a test stops the process |
//!
//! This crate knows no async runtime, no adapter and no transport.
//!
//! Each trait has an example. The engine awaits the futures. The examples have no runtime: their futures are
//! ready at once, and `now_or_never` takes the value.
//!
//! A `ToolProvider` has `generation` and `tools`, each with the tool itself. A run keeps both, so no second lookup
//! by operation is needed.
//!
//! A memory or a tool can name other services in its properties. `NodeConfig` builds them when the builder of the
//! node asks.

mod adapters;
mod archive;
mod build_error;
mod chat_store;
mod clock;
mod embedder;
mod event_log;
mod event_sink;
mod failpoint;
mod flow_node;
mod flow_step;
mod flow_store;
mod future;
mod host;
mod image;
mod knowledge;
mod manifest_store;
mod mcp;
mod memories;
mod memory;
mod meter;
mod model;
mod named_services;
mod run_reader;
mod run_store;
mod text_redactor;
mod tool;
mod ui_storage;

pub use adapters::{
    Adapters, Builder, ManifestToolBuilder, ManifestToolConfig, MemoryBuilder, ModelBuilder,
    ModelChainBuilder, NodeBuilder, NodeConfig, ToolBuilder, ToolProviderBuilder,
};
pub use archive::{
    Archive, ArchiveAnswer, ArchiveError, EntryFilter, Expected, NewCollection, NewEntry, SearchFilter,
    SearchQuery, VectorScores,
};
pub use build_error::{BuildError, label_of};
pub use chat_store::ChatStore;
pub use clock::Clock;
pub use embedder::{EmbedPurpose, Embedded, Embedder, EmbedderInfo, EmbedderSource};
pub use event_log::{EventBounds, EventJson, EventLog, LoggedEvent, ToolCallQuery};
pub use event_sink::EventSink;
pub use failpoint::failpoint;
pub use flow_node::{FlowNode, NodeContext, NodeOutput};
pub use flow_step::{FlowStep, ServiceCall, StartId, StepOutcome};
pub use flow_store::{Credentials, FileStoreError, FlowStore, StoredFlow};
pub use future::BoxFuture;
pub use host::{AgentMessage, Host};
pub use image::ImageFetcher;
pub use knowledge::{KnowledgeAnswer, KnowledgeBases, NewDocument, OnProgress, Progress};
pub use manifest_store::{ManifestStamp, ManifestStore, RegisteredServer, RegisteredTool};
pub use mcp::{ContextSource, ContextSpan, McpAnswer, McpServers, McpStore};
pub use memories::{Memories, MemoriesAnswer};
pub use memory::{
    AgentEntry, EntrySearch, MaintenanceOutcome, MaintenanceReason, MaintenanceTimes, Memory, MemoryAnswer,
    MemoryEntries, Recall, Recalled, SummarisedConversation, Summary, SummaryStore, Turn,
};
pub use meter::{Measurement, MemoryAction, MemoryStore, Meter, NoMeter};
pub use model::{AZURE_PROVIDER, ChatModel, DeltaObserver, ModelInfo, ModelRequest, ModelWait, WaitObserver};
pub use named_services::{NamedServices, NoServices};
pub use redflow_contract::answer_kind::{
    ActionSchemas, AnswerKind, Reply, ReplyFormat, ReplyPurpose, SchemaText, ToolChoice,
};
pub use redflow_contract::cache_key::CacheKey;
pub use run_reader::{RunFilter, RunReader, RunRecord, StatsQuery, TreeQuery};
pub use run_store::{
    Batch, Durability, ForgottenRuns, Journal, JournalPosition, NewRun, PendingRequest, RunStore, StoreError,
    StoredRun,
};
pub use text_redactor::TextRedactor;
pub use tool::{ProvidedTool, Tool, ToolOutcome, ToolProvider};
pub use ui_storage::UiStorage;
