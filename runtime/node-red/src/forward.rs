//! A request of somebody else that goes on to Node-RED.
//!
//! Owns which headers go along in either direction: those named here, and no others. So no cookie goes out or comes
//! in, no word about connections, and of tokens only what the caller is said to have brought for Node-RED. Never adds the
//! token of this process.

use crate::address::below;
use crate::client::{MAX_ANSWER_BYTES, NodeRed, SILENCE};
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

/// What goes on of a request, beside an `Authorization` that is Node-RED's.
const TO_NODE_RED: [HeaderName; 7] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    HeaderName::from_static("node-red-api-version"),
    HeaderName::from_static("node-red-deployment-type"),
];

/// What comes back of an answer.
const FROM_NODE_RED: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::CONTENT_LANGUAGE,
    header::CONTENT_ENCODING,
    header::ETAG,
    header::LAST_MODIFIED,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
];

/// What is asked.
pub struct ProxyRequest<'a> {
    /// How.
    pub method: Method,
    /// Where, from Node-RED's address on.
    pub path: &'a str,
    /// What is behind the `?`.
    pub query: Option<&'a str>,
    /// The caller's headers, of which some go on.
    pub headers: &'a HeaderMap,
    /// What the caller shows Node-RED. Nothing else is shown to it.
    pub authorization: Option<&'a HeaderValue>,
    /// Bytes of a body that goes on.
    pub max_body_bytes: usize,
}

/// What Node-RED answers, whatever it is.
pub struct ProxyResponse {
    /// The status.
    pub status: http::StatusCode,
    /// The headers that come back.
    pub headers: HeaderMap,
    /// The body, as it comes. It breaks off where it is too large.
    pub body: futures::stream::BoxStream<'static, io::Result<Bytes>>,
}

/// Why a request did not go on.
#[derive(Debug)]
pub enum ProxyError {
    /// Its address means something else to Node-RED.
    Address,
    /// Its body is too large.
    BodyTooLarge,
    /// Node-RED is not there.
    NodeRed(ApiError),
}

impl NodeRed {
    /// Lets a request go on. `body` is none if there is none.
    ///
    /// # Errors
    /// When it does not.
    pub async fn forward<B, E>(
        &self,
        asked: ProxyRequest<'_>,
        body: Option<B>,
    ) -> Result<ProxyResponse, ProxyError>
    where
        B: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Send + 'static,
    {
        let url = below(&self.base, asked.path, asked.query).ok_or(ProxyError::Address)?;
        let mut headers = picked(asked.headers, &TO_NODE_RED);
        if let Some(authorization) = asked.authorization {
            let mut authorization = authorization.clone();
            authorization.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, authorization);
        }
        let mut request = self.client.request(asked.method, url).headers(headers);
        let is_too_large = Arc::new(AtomicBool::new(false));
        if let Some(body) = body {
            request = request.body(bounded(body, asked.max_body_bytes, Arc::clone(&is_too_large)));
        }
        let response = match timeout(SILENCE, request.send()).await {
            Ok(Ok(response)) => response,
            _ if is_too_large.load(Ordering::Relaxed) => return Err(ProxyError::BodyTooLarge),
            Ok(Err(error)) => return Err(ProxyError::NodeRed(self.unreachable(crate::client::why(&error)))),
            Err(_) => return Err(ProxyError::NodeRed(self.unreachable("it does not answer"))),
        };
        let most = u64::try_from(MAX_ANSWER_BYTES).unwrap_or(u64::MAX);
        if response.content_length().is_some_and(|length| length > most) {
            let text =
                format!("Node-RED's answer has more than {MAX_ANSWER_BYTES} bytes, which is not passed on.");
            return Err(ProxyError::NodeRed(ApiError::new(ApiCode::NodeRedRefused, text)));
        }
        let headers = picked(response.headers(), &FROM_NODE_RED);
        Ok(ProxyResponse { status: response.status(), headers, body: self.pieces(response).boxed() })
    }

    fn pieces(&self, response: Response) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let state = Some((self.clone(), response, 0_usize));
        futures::stream::unfold(state, |state| async {
            let (node_red, mut response, so_far) = state?;
            match node_red.piece(&mut response).await {
                Ok(None) => None,
                Ok(Some(piece)) if so_far + piece.len() <= MAX_ANSWER_BYTES => {
                    let so_far = so_far + piece.len();
                    Some((Ok(piece), Some((node_red, response, so_far))))
                }
                Ok(Some(_)) => Some((Err(io::Error::other("the answer is too large")), None)),
                Err(_) => Some((Err(io::Error::other("the answer broke off")), None)),
            }
        })
    }
}

/// The headers of these names, each as often as it is there.
fn picked(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut found = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            found.append(name.clone(), value.clone());
        }
    }
    found
}

/// A body that breaks off where it is too large.
fn bounded<B, E>(body: B, most: usize, is_too_large: Arc<AtomicBool>) -> Body
where
    B: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Send + 'static,
{
    let mut so_far = 0_usize;
    Body::wrap_stream(body.map(move |piece| {
        let piece = piece.map_err(|_| io::Error::other("the body broke off"))?;
        so_far = so_far.saturating_add(piece.len());
        if so_far > most {
            is_too_large.store(true, Ordering::Relaxed);
            return Err(io::Error::other("the body is too large"));
        }
        Ok(piece)
    }))
}
