//! Brings the requests of the runtime to a mock, in this process and to the addresses of the real providers.

use super::mock::Mock;
use super::site::Site;
use http::{HeaderMap, HeaderValue};
use redflow_models::transport::{Endpoint, ResponseBody, Transport, TransportError, TransportResponse};
use redflow_ports::BoxFuture;
use redflow_testkit::HttpRequest;
use std::sync::Arc;

/// The bytes of a part of a body. A prime, so that parts end inside events, keys and characters.
const PART: usize = 97;

/// A transport whose other end is a mock.
#[derive(Debug, Clone)]
pub(crate) struct MockTransport(pub(crate) Arc<Mock>);

struct Parts(std::vec::IntoIter<Vec<u8>>);

impl ResponseBody for Parts {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<bytes::Bytes>, TransportError>> {
        let part = self.0.next().map(Into::into);
        Box::pin(async { Ok(part) })
    }
}

impl MockTransport {
    fn send(
        &self,
        method: &str,
        endpoint: &Endpoint,
        body: Vec<u8>,
    ) -> Result<TransportResponse, TransportError> {
        let url = &endpoint.url;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = format!("{}{port}", url.host_str().unwrap_or_default());
        let site = Site::of_host(&host).ok_or(TransportError::NotFound)?;
        let path = &url[url::Position::BeforePath..];
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = endpoint.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
        let request = HttpRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers.collect(),
            body,
        };
        let response = self.0.respond(site, path, &request);
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(response.media_type));
        let parts: Vec<Vec<u8>> = response.body.as_bytes().chunks(PART).map(<[u8]>::to_vec).collect();
        Ok(TransportResponse { status: response.status, headers, body: Box::new(Parts(parts.into_iter())) })
    }
}

impl Transport for MockTransport {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        Box::pin(async move { self.send("POST", endpoint, body) })
    }

    fn get<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        Box::pin(async move { self.send("GET", endpoint, Vec::new()) })
    }
}
