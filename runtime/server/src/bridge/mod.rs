//! `ws /bridge`: Node-REDs whose agents run here.
//!
//! Owns which Node-REDs are known, the engine of each, and which run belongs to which. What is said on the socket is
//! `socket`'s, what must arrive is `outbox`'s and `link`'s.

mod host;
mod instance;
mod intake;
mod observer;
mod outbox;
mod session;
mod socket;

pub(crate) use instance::Instance;
pub(crate) use socket::bridge;

use crate::active_flow::FlowBuilder;
use crate::answer::{Answer, json};
use crate::hub::Hub;
use crate::sidecar::App;
use axum::extract::State;
use redflow_contract::api::ApiError;
use redflow_contract::bridge::InstanceList;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::id::{InstanceId, RunId};
use redflow_contract::run::RunRequest;
use redflow_engine::Engine;
use redflow_ports::{Clock, Meter, PendingRequest, RunReader, RunStore, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What every engine is made with.
pub(crate) struct EngineParts {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) catalogue: Arc<dyn RunReader>,
    pub(crate) meter: Arc<dyn Meter>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) flow_builder: FlowBuilder,
}

/// Every Node-RED that is known.
pub(crate) struct Bridge {
    engine_parts: EngineParts,
    /// Told when every engine has stopped: until then Node-REDs can answer the calls that are under way.
    pub(crate) stopped: CancellationToken,
    /// How many sockets are open.
    sockets: watch::Sender<usize>,
    instances: Mutex<BTreeMap<InstanceId, Arc<Instance>>>,
}

impl Bridge {
    pub(crate) fn new(engine_parts: EngineParts) -> Self {
        let (stopped, sockets) = (CancellationToken::new(), watch::Sender::new(0));
        Self { engine_parts, stopped, sockets, instances: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<InstanceId, Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A Node-RED, known from now on. One that is away makes room for it, if there is none.
    ///
    /// # Errors
    /// When all there may be are here.
    pub(crate) fn enter(&self, id: &InstanceId) -> Result<Arc<Instance>, ApiError> {
        let mut instances = self.lock();
        if let Some(known) = instances.get(id) {
            return Ok(Arc::clone(known));
        }
        let most = self.engine_parts.flow_builder.settings.max_instances;
        if instances.len() >= most {
            let away = instances.iter().find(|(_, instance)| instance.is_idle()).map(|(id, _)| id.clone());
            let Some(gone) = away.and_then(|away| instances.remove(&away)) else {
                let text = format!("This sidecar serves {most} Node-REDs already, and may not serve more.");
                return Err(ApiError::new(ApiCode::TooManyInstances, text));
            };
            // Its runs are as their journals have them, and go on when it comes back.
            tokio::spawn(async move {
                gone.engine.shutdown(Duration::ZERO).await;
                gone.link.forget();
            });
        }
        let instance = Arc::new(Instance::new(id.clone(), &self.engine_parts));
        instances.insert(id.clone(), Arc::clone(&instance));
        Ok(instance)
    }

    fn all(&self) -> Vec<Arc<Instance>> {
        self.lock().values().cloned().collect()
    }

    /// Whether an instance has not had to make room for another one.
    fn is_here(&self, instance: &Arc<Instance>) -> bool {
        self.lock().get(&instance.id).is_some_and(|known| Arc::ptr_eq(known, instance))
    }

    /// A socket is open, as long as this is kept.
    fn opened(&self) -> OpenSocket {
        self.sockets.send_modify(|open| *open += 1);
        OpenSocket(self.sockets.clone())
    }

    /// Stops every engine, and then says goodbye.
    pub(crate) async fn shutdown(&self, drain: Duration) {
        let all = self.all();
        if all.iter().any(|instance| !instance.is_idle()) {
            // A Node-RED that stops with its sidecar has gone by then.
            tokio::time::sleep(PARTING).await;
        }
        // One that is not there answers nothing: its runs need not wait for it.
        let stop = |instance: &Arc<Instance>| {
            let drain = if instance.is_idle() { Duration::ZERO } else { drain };
            let instance = Arc::clone(instance);
            async move { instance.engine.shutdown(drain).await }
        };
        let engines = futures::future::join_all(all.iter().map(stop));
        // A run that does not come to rest must not keep the others.
        let _ = tokio::time::timeout(drain + GOODBYE, engines).await;
        self.stopped.cancel();
        let mut sockets = self.sockets.subscribe();
        let _ = tokio::time::timeout(GOODBYE, sockets.wait_for(|open| *open == 0)).await;
    }
}

/// How long a Node-RED that stops as well may take to say so.
const PARTING: Duration = Duration::from_millis(150);

/// How long Node-REDs may take to hear that the sidecar has stopped.
const GOODBYE: Duration = Duration::from_millis(1_500);

struct OpenSocket(watch::Sender<usize>);

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// Who drives a run.
pub(crate) enum Driver<'a> {
    /// The sidecar itself.
    Own(&'a Engine),
    /// The engine of a Node-RED.
    Of(Arc<Instance>),
}

impl std::ops::Deref for Driver<'_> {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        match self {
            Self::Own(engine) => engine,
            Self::Of(instance) => &instance.engine,
        }
    }
}

impl App {
    /// Who drives a run. Also of a Node-RED that has not come back yet: such a run can be ended, and answered.
    pub(crate) async fn driver(&self, run: &RunId) -> Result<Driver<'_>, StoreError> {
        let found = self.catalogue.look(run).await?;
        let of = found.map(|found| found.summary.agent.instance).filter(|of| *of != InstanceId::local());
        match of {
            None => Ok(Driver::Own(&self.engine)),
            Some(of) => {
                let entered = self.bridge.enter(&of);
                entered.map(Driver::Of).map_err(|error| StoreError::new(StoreCode::RunBlocked, error.message))
            }
        }
    }

    /// Does what other processes ask of runs, whoever drives them. Ends with the runtime.
    pub(crate) async fn hear_requests(self: Arc<Self>) {
        loop {
            for PendingRequest { id, run, request } in self.bridge.engine_parts.store.requests().await {
                let app = Arc::clone(&self);
                tokio::spawn(async move {
                    let done = app.obey(run, request).await;
                    app.bridge.engine_parts.store.answer(id, done.err().map(|error| error.code));
                });
            }
        }
    }

    async fn obey(&self, run: RunId, request: RunRequest) -> Result<(), StoreError> {
        let driver = self.driver(&run).await?;
        match request {
            RunRequest::Cancel { reason } => driver.cancel(run, reason).await,
            RunRequest::Resolve { call_id, result } => driver.resolve(run, call_id, result).await,
        }
    }
}

/// Every Node-RED that is known.
pub(crate) async fn list(State(app): State<Arc<App>>) -> Answer {
    let instances = app.bridge.all().iter().map(|instance| instance.state()).collect();
    Ok(json(200, &InstanceList { instances }))
}
