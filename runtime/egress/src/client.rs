//! One call from its address to its answer.

use crate::address_text::AddressText;
use crate::body::{BodyLimits, EgressBody, take_encoding};
use crate::call_slots::{CallSlot, CallSlots};
use crate::connector::{CONNECT_TIMEOUT, ConnectError, Connector, SentFlag};
use crate::deadline::Deadline;
use crate::hop::{Hop, remove_parameter};
use crate::pool::{Connection, Lease, Pool};
use crate::redirect::Redirect;
use crate::{
    Dial, EgressCredential, EgressError, EgressPolicy, EgressRequest, JudgedUrl, MAX_HEAD_BYTES, MAX_STREAMS,
    Refusal, Resolve, Rule,
};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use secrecy::ExposeSecret;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use url::Position;

type HopRequest = Request<Full<Bytes>>;

/// The client. Its clones share connections and bounds.
///
/// A connection was judged when it was made, and only requests to the same scheme, host and port use it again. So a new
/// policy needs a new client.
#[derive(Clone)]
pub struct Egress {
    policy: Arc<EgressPolicy>,
    connector: Connector,
    /// For requests that change nothing. All others have a connection each, so that its mark says whether a byte of
    /// this request left.
    pool: Pool,
    slots: CallSlots,
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// The head of an answer, and its body as a stream.
pub struct EgressResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers. A body that was encoded has none that describe its encoded form.
    pub headers: HeaderMap,
    /// The address of the last hop, without the credential.
    pub url: String,
    /// The body.
    pub body: EgressBody,
}

impl Egress {
    /// A client with the network of this machine.
    #[must_use]
    pub fn new(policy: EgressPolicy) -> Self {
        #[cfg(feature = "failpoints")]
        if let Some(net) = crate::ScriptedNet::of_environment() {
            let net = Arc::new(net);
            return Self::with_net(policy, net.clone(), net);
        }
        Self::with_net(policy, Arc::new(crate::SystemResolver), Arc::new(crate::TcpDialler))
    }

    /// A client with another resolver and dialler.
    #[must_use]
    pub fn with_net(policy: EgressPolicy, resolver: Arc<dyn Resolve>, dialler: Arc<dyn Dial>) -> Self {
        let policy = Arc::new(policy);
        let connector = Connector::new(policy.clone(), resolver, dialler);
        Self { policy, connector, pool: Pool::default(), slots: CallSlots::new() }
    }

    /// The operator's policy.
    #[must_use]
    pub fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    /// Applies the rules `text` to `name`, and `address` to an address in the text. Looks nothing up.
    ///
    /// # Errors
    /// When a rule refuses it.
    pub fn judge(&self, url: &str) -> Result<JudgedUrl, Refusal> {
        let address = self.policy.judge(url)?;
        Ok(self.judged(&address))
    }

    /// Applies all rules that come before a connection. Looks the name up, but dials nothing.
    ///
    /// # Errors
    /// When a rule refuses it.
    pub async fn test(&self, url: &str) -> Result<JudgedUrl, Refusal> {
        let address = self.policy.judge(url)?;
        let mut judged = self.judged(&address);
        if self.policy.proxy.is_none() {
            let lookup = self.connector.addresses(&address.host, address.port);
            judged.addresses = match timeout(CONNECT_TIMEOUT, lookup).await {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(ConnectError::Refused(refusal))) => return Err(refusal.for_operator()),
                Ok(Err(ConnectError::Failed(_))) | Err(_) => {
                    return Err(Refusal::new(Rule::Address, format!("{} cannot be looked up", address.host)));
                }
            };
        }
        Ok(judged)
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// When a rule refuses it, or no answer comes.
    pub async fn send(&self, request: EgressRequest) -> Result<EgressResponse, EgressError> {
        self.follow(request, None).await
    }

    /// Sends a request whose answer may be a stream of events (`text/event-stream`). Such a body may go on for ever and
    /// have any size, but it ends when no byte comes for the time `idle`. The caller bounds each event. A stream leaves
    /// the slot of its call to others; [`MAX_STREAMS`] may be open. For every other answer it is the same as
    /// [`Self::send`].
    ///
    /// # Errors
    /// When a rule refuses it, no answer comes, or too many streams are open.
    pub async fn send_for_stream(
        &self,
        request: EgressRequest,
        idle: Duration,
    ) -> Result<EgressResponse, EgressError> {
        self.follow(request, Some(idle)).await
    }

    /// Sends a request, follows its redirects, and gives the last answer.
    async fn follow(
        &self,
        request: EgressRequest,
        idle: Option<Duration>,
    ) -> Result<EgressResponse, EgressError> {
        let mut deadline = Deadline::after(request.timeout);
        let mut hop = Hop::first(self.judge_hop(&request, &request.url)?, &request);
        let mut redirected = None;
        for followed in 0.. {
            let (answer, lease, mut slot) =
                self.send_hop(&request, &hop, &mut deadline).await.map_err(|error| match redirected {
                    // A request that was repeated after a redirect may have changed something.
                    Some(status) if hop.is_reading() || !error.is_sent() => error.after_answer(status),
                    _ => error,
                })?;
            let (mut head, incoming) = answer.into_parts();
            let lease = if incoming.is_end_stream() {
                lease.give_back();
                None
            } else {
                Some(lease)
            };
            let answered = |error: EgressError| error.after_answer(head.status);
            // The buffer of hyper may take in more than its bound.
            if head_bytes(&head.headers) > MAX_HEAD_BYTES {
                return Err(answered(EgressError::HeadTooLarge));
            }
            let next = self.next_hop(&request, &hop, &head, followed);
            if let Some(next) = next.map_err(|refusal| answered(refusal.into()))? {
                redirected = Some(head.status);
                hop = next;
                continue;
            }
            let is_gzip = take_encoding(&hop.method, head.status, &mut head.headers)
                .map_err(|refusal| EgressError::from(refusal).after_answer(head.status))?;
            let idle = idle.filter(|_| is_event_stream(&head));
            let mut max_bytes = request.max_body_bytes.min(self.policy.max_body_bytes);
            if idle.is_some() {
                slot = self.slots.take_stream().ok_or_else(|| too_many_streams(head.status))?;
                max_bytes = u64::MAX;
            }
            let limits = BodyLimits { max_bytes, deadline, idle };
            let body = EgressBody::new(incoming, is_gzip, limits, (lease, slot));
            let url = String::from(hop.address.url);
            return Ok(EgressResponse { status: head.status, headers: head.headers, url, body });
        }
        Err(EgressError::TimedOut { sent: true })
    }

    /// Judges the address of a hop, also by the hosts of the request.
    fn judge_hop(&self, request: &EgressRequest, url: &str) -> Result<AddressText, Refusal> {
        let address = self.policy.judge(url)?;
        if let Some(hosts) = &request.hosts
            && !hosts.iter().any(|pattern| pattern.matches(&address.host, address.port))
        {
            let reason = format!("{} is not one of the hosts that the flow names", address.host);
            return Err(Refusal::new(Rule::Name, reason));
        }
        Ok(address)
    }

    async fn send_hop(
        &self,
        request: &EgressRequest,
        hop: &Hop,
        deadline: &mut Deadline,
    ) -> Result<(Response<Incoming>, Lease, CallSlot), EgressError> {
        let slot = deadline.wait(self.slots.take(&hop.address.host)).await;
        let slot = slot.ok_or(EgressError::TimedOut { sent: false })?;
        let hop_request = self.hop_request(request, hop)?;
        let mut sent = None;
        match deadline.wait(self.exchange(hop, hop_request, &mut sent)).await {
            None => Err(EgressError::TimedOut { sent: sent.is_some_and(|sent| sent.is_set()) }),
            Some(answer) => answer.map(|(answer, lease)| (answer, lease, slot)),
        }
    }

    /// Sends a request on an open connection or a new one. `sent` is the flag of the connection that has it.
    async fn exchange(
        &self,
        hop: &Hop,
        mut request: HopRequest,
        sent: &mut Option<SentFlag>,
    ) -> Result<(Response<Incoming>, Lease), EgressError> {
        let origin = hop.address.origin();
        let mut open = if hop.is_reading() { self.pool.take(&origin) } else { None };
        loop {
            let is_new = open.is_none();
            let mut connection = match open.take() {
                Some(connection) => connection,
                None => {
                    let stream = self.connector.connect(&origin).await.map_err(|error| match error {
                        ConnectError::Refused(refusal) => EgressError::Refused(refusal),
                        ConnectError::Failed(reason) => failed(false, reason),
                    })?;
                    Connection::begin(stream).await.map_err(|error| explain(&error, false))?
                }
            };
            *sent = Some(connection.sent.clone());
            match connection.send(request).await {
                Ok(answer) => {
                    let back_to = hop.is_reading().then(|| (self.pool.clone(), origin));
                    return Ok((answer, Lease { connection, back_to }));
                }
                Err(mut error) => match error.take_message() {
                    // The server had closed the connection, and nothing left.
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(explain(error.error(), connection.sent.is_set())),
                },
            }
        }
    }

    fn hop_request(&self, request: &EgressRequest, hop: &Hop) -> Result<HopRequest, Refusal> {
        let unreadable = || Refusal::new(Rule::Text, "the address cannot be written into a request");
        let mut headers = hop.headers(request);
        let mut url = Cow::Borrowed(&hop.address.url);
        if let Some(credential) = self.credential_of(request, hop) {
            match credential {
                EgressCredential::Header { name, value, .. } => {
                    let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
                        Refusal::new(Rule::Text, "the credential has a character that a header cannot have")
                    })?;
                    value.set_sensitive(true);
                    headers.insert(name, value);
                }
                EgressCredential::Query { name, value, .. } => {
                    remove_parameter(url.to_mut(), name);
                    url.to_mut().query_pairs_mut().append_pair(name, value.expose_secret());
                }
            }
        }
        let proxy = self.policy.proxy.as_ref().filter(|_| hop.address.scheme == "http");
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
            headers.insert(http::header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let host = &url[Position::BeforeHost..Position::AfterPort];
        headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| unreadable())?);
        // Only a proxy needs to know the scheme and the host from the target.
        let target = if proxy.is_some() { url.as_str() } else { &url[Position::BeforePath..] };
        let body = if hop.keeps_body { request.body.clone() } else { Bytes::new() };
        if body.is_empty() && !hop.is_reading() && hop.method != Method::DELETE {
            // Servers ask for it where a body is usual.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut built = Request::new(Full::new(body));
        *built.method_mut() = hop.method.clone();
        *built.uri_mut() = Uri::try_from(target).map_err(|_| unreadable())?;
        *built.headers_mut() = headers;
        Ok(built)
    }

    /// The credential, if this hop may have it.
    fn credential_of<'a>(&self, request: &'a EgressRequest, hop: &Hop) -> Option<&'a EgressCredential> {
        let AddressText { scheme, host, port, .. } = &hop.address;
        let is_safe = *scheme == "https" || self.policy.is_private(host, *port);
        let credential = request.credential.as_ref().filter(|_| hop.is_first_origin && is_safe)?;
        credential.hosts().iter().any(|pattern| pattern.matches(host, *port)).then_some(credential)
    }

    /// The hop that a redirect leads to. `None`: this is the answer.
    fn next_hop(
        &self,
        request: &EgressRequest,
        hop: &Hop,
        head: &http::response::Parts,
        followed: u32,
    ) -> Result<Option<Hop>, Refusal> {
        if request.max_redirects == 0 {
            return Ok(None);
        }
        let redirect = Redirect::read(&hop.address, &hop.method, head.status, &head.headers)?;
        let Some(redirect) = redirect else { return Ok(None) };
        let mut address = self.judge_hop(request, &redirect.url).map_err(|refusal| {
            let reason = format!("the answer is a redirect, and {}", refusal.reason);
            Refusal { reason, ..refusal }
        })?;
        Redirect::check_scheme(&hop.address, &address)?;
        if let Some(EgressCredential::Query { name, .. }) = &request.credential {
            // A server may repeat the query. The credential is added again where it may go.
            remove_parameter(&mut address.url, name);
        }
        let is_first_origin = hop.is_first_origin && hop.address.is_same_origin(&address);
        let is_harmless = matches!(redirect.method, Method::GET | Method::HEAD)
            && (!redirect.keeps_body || request.body.is_empty());
        if !is_first_origin && !is_harmless {
            return Ok(None);
        }
        if followed >= request.max_redirects {
            let reason = format!("there are more than {} redirects", request.max_redirects);
            return Err(Refusal::new(Rule::Redirect, reason));
        }
        let keeps_body = hop.keeps_body && redirect.keeps_body && is_first_origin;
        Ok(Some(Hop { address, method: redirect.method, is_first_origin, keeps_body }))
    }

    fn judged(&self, address: &AddressText) -> JudgedUrl {
        JudgedUrl {
            scheme: address.scheme,
            host: address.host.to_string(),
            port: address.port,
            is_private: self.policy.is_private(&address.host, address.port),
            addresses: Vec::new(),
        }
    }
}

fn is_event_stream(head: &http::response::Parts) -> bool {
    let kind = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    head.status.is_success() && kind.eq_ignore_ascii_case(b"text/event-stream")
}

fn too_many_streams(status: StatusCode) -> EgressError {
    let reason = format!("{MAX_STREAMS} streams are open already");
    EgressError::from(Refusal::new(Rule::Bounds, reason)).after_answer(status)
}

/// Explains an error without the library's text, which may hold an address.
fn explain(error: &hyper::Error, sent: bool) -> EgressError {
    // hyper has no other way to tell it apart in a client.
    if error.to_string() == "message head is too large" {
        return failed(sent, &EgressError::HeadTooLarge.to_string());
    }
    let is_other = error.is_parse();
    failed(
        sent,
        if is_other { "the answer is not HTTP" } else { "the connection was lost before the answer" },
    )
}

fn failed(sent: bool, reason: &str) -> EgressError {
    EgressError::Failed { sent, reason: reason.to_owned() }
}

/// The bytes of headers with their separators.
fn head_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum()
}

#[cfg(test)]
mod tests {
    use super::Egress;
    use crate::{
        Dial, Dialled, EgressError, EgressPolicy, EgressRequest, EgressSettings, MAX_STREAMS, NetFuture,
        Rule, ScriptedNet,
    };
    use bytes::Bytes;
    use http::{HeaderMap, Method};
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// A server that answers with an endless stream of events.
    struct Streams;

    impl Dial for Streams {
        fn dial(&self, peer: SocketAddr) -> NetFuture<'_, Dialled> {
            let (near, mut far) = tokio::io::duplex(4096);
            tokio::spawn(async move {
                let _ = far.read(&mut [0; 4096]).await;
                let head = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n";
                let _ = far.write_all(head).await;
                std::future::pending::<()>().await;
            });
            Box::pin(async move { Ok(Dialled { stream: Box::new(near), peer }) })
        }
    }

    #[tokio::test]
    async fn one_stream_more_than_the_most_is_refused() {
        let net = ScriptedNet::new().answer("api.example.org", &["93.184.216.34".parse().unwrap()]);
        let policy = EgressPolicy::new(&EgressSettings::default()).unwrap();
        let egress = Egress::with_net(policy, Arc::new(net), Arc::new(Streams));
        let request = EgressRequest {
            method: Method::GET,
            url: "http://api.example.org/".to_owned(),
            headers: HeaderMap::new(),
            credential: None,
            hosts: None,
            body: Bytes::new(),
            max_redirects: 0,
            timeout: Duration::from_secs(30),
            max_body_bytes: 10,
        };
        let mut open = Vec::new();
        for _ in 0..MAX_STREAMS {
            let stream = egress.send_for_stream(request.clone(), Duration::from_secs(60)).await;
            open.push(stream.unwrap_or_else(|error| panic!("{error}")));
        }
        let error = egress.send_for_stream(request.clone(), Duration::from_secs(60)).await.err().unwrap();
        let EgressError::Answered { error, .. } = error else { panic!("{error:?}") };
        assert!(matches!(*error, EgressError::Refused(refusal) if refusal.rule == Rule::Bounds));
        open.pop();
        assert!(egress.send_for_stream(request, Duration::from_secs(60)).await.is_ok());
    }
}
