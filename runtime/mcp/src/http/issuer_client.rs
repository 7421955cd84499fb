//! The requests of OAuth, through the guarded way out.

use super::check_secrecy;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use redflow_egress::{Egress, EgressError, EgressRequest};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The largest answer of an issuer.
pub(super) const MAX_ISSUER_ANSWER_BYTES: u64 = 256 * 1024;

/// The most redirects of a request that may follow some.
const MAX_ISSUER_REDIRECTS: u32 = 5;

/// The client of the issuer of one act, such as a sign-in.
pub(super) struct IssuerClient {
    egress: Egress,
    /// The longest time of a request.
    timeout: Duration,
    /// Why the last request failed. rmcp keeps only a text without the cause.
    failure: Mutex<Option<String>>,
}

impl IssuerClient {
    pub(super) fn new(egress: Egress, timeout: Duration) -> Self {
        Self { egress, timeout, failure: Mutex::new(None) }
    }

    /// Why the last request failed; none if it has an answer.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a message to the server itself, without redirects. None if it has no answer.
    pub(super) async fn exchange_message(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Option<http::Response<Vec<u8>>> {
        self.send(request, 0, self.timeout).await.ok()
    }

    async fn exchange(&self, request: OAuthHttpRequest) -> Result<http::Response<Vec<u8>>, String> {
        let OAuthHttpRequest { request, redirect_policy, timeout, .. } = request;
        let max_redirects =
            if redirect_policy == OAuthHttpRedirectPolicy::Follow { MAX_ISSUER_REDIRECTS } else { 0 };
        self.send(request, max_redirects, timeout.unwrap_or(self.timeout).min(self.timeout)).await
    }

    async fn send(
        &self,
        request: http::Request<Vec<u8>>,
        max_redirects: u32,
        timeout: Duration,
    ) -> Result<http::Response<Vec<u8>>, String> {
        let (head, body) = request.into_parts();
        let url = head.uri.to_string();
        let judged = self.egress.judge(&url).map_err(|refusal| refusal.to_string())?;
        check_secrecy(&judged)?;
        let request = EgressRequest {
            method: head.method,
            url,
            headers: head.headers,
            credential: None,
            hosts: None,
            body: Bytes::from(body),
            max_redirects,
            timeout,
            max_body_bytes: MAX_ISSUER_ANSWER_BYTES,
        };
        let text = |error: EgressError| error.to_string();
        let mut answer = self.egress.send(request).await.map_err(text)?;
        // rmcp asks the server itself for its challenge, and a server may answer with a stream.
        let kind = answer.headers.get(CONTENT_TYPE).map_or(&b""[..], http::HeaderValue::as_bytes);
        let is_stream = kind.starts_with(b"text/event-stream");
        let mut body = Vec::new();
        while !is_stream && let Some(chunk) = answer.body.chunk().await.map_err(text)? {
            body.extend_from_slice(&chunk);
        }
        let mut response = http::Response::new(body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

impl OAuthHttpClient for IssuerClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let answer = self.exchange(request).await;
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = answer.as_ref().err().cloned();
            answer.map_err(OAuthHttpClientError::from)
        })
    }
}
