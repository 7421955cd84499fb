//! Finds the engine of a run, and handles the requests of other processes, such as `redflow runs cancel`.

use super::instance::Instance;
use crate::app::App;
use redflow_contract::code::StoreCode;
use redflow_contract::id::{InstanceId, RunId};
use redflow_contract::run::RunRequest;
use redflow_engine::Engine;
use redflow_ports::{PendingRequest, StoreError};
use std::sync::Arc;

/// The engine that drives a run.
pub(crate) enum RunEngine<'a> {
    /// The engine of the sidecar itself.
    Own(&'a Engine),
    /// The engine of a Node-RED.
    Instance(Arc<Instance>),
}

impl std::ops::Deref for RunEngine<'_> {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        match self {
            Self::Own(engine) => engine,
            Self::Instance(instance) => &instance.engine,
        }
    }
}

/// The engine that drives a run. The run of a Node-RED that has not reconnected yet can be cancelled and
/// resolved too.
pub(crate) async fn engine_of<'a>(app: &'a App, run: &RunId) -> Result<RunEngine<'a>, StoreError> {
    let run = app.run_reader.read(run).await?;
    let owner = run.map(|run| run.summary.agent.instance).filter(|owner| *owner != InstanceId::local());
    match owner {
        None => Ok(RunEngine::Own(&app.engine)),
        Some(owner) => {
            let instance = app.bridge.instance(&owner);
            instance
                .map(RunEngine::Instance)
                .map_err(|error| StoreError::new(StoreCode::RunBlocked, error.message))
        }
    }
}

/// Handles the requests that other processes leave in the store, until the task is aborted.
pub(crate) async fn handle_requests(app: Arc<App>) {
    loop {
        for PendingRequest { id, run, request } in app.bridge.engine_parts.store.requests().await {
            let app = Arc::clone(&app);
            tokio::spawn(async move {
                let handled = handle_request(&app, run, request).await;
                app.bridge.engine_parts.store.answer_request(id, handled.err().map(|error| error.code));
            });
        }
    }
}

async fn handle_request(app: &App, run: RunId, request: RunRequest) -> Result<(), StoreError> {
    let engine = engine_of(app, &run).await?;
    match request {
        RunRequest::Cancel { reason } => engine.cancel(run, reason).await,
        RunRequest::Resolve { call_id, result } => engine.resolve(run, call_id, result).await,
    }
}
