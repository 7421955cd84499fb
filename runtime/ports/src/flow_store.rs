//! The flow store: the deployed flow and its credentials.

use redflow_contract::Message;
use redflow_contract::api::ProblemCode;
use redflow_contract::id::NodeId;
use std::collections::BTreeMap;

/// Stores the deployed flow.
///
/// ```
/// use redflow_ports::{FileStoreError, FlowStore, StoredFlow};
/// use std::sync::Mutex;
///
/// /// Keeps the flow in memory.
/// #[derive(Default)]
/// struct InMemory(Mutex<Option<StoredFlow>>);
///
/// impl FlowStore for InMemory {
///     fn load(&self) -> Result<Option<StoredFlow>, FileStoreError> {
///         Ok(self.0.lock().unwrap().clone())
///     }
///
///     fn save(&self, flow: &StoredFlow) -> Result<(), FileStoreError> {
///         *self.0.lock().unwrap() = Some(flow.clone());
///         Ok(())
///     }
/// }
///
/// let store = InMemory::default();
/// assert!(store.load()?.is_none());
/// store.save(&StoredFlow { flows: b"[]".to_vec(), ..StoredFlow::default() })?;
/// assert_eq!(store.load()?.unwrap().flows, b"[]");
/// # Ok::<(), FileStoreError>(())
/// ```
pub trait FlowStore: Send + Sync {
    /// Reads the flow that was saved last; none if no flow was ever saved.
    ///
    /// # Errors
    /// When the flow or its credentials cannot be read.
    fn load(&self) -> Result<Option<StoredFlow>, FileStoreError>;

    /// Saves a flow, whole or not at all, and keeps the previous one as a backup. The flow is on the disk
    /// when this returns.
    ///
    /// # Errors
    /// When the flow cannot be written.
    fn save(&self, flow: &StoredFlow) -> Result<(), FileStoreError>;
}

/// A flow with its credentials.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct StoredFlow {
    /// The flow file: JSON as Node-RED writes it, without credentials.
    pub flows: Vec<u8>,
    /// The credentials. The store encrypts them and keeps them apart from the flow.
    pub credentials: Credentials,
}

/// The credentials of each node, by name.
pub type Credentials = BTreeMap<NodeId, Message>;

/// Why a file of the sidecar cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct FileStoreError {
    /// The code; `redflow explain CODE` has a page on it.
    pub code: ProblemCode,
    /// What happened and what to do about it, in one sentence.
    pub message: String,
}
