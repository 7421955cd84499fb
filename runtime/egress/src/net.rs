//! The two ways to the network: looking up a name and opening a connection. Tests replace both.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A boxed future, so that the traits can be objects.
pub type NetFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Looks up the addresses of a name.
pub trait Resolve: Send + Sync {
    /// All addresses of a name, in the order in which to try them.
    fn resolve<'a>(&'a self, name: &'a str) -> NetFuture<'a, Vec<IpAddr>>;
}

/// Opens connections.
pub trait Dial: Send + Sync {
    /// Opens a connection to one address.
    fn dial(&self, address: SocketAddr) -> NetFuture<'_, Dialled>;
}

/// The bytes of a connection.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// An open connection.
pub struct Dialled {
    /// Its bytes.
    pub stream: Box<dyn ByteStream>,
    /// The address at its other end.
    pub peer: SocketAddr,
}

/// The resolver of the operating system, which also knows split DNS and the hosts file.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> NetFuture<'a, Vec<IpAddr>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|a| a.ip()).collect()) })
    }
}

/// Opens TCP connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpDialler;

impl Dial for TcpDialler {
    fn dial(&self, address: SocketAddr) -> NetFuture<'_, Dialled> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let peer = stream.peer_addr()?;
            Ok(Dialled { stream: Box::new(stream), peer })
        })
    }
}
