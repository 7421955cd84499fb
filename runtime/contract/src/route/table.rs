//! The table itself: ours, then those that are Node-RED's and Redflow's.

use super::{ANY_BODY, Answer, Method, Query, Route, RouteId, get, open, post, redflow};
use crate::api::Scope;

const LIST_QUERY: &[Query] = &[
    Query { name: "status", about: "Only runs that are there; several are separated by commas." },
    Query { name: "agent", about: "Only runs of the agent with this node id, in whichever Node-RED." },
    Query {
        name: "instance",
        about: "Only runs of agents of this instance; `local` is the sidecar's own flow.",
    },
    Query { name: "limit", about: "How many at most, from 1 to 1000; 50 if left out." },
    Query { name: "before", about: "Only runs that began before this one: `next` of the page before." },
];

const EVENTS_QUERY: &[Query] = &[Query {
    name: "after",
    about: "Only events whose `seq` is larger; as `Last-Event-ID` says it for a stream.",
}];

/// Every route there is.
pub const ROUTES: &[Route] = &[
    open(get(RouteId::Health, "/health", "Whether the sidecar is well.", Answer::Json("Health"))),
    open(get(RouteId::HealthLive, "/health/live", "Whether it answers.", Answer::Json("Health"))),
    open(get(
        RouteId::HealthReady,
        "/health/ready",
        "Whether it takes work; 503 if not.",
        Answer::Json("Health"),
    )),
    get(
        RouteId::Metrics,
        "/metrics",
        "What was counted and timed.",
        Answer::Text("application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ),
    get(RouteId::OpenApi, "/openapi.json", "This document.", Answer::Text("application/json")),
    Route {
        answer: (101, Answer::Socket),
        ..get(
            RouteId::Events,
            "/events",
            "The socket of events, protocol redflow.events.v1. Messages are EventsRequest and EventsMessage. Browsers \
             of admitted pages pass the token as a second subprotocol, redflow.token.TOKEN.",
            Answer::Socket,
        )
    },
    Route {
        answer: (101, Answer::Socket),
        scope: Some(Scope::Deploy),
        ..get(
            RouteId::Bridge,
            "/bridge",
            "The socket of a Node-RED with our palette module, protocol redflow.bridge.v1. Messages are BridgeRequest and \
             BridgeMessage.",
            Answer::Socket,
        )
    },
    get(
        RouteId::Instances,
        "/api/instances",
        "The Node-REDs whose agents run here, with those agents.",
        Answer::Json("InstanceList"),
    ),
    open(get(RouteId::Home, "/", "A page that says what this is.", Answer::Text("text/html; charset=utf-8"))),
    Route {
        query: &[Query { name: "code", about: "The one-time code." }],
        answer: (303, Answer::Redirect),
        ..open(get(
            RouteId::SignIn,
            "/sign-in",
            "Turns a one-time code into a cookie for this browser.",
            Answer::Redirect,
        ))
    },
    post(
        RouteId::SignInCodes,
        "/api/sign-in-codes",
        Scope::Admin,
        "Makes a one-time code that lets one browser in.",
        None,
        Answer::Json("SignInCode"),
    ),
    Route {
        answer: (303, Answer::Redirect),
        ..post(
            RouteId::SignOut,
            "/api/sign-out",
            Scope::Read,
            "Makes the cookie of this browser worthless.",
            None,
            Answer::Redirect,
        )
    },
    get(
        RouteId::Flows,
        "/api/flows",
        "The flow in force, by its tabs, with its agents.",
        Answer::Json("FlowList"),
    ),
    get(
        RouteId::Flow,
        "/api/flows/{id}",
        "The nodes of one tab or subflow, itself first. Never credentials.",
        Answer::Json("Deployment"),
    ),
    post(
        RouteId::Check,
        "/api/flows/check",
        Scope::Read,
        "Checks a flow and changes nothing.",
        Some("CheckRequest"),
        Answer::Json("CheckReport"),
    ),
    get(
        RouteId::Deployment,
        "/api/deployment",
        "The whole flow in force with its revision. Never credentials.",
        Answer::Json("Deployment"),
    ),
    post(
        RouteId::Deploy,
        "/api/deployment",
        Scope::Deploy,
        "Puts a flow in force: 422 with every problem if it has errors, 409 if another one came first.",
        Some("DeployRequest"),
        Answer::Json("DeployAnswer"),
    ),
    Route {
        answer: (202, Answer::Json("StartAnswer")),
        ..post(
            RouteId::StartRun,
            "/api/runs",
            Scope::Run,
            "Starts an agent or fires an inject node. With a header `Idempotency-Key` the same key starts an agent \
             only once. 200 if the answer waited for the end.",
            Some("StartRequest"),
            Answer::Json("StartAnswer"),
        )
    },
    Route {
        query: LIST_QUERY,
        ..get(RouteId::Runs, "/api/runs", "Runs, the newest first.", Answer::Json("RunList"))
    },
    get(RouteId::Run, "/api/runs/{id}", "One run: events, calls, result.", Answer::Json("RunDetail")),
    Route {
        query: EVENTS_QUERY,
        ..get(
            RouteId::RunEvents,
            "/api/runs/{id}/events",
            "The events of a run: a stream until it is over for who asks for `text/event-stream`, else those there are.",
            Answer::Events("RunEvent"),
        )
    },
    get(
        RouteId::RunJournal,
        "/api/runs/{id}/journal",
        "The journal of a run, for `redflow replay`.",
        Answer::Text("application/jsonl"),
    ),
    post(
        RouteId::CancelRun,
        "/api/runs/{id}/cancel",
        Scope::Run,
        "Ends a run. Answers when that is kept.",
        Some("CancelRequest"),
        Answer::Json("RunSummary"),
    ),
    post(
        RouteId::ResolveRun,
        "/api/runs/{id}/resolve",
        Scope::Run,
        "Says what came of the call a run waits for; the run goes on. Answers when that is kept.",
        Some("ResolveRequest"),
        Answer::Json("RunSummary"),
    ),
    post(
        RouteId::ReplayRun,
        "/api/runs/{id}/replay",
        Scope::Read,
        "Proves that the journal is what the machine does with those facts.",
        None,
        Answer::Json("ReplayReport"),
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
        "One code with its page and what to do about it.",
        Answer::Json("CodeEntry"),
    ),
    get(
        RouteId::Beside,
        "/api/beside",
        "The Node-RED that `--node-red` names, and what the checker says of its flow; 404 if none is named.",
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
            "Node-RED: deploys the whole flow. 409 `version_mismatch` if `rev` is not that of the flow in force. An agent \
             with errors is refused, the rest runs.",
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
            "Node-RED: puts a tab in the place of the one of that id.",
            (200, Answer::Foreign),
        )
    },
    redflow(
        RouteId::AdminDeleteFlow,
        Method::Delete,
        "/flow/{id}",
        Scope::Deploy,
        "Node-RED: takes a tab away, with its nodes.",
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
        "Node-RED: what an editor wants to know first.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::AdminDiagnostics,
        Method::Get,
        "/diagnostics",
        Scope::Read,
        "Node-RED: what this is and how it is.",
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
            "Node-RED: the socket of its editor: debug, status and notifications. Whoever brings no token sends \
             `{\"auth\": TOKEN}` first; browsers may pass it as with /events, beside the subprotocol redflow.comms.v1.",
            (101, Answer::Socket),
        )
    },
    redflow(
        RouteId::Observability,
        Method::Get,
        "/observability",
        Scope::Read,
        "Redflow: the socket of its UI. Messages are ObservabilityEvent.",
        (101, Answer::Socket),
    ),
    Route {
        body: Some("ChatSend"),
        ..redflow(
            RouteId::ChatSend,
            Method::Post,
            "/chat-node/{id}/send",
            Scope::Run,
            "Redflow: says something to the agent a chat node is wired to. Answers when the run is kept.",
            (200, Answer::Json("ChatSent")),
        )
    },
    redflow(
        RouteId::ChatHistory,
        Method::Get,
        "/chat-node/{id}/history",
        Scope::Read,
        "Redflow: what was said in a chat, oldest first.",
        (200, Answer::Json("ChatHistory")),
    ),
    redflow(
        RouteId::ChatClear,
        Method::Post,
        "/chat-node/{id}/clear",
        Scope::Run,
        "Redflow: forgets what was said in a chat.",
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
        "Redflow: which credentials a node has, each masked.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::CredentialFlags,
        Method::Get,
        "/credentials/{id}",
        Scope::Read,
        "Redflow: the same; 404 if the node has none.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::Storage,
        Method::Get,
        "/redflow/persistent-storage",
        Scope::Read,
        "Redflow: everything its UI has stored, secrets masked.",
        (200, Answer::Foreign),
    ),
    Route {
        body: Some(ANY_BODY),
        ..redflow(
            RouteId::StoragePut,
            Method::Post,
            "/redflow/persistent-storage",
            Scope::Deploy,
            "Redflow: stores values by their keys. `node-credentials:ID` counts as the credentials of that node at once.",
            (200, Answer::Foreign),
        )
    },
    redflow(
        RouteId::StorageItem,
        Method::Get,
        "/redflow/persistent-storage/{key}",
        Scope::Read,
        "Redflow: one stored value, secrets masked.",
        (200, Answer::Foreign),
    ),
    redflow(
        RouteId::StorageDelete,
        Method::Delete,
        "/redflow/persistent-storage/{key}",
        Scope::Deploy,
        "Redflow: forgets a stored value.",
        (200, Answer::Foreign),
    ),
    Route {
        body: Some(ANY_BODY),
        ..redflow(
            RouteId::AzureTest,
            Method::Post,
            "/azure-openai/test-connection",
            Scope::Deploy,
            "Redflow: makes one small call to an Azure deployment with what it is given.",
            (200, Answer::Foreign),
        )
    },
];
