//! The sidecar: runs a flow, and serves it over HTTP and WebSockets.
//!
//! Owns the routes, the responses, the event sockets and the active flow. The crate `access` decides who may
//! call, `engine` runs the flow, and `ports` hides all storage. This crate knows no adapter.
//!
//! | folder | what it serves |
//! |---|---|
//! | `bridge` | Node-REDs with our palette |
//! | `attached` | a Node-RED without it, followed from outside |
//! | `admin` | Node-RED's Admin API, for the active flow |
//! | `redflow_ui` | what the Redflow UI uses besides |
//! | `console` | the sidecar's own page |
//!
//! # How agents of a Node-RED run here
//!
//! With the palette, Node-RED keeps its ordinary nodes; the sidecar runs agents, models, memories and tools. Each
//! Node-RED that opens `ws /bridge` has an engine of its own on the shared store. Such an engine has a
//! `ports::Host`: messages that leave an agent go to the host, and a result counts as delivered when Node-RED
//! acknowledged it. Flow tools are `Tool`s whose calls cross the socket. After a crash, `Tool::recover_outcome`
//! asks Node-RED for the outcome of a call that must not be repeated.
//!
//! Flow and credentials are in memory only; Node-RED sends them when its session is unknown. A start carries an id
//! that is the cause of its run, so a repeated start begins no second run. The id travels with the message, so the
//! result finds the message that waits in Node-RED, also after a restart of the sidecar. `bridge/outbox.rs`
//! numbers messages and keeps them until they are acknowledged. `bridge/session.rs` decides what happens to open
//! calls and results when one side restarted. The page `docs/bridge.md` has the rules.
//!
//! The palette asks the sidecar for every verdict on a wire, and says "not checked" without one. Run data reaches
//! a browser only as a response: `/comms` says only that something changed, because Node-RED queues without a
//! limit.
//!
//! # How the console is served
//!
//! `console` serves six files, which `console/` builds; a page exists if the session names its feature. A page has
//! one socket (`live.ts`): after hello the page is read, then it takes the events after hello, at most four times
//! a second. A page reads more only through `live.refresh` and `live.load`: one read after the other, while events
//! wait. So no old answer replaces what an event has said. No source makes markup of a text, and the content
//! security policy forbids it too.
//!
//! - A page of a journal has a limit, but the sidecar reads and checks the whole journal for it: the digests prove
//!   it only as a whole. Four such requests work at a time. The events of a run without `limit` are all events: a
//!   JSON array cannot say that more follow. A damaged journal is a page with `problem`.
//! - The answer of a check with a drawing is `CheckAnswer`, and `CheckRequest.tab` says which tab is drawn.
//! - A file of words has its texts in the order of the English ones and no keys: both files come from one build,
//!   under one digest. dagre loses the parts that the console does not use (`console/scripts/dagre.mjs`). Together
//!   they take 7 kB less. The plots stack their columns in a few lines of our own: a library for it takes 4 kB.
//!
//! # How the sidecar publishes events
//!
//! What a subscriber saw survives `kill -9`, and the rest comes after its last cursor, once. A subscriber that
//! takes nothing for 15 s is disconnected. Deltas are a broadcast that slow readers may miss; they are made only
//! while a subscriber wants them. The statuses and counts of agents do not come from the log: the engine reports
//! its typed events to an observer, which keeps the newest status of each agent and writes its text only while an
//! editor reads. What runs have used is summed up until the transaction ends, or in memory until somebody asks.
//!
//! - `POST /api/runs` answers after the run's first batch is on the disk, so an acknowledged run survives a crash.
//!   An `Idempotency-Key` is the run's unique cause. Keys of callers, chats and bridges are separate.
//! - A deploy is checked, built, saved (credentials separate and encrypted, then the file, each by rename), and
//!   only then active; one at a time, by revision. One table, `contract::route`, feeds the router, the guard, the
//!   OpenAPI document and the tests.
//! - The process has one thread for everything that waits and one that writes. Long computations (deploys, checks,
//!   replays, large bodies and messages, the first times of crontabs) run on other threads, a few at a time. The
//!   freeing of a large flow does, too.
//! - A watchdog thread asks the engines which runs compute. A step that holds the process for ten seconds, or a
//!   replay that takes two minutes, is noted in the store (`RUN_HUNG`), and the next start leaves that run alone.
//!   A kill is no hang: it leaves no note.
//! - The server, not an engine, handles requests of other processes (`redflow runs cancel`): it knows which engine
//!   drives which run.
//!
//! # How the Redflow UI is served
//!
//! The UI knows one base URL and Node-RED's Admin API. `admin` speaks that API over the same deploys, starts and
//! events as `/api`; only the shapes are Node-RED's. An agent with errors does not refuse such a deploy, because
//! neither Node-RED nor the UI can show why a deploy failed: the flow is deployed and the agent is refused.
//!
//! While a client is connected to `/observability`, the engine reports every message in and out of a node and
//! every call of a service (`ports::FlowStep`). `redflow_ui/frames.rs` turns that into what the UI needs: one
//! frame per start, every input followed by an output, failure as `terminated`. `redflow_ui/preview.rs` shortens
//! values and hides secrets. Nothing of it is stored. A page sends nothing when it connects, so a new socket gets
//! the last answer of each chat, for two minutes and if no question followed (`redflow_ui/missed.rs`). A page that
//! has seen the answer knows the id of the item and ignores it.
//!
//! - Port 4 carries one message per valid model answer. A run that ends without an answer also says so in the
//!   chats at its port 4, before its result leaves the agent, because the UI's chat waits there. On
//!   `/observability` this is shown as a port-4 event. A port-4 event that no chat shows is `sampled: false`: the
//!   UI would read the history and show an older answer.
//! - The UI takes the length of `wires` for the number of outputs. `GET /flows` of its origin gets the wires of
//!   agents with an entry for each port; the stored flow and all other answers stay as they are.
//! - A message typed into a chat node starts its agent under a key, so the same message never runs twice. A
//!   message with an `agentResult` ends in the chat window; if it went on, every answer would be a new question.
//! - The one origin of `--redflow-ui` needs no token on routes marked `for_redflow_ui`, on loopback only. Its
//!   storage is encrypted like credentials, and secrets come back as `__PWRD__`.

mod active_flow;
mod admin;
mod agent_counts;
mod agent_status;
mod agents;
mod app;
mod attached;
mod body;
mod bridge;
mod console;
mod cors;
mod cursor;
mod deploy;
mod deployed_models;
mod event_socket;
mod feed;
mod flows;
mod guard;
mod hub;
mod info;
mod keyed_models;
mod knowledge;
mod log_stream;
mod loop_delay;
mod mcp;
mod mcp_servers;
mod mcp_uses;
mod memory;
mod model_test;
mod models;
mod pages;
mod peer;
mod principal;
mod redflow_ui;
mod refused_origins;
mod request;
mod response;
mod routes;
mod run_events;
mod runs;
mod service_notices;
mod settings;
mod sidecar;
mod start_failure;
mod starts;
mod tokens;
mod tool_definitions;
mod tools;
mod watchdog;
mod work_slots;

pub use mcp::streams::ClientEnd;
pub use model_test::ModelTester;
pub use settings::{Parts, Settings};
pub use sidecar::Sidecar;
pub use start_failure::StartFailure;
