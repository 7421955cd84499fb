//! The rule `connect`: one lookup per connection, and only judged addresses are dialled.

use crate::host::Host;
use crate::net::{ByteStream, Dial, Resolve};
use crate::origin::Origin;
use crate::tls::Tls;
use crate::{EgressPolicy, Refusal, Rule};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// The longest time until a connection is ready: lookup, connection, proxy and TLS together.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most addresses of a host that are dialled, one after the other.
pub const MAX_DIALS: usize = 3;

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Failed(&'static str),
}

/// Makes the connections of a client.
#[derive(Clone)]
pub(crate) struct Connector(Arc<ConnectorParts>);

struct ConnectorParts {
    policy: Arc<EgressPolicy>,
    resolver: Arc<dyn Resolve>,
    dialler: Arc<dyn Dial>,
    tls: Tls,
}

impl Connector {
    pub(crate) fn new(policy: Arc<EgressPolicy>, resolver: Arc<dyn Resolve>, dialler: Arc<dyn Dial>) -> Self {
        let tls = Tls::new(policy.extra_ca.clone());
        Self(Arc::new(ConnectorParts { policy, resolver, dialler, tls }))
    }

    /// The judged addresses of a host.
    pub(crate) async fn addresses(&self, host: &Host, port: u16) -> Result<Vec<IpAddr>, ConnectError> {
        let answers = self.look_up(host).await?;
        self.0.policy.judge_answers(host, port, &answers)?;
        Ok(answers)
    }

    async fn look_up(&self, host: &Host) -> Result<Vec<IpAddr>, ConnectError> {
        match host {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => {
                let answers = self.0.resolver.resolve(name).await;
                answers.map_err(|_| ConnectError::Failed("the name of the host cannot be looked up"))
            }
        }
    }

    /// Opens a connection to an origin.
    pub(crate) async fn connect(&self, origin: &Origin) -> Result<GuardedStream, ConnectError> {
        let connected = timeout(CONNECT_TIMEOUT, self.open(origin)).await;
        let stream = connected.unwrap_or(Err(ConnectError::Failed("there was no connection in time")))?;
        Ok(GuardedStream::new(stream))
    }

    async fn open(&self, origin: &Origin) -> Result<Box<dyn ByteStream>, ConnectError> {
        let Origin { is_https, host, port } = origin;
        let mut stream = match &self.0.policy.proxy {
            None => {
                let addresses = self.addresses(host, *port).await?;
                self.dial(&addresses, *port).await?
            }
            Some(proxy) => {
                // The operator chose this host, so it is not judged.
                let addresses = self.look_up(&proxy.host).await?;
                let mut stream = self.dial(&addresses, proxy.port).await?;
                if proxy.is_https {
                    stream = self.secure(&proxy.host, stream).await?;
                }
                if *is_https {
                    let target = host.with_port(*port);
                    proxy.tunnel(&mut stream, &target).await.map_err(ConnectError::Failed)?;
                }
                stream
            }
        };
        if *is_https {
            stream = self.secure(host, stream).await?;
        }
        Ok(stream)
    }

    async fn secure(
        &self,
        host: &Host,
        stream: Box<dyn ByteStream>,
    ) -> Result<Box<dyn ByteStream>, ConnectError> {
        self.0.tls.connect(host, stream).await.map_err(ConnectError::Failed)
    }

    /// Connects to the first of these addresses that answers.
    async fn dial(&self, addresses: &[IpAddr], port: u16) -> Result<Box<dyn ByteStream>, ConnectError> {
        let mut failure = "no connection could be made";
        let tried = addresses.len().min(MAX_DIALS);
        for address in &addresses[..tried] {
            let address = SocketAddr::new(*address, port);
            // A silent address must leave time for the next one.
            let time = CONNECT_TIMEOUT / u32::try_from(tried).unwrap_or(1);
            match timeout(time, self.0.dialler.dial(address)).await {
                Ok(Ok(dialled)) if dialled.peer.ip() == address.ip() && dialled.peer.port() == port => {
                    return Ok(dialled.stream);
                }
                Ok(Ok(_)) => {
                    let reason = "the connection leads to another address than the one that was dialled";
                    return Err(Refusal::new(Rule::Connect, reason).into());
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    failure = "the host refused the connection";
                }
                Ok(Err(_)) => failure = "no connection could be made",
                Err(_) => failure = "the host did not answer in time",
            }
        }
        Err(ConnectError::Failed(failure))
    }
}

/// A connection that notes when a byte leaves.
pub(crate) struct GuardedStream {
    stream: TokioIo<Box<dyn ByteStream>>,
    pub(crate) sent: SentFlag,
}

impl GuardedStream {
    pub(crate) fn new(stream: Box<dyn ByteStream>) -> Self {
        Self { stream: TokioIo::new(stream), sent: SentFlag::default() }
    }
}

/// Whether a byte of a request left on a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentFlag(Arc<AtomicBool>);

impl SentFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn note(&self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(1..)) = written {
            self.0.store(true, Ordering::Release);
        }
    }
}

impl Read for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for GuardedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.sent.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.sent.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
