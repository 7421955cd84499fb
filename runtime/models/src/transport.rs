//! The way to a provider: one POST, one answer, read piece by piece.
//!
//! Owns the HTTP client: its proxy, its certificates, its timeouts. Never retries, never follows a redirect,
//! and never puts a library's words or an address with a password into an error.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use redflow_ports::BoxFuture;
use reqwest::{Certificate, Client, ClientBuilder, Proxy, Response, redirect, retry};
use std::error::Error;
use std::time::Duration;
use std::{fmt, io};
use url::{Host, Url};

/// Makes one POST. Dropping the future closes the connection or resets its stream.
pub trait Transport: Send + Sync {
    /// Sends a body and waits for the head of the answer.
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Incoming, TransportError>>;
}

/// Where to send to, and what to say there. Keys are marked, so that no log shows them.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The address.
    pub url: Url,
    /// The headers of every request.
    pub headers: HeaderMap,
}

impl Endpoint {
    /// An address, with the headers every wire sends.
    #[must_use]
    pub fn new(url: Url) -> Self {
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { url, headers }
    }

    /// Adds a header.
    ///
    /// # Errors
    /// When the value cannot stand in a header.
    pub fn header(mut self, name: &'static str, value: &str) -> Result<Self, InvalidHeader> {
        let value = HeaderValue::from_str(value).map_err(|_| InvalidHeader)?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// Adds a header that no log shows.
    ///
    /// # Errors
    /// When the value cannot stand in a header.
    pub fn secret_header(mut self, name: &'static str, value: &str) -> Result<Self, InvalidHeader> {
        let mut value = HeaderValue::from_str(value).map_err(|_| InvalidHeader)?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }
}

/// A header holds a line break or the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidHeader;

/// The head of an answer, and a way to the rest.
pub struct Incoming {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Box<dyn Pieces>,
}

/// A body that is read piece by piece.
pub trait Pieces: Send {
    /// The next piece; none at the end.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>>;
}

/// The way was not there, or was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Nobody listens there.
    #[error("nothing listens there")]
    Refused,
    /// The name is not known.
    #[error("its name cannot be resolved")]
    NotFound,
    /// No connection in time.
    #[error("no connection was made in time")]
    ConnectTimeout,
    /// The other side cannot prove who it is.
    #[error("its TLS certificate is not trusted, or it does not speak TLS")]
    Tls,
    /// Another reason why there is no connection.
    #[error("no connection could be made")]
    Connect,
    /// The connection was there and was lost.
    #[error("the connection was lost before the answer ended")]
    Lost,
    /// What came is another language.
    #[error("what it sends is not HTTP; check the address")]
    NotHttp,
}

/// What all calls share.
#[derive(Clone)]
pub struct HttpSettings {
    /// A proxy for every call, such as `http://proxy:3128`. Without one, the usual environment variables count,
    /// but not for calls to this machine.
    pub proxy: Option<Url>,
    /// Certificates that are trusted beside the system's, as PEM.
    pub extra_ca: Vec<u8>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// Whether nothing newer than HTTP/1.1 is spoken: sockets are opened with it.
    pub http1_only: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            proxy: None,
            extra_ca: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            http1_only: false,
        }
    }
}

/// Without the proxy: its address may hold a password.
impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("has_proxy", &self.proxy.is_some())
            .field("extra_ca_bytes", &self.extra_ca.len())
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// The HTTP client of this build.
#[derive(Clone)]
pub struct ReqwestTransport {
    client: Client,
    /// For this machine, which no proxy of the environment can reach.
    local: Client,
}

/// Without the clients: they know the proxy.
impl fmt::Debug for ReqwestTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReqwestTransport")
    }
}

impl ReqwestTransport {
    /// A client with these settings.
    ///
    /// # Errors
    /// A sentence, when they cannot be used.
    pub fn new(settings: &HttpSettings) -> Result<Self, String> {
        // The first one wins; another part of the process may have been here before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut trusted = Vec::new();
        if !settings.extra_ca.is_empty() {
            trusted = Certificate::from_pem_bundle(&settings.extra_ca).unwrap_or_default();
            if trusted.is_empty() {
                return Err("the file of extra certificates holds no certificate in PEM form".to_owned());
            }
        }
        let builder = || {
            let builder = Client::builder();
            let builder = if settings.http1_only { builder.http1_only() } else { builder };
            builder
                .user_agent(concat!("redflow/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                .retry(retry::never())
                .connect_timeout(settings.connect_timeout)
                .tcp_nodelay(true)
                .referer(false)
                .tls_certs_merge(trusted.clone())
        };
        let built = |builder: ClientBuilder| {
            builder.build().map_err(|_| "the HTTP client cannot be built with these settings")
        };
        let Some(proxy) = &settings.proxy else {
            return Ok(Self { client: built(builder())?, local: built(builder().no_proxy())? });
        };
        if !matches!(proxy.scheme(), "http" | "https") {
            return Err("the proxy's address must begin with http:// or https://".to_owned());
        }
        let proxy = Proxy::all(proxy.as_str()).map_err(|_| "the proxy's address cannot be used")?;
        let client = built(builder().proxy(proxy))?;
        Ok(Self { local: client.clone(), client })
    }

    /// The client for an address: loopback addresses never go through a proxy of the environment.
    #[must_use]
    pub fn client(&self, url: &Url) -> &Client {
        if is_local(url) { &self.local } else { &self.client }
    }
}

/// Whether a host is one of these, or below one.
pub(crate) fn is_within(host: &str, domains: &[&str]) -> bool {
    domains
        .iter()
        .any(|domain| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Whether an address is on this machine.
#[must_use]
pub fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl Transport for ReqwestTransport {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<Incoming, TransportError>> {
        let request = self.client(&endpoint.url).post(endpoint.url.clone());
        let request = request.headers(endpoint.headers.clone()).body(body).send();
        Box::pin(async move {
            let mut response = request.await.map_err(|error| judge(&error))?;
            let status = response.status().as_u16();
            let headers = std::mem::take(response.headers_mut());
            Ok(Incoming { status, headers, body: Box::new(Body(response)) })
        })
    }
}

struct Body(Response);

impl Pieces for Body {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async { self.0.chunk().await.map_err(|error| judge(&error)) })
    }
}

impl From<&reqwest::Error> for TransportError {
    fn from(error: &reqwest::Error) -> Self {
        judge(error)
    }
}

/// What a library's error means, without its words: they may hold an address, and that a password.
fn judge(error: &reqwest::Error) -> TransportError {
    let causes = || std::iter::successors(error.source(), |cause| beneath(*cause));
    if !error.is_connect() {
        let is_other = |cause: &hyper::Error| cause.is_parse();
        let garbled = causes().any(|cause| cause.downcast_ref().is_some_and(is_other));
        return if garbled { TransportError::NotHttp } else { TransportError::Lost };
    }
    if error.is_timeout() {
        return TransportError::ConnectTimeout;
    }
    for cause in causes() {
        if cause.downcast_ref::<rustls::Error>().is_some() {
            return TransportError::Tls;
        }
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => return TransportError::Refused,
            Some(io::ErrorKind::TimedOut) => return TransportError::ConnectTimeout,
            _ => {}
        }
        // The resolver's error has a private type; this is all it tells of itself.
        if cause.to_string().starts_with("dns error") {
            return TransportError::NotFound;
        }
    }
    TransportError::Connect
}

/// What lies beneath an error. One of the system's that wraps another does not count that one as its source.
fn beneath<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}
