//! The CORS headers that let pages of the Redflow UI use its routes, and no other page anything.
//!
//! Never decides who may call. Never names more than the one origin: no star, no credentials.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use redflow_access::AccessControl;
use redflow_contract::route::{Method as RouteMethod, ROUTES};

/// Request headers that a page of the UI may send, beyond those that every page may send.
const HEADERS: HeaderValue = HeaderValue::from_static(
    "content-type, node-red-api-version, node-red-deployment-type, accept, authorization",
);

/// How long a browser may reuse a preflight response, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Browsers ask this before a public page may reach a private address, and expect the second header.
const REQUEST_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The permission of a Redflow UI page to read one response.
pub(crate) struct Cors {
    origin: HeaderValue,
    /// The methods of the requested path that are for the UI.
    methods: Vec<&'static str>,
}

impl Cors {
    /// The permission for a request, if it comes from the Redflow UI and asks for one of its routes. An
    /// unknown path (`None`) counts as one of its routes, because the page has to see the 404.
    pub(crate) fn for_request(access: &AccessControl, request: &Request, path: Option<&str>) -> Option<Self> {
        let origin = access.redflow_ui(request.uri(), request.headers())?;
        let methods: Vec<&str> = match path {
            None => [RouteMethod::Get, RouteMethod::Post, RouteMethod::Put, RouteMethod::Delete]
                .map(RouteMethod::as_str)
                .to_vec(),
            Some(path) => {
                let routes = ROUTES.iter().filter(|route| route.for_redflow_ui && route.path == path);
                routes.map(|route| route.method.as_str()).collect()
            }
        };
        let origin = HeaderValue::from_str(origin).ok()?;
        (!methods.is_empty()).then_some(Self { origin, methods })
    }

    /// The response to a preflight request; none for any other request.
    pub(crate) fn preflight(&self, request: &Request) -> Option<Response> {
        let headers = request.headers();
        let is_preflight = request.method() == Method::OPTIONS
            && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !is_preflight {
            return None;
        }
        let mut response = StatusCode::NO_CONTENT.into_response();
        let allowed = response.headers_mut();
        let methods = HeaderValue::from_str(&self.methods.join(", ")).ok()?;
        allowed.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        allowed.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        allowed.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        if headers.get(REQUEST_PRIVATE).is_some_and(|value| value == "true") {
            allowed.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
        }
        Some(response)
    }

    /// Lets the page read a response, whether its request succeeded or failed.
    pub(crate) fn allow_reading(self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.origin);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}
