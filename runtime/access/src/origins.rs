//! Which hosts a request may name, and which pages may send it.
//!
//! Owns the exact lists. Never resolves a name: an attacker can point a name at this machine, but it is not
//! listed.

use crate::printable_excerpt;
use crate::settings::{AccessSettings, Scheme};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use std::net::SocketAddr;

/// The most configured hosts, and the most configured origins.
const MAX_CONFIGURED: usize = 64;

/// The kind of page that sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// The request has no `Origin`, as those of programs and of a browser's address bar.
    Unnamed,
    /// A page of the sidecar itself, or of a configured origin.
    Admitted,
    /// A page of the Redflow UI, with a request to a name of this machine.
    RedflowUi,
}

/// The hosts and origins that requests may name.
#[derive(Debug, Clone)]
pub struct Origins {
    hosts: Vec<String>,
    /// How many of the hosts, from the first on, are names of this machine and of the listener.
    local_hosts: usize,
    origins: Vec<String>,
    redflow_ui: Option<String>,
}

impl Origins {
    /// Combines the names of the listener with the configured hosts and origins.
    ///
    /// Pages of the Redflow UI need no token, and any program can claim to be one. So other machines must not
    /// reach the listener directly. Through a configured host, which a proxy may serve, such a page is like
    /// any other.
    ///
    /// # Errors
    /// `CONFIG_FILE_INVALID` for a host or an origin that a browser would not send, and for a Redflow UI if
    /// other machines can reach the listener or if the sidecar itself has that origin.
    pub fn from_settings(settings: &AccessSettings) -> Result<Self, ApiError> {
        if settings.hosts.len() > MAX_CONFIGURED || settings.origins.len() > MAX_CONFIGURED {
            return Err(invalid(&format!("More than {MAX_CONFIGURED} hosts or origins are configured")));
        }
        let mut hosts = listener_hosts(settings.listen);
        let local_hosts = hosts.len();
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        let scheme = match settings.scheme() {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        for host in &settings.hosts {
            if !Self::is_host(host) {
                return Err(invalid(&format!(
                    "The host `{}` is not a name, or a name and a port, as in `flows.example:8443`",
                    printable_excerpt(host.as_bytes())
                )));
            }
            let host = host.to_ascii_lowercase();
            origins.push(format!("{scheme}://{host}"));
            hosts.push(host);
        }
        for origin in &settings.origins {
            origins.push(Self::origin(origin).ok_or_else(|| invalid_origin(origin))?);
        }
        let redflow_ui = settings.redflow_ui.as_deref();
        let check_ui = |text| redflow_ui_origin(text, settings.listen, &origins[..local_hosts]);
        let redflow_ui = redflow_ui.map(check_ui).transpose()?;
        Ok(Self { hosts, local_hosts, origins, redflow_ui })
    }

    /// An origin as a browser sends it: lower case, and without the default port of its scheme. None for a
    /// text that cannot be the origin of a web page.
    #[must_use]
    pub fn origin(text: &str) -> Option<String> {
        let text = text.to_ascii_lowercase();
        let (scheme, host) = text.split_once("://")?;
        let default_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let short = host.strip_suffix(default_port).unwrap_or(host);
        Self::is_host(host).then(|| format!("{scheme}://{short}"))
    }

    /// Whether the text is a name or an address, in brackets for IPv6, with an optional port. In any case.
    #[must_use]
    pub fn is_host(text: &str) -> bool {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, Some(port)),
            _ => (text, None),
        };
        let is_port =
            |port: &str| port.parse::<u16>().is_ok_and(|number| number != 0 && number.to_string() == port);
        let is_name = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                (1..=253).contains(&name.len()) && name.bytes().all(is_valid) && name != "0.0.0.0"
            }
        };
        is_name && port.is_none_or(is_port)
    }

    /// Checks that the request has exactly one `Host`, and that this host is listed. A host in the request
    /// line has to be listed too.
    ///
    /// # Errors
    /// `HOST_REFUSED`.
    pub fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.as_bytes(),
            (None, _) => return Err(host_refused("The request has no `Host` header")),
            (Some(_), Some(_)) => return Err(host_refused("The request has several `Host` headers")),
        };
        let target = uri.authority().map(|authority| authority.as_str().as_bytes());
        for host in std::iter::once(host).chain(target) {
            if !self.hosts.iter().any(|allowed| allowed.as_bytes().eq_ignore_ascii_case(host)) {
                return Err(host_refused(&format!(
                    "This sidecar does not answer to `{}`",
                    printable_excerpt(host)
                )));
            }
        }
        Ok(())
    }

    /// Finds out which kind of page sent the request.
    ///
    /// # Errors
    /// `ORIGIN_REFUSED`.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<Page, ApiError> {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(Page::Unnamed),
            (Some(_), Some(_)) => Err(origin_refused("The request has several `Origin` headers")),
            (Some(one), None) => {
                let is_same = |origin: &String| origin.as_bytes() == one.as_bytes();
                if self.redflow_ui.as_ref().is_some_and(is_same) && self.is_local(headers) {
                    return Ok(Page::RedflowUi);
                }
                if self.origins.iter().any(is_same) {
                    return Ok(Page::Admitted);
                }
                let origin = printable_excerpt(one.as_bytes());
                Err(origin_refused(&format!("Pages of `{origin}` are not admitted")))
            }
        }
    }

    /// The origin of the Redflow UI, if one is configured.
    #[must_use]
    pub fn redflow_ui(&self) -> Option<&str> {
        self.redflow_ui.as_deref()
    }

    /// Whether the request names this machine, and not a configured host that a proxy may serve.
    fn is_local(&self, headers: &HeaderMap) -> bool {
        let mut local = self.hosts.iter().take(self.local_hosts);
        let host = headers.get(HOST).map(HeaderValue::as_bytes);
        host.is_some_and(|host| local.any(|name| name.as_bytes().eq_ignore_ascii_case(host)))
    }
}

/// What the `Host` header is for requests to a listener: a local name or the listener's address, with its
/// port.
fn listener_hosts(listen: SocketAddr) -> Vec<String> {
    let mut names = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "[::1]".to_owned()];
    if !listen.ip().is_unspecified() {
        names.push(match listen {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        });
    }
    let port = listen.port();
    let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
    // Browsers leave out the default port of http.
    if port == 80 {
        hosts.extend(names);
    }
    hosts
}

fn redflow_ui_origin(text: &str, listen: SocketAddr, own: &[String]) -> Result<String, ApiError> {
    if !listen.ip().is_loopback() {
        return Err(invalid(
            "The Redflow UI needs no token, so other machines must not reach the sidecar: listen at 127.0.0.1 or \
             [::1], or remove `redflow_ui`",
        ));
    }
    let origin = Origins::origin(text).ok_or_else(|| invalid_origin(text))?;
    if own.contains(&origin) {
        return Err(invalid(&format!(
            "`{origin}` is where the sidecar itself is, but `redflow_ui` is the origin of the Redflow UI's pages"
        )));
    }
    Ok(origin)
}

fn invalid_origin(text: &str) -> ApiError {
    invalid(&format!(
        "The origin `{}` is not a scheme and a host, as in `https://flows.example`, without a path",
        printable_excerpt(text.as_bytes())
    ))
}

fn invalid(problem: &str) -> ApiError {
    ApiError::new(ApiCode::ConfigFileInvalid, format!("{problem}: correct the configuration."))
}

fn host_refused(problem: &str) -> ApiError {
    ApiError::new(
        ApiCode::HostRefused,
        format!(
            "{problem}: use the address that `redflow serve` printed, or add the host to its configuration."
        ),
    )
}

pub(crate) fn origin_refused(problem: &str) -> ApiError {
    ApiError::new(
        ApiCode::OriginRefused,
        format!(
            "{problem}: open the address that `redflow serve` printed, or add the origin to its configuration."
        ),
    )
}

#[cfg(test)]
#[path = "origins_tests.rs"]
mod tests;
