//! The rows of the route table about MCP: the servers that agents use, and the sidecar as a server.

use super::{ANY_BODY, Answer, Method, Query, Route, RouteId, get, open, post};
use crate::api::Scope;

pub(super) const MCP_SERVERS: Route = get(
    RouteId::McpServers,
    "/api/mcp",
    "The MCP servers whose tools agents use. Empty if this build has no MCP.",
    Answer::Json("McpServerList"),
);

pub(super) const MCP_SERVER: Route = get(
    RouteId::McpServer,
    "/api/mcp/{name}",
    "One MCP server with its tools, resources and prompts. Connects to it, if it is not connected.",
    Answer::Json("McpServerDetail"),
);

pub(super) const CONNECT_MCP_SERVER: Route = post(
    RouteId::ConnectMcpServer,
    "/api/mcp/{name}/connect",
    Scope::Deploy,
    "Connects to an MCP server again at once, and reads its lists.",
    None,
    Answer::Json("McpServerDetail"),
);

pub(super) const PIN_MCP_TOOLS: Route = post(
    RouteId::PinMcpTools,
    "/api/mcp/{name}/pin",
    Scope::Admin,
    "Approves definitions of tools of an MCP server. None is approved if one is not the one with this digest.",
    Some("McpPinRequest"),
    Answer::Json("McpServerDetail"),
);

pub(super) const MCP_LOGIN: Route = post(
    RouteId::McpLogin,
    "/api/mcp/{name}/login",
    Scope::Admin,
    "Begins a sign-in at the issuer of an MCP server. The issuer sends the person back to `/oauth/callback`.",
    None,
    Answer::Json("McpLogin"),
);

pub(super) const MCP_LOGOUT: Route = Route {
    method: Method::Delete,
    scope: Some(Scope::Admin),
    answer: (204, Answer::Empty),
    ..get(RouteId::McpLogout, "/api/mcp/{name}/login", "Removes the tokens of an MCP server.", Answer::Empty)
};

pub(super) const OAUTH_CALLBACK: Route = Route {
    query: &[
        Query { name: "code", about: "The code of the issuer." },
        Query { name: "state", about: "Names the sign-in. One that did not begin here is refused." },
    ],
    ..open(get(
        RouteId::OAuthCallback,
        "/oauth/callback",
        "Ends a sign-in at the issuer of an MCP server. The issuer sends the browser of the person here.",
        Answer::Text("text/html; charset=utf-8"),
    ))
};

pub(super) const MCP_MESSAGE: Route = post(
    RouteId::McpMessage,
    "/mcp",
    Scope::Read,
    "The sidecar as an MCP server, by streamable HTTP: one JSON-RPC message. Lists need the scope `read`, calls the \
     scope `run`. The answer is JSON or server-sent events.",
    Some(ANY_BODY),
    Answer::Foreign,
);

pub(super) const MCP_STREAM: Route = get(
    RouteId::McpStream,
    "/mcp",
    "The messages of the MCP server to the session in `Mcp-Session-Id`. Only for versions of the protocol before \
     2026-07-28.",
    Answer::Text("text/event-stream"),
);

pub(super) const END_MCP_SESSION: Route = Route {
    method: Method::Delete,
    answer: (202, Answer::Empty),
    ..get(
        RouteId::EndMcpSession,
        "/mcp",
        "Ends the session in `Mcp-Session-Id`. Runs that it has started go on.",
        Answer::Empty,
    )
};
