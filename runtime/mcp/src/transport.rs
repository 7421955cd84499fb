//! A guard around a connection: it bounds what a server can ask for, and drops what no one reads.

use crate::warnings::{DeclinedRequest, Warnings};
use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification, ServerRequest};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most requests of a server that wait for an answer of ours. A server that sends more without reading the
/// answers is disconnected.
pub(crate) const MAX_SERVER_REQUESTS: usize = 64;

/// A transport with bounds.
pub(crate) struct GuardedTransport<T> {
    inner: T,
    warnings: Arc<Warnings>,
    /// The requests of the server without an answer.
    open: Arc<AtomicUsize>,
}

impl<T> GuardedTransport<T> {
    pub(crate) fn new(inner: T, warnings: &Arc<Warnings>) -> Self {
        Self { inner, warnings: Arc::clone(warnings), open: Arc::default() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for GuardedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let (send, open) = (self.inner.send(item), Arc::clone(&self.open));
        async move {
            let sent = send.await;
            if is_answer {
                let _ = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| open.checked_sub(1));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Request(_)
                    if self.open.fetch_add(1, Ordering::Relaxed) >= MAX_SERVER_REQUESTS =>
                {
                    tracing::warn!(
                        server = self.warnings.server(),
                        "an MCP server asks for too much at once, so it is disconnected"
                    );
                    return None;
                }
                JsonRpcMessage::Request(request) => match &request.request {
                    ServerRequest::CreateMessageRequest(_) => {
                        self.warnings.warn_declined(DeclinedRequest::Sampling)
                    }
                    ServerRequest::ElicitRequest(_) => {
                        self.warnings.warn_declined(DeclinedRequest::Elicitation)
                    }
                    _ => {}
                },
                JsonRpcMessage::Notification(notification) => match &notification.notification {
                    ServerNotification::ProgressNotification(_)
                    | ServerNotification::LoggingMessageNotification(_)
                    | ServerNotification::ResourceUpdatedNotification(_)
                    | ServerNotification::TaskStatusNotification(_)
                    | ServerNotification::CustomNotification(_) => continue,
                    _ => {}
                },
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
