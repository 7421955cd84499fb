//! hyper's own client behind the models' driver, to compare it with the one that ships. Plain HTTP only.

use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use redflow_models::transport::{Endpoint, ResponseBody, Transport, TransportError, TransportResponse};
use redflow_ports::BoxFuture;
use std::future::ready;

pub(crate) struct HyperTransport {
    client: Client<HttpConnector, Full<Bytes>>,
}

impl HyperTransport {
    pub(crate) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self { client: Client::builder(TokioExecutor::new()).build(connector) }
    }
}

impl Transport for HyperTransport {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        let Ok(uri) = endpoint.url.as_str().parse::<Uri>() else {
            return Box::pin(ready(Err(TransportError::NotFound)));
        };
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&endpoint.headers);
        let sent = self.client.request(request);
        Box::pin(async move {
            let lost = |error: hyper_util::client::legacy::Error| {
                if error.is_connect() { TransportError::Connect } else { TransportError::Lost }
            };
            let (mut head, body) = sent.await.map_err(lost)?.into_parts();
            let headers: HeaderMap = std::mem::take(&mut head.headers);
            Ok(TransportResponse { status: head.status.as_u16(), headers, body: Box::new(Body(body)) })
        })
    }
}

struct Body(body::Incoming);

impl ResponseBody for Body {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportError>> {
        Box::pin(async {
            while let Some(frame) = self.0.frame().await {
                if let Ok(data) = frame.map_err(|_| TransportError::Lost)?.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(None)
        })
    }
}
