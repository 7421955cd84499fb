//! `ws /bridge`: the Node-REDs whose agents run here.
//!
//! Owns which Node-REDs are known, and the engine of each. `socket` speaks the protocol; `session` and
//! `outbox` keep the messages that must arrive.

pub(crate) mod engine_parts;
mod host;
pub(crate) mod instance;
pub(crate) mod instances;
mod intake;
mod memory_health;
mod observer;
mod outbox;
pub(crate) mod run_requests;
mod session;
pub(crate) mod socket;

use engine_parts::EngineParts;
use instance::Instance;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::id::InstanceId;
use redflow_engine::Computation;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// How long a Node-RED that stops together with its sidecar may take to disconnect.
const DISCONNECT_DELAY: Duration = Duration::from_millis(150);

/// How long Node-REDs may take to receive that the sidecar has stopped.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// All known Node-REDs.
pub(crate) struct Bridge {
    engine_parts: EngineParts,
    /// Cancelled when every engine has stopped. Until then Node-REDs can answer calls that are under way.
    pub(crate) stopped: CancellationToken,
    /// How many sockets are open.
    sockets: watch::Sender<usize>,
    instances: Mutex<BTreeMap<InstanceId, Arc<Instance>>>,
    /// Sockets without `hello`. Each may hold a message of the largest size until that is refused.
    handshakes: Arc<Semaphore>,
}

impl Bridge {
    pub(crate) fn new(engine_parts: EngineParts) -> Self {
        let (stopped, sockets) = (CancellationToken::new(), watch::Sender::new(0));
        let handshakes = Arc::new(Semaphore::new(engine_parts.flow_builder.settings.max_instances));
        Self { engine_parts, stopped, sockets, instances: Mutex::default(), handshakes }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<InstanceId, Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance of a Node-RED, made if it is new. When the limit is reached, a disconnected one is
    /// removed.
    ///
    /// # Errors
    /// When the limit is reached and all Node-REDs are connected.
    fn instance(&self, id: &InstanceId) -> Result<Arc<Instance>, ApiError> {
        let mut instances = self.lock();
        if let Some(known) = instances.get(id) {
            return Ok(Arc::clone(known));
        }
        let max = self.engine_parts.flow_builder.settings.max_instances;
        if instances.len() >= max {
            let idle =
                instances.iter().find(|(_, instance)| !instance.is_connected()).map(|(id, _)| id.clone());
            let Some(removed) = idle.and_then(|idle| instances.remove(&idle)) else {
                let text = format!("This sidecar already serves {max} Node-REDs, which is its limit.");
                return Err(ApiError::new(ApiCode::TooManyInstances, text));
            };
            self.engine_parts.flow_builder.registry.remove_node_tools(&removed.id);
            // Its runs resume from their journals when it connects again.
            tokio::spawn(async move {
                removed.engine.shutdown(Duration::ZERO).await;
                removed.session.reset();
            });
        }
        let instance = Arc::new(Instance::new(id.clone(), &self.engine_parts));
        instances.insert(id.clone(), Arc::clone(&instance));
        Ok(instance)
    }

    /// The computations that go on now, each with its instance.
    pub(crate) fn computations(&self) -> Vec<(InstanceId, Computation)> {
        let of = |instance: Arc<Instance>| {
            let id = instance.id.clone();
            instance.engine.computations().into_iter().map(move |computation| (id.clone(), computation))
        };
        self.all().into_iter().flat_map(of).collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Instance>> {
        self.lock().values().cloned().collect()
    }

    /// Whether an instance is still known. It may have been removed in favour of another one.
    fn is_registered(&self, instance: &Arc<Instance>) -> bool {
        self.lock().get(&instance.id).is_some_and(|known| Arc::ptr_eq(known, instance))
    }

    /// A permit for a socket to say `hello`; none if as many sockets as there may be Node-REDs have not yet.
    fn begin_handshake(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.handshakes).try_acquire_owned().ok()
    }

    /// Counts an open socket until the guard is dropped.
    fn count_socket(&self) -> OpenSocket {
        self.sockets.send_modify(|open| *open += 1);
        OpenSocket(self.sockets.clone())
    }

    /// Stops every engine, then closes the sockets.
    pub(crate) async fn shutdown(&self, drain: Duration) {
        let all = self.all();
        if all.iter().any(|instance| instance.is_connected()) {
            // A Node-RED that stops together with its sidecar has disconnected after this delay.
            tokio::time::sleep(DISCONNECT_DELAY).await;
        }
        // A disconnected Node-RED answers no call, so its runs need not wait for one.
        let stop = |instance: &Arc<Instance>| {
            let drain = if instance.is_connected() { drain } else { Duration::ZERO };
            let instance = Arc::clone(instance);
            async move { instance.engine.shutdown(drain).await }
        };
        let engines = futures::future::join_all(all.iter().map(stop));
        // An engine that does not stop in time must not block the others.
        let _ = tokio::time::timeout(drain + CLOSE_TIMEOUT, engines).await;
        self.stopped.cancel();
        let mut sockets = self.sockets.subscribe();
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, sockets.wait_for(|open| *open == 0)).await;
    }
}

struct OpenSocket(watch::Sender<usize>);

impl Drop for OpenSocket {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}
