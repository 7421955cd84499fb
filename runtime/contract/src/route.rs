//! The routes of the sidecar. The router, the guard, the OpenAPI document and the tests all read this one
//! table.

mod knowledge_rows;
mod mcp_rows;
mod memory_rows;
mod run_rows;
mod session_rows;
mod table;
mod tool_rows;

pub use memory_rows::EXPORT_TYPE;
pub use table::ROUTES;

use crate::api::Scope;

/// The HTTP method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Acts.
    Post,
    /// Replaces.
    Put,
    /// Deletes.
    Delete,
}

impl Method {
    /// The method as HTTP writes it.
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

/// The successful answer of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// JSON of this type.
    Json(&'static str),
    /// JSON of one of these types. The query decides.
    OneOf(&'static [&'static str]),
    /// JSON of a shape that Node-RED or Redflow defines.
    Foreign,
    /// No body.
    Empty,
    /// A JSON array of this type.
    List(&'static str),
    /// Text of this media type.
    Text(&'static str),
    /// Text of this media type, or JSON of this type. The query decides.
    TextOrJson(&'static str, &'static str),
    /// Server-sent events, each of this type. A client that does not accept a stream gets a JSON array of
    /// them.
    Events(&'static str),
    /// JSON of the first type. A client that accepts a stream gets server-sent events, each of the second type.
    JsonOrEvents(&'static str, &'static str),
    /// A WebSocket.
    Socket,
    /// A redirect.
    Redirect,
}

/// A query parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// The name in the URL.
    pub name: &'static str,
    /// What it does, for the OpenAPI document.
    pub about: &'static str,
}

/// A body of a shape that Node-RED or Redflow defines.
pub const ANY_BODY: &str = "*";

/// A body of any bytes.
pub const BYTES_BODY: &str = "application/octet-stream";

/// Identifies a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the table describes each route")]
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
    ConsoleFile,
    SignIn,
    SignInWithToken,
    SignInCodes,
    SignOut,
    Session,
    Tokens,
    AddToken,
    RemoveToken,
    Config,
    Flows,
    Flow,
    FlowGraph,
    Check,
    Deployment,
    Deploy,
    StartRun,
    Runs,
    Run,
    RunEvents,
    RunIteration,
    RunJournal,
    RunTrace,
    RunTree,
    Stats,
    RunReport,
    CancelRun,
    ResolveRun,
    ReplayRun,
    Tools,
    Tool,
    RegisterTool,
    RemoveTool,
    CallTool,
    ToolCalls,
    AgentDetail,
    InternalInput,
    InternalState,
    InternalTool,
    McpServers,
    McpServer,
    ConnectMcpServer,
    PinMcpTools,
    McpLogin,
    McpLogout,
    OAuthCallback,
    McpMessage,
    McpStream,
    EndMcpSession,
    KnowledgeBases,
    RemoveKnowledgeBase,
    KnowledgeDocuments,
    AddDocument,
    RemoveDocument,
    KnowledgePassages,
    SearchKnowledge,
    ReindexKnowledge,
    Memories,
    MemoryEntries,
    SearchMemory,
    MemoryEntry,
    PutMemoryEntry,
    RemoveMemoryEntry,
    RemoveMemory,
    ExportMemory,
    ExportMemories,
    ReviewMemory,
    Forget,
    Models,
    TestModel,
    ListModels,
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
    AdminObservability,
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
    /// Identifies the route.
    pub id: RouteId,
    /// The HTTP method.
    pub method: Method,
    /// The path; `{name}` stands for a part that varies.
    pub path: &'static str,
    /// The scope that a token needs; none if the route needs no token.
    pub scope: Option<Scope>,
    /// What it does, for the OpenAPI document.
    pub about: &'static str,
    /// The type of the body, or [`ANY_BODY`]; none if the route takes no body.
    pub body: Option<&'static str>,
    /// The status and the body of a successful answer.
    pub answer: (u16, Answer),
    /// The query parameters.
    pub query: &'static [Query],
    /// Whether the Redflow UI uses the route. Pages of the one origin that `--redflow-ui` admits may call it
    /// without a token.
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

/// A route of Node-RED's Admin API or of Redflow, with the path that those define.
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

    // SECURITY: token-needed
    #[test]
    fn every_route_is_unique_and_described_and_api_routes_need_a_token() {
        let mut seen = HashSet::new();
        for route in ROUTES {
            assert!(seen.insert((route.method.as_str(), route.path)), "{} twice", route.path);
            assert!(route.about.ends_with('.'), "{}", route.path);
            assert!(route.scope.is_some() || !route.path.starts_with("/api"), "{} is open", route.path);
        }
        let ids: HashSet<_> = ROUTES.iter().map(|route| route.id).collect();
        assert_eq!(ids.len(), ROUTES.len());
    }

    // SECURITY: scopes
    #[test]
    fn every_scope_allows_itself_and_read() {
        use Scope::{Admin, Deploy, Read, Run};
        for scope in Scope::ALL {
            assert!(scope.allows(Read) && scope.allows(scope) && Admin.allows(scope));
        }
        assert!(!Read.allows(Run) && !Run.allows(Deploy) && !Deploy.allows(Run) && !Deploy.allows(Admin));
    }
}
