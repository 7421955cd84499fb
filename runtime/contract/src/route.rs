//! The routes of the sidecar: what the server answers and what `openapi.json` says, from one table.

use crate::api::Scope;

/// How a route is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Look.
    Get,
    /// Do.
    Post,
}

impl Method {
    /// As HTTP writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// What a route answers with when all is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// JSON of this type.
    Json(&'static str),
    /// A JSON array of this type.
    List(&'static str),
    /// Text of this media type.
    Text(&'static str),
    /// Server-sent events, each of this type, and a JSON array of them for who does not ask for a stream.
    Events(&'static str),
    /// A socket.
    Socket,
    /// A redirect.
    Redirect,
}

/// A parameter in the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// Which route it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the table says what each is")]
pub enum RouteId {
    Health,
    HealthLive,
    HealthReady,
    Metrics,
    OpenApi,
    Events,
    Home,
    SignIn,
    SignInCodes,
    SignOut,
    Flows,
    Flow,
    Check,
    Deployment,
    Deploy,
    StartRun,
    Runs,
    Run,
    RunEvents,
    RunJournal,
    CancelRun,
    ResolveRun,
    ReplayRun,
    Catalogue,
    Edges,
    Codes,
    Code,
}

/// One route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Which.
    pub id: RouteId,
    /// How it is asked.
    pub method: Method,
    /// Where it is; `{name}` stands for a part that varies.
    pub path: &'static str,
    /// What a token must be allowed; none: open to everyone who may talk to the sidecar at all.
    pub scope: Option<Scope>,
    /// What it does.
    pub about: &'static str,
    /// The type of its body, if it takes one.
    pub body: Option<&'static str>,
    /// What it answers with, and the status of that.
    pub answer: (u16, Answer),
    /// What may be in its query.
    pub query: &'static [Query],
}

const fn get(id: RouteId, path: &'static str, about: &'static str, answer: Answer) -> Route {
    let (method, scope) = (Method::Get, Some(Scope::Read));
    Route { id, method, path, scope, about, body: None, answer: (200, answer), query: &[] }
}

const fn post(
    id: RouteId,
    path: &'static str,
    scope: Scope,
    about: &'static str,
    body: Option<&'static str>,
    answer: Answer,
) -> Route {
    let (method, scope) = (Method::Post, Some(scope));
    Route { id, method, path, scope, about, body, answer: (200, answer), query: &[] }
}

const fn open(route: Route) -> Route {
    Route { scope: None, ..route }
}

const LIST_QUERY: &[Query] = &[
    Query { name: "status", about: "Only runs that are there; several are separated by commas." },
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
    get(RouteId::Code, "/api/codes/{code}", "One code with its page.", Answer::Json("CodeEntry")),
];

#[cfg(test)]
mod tests {
    use super::ROUTES;
    use crate::api::Scope;
    use std::collections::HashSet;

    #[test]
    fn every_route_is_there_once_and_changes_nothing_with_read() {
        let mut seen = HashSet::new();
        for route in ROUTES {
            assert!(seen.insert((route.method.as_str(), route.path)), "{} twice", route.path);
            assert!(route.about.ends_with('.'), "{}", route.path);
            assert!(route.scope.is_some() || !route.path.starts_with("/api"), "{} is open", route.path);
        }
        let ids: HashSet<_> = ROUTES.iter().map(|route| route.id).collect();
        assert_eq!(ids.len(), ROUTES.len());
    }

    #[test]
    fn a_scope_allows_itself_and_reading() {
        use Scope::{Admin, Deploy, Read, Run};
        for scope in Scope::ALL {
            assert!(scope.allows(Read) && scope.allows(scope) && Admin.allows(scope));
        }
        assert!(!Read.allows(Run) && !Run.allows(Deploy) && !Deploy.allows(Run) && !Deploy.allows(Admin));
    }
}
