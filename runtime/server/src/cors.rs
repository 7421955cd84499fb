//! What browsers are told so that pages of the Redflow UI can use its routes, and pages of nobody else anything.
//!
//! Owns the headers of CORS. Never decides who may come in, and never names more than the one origin: no star, no
//! credentials.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use redflow_access::AccessControl;
use redflow_contract::route::{Method as Way, ROUTES};

/// The headers that such a page may send along, beside those that every page may.
const HEADERS: HeaderValue = HeaderValue::from_static(
    "content-type, node-red-api-version, node-red-deployment-type, accept, authorization",
);

/// How long a browser may go by what it was told, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// What a browser asks before a page of the web may reach this machine, and what it wants to hear.
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// What the Redflow UI may know of the answer to a request of its own.
pub(crate) struct Cors {
    origin: HeaderValue,
    /// How the address may be asked.
    ways: Vec<&'static str>,
}

impl Cors {
    /// For a request at this path of the table, or at none of them; nothing unless it comes from the Redflow UI and
    /// asks for what is that UI's. An address that is not there is: it has to see that it is not.
    pub(crate) fn of(access: &AccessControl, request: &Request, path: Option<&str>) -> Option<Self> {
        let origin = access.redflow_ui(request.uri(), request.headers())?;
        let ways: Vec<&str> = match path {
            None => [Way::Get, Way::Post, Way::Put, Way::Delete].map(Way::as_str).to_vec(),
            Some(path) => {
                let its = ROUTES.iter().filter(|route| route.for_redflow_ui && route.path == path);
                its.map(|route| route.method.as_str()).collect()
            }
        };
        let origin = HeaderValue::from_str(origin).ok()?;
        (!ways.is_empty()).then_some(Self { origin, ways })
    }

    /// What a browser hears that asks whether the page may do what it is about to; none for any other request.
    pub(crate) fn preflight(&self, request: &Request) -> Option<Response> {
        let headers = request.headers();
        let asks = request.method() == Method::OPTIONS
            && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks {
            return None;
        }
        let mut answer = StatusCode::NO_CONTENT.into_response();
        let told = answer.headers_mut();
        told.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_str(&self.ways.join(", ")).ok()?);
        told.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        told.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        if headers.get(ASKS_PRIVATE).is_some_and(|asks| asks == "true") {
            told.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
        }
        Some(answer)
    }

    /// Lets the page read an answer, whatever came of its request.
    pub(crate) fn open(self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.origin);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}
