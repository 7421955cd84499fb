//! Forwards the requests of other clients to Node-RED.
//!
//! Owns which headers pass in each direction: the ones named here, and no others. So no cookie and no
//! connection header passes. The only token that passes is the one that the client sent for Node-RED. Never
//! adds the token of this process.

use crate::address::join;
use crate::client::{MAX_RESPONSE_BYTES, NodeRed, RESPONSE_TIMEOUT, explain};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::header;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use reqwest::{Body, Response};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;

/// Headers of a request that pass, besides an `Authorization` for Node-RED.
const REQUEST_HEADERS: [HeaderName; 7] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    HeaderName::from_static("node-red-api-version"),
    HeaderName::from_static("node-red-deployment-type"),
];

/// Headers of a response that pass.
const RESPONSE_HEADERS: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::CONTENT_LANGUAGE,
    header::CONTENT_ENCODING,
    header::ETAG,
    header::LAST_MODIFIED,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
];

/// A request to forward, without its body.
pub struct ProxyRequest<'a> {
    /// Any method: Node-RED decides which it supports.
    pub method: Method,
    /// Starts with a slash, below Node-RED's address.
    pub path: &'a str,
    /// Without the `?`.
    pub query: Option<&'a str>,
    /// The headers of the client, of which only a few pass.
    pub headers: &'a HeaderMap,
    /// The only credential that Node-RED gets.
    pub authorization: Option<&'a HeaderValue>,
    /// A larger body fails with [`ProxyError::BodyTooLarge`].
    pub max_body_bytes: usize,
}

/// The response of Node-RED, with any status.
pub struct ProxyResponse {
    /// As Node-RED sent it, errors included.
    pub status: http::StatusCode,
    /// Only the headers that may pass.
    pub headers: HeaderMap,
    /// A stream that ends with an error where the body is too large.
    pub body: futures::stream::BoxStream<'static, io::Result<Bytes>>,
}

/// Why a request was not forwarded.
#[derive(Debug)]
pub enum ProxyError {
    /// Its path would leave the address of Node-RED.
    Address,
    /// Its body is larger than `max_body_bytes`.
    BodyTooLarge,
    /// Node-RED did not respond, or its response is too large.
    NodeRed(ApiError),
}

impl NodeRed {
    /// Forwards a request, and returns once the head of the response has arrived.
    ///
    /// # Errors
    /// See [`ProxyError`].
    pub async fn forward<B, E>(
        &self,
        forwarded: ProxyRequest<'_>,
        body: Option<B>,
    ) -> Result<ProxyResponse, ProxyError>
    where
        B: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Send + 'static,
    {
        let url = join(&self.base, forwarded.path, forwarded.query).ok_or(ProxyError::Address)?;
        let mut headers = pick_headers(forwarded.headers, &REQUEST_HEADERS);
        if let Some(authorization) = forwarded.authorization {
            let mut authorization = authorization.clone();
            authorization.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, authorization);
        }
        let mut request = self.client.request(forwarded.method, url).headers(headers);
        let too_large = Arc::new(AtomicBool::new(false));
        if let Some(body) = body {
            request = request.body(limit_body(body, forwarded.max_body_bytes, Arc::clone(&too_large)));
        }
        let response = match timeout(RESPONSE_TIMEOUT, request.send()).await {
            Ok(Ok(response)) => response,
            _ if too_large.load(Ordering::Relaxed) => return Err(ProxyError::BodyTooLarge),
            Ok(Err(error)) => return Err(ProxyError::NodeRed(self.unreachable(explain(&error)))),
            Err(_) => return Err(ProxyError::NodeRed(self.unreachable("it does not respond"))),
        };
        let max_bytes = u64::try_from(MAX_RESPONSE_BYTES).unwrap_or(u64::MAX);
        if response.content_length().is_some_and(|length| length > max_bytes) {
            let text =
                format!("Node-RED's response has more than {MAX_RESPONSE_BYTES} bytes, which is the limit.");
            return Err(ProxyError::NodeRed(ApiError::new(ApiCode::NodeRedRefused, text)));
        }
        let headers = pick_headers(response.headers(), &RESPONSE_HEADERS);
        Ok(ProxyResponse { status: response.status(), headers, body: self.stream_body(response).boxed() })
    }

    fn stream_body(&self, response: Response) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let state = Some((self.clone(), response, 0_usize));
        futures::stream::unfold(state, |state| async {
            let (node_red, mut response, read) = state?;
            match node_red.next_chunk(&mut response).await {
                Ok(None) => None,
                Ok(Some(chunk)) if read + chunk.len() <= MAX_RESPONSE_BYTES => {
                    let read = read + chunk.len();
                    Some((Ok(chunk), Some((node_red, response, read))))
                }
                Ok(Some(_)) => Some((Err(io::Error::other("the response is too large")), None)),
                Err(_) => Some((Err(io::Error::other("the response was cut off")), None)),
            }
        })
    }
}

/// The headers of these names, with all their values.
fn pick_headers(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut picked = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            picked.append(name.clone(), value.clone());
        }
    }
    picked
}

/// A body that ends with an error, and sets the flag, where it is too large.
fn limit_body<B, E>(body: B, max_bytes: usize, too_large: Arc<AtomicBool>) -> Body
where
    B: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Send + 'static,
{
    let mut read = 0_usize;
    Body::wrap_stream(body.map(move |chunk| {
        let chunk = chunk.map_err(|_| io::Error::other("the body was cut off"))?;
        read = read.saturating_add(chunk.len());
        if read > max_bytes {
            too_large.store(true, Ordering::Relaxed);
            return Err(io::Error::other("the body is too large"));
        }
        Ok(chunk)
    }))
}
