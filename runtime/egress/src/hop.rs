//! One request of a call: a call has another one for each redirect.

use crate::EgressRequest;
use crate::address_text::AddressText;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH,
    CONTENT_LOCATION, CONTENT_TYPE, EXPECT, HOST, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

/// Headers that the client itself decides about: the host, framing, the connection and the encoding of the answer.
static OWN_HEADERS: [HeaderName; 12] = [
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
static BODY_HEADERS: [HeaderName; 4] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION];

/// One request of a call.
pub(crate) struct Hop {
    pub(crate) address: AddressText,
    pub(crate) method: Method,
    /// Whether no redirect has left the first origin.
    pub(crate) is_first_origin: bool,
    pub(crate) keeps_body: bool,
}

impl Hop {
    pub(crate) fn first(address: AddressText, request: &EgressRequest) -> Self {
        Self { address, method: request.method.clone(), is_first_origin: true, keeps_body: true }
    }

    /// Whether it changes nothing at the server.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// The headers without the credential. Another origin than the first gets none of the caller's headers.
    pub(crate) fn headers(&self, request: &EgressRequest) -> HeaderMap {
        let mut headers = if self.is_first_origin { request.headers.clone() } else { HeaderMap::new() };
        let is_dropped = |name: &&HeaderName| {
            OWN_HEADERS.contains(name) || (!self.keeps_body && BODY_HEADERS.contains(name))
        };
        // Most requests have none of them, and few headers at all.
        for name in headers.keys().filter(is_dropped).cloned().collect::<Vec<_>>() {
            headers.remove(name);
        }
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let agent = HeaderValue::from_static(concat!("redflow/", env!("CARGO_PKG_VERSION")));
        headers.entry(USER_AGENT).or_insert(agent);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        headers
    }
}

/// Removes the parameters of a query that have a name.
pub(crate) fn remove_parameter(url: &mut Url, name: &str) {
    if !url.query_pairs().any(|(key, _)| key == name) {
        return;
    }
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(key, _)| key != name)
        .map(|(k, v)| (k.into_owned(), v.into_owned()))
        .collect();
    if others.is_empty() {
        url.set_query(None);
    } else {
        url.query_pairs_mut().clear().extend_pairs(others);
    }
}
