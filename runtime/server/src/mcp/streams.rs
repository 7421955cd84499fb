//! The MCP server over a pair of byte streams, for a client that starts the sidecar as a program.

use super::handler::McpHandler;
use super::problem::error_data;
use crate::app::App;
use crate::response::Problem;
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, serve_server};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Bytes around a message in a line.
const BYTES_AROUND_MESSAGE: usize = 64 * 1024;

/// How long a client may take to read why it is disconnected.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// Why a client is no longer served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEnd {
    /// It has closed its stream, or the sidecar stops.
    Closed,
    /// It has sent a message of more than this many bytes.
    MessageTooLong(usize),
}

/// Serves one client until it closes its stream, or until `stop` is cancelled. The client has the rights of `caller`.
pub(crate) async fn serve_client<R, W>(
    app: &Arc<App>,
    caller: Caller,
    reader: R,
    writer: W,
    stop: &CancellationToken,
) -> ClientEnd
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let message = usize::try_from(app.settings.run_limits.max_message_bytes).unwrap_or(usize::MAX);
    let most = message.saturating_add(BYTES_AROUND_MESSAGE);
    let too_long = Arc::new(AtomicBool::new(false));
    let lines = BoundedLines { inner: reader, most, line_bytes: 0, too_long: Arc::clone(&too_long) };
    // rmcp would drop a line that is too long, and the client would wait for an answer that never comes.
    let inner =
        AsyncRwTransport::<RoleServer, _, W>::new_server(lines, writer).with_max_line_length(usize::MAX);
    let transport =
        RefusingTransport { inner, most, too_long: Arc::clone(&too_long), refusal: Refusal::NotSent };
    let handler = McpHandler::of_caller(Arc::clone(app), caller);
    let serve = async {
        match serve_server(handler, transport).await {
            Ok(service) => drop(service.waiting().await),
            // The client disconnected, or did not speak MCP.
            Err(error) => tracing::warn!("the MCP client could not be served: {error}"),
        }
    };
    tokio::select! {
        () = serve => {}
        () = stop.cancelled() => {}
    }
    if too_long.load(Ordering::Relaxed) { ClientEnd::MessageTooLong(most) } else { ClientEnd::Closed }
}

/// Ends the stream before a line that is too long.
struct BoundedLines<R> {
    inner: R,
    /// The most bytes of a line.
    most: usize,
    /// The bytes of the line that is not complete.
    line_bytes: usize,
    too_long: Arc<AtomicBool>,
}

impl<R> BoundedLines<R> {
    /// Counts what was read. Gives how many bytes of it may be used: those before a line that is too long.
    fn count(&mut self, read: &[u8]) -> usize {
        let mut usable = 0;
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            self.line_bytes += part.len();
            if self.line_bytes > self.most {
                self.too_long.store(true, Ordering::Relaxed);
                return usable;
            }
            if part.ends_with(b"\n") {
                self.line_bytes = 0;
            }
            usable += part.len();
        }
        usable
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        if this.too_long.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        let usable = this.count(buffer.filled().get(before..).unwrap_or_default());
        buffer.set_filled(before + usable);
        Poll::Ready(Ok(()))
    }
}

/// Tells the client why it is disconnected.
struct RefusingTransport<T> {
    inner: T,
    most: usize,
    too_long: Arc<AtomicBool>,
    refusal: Refusal,
}

enum Refusal {
    NotSent,
    /// It is kept here, because `receive` may be dropped while it waits.
    Sending(Pin<Box<dyn Future<Output = ()> + Send>>),
    Sent,
}

impl<T: Transport<RoleServer>> RefusingTransport<T> {
    fn refuse(&mut self) -> Refusal {
        let text = format!("The MCP client sent a message of more than {} bytes.", self.most);
        let error = error_data(Problem::new(ApiCode::BodyTooLarge, text));
        // The id is in the message, which was not kept.
        let send = self.inner.send(JsonRpcMessage::error(error, None));
        Refusal::Sending(Box::pin(async move { drop(tokio::time::timeout(REFUSAL_TIME, send).await) }))
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for RefusingTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if matches!(self.refusal, Refusal::NotSent) {
            if let Some(message) = self.inner.receive().await {
                return Some(message);
            }
            if self.too_long.load(Ordering::Relaxed) {
                self.refusal = self.refuse();
            }
        }
        if let Refusal::Sending(send) = &mut self.refusal {
            send.await;
            self.refusal = Refusal::Sent;
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::BoundedLines;
    use pretty_assertions::assert_eq;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn what_comes_before_a_line_that_is_too_long_can_be_used() {
        let rows: [(&[&str], &str, bool); 6] = [
            (&["abc\nde\n"], "abc\nde\n", false),
            // A line of the longest length, with its end.
            (&["1234567\nx"], "1234567\nx", false),
            (&["1234", "567\n", "x"], "1234567\nx", false),
            (&["ab\n12345678\ncd\n"], "ab\n", true),
            (&["ab\n123456789"], "ab\n", true),
            // What came before is not complete, so it is no message.
            (&["ab\n1234", "5678\n"], "ab\n1234", true),
        ];
        for (chunks, expected, is_too_long) in rows {
            let too_long = Arc::new(AtomicBool::new(false));
            let mut lines =
                BoundedLines { inner: (), most: 8, line_bytes: 0, too_long: Arc::clone(&too_long) };
            let usable = |chunk: &&str| chunk.get(..lines.count(chunk.as_bytes())).unwrap().to_owned();
            let read: String = chunks.iter().map(usable).collect();
            assert_eq!(
                (read.as_str(), too_long.load(Ordering::Relaxed)),
                (expected, is_too_long),
                "{chunks:?}"
            );
        }
    }
}
