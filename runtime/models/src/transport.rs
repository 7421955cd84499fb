//! Sends one request to a provider, and streams the body of its response.
//!
//! Owns the HTTP client with its proxy, certificates and timeouts. Never retries and never follows a
//! redirect. Its errors never hold a library's text or an address, which may contain a password.

use crate::no_proxy::NoProxy;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::body::{Frame, SizeHint};
use redflow_ports::BoxFuture;
use reqwest::{Body, Certificate, Client, ClientBuilder, Proxy, RequestBuilder, Response, redirect, retry};
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};
use url::{Host, Url};

/// Sends one request. Dropping the future closes the connection or resets its stream.
pub trait Transport: Send + Sync {
    /// Sends a body and waits for the head of the response.
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>>;

    /// Sends a GET, for the lists of models. A transport without it reaches no list.
    fn get<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        Box::pin(async { Err(TransportError::Connect) })
    }
}

/// The address and headers of a request. Keys are marked as sensitive, so that no log shows them.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Without credentials.
    pub url: Url,
    /// The headers of every request.
    pub headers: HeaderMap,
}

impl Endpoint {
    /// An address, with the headers that every wire sends.
    #[must_use]
    pub fn new(url: Url) -> Self {
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { url, headers }
    }

    /// Adds or replaces a header.
    ///
    /// # Errors
    /// When the value cannot be a header value.
    pub fn header(mut self, name: &'static str, value: &str) -> Result<Self, InvalidHeader> {
        let value = HeaderValue::from_str(value).map_err(|_| InvalidHeader)?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// Adds a header that no log shows.
    ///
    /// # Errors
    /// When the value cannot be a header value.
    pub fn secret_header(mut self, name: &'static str, value: &str) -> Result<Self, InvalidHeader> {
        let mut value = HeaderValue::from_str(value).map_err(|_| InvalidHeader)?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }
}

/// A header value has a line break or another forbidden character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidHeader;

/// The head of a response, and its body as a stream.
pub struct TransportResponse {
    /// The HTTP status, of success or failure.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// Unread so far.
    pub body: Box<dyn ResponseBody>,
}

/// The body of a response, read part by part.
pub trait ResponseBody: Send {
    /// The next part, or none at the end.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>>;
}

/// Reads a body up to a limit, and whether that was all of it.
pub(crate) async fn read_body(
    mut body: Box<dyn ResponseBody>,
    max_bytes: usize,
) -> Result<(Bytes, bool), TransportError> {
    // Most answers arrive in one part, which is not copied.
    let Some(first) = body.next().await? else { return Ok((Bytes::new(), true)) };
    let Some(second) = body.next().await? else {
        let is_complete = first.len() <= max_bytes;
        return Ok((first.slice(..first.len().min(max_bytes)), is_complete));
    };
    let mut all = Vec::with_capacity(first.len() + second.len());
    all.extend_from_slice(&first);
    all.extend_from_slice(&second);
    while all.len() <= max_bytes {
        let Some(part) = body.next().await? else { return Ok((all.into(), true)) };
        all.extend_from_slice(&part);
    }
    all.truncate(max_bytes);
    Ok((all.into(), false))
}

/// Why there is no connection, or no complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The host refused the connection.
    #[error("nothing listens there")]
    Refused,
    /// DNS does not know the name.
    #[error("its name cannot be resolved")]
    NotFound,
    /// The connection took longer than [`HttpSettings::connect_timeout`].
    #[error("no connection was made in time")]
    ConnectTimeout,
    /// The TLS handshake failed.
    #[error("its TLS certificate is not trusted, or it does not speak TLS")]
    Tls,
    /// Any other reason why there is no connection.
    #[error("no connection could be made")]
    Connect,
    /// The connection broke after it was made.
    #[error("the connection was lost before the answer ended")]
    Lost,
    /// The server uses another protocol.
    #[error("what it sends is not HTTP; check the address")]
    NotHttp,
}

/// Settings of the HTTP client.
#[derive(Clone)]
pub struct HttpSettings {
    /// A proxy for every request, such as `http://proxy:3128`. Without one, the usual environment variables
    /// apply. No proxy is used for requests to this machine.
    pub proxy: Option<Url>,
    /// Hosts that are reached without this proxy, and without that of the environment.
    pub no_proxy: NoProxy,
    /// Certificates to trust in addition to the system's, as PEM.
    pub extra_ca: Vec<u8>,
    /// The longest time to make a connection.
    pub connect_timeout: Duration,
    /// Whether to use HTTP/1.1 only, which WebSockets need.
    pub http1_only: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            proxy: None,
            no_proxy: NoProxy::default(),
            extra_ca: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            http1_only: false,
        }
    }
}

/// Leaves out the proxy, whose address may hold a password.
impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("has_proxy", &self.proxy.is_some())
            .field("no_proxy", &self.no_proxy)
            .field("extra_ca_bytes", &self.extra_ca.len())
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// The transport of the product, based on reqwest.
#[derive(Clone)]
pub struct ReqwestTransport {
    client: Client,
    /// Without a proxy: for this machine, which a proxy cannot reach, and for the hosts of the list.
    direct: Client,
    no_proxy: NoProxy,
}

/// Leaves out the clients, which know the proxy.
impl fmt::Debug for ReqwestTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReqwestTransport")
    }
}

impl ReqwestTransport {
    /// Builds the HTTP clients.
    ///
    /// # Errors
    /// A sentence, when the settings cannot be used.
    pub fn new(settings: &HttpSettings) -> Result<Self, String> {
        // Only the first call has an effect, and another part of the process may have made it.
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
        let build = |builder: ClientBuilder| {
            builder.build().map_err(|_| "the HTTP client cannot be built with these settings")
        };
        let client = match &settings.proxy {
            None => builder(),
            Some(proxy) if !matches!(proxy.scheme(), "http" | "https") => {
                return Err("the proxy's address must begin with http:// or https://".to_owned());
            }
            Some(proxy) => {
                builder().proxy(Proxy::all(proxy.as_str()).map_err(|_| "the proxy's address cannot be used")?)
            }
        };
        let (client, direct) = (build(client)?, build(builder().no_proxy())?);
        Ok(Self { client, direct, no_proxy: settings.no_proxy.clone() })
    }

    /// The client for an address. Loopback addresses never use a proxy.
    #[must_use]
    pub fn client(&self, url: &Url) -> &Client {
        if is_local(url) || self.no_proxy.contains(url) { &self.direct } else { &self.client }
    }

    /// The client without a proxy.
    #[must_use]
    pub fn direct_client(&self) -> &Client {
        &self.direct
    }
}

/// Whether an address is a loopback address.
#[must_use]
pub fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

impl Transport for ReqwestTransport {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        let body = Body::wrap(SingleUse(body.into()));
        let request = self.client(&endpoint.url).post(endpoint.url.clone()).body(body);
        send(request.headers(endpoint.headers.clone()))
    }

    fn get<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        send(self.client(&endpoint.url).get(endpoint.url.clone()).headers(endpoint.headers.clone()))
    }
}

fn send<'a>(request: RequestBuilder) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
    let response = request.send();
    Box::pin(async move {
        let mut response = response.await.map_err(|error| TransportError::from(&error))?;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        Ok(TransportResponse { status, headers, body: Box::new(ReqwestBody(response)) })
    })
}

/// How much of a body is handed over at once. A connection keeps a buffer of what it has got.
const BODY_PART_BYTES: usize = 64 * 1024;

/// A body that is sent once. The client would keep a copy of any other body until the response comes, for a redirect that
/// is never followed. So a run that waits for its answer would hold its request.
struct SingleUse(Bytes);

impl hyper::body::Body for SingleUse {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        let count = self.0.len().min(BODY_PART_BYTES);
        let part = self.0.split_to(count);
        if self.0.is_empty() {
            // An empty rest would keep the whole memory.
            self.0 = Bytes::new();
        }
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    /// Exact, so that the request has a content length.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.0.len()).unwrap_or(u64::MAX))
    }
}

struct ReqwestBody(Response);

impl ResponseBody for ReqwestBody {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async { self.0.chunk().await.map_err(|error| TransportError::from(&error)) })
    }
}

/// Classifies an error of the library without its text, which may hold an address with a password.
impl From<&reqwest::Error> for TransportError {
    fn from(error: &reqwest::Error) -> Self {
        let causes = || std::iter::successors(error.source(), |cause| cause_of(*cause));
        if !error.is_connect() {
            let is_parse_error = |cause: &hyper::Error| cause.is_parse();
            let is_not_http = causes().any(|cause| cause.downcast_ref().is_some_and(is_parse_error));
            return if is_not_http { Self::NotHttp } else { Self::Lost };
        }
        if error.is_timeout() {
            return Self::ConnectTimeout;
        }
        for cause in causes() {
            if cause.downcast_ref::<rustls::Error>().is_some() {
                return Self::Tls;
            }
            match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
                Some(io::ErrorKind::ConnectionRefused) => return Self::Refused,
                Some(io::ErrorKind::TimedOut) => return Self::ConnectTimeout,
                _ => {}
            }
            // The resolver's error has a private type, so only its text identifies it.
            if cause.to_string().starts_with("dns error") {
                return Self::NotFound;
            }
        }
        Self::Connect
    }
}

/// The cause of an error. An `io::Error` that wraps another error does not name it as its source.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::{BODY_PART_BYTES, SingleUse};
    use bytes::Bytes;
    use hyper::body::Body as _;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    /// Memory that knows whether it is still held.
    struct Watched(Vec<u8>, #[expect(dead_code, reason = "its drop is what counts")] Arc<()>);

    impl AsRef<[u8]> for Watched {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    #[test]
    fn a_body_that_was_sent_holds_no_memory() {
        let held = Arc::new(());
        let content = vec![7; 2 * BODY_PART_BYTES + 1];
        let mut body = SingleUse(Bytes::from_owner(Watched(content.clone(), Arc::clone(&held))));
        assert_eq!(body.size_hint().exact(), Some(content.len() as u64));
        let mut sent = Vec::new();
        while !body.is_end_stream() {
            let frame = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(Some(Ok(frame))) = frame else { panic!("the body ended too early") };
            let part = frame.into_data().unwrap();
            assert!(part.len() <= BODY_PART_BYTES);
            sent.extend_from_slice(&part);
        }
        assert_eq!((sent, Arc::strong_count(&held)), (content, 1));
        let end = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(end, Poll::Ready(None)));
    }
}
