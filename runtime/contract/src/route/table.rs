//! The rows of the route table: our own routes, then those of Node-RED and Redflow.

use super::{ANY_BODY, Answer, Method, Query, Route, RouteId, get, open, post, redflow};
use super::{knowledge_rows, run_rows, session_rows, tool_rows};
use crate::api::Scope;

/// Every route of the sidecar.
pub const ROUTES: &[Route] = &[
    open(get(RouteId::Health, "/health", "Whether the sidecar is healthy.", Answer::Json("Health"))),
    open(get(RouteId::HealthLive, "/health/live", "Whether the sidecar answers.", Answer::Json("Health"))),
    open(get(
        RouteId::HealthReady,
        "/health/ready",
        "Whether the sidecar takes work; 503 if not.",
        Answer::Json("Health"),
    )),
    get(
        RouteId::Metrics,
        "/metrics",
        "The metrics of the sidecar.",
        Answer::Text("application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ),
    get(RouteId::OpenApi, "/openapi.json", "This document.", Answer::Text("application/json")),
    Route {
        answer: (101, Answer::Socket),
        ..get(
            RouteId::Events,
            "/events",
            "The event socket, protocol redflow.events.v1. Its messages are EventsRequest and EventsMessage. A browser \
             on an admitted page passes the token as a second subprotocol, redflow.token.TOKEN.",
            Answer::Socket,
        )
    },
    Route {
        answer: (101, Answer::Socket),
        scope: Some(Scope::Deploy),
        ..get(
            RouteId::Bridge,
            "/bridge",
            "The socket of a Node-RED with the palette, protocol redflow.bridge.v1. Its messages are BridgeRequest and \
             BridgeMessage.",
            Answer::Socket,
        )
    },
    get(
        RouteId::Instances,
        "/api/instances",
        "The Node-REDs whose agents run here, with their agents.",
        Answer::Json("InstanceList"),
    ),
    open(get(
        RouteId::Home,
        "/",
        "The page of the console. It holds no data.",
        Answer::Text("text/html; charset=utf-8"),
    )),
    session_rows::CONSOLE_FILE,
    Route {
        query: &[Query { name: "code", about: "The one-time code." }],
        answer: (303, Answer::Redirect),
        ..open(get(
            RouteId::SignIn,
            "/sign-in",
            "Exchanges a one-time code for a cookie of this browser.",
            Answer::Redirect,
        ))
    },
    session_rows::SIGN_IN_WITH_TOKEN,
    post(
        RouteId::SignInCodes,
        "/api/sign-in-codes",
        Scope::Admin,
        "Makes a one-time code that signs in one browser.",
        None,
        Answer::Json("SignInCode"),
    ),
    Route {
        answer: (303, Answer::Redirect),
        ..post(
            RouteId::SignOut,
            "/api/sign-out",
            Scope::Read,
            "Signs this browser out: its cookie is no longer valid.",
            None,
            Answer::Redirect,
        )
    },
    session_rows::SESSION,
    session_rows::TOKENS,
    session_rows::ADD_TOKEN,
    session_rows::REMOVE_TOKEN,
    session_rows::CONFIG,
    get(
        RouteId::Flows,
        "/api/flows",
        "The active flow, by its tabs, with its agents.",
        Answer::Json("FlowList"),
    ),
    get(
        RouteId::Flow,
        "/api/flows/{id}",
        "The nodes of one tab or subflow, with the tab or subflow first. Never credentials.",
        Answer::Json("Deployment"),
    ),
    run_rows::FLOW_GRAPH,
    post(
        RouteId::Check,
        "/api/flows/check",
        Scope::Read,
        "Checks a flow and changes nothing.",
        Some("CheckRequest"),
        Answer::Json("CheckAnswer"),
    ),
    get(
        RouteId::Deployment,
        "/api/deployment",
        "The whole active flow with its revision. Never credentials.",
        Answer::Json("Deployment"),
    ),
    post(
        RouteId::Deploy,
        "/api/deployment",
        Scope::Deploy,
        "Deploys a flow. 422 with every problem if it has errors, 409 if another deploy came first.",
        Some("DeployRequest"),
        Answer::Json("DeployAnswer"),
    ),
    Route {
        answer: (202, Answer::Json("StartAnswer")),
        ..post(
            RouteId::StartRun,
            "/api/runs",
            Scope::Run,
            "Starts an agent or fires an inject node. With a header `Idempotency-Key`, the same key starts an agent \
             only once. 200 if the answer waited for the end.",
            Some("StartRequest"),
            Answer::Json("StartAnswer"),
        )
    },
    Route {
        query: run_rows::LIST_QUERY,
        ..get(RouteId::Runs, "/api/runs", "Runs, newest first.", Answer::Json("RunList"))
    },
    run_rows::RUN,
    run_rows::EVENTS,
    run_rows::ITERATION,
    run_rows::JOURNAL,
    Route {
        query: &[
            Query { name: "after", about: "Only runs that follow this one: `next` of the previous page." },
            Query { name: "limit", about: "The most runs on a page, from 1 to 500; 500 if absent." },
        ],
        ..get(
            RouteId::RunTree,
            "/api/runs/{id}/tree",
            "The runs that a run has started, and those that they have started, down to 16 levels.",
            Answer::Json("RunTree"),
        )
    },
    Route {
        query: run_rows::STATS_QUERY,
        ..get(
            RouteId::Stats,
            "/api/stats",
            "What runs have used by UTC day, and by agent, model, tool or code.",
            Answer::Json("Stats"),
        )
    },
    run_rows::REPORT,
    post(
        RouteId::CancelRun,
        "/api/runs/{id}/cancel",
        Scope::Run,
        "Cancels a run. Answers when the cancellation is stored.",
        Some("CancelRequest"),
        Answer::Json("RunSummary"),
    ),
    post(
        RouteId::ResolveRun,
        "/api/runs/{id}/resolve",
        Scope::Run,
        "Gives the outcome of the call that a run waits for; the run goes on. Answers when the outcome is stored.",
        Some("ResolveRequest"),
        Answer::Json("RunSummary"),
    ),
    post(
        RouteId::ReplayRun,
        "/api/runs/{id}/replay",
        Scope::Read,
        "Replays the journal: compares it with what the machine does with the same facts. Of a damaged journal, the part before the damage.",
        None,
        Answer::Json("ReplayReport"),
    ),
    tool_rows::TOOLS,
    tool_rows::TOOL,
    tool_rows::REGISTER_TOOL,
    tool_rows::REMOVE_TOOL,
    tool_rows::CALL_TOOL,
    tool_rows::TOOL_CALLS,
    tool_rows::AGENT_DETAIL,
    tool_rows::INTERNAL_INPUT,
    tool_rows::INTERNAL_STATE,
    tool_rows::INTERNAL_TOOL,
    knowledge_rows::KNOWLEDGE_BASES,
    knowledge_rows::REMOVE_KNOWLEDGE_BASE,
    knowledge_rows::KNOWLEDGE_DOCUMENTS,
    knowledge_rows::ADD_DOCUMENT,
    knowledge_rows::REMOVE_DOCUMENT,
    knowledge_rows::KNOWLEDGE_PASSAGES,
    knowledge_rows::SEARCH_KNOWLEDGE,
    knowledge_rows::REINDEX_KNOWLEDGE,
    get(
        RouteId::Models,
        "/api/models",
        "The models of the active flow and of the flows of Node-REDs: who binds them, what they can do and cost.",
        Answer::Json("DeployedModelList"),
    ),
    post(
        RouteId::TestModel,
        "/api/models/test",
        Scope::Deploy,
        "Tests a model with one or two small calls. 409 if a key of the deployed node would go to another address.",
        Some("ModelTestRequest"),
        Answer::Json("ModelTest"),
    ),
    post(
        RouteId::ListModels,
        "/api/models/list",
        Scope::Deploy,
        "The models that the server of a model has. 409 if a key of the deployed node would go to another address.",
        Some("ModelTestRequest"),
        Answer::Json("ModelList"),
    ),
    get(
        RouteId::Catalogue,
        "/api/catalogue",
        "The node types, their roles and ports.",
        Answer::List("NodeType"),
    ),
    get(RouteId::Edges, "/api/edges", "Which port may be wired to which role.", Answer::List("EdgeRule")),
    get(RouteId::Codes, "/api/codes", "Every code and what it means.", Answer::List("CodeEntry")),
    get(
        RouteId::Code,
        "/api/codes/{code}",
        "One code with its page and the advice on it.",
        Answer::Json("CodeEntry"),
    ),
    get(
        RouteId::Beside,
        "/api/beside",
        "The attached Node-RED (`--node-red`) and the check of its flow; 404 if there is none.",
        Answer::Json("AttachedState"),
    ),
    redflow(
        RouteId::AdminFlows,
        Method::Get,
        "/flows",
        Scope::Read,
        "Node-RED: the whole flow; with `Node-RED-API-Version: v2` as `{flows, rev}`. Never credentials.",
        (200, Answer::Foreign),
    ),
    Route {
        body: Some(ANY_BODY),
        ..redflow(
            RouteId::AdminDeploy,
            Method::Post,
            "/flows",
            Scope::Deploy,
            "Node-RED: deploys the whole flow. 409 `version_mismatch` if `rev` is not that of the active flow. An agent \
             with errors is refused; the rest runs.",
            (200, Answer::Foreign),
        )
    },
    redflow(
        RouteId::AdminFlowsState,
        Method::Get,
        "/flows/state",
        Scope::Read,
        "Node-RED: whether the flow runs.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::AdminFlow,
        Method::Get,
        "/flow/{id}",
        Scope::Read,
        "Node-RED: one tab with its nodes, or `global`. Never credentials.",
        (200, Answer::Foreign),
    ),
    Route {
        body: Some(ANY_BODY),
        ..redflow(
            RouteId::AdminAddFlow,
            Method::Post,
            "/flow",
            Scope::Deploy,
            "Node-RED: adds a tab with its nodes.",
            (200, Answer::Foreign),
        )
    },
    Route {
        body: Some(ANY_BODY),
        ..redflow(
            RouteId::AdminPutFlow,
            Method::Put,
            "/flow/{id}",
            Scope::Deploy,
            "Node-RED: replaces the tab with this id.",
            (200, Answer::Foreign),
        )
    },
    redflow(
        RouteId::AdminDeleteFlow,
        Method::Delete,
        "/flow/{id}",
        Scope::Deploy,
        "Node-RED: deletes a tab with its nodes.",
        (204, Answer::Empty),
    ),
    redflow(
        RouteId::AdminNodes,
        Method::Get,
        "/nodes",
        Scope::Read,
        "Node-RED: the node types this build runs, in sets.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::AdminSettings,
        Method::Get,
        "/settings",
        Scope::Read,
        "Node-RED: the settings that an editor reads first.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::AdminDiagnostics,
        Method::Get,
        "/diagnostics",
        Scope::Read,
        "Node-RED: the version and state of the sidecar.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::AdminInject,
        Method::Post,
        "/inject/{id}",
        Scope::Run,
        "Node-RED: fires an inject node.",
        (200, Answer::Text("text/plain; charset=utf-8")),
    ),
    Route {
        scope: None,
        ..redflow(
            RouteId::Comms,
            Method::Get,
            "/comms",
            Scope::Read,
            "Node-RED: the editor socket, with debug messages, status and notifications. A client without a token in its \
             request sends `{\"auth\": TOKEN}` first. A browser may pass it as with /events, beside the subprotocol \
             redflow.comms.v1.",
            (101, Answer::Socket),
        )
    },
    redflow(
        RouteId::Observability,
        Method::Get,
        "/observability",
        Scope::Read,
        "Redflow: the socket of the UI. Its messages are ObservabilityEvent.",
        (101, Answer::Socket),
    ),
    redflow(
        RouteId::AdminObservability,
        Method::Get,
        "/admin/observability",
        Scope::Read,
        "Redflow: the same socket. The UI tries both addresses in turn.",
        (101, Answer::Socket),
    ),
    Route {
        body: Some("ChatSend"),
        ..redflow(
            RouteId::ChatSend,
            Method::Post,
            "/chat-node/{id}/send",
            Scope::Run,
            "Redflow: sends a message to the agent that the chat node is wired to. Answers when the run is stored.",
            (200, Answer::Json("ChatSent")),
        )
    },
    redflow(
        RouteId::ChatHistory,
        Method::Get,
        "/chat-node/{id}/history",
        Scope::Read,
        "Redflow: the messages of a chat, oldest first.",
        (200, Answer::Json("ChatHistory")),
    ),
    redflow(
        RouteId::ChatClear,
        Method::Post,
        "/chat-node/{id}/clear",
        Scope::Run,
        "Redflow: deletes the messages of a chat.",
        (200, Answer::Json("ChatSent")),
    ),
    redflow(
        RouteId::AgentSchema,
        Method::Get,
        "/agent-core/schema",
        Scope::Read,
        "Redflow: the JSON Schema of the properties of `agent-core`.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::NodeCredentials,
        Method::Get,
        "/agent-core/node-credentials/{id}",
        Scope::Read,
        "Redflow: the names of the credentials of a node, with masked values.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::CredentialFlags,
        Method::Get,
        "/credentials/{id}",
        Scope::Read,
        "Redflow: the names of the credentials of a node, with masked values; 404 if it has none.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::Storage,
        Method::Get,
        "/redflow/persistent-storage",
        Scope::Read,
        "Redflow: all values that the UI has stored, with masked secrets.",
        (200, Answer::Foreign),
    ),
    Route {
        body: Some(ANY_BODY),
        ..redflow(
            RouteId::StoragePut,
            Method::Post,
            "/redflow/persistent-storage",
            Scope::Deploy,
            "Redflow: stores values by key. `node-credentials:ID` becomes the credentials of that node at once.",
            (200, Answer::Foreign),
        )
    },
    redflow(
        RouteId::StorageItem,
        Method::Get,
        "/redflow/persistent-storage/{key}",
        Scope::Read,
        "Redflow: one stored value, with masked secrets.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::StorageDelete,
        Method::Delete,
        "/redflow/persistent-storage/{key}",
        Scope::Deploy,
        "Redflow: deletes a stored value.",
        (200, Answer::Foreign),
    ),
    Route {
        body: Some(ANY_BODY),
        ..redflow(
            RouteId::AzureTest,
            Method::Post,
            "/azure-openai/test-connection",
            Scope::Deploy,
            "Redflow: makes one small call to an Azure deployment with the given settings.",
            (200, Answer::Foreign),
        )
    },
];
