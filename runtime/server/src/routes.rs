//! The router: one handler for each route of the contract's table.

use crate::admin::{comms, deploy, info as admin, inject, tabs};
use crate::app::App;
use crate::console::{assets, graph, iterations, journals, report, stats, traces, tree};
use crate::redflow_ui::{azure, chat, observability, storage};
use crate::response::{ApiResult, Problem};
use crate::{
    agents, attached, bridge, event_socket, flows, guard, info, knowledge, mcp, mcp_servers, memory, models,
    pages, run_events, runs, starts, tokens, tools,
};
use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::routing::{MethodRouter, delete, get, post, put};
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use redflow_contract::route::{Method, ROUTES, RouteId};
use std::sync::Arc;

/// Builds the router with all routes behind the guard.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let node_red_routes = match app.attached.get() {
        Some(attached) if attached.forwards => NodeRedRoutes::Forward,
        _ => NodeRedRoutes::Serve,
    };
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, handler(route.id, node_red_routes));
    }
    router
        .route("/api/flows/check", get(flows::check_tab))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), guard::guard))
        .with_state(Arc::clone(app))
}

/// Who handles the routes of Node-RED's Admin API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeRedRoutes {
    /// This sidecar.
    Serve,
    /// The attached Node-RED.
    Forward,
}

fn handler(route: RouteId, node_red_routes: NodeRedRoutes) -> MethodRouter<Arc<App>> {
    let forwards = node_red_routes == NodeRedRoutes::Forward;
    match route {
        RouteId::Comms if forwards => get(attached::comms),
        admin_route if forwards && attached::is_admin_route(admin_route) => forwarding(admin_route),
        RouteId::Health => get(info::health),
        RouteId::HealthLive => get(info::live),
        RouteId::HealthReady => get(info::ready),
        RouteId::Metrics => get(info::metrics),
        RouteId::OpenApi => get(info::openapi),
        RouteId::Events => get(event_socket::events),
        RouteId::Bridge => get(bridge::socket::open),
        RouteId::Instances => get(bridge::instances::list),
        RouteId::Home => get(assets::page),
        RouteId::ConsoleFile => get(assets::file),
        RouteId::SignIn => get(pages::sign_in),
        RouteId::SignInWithToken => post(pages::sign_in_with_token),
        RouteId::SignInCodes => post(pages::sign_in_codes),
        RouteId::SignOut => post(pages::sign_out),
        RouteId::Session => get(pages::session),
        RouteId::Tokens => get(tokens::list),
        RouteId::AddToken => post(tokens::add),
        RouteId::RemoveToken => delete(tokens::remove),
        RouteId::Config => get(info::config),
        RouteId::Flows => get(flows::list),
        RouteId::Flow => get(flows::one),
        RouteId::FlowGraph => get(graph::graph),
        RouteId::Check => post(flows::check),
        RouteId::Deployment => get(flows::deployment),
        RouteId::Deploy => post(flows::deploy_flow),
        RouteId::StartRun => post(starts::start),
        RouteId::Runs => get(runs::list),
        RouteId::Run => get(runs::one),
        RouteId::RunEvents => get(run_events::events),
        RouteId::RunIteration => get(iterations::iteration),
        RouteId::RunJournal => get(journals::journal),
        RouteId::RunTrace => get(traces::trace),
        RouteId::RunTree => get(tree::tree),
        RouteId::Stats => get(stats::stats),
        RouteId::RunReport => get(report::report),
        RouteId::CancelRun => post(runs::cancel),
        RouteId::ResolveRun => post(runs::resolve),
        RouteId::ReplayRun => post(runs::replay),
        RouteId::Tools => get(tools::list),
        RouteId::Tool => get(tools::one),
        RouteId::RegisterTool => post(tools::register),
        RouteId::RemoveTool => delete(tools::remove),
        RouteId::CallTool => post(tools::call),
        RouteId::ToolCalls => get(tools::calls),
        RouteId::AgentDetail => get(agents::state),
        RouteId::InternalInput => post(starts::start),
        RouteId::InternalState => get(agents::internal_state),
        RouteId::InternalTool => post(tools::internal_tool),
        RouteId::McpServers => get(mcp_servers::list),
        RouteId::McpServer => get(mcp_servers::show),
        RouteId::ConnectMcpServer => post(mcp_servers::connect),
        RouteId::PinMcpTools => post(mcp_servers::pin),
        RouteId::McpLogin => post(mcp_servers::login),
        RouteId::McpLogout => delete(mcp_servers::logout),
        RouteId::OAuthCallback => get(mcp_servers::callback),
        RouteId::McpMessage => post(mcp::message),
        RouteId::McpStream => get(mcp::stream),
        RouteId::EndMcpSession => delete(mcp::end_session),
        RouteId::KnowledgeBases => get(knowledge::list),
        RouteId::RemoveKnowledgeBase => delete(knowledge::remove),
        RouteId::KnowledgeDocuments => get(knowledge::documents),
        RouteId::AddDocument => post(knowledge::add),
        RouteId::RemoveDocument => delete(knowledge::remove_document),
        RouteId::KnowledgePassages => get(knowledge::passages),
        RouteId::SearchKnowledge => post(knowledge::search),
        RouteId::ReindexKnowledge => post(knowledge::reindex),
        RouteId::Memories => get(memory::list),
        RouteId::MemoryEntries => get(memory::entries),
        RouteId::SearchMemory => post(memory::search),
        RouteId::MemoryEntry => get(memory::entry),
        RouteId::PutMemoryEntry => put(memory::put),
        RouteId::RemoveMemoryEntry => delete(memory::remove_entry),
        RouteId::RemoveMemory => delete(memory::remove),
        RouteId::ExportMemory => get(memory::export_one),
        RouteId::ExportMemories => get(memory::export_all),
        RouteId::ReviewMemory => post(memory::review),
        RouteId::Forget => post(memory::forget),
        RouteId::Models => get(models::deployed),
        RouteId::TestModel => post(models::test),
        RouteId::ListModels => post(models::list),
        RouteId::Catalogue => get(info::catalogue),
        RouteId::Edges => get(info::edges),
        RouteId::Codes => get(info::codes),
        RouteId::Code => get(info::code),
        RouteId::Beside => get(attached::state),
        RouteId::AdminFlows => get(deploy::flows),
        RouteId::AdminDeploy => post(deploy::deploy),
        RouteId::AdminFlowsState => get(deploy::state),
        RouteId::AdminFlow => get(tabs::one),
        RouteId::AdminAddFlow => post(tabs::add),
        RouteId::AdminPutFlow => put(tabs::put),
        RouteId::AdminDeleteFlow => delete(tabs::delete),
        RouteId::AdminNodes => get(admin::nodes),
        RouteId::AdminSettings => get(admin::settings),
        RouteId::AdminDiagnostics => get(admin::diagnostics),
        RouteId::AdminInject => post(inject::inject),
        RouteId::Comms => get(comms::comms),
        RouteId::Observability | RouteId::AdminObservability => get(observability::observability),
        RouteId::ChatSend => post(chat::send),
        RouteId::ChatHistory => get(chat::history),
        RouteId::ChatClear => post(chat::clear),
        RouteId::AgentSchema => get(storage::schema),
        RouteId::NodeCredentials => get(storage::node_credentials),
        RouteId::CredentialFlags => get(storage::credential_flags),
        RouteId::Storage => get(storage::all),
        RouteId::StoragePut => post(storage::put),
        RouteId::StorageItem => get(storage::item),
        RouteId::StorageDelete => delete(storage::delete),
        RouteId::AzureTest => post(azure::test),
    }
}

/// A handler that forwards requests to the attached Node-RED.
fn forwarding(route: RouteId) -> MethodRouter<Arc<App>> {
    let row = ROUTES.iter().find(|row| row.id == route);
    match row.map_or(Method::Get, |row| row.method) {
        Method::Get => get(attached::forward),
        Method::Post => post(attached::forward),
        Method::Put => put(attached::forward),
        Method::Delete => delete(attached::forward),
    }
}

async fn unknown_path(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    attached::forward_unknown(&app, &caller, request).await.unwrap_or_else(|| {
        Err(Problem::new(ApiCode::RouteUnknown, "There is no such route. /openapi.json lists all routes."))
    })
}

async fn unknown_method(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    attached::forward_unknown(&app, &caller, request).await.unwrap_or_else(|| {
        let text = "This route does not have this method. See /openapi.json.";
        Err(Problem::new(ApiCode::MethodRefused, text))
    })
}
