//! The rows of the route table about tools and agents.

use super::{ANY_BODY, Answer, Method, Query, Route, RouteId, get, post};
use crate::api::Scope;

const CALLS_QUERY: &[Query] = &[
    Query { name: "limit", about: "The most calls on a page, from 1 to 200; 50 if absent." },
    Query { name: "before", about: "Only calls that ended before: `next` of the previous page." },
];

const CHOICE_QUERY: &[Query] = &[
    Query { name: "node", about: "What provides the tool: chooses among tools with the same id." },
    Query { name: "instance", about: "The Node-RED that has the tool; `local` for the sidecar's own." },
];

const INSTANCE_QUERY: &[Query] =
    &[Query { name: "instance", about: "The Node-RED that has the agent; `local` if absent." }];

const STATE_QUERY: &[Query] = &[
    Query { name: "agent", about: "The node id of the agent." },
    Query { name: "instance", about: "The Node-RED that has the agent; `local` if absent." },
];

pub(super) const TOOLS: Route = get(
    RouteId::Tools,
    "/api/tools",
    "The tools of the registry and of the active flows.",
    Answer::Json("ToolList"),
);

pub(super) const TOOL: Route = Route {
    query: CHOICE_QUERY,
    ..get(
        RouteId::Tool,
        "/api/tools/{id}",
        "One tool. 409 if several have the id; the message names the query of each.",
        Answer::Json("ToolEntry"),
    )
};

pub(super) const REGISTER_TOOL: Route = Route {
    answer: (201, Answer::Json("ToolEntry")),
    ..post(
        RouteId::RegisterTool,
        "/api/tools",
        Scope::Admin,
        "Registers a tool, or replaces one that was registered. 422 with every problem if its definition has \
         errors, 409 if the manifest has a tool with this id or name.",
        Some("ManifestTool"),
        Answer::Json("ToolEntry"),
    )
};

pub(super) const REMOVE_TOOL: Route = Route {
    method: Method::Delete,
    scope: Some(Scope::Admin),
    answer: (204, Answer::Empty),
    ..get(
        RouteId::RemoveTool,
        "/api/tools/{id}",
        "Removes a tool that was registered. Runs that have it keep it until they end.",
        Answer::Empty,
    )
};

pub(super) const CALL_TOOL: Route = Route {
    query: CHOICE_QUERY,
    ..post(
        RouteId::CallTool,
        "/api/tools/{id}/call",
        Scope::Run,
        "Calls a tool outside a run. A call that fails or is refused is answered with `success: false`. 409 if several \
         tools have the id.",
        Some("ToolCallRequest"),
        Answer::Json("ToolInvocation"),
    )
};

pub(super) const TOOL_CALLS: Route = Route {
    query: CALLS_QUERY,
    ..get(
        RouteId::ToolCalls,
        "/api/tools/{id}/calls",
        "The calls of a tool that have ended, newest first. For `text/event-stream`, a stream of ToolInvocations as \
         calls end.",
        Answer::Json("ToolCallList"),
    )
};

pub(super) const AGENT_DETAIL: Route = Route {
    query: INSTANCE_QUERY,
    ..get(
        RouteId::AgentDetail,
        "/api/agents/{id}/state",
        "One agent with its tools and its memory, and what it has done since the sidecar started.",
        Answer::Json("AgentDetail"),
    )
};

pub(super) const INTERNAL_INPUT: Route = Route {
    answer: (202, Answer::Json("StartAnswer")),
    ..post(
        RouteId::InternalInput,
        "/internal/agent-node/input",
        Scope::Run,
        "Another path of `POST /api/runs`.",
        Some("StartRequest"),
        Answer::Json("StartAnswer"),
    )
};

pub(super) const INTERNAL_STATE: Route = Route {
    query: STATE_QUERY,
    ..get(
        RouteId::InternalState,
        "/internal/agent-node/state",
        "Another path of `GET /api/agents/{id}/state`.",
        Answer::Json("AgentDetail"),
    )
};

pub(super) const INTERNAL_TOOL: Route = post(
    RouteId::InternalTool,
    "/internal/agent-node/tool",
    Scope::Read,
    "Another path of `/api/tools`: a definition registers a tool, which needs the scope `admin`; an empty object or \
     `{\"query\": \"PREFIX\"}` lists the tools whose ids begin so.",
    Some(ANY_BODY),
    Answer::Json("ToolList"),
);
