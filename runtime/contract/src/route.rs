//! The routes of the sidecar: what the server answers and what `openapi.json` says, from one table.

mod table;

pub use table::ROUTES;

use crate::api::Scope;

/// How a route is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Look.
    Get,
    /// Do.
    Post,
    /// Put in the place of what is there.
    Put,
    /// Take away.
    Delete,
}

impl Method {
    /// As HTTP writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// What a route answers with when all is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// JSON of this type.
    Json(&'static str),
    /// JSON of a shape that is Node-RED's or Redflow's, not ours.
    Foreign,
    /// Nothing.
    Empty,
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

/// A body of a shape that is Node-RED's or Redflow's, not ours.
pub const ANY_BODY: &str = "*";

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
    Bridge,
    Instances,
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
    Beside,
    AdminFlows,
    AdminDeploy,
    AdminFlowsState,
    AdminFlow,
    AdminAddFlow,
    AdminPutFlow,
    AdminDeleteFlow,
    AdminNodes,
    AdminSettings,
    AdminDiagnostics,
    AdminInject,
    Comms,
    Observability,
    ChatSend,
    ChatHistory,
    ChatClear,
    AgentSchema,
    NodeCredentials,
    CredentialFlags,
    Storage,
    StoragePut,
    StorageItem,
    StorageDelete,
    AzureTest,
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
    /// The type of its body, or [`ANY_BODY`], if it takes one.
    pub body: Option<&'static str>,
    /// What it answers with, and the status of that.
    pub answer: (u16, Answer),
    /// What may be in its query.
    pub query: &'static [Query],
    /// Whether it is one of those that the Redflow UI uses: pages of the one origin that `--redflow-ui` admits may
    /// ask it without a token.
    pub for_redflow_ui: bool,
}

const fn get(id: RouteId, path: &'static str, about: &'static str, answer: Answer) -> Route {
    let (method, scope) = (Method::Get, Some(Scope::Read));
    Route {
        id,
        method,
        path,
        scope,
        about,
        body: None,
        answer: (200, answer),
        query: &[],
        for_redflow_ui: false,
    }
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
    Route { id, method, path, scope, about, body, answer: (200, answer), query: &[], for_redflow_ui: false }
}

const fn open(route: Route) -> Route {
    Route { scope: None, ..route }
}

/// A route of Node-RED's Admin API or of Redflow's, as those know it.
const fn redflow(
    id: RouteId,
    method: Method,
    path: &'static str,
    scope: Scope,
    about: &'static str,
    answer: (u16, Answer),
) -> Route {
    let scope = Some(scope);
    Route { id, method, path, scope, about, body: None, answer, query: &[], for_redflow_ui: true }
}

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
