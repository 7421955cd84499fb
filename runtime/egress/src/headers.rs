//! The headers of a request.

use crate::EgressRequest;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH,
    CONTENT_LOCATION, CONTENT_TYPE, EXPECT, HOST, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Headers that the client itself decides about: the host, framing, the connection and the encoding of the answer.
const OWN_HEADERS: [HeaderName; 12] = [
    HOST,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    UPGRADE,
    EXPECT,
    ACCEPT_ENCODING,
];

/// Headers that describe a body.
const BODY_HEADERS: [HeaderName; 4] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION];

/// The headers of a hop. Another origin than the first gets none of the caller's headers.
pub(crate) fn hop_headers(request: &EgressRequest, is_first_origin: bool, keeps_body: bool) -> HeaderMap {
    let mut headers = if is_first_origin { request.headers.clone() } else { HeaderMap::new() };
    for name in OWN_HEADERS {
        headers.remove(name);
    }
    if !keeps_body {
        for name in BODY_HEADERS {
            headers.remove(name);
        }
    }
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    let agent = HeaderValue::from_static(concat!("redflow/", env!("CARGO_PKG_VERSION")));
    headers.entry(USER_AGENT).or_insert(agent);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    headers
}
