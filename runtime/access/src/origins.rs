//! Where requests may be sent to, and from which pages.
//!
//! Owns the exact lists. Never resolves a name: a name an attacker points at this machine is not on the list.

use crate::shown;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use std::net::SocketAddr;

/// The most hosts and the most origins that can be configured.
const MAX_CONFIGURED: usize = 64;

/// Which page a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// It names none, as programs and a browser's own address line do not.
    Unnamed,
    /// One of our own, or of a configured origin.
    Admitted,
    /// One of the Redflow UI, asking at a name of this machine.
    RedflowUi,
}

/// The hosts that are answered to, and the origins that are admitted.
#[derive(Debug, Clone)]
pub struct Origins {
    hosts: Vec<String>,
    /// So many of the hosts, the first ones, are names of this machine and of the address that is listened at.
    near: usize,
    origins: Vec<String>,
    redflow_ui: Option<String>,
}

impl Origins {
    /// The place of a listener at `bound`. `hosts` and `origins` are added to what follows from that address; `https`
    /// says that a proxy in front of `hosts` ends https.
    ///
    /// # Errors
    /// `CONFIG_FILE_INVALID` for a host or an origin that is not written as a browser sends it.
    pub fn new(
        bound: SocketAddr,
        hosts: &[String],
        origins: &[String],
        https: bool,
    ) -> Result<Self, ApiError> {
        if hosts.len() > MAX_CONFIGURED || origins.len() > MAX_CONFIGURED {
            return Err(unusable(&format!("More than {MAX_CONFIGURED} hosts or origins are configured")));
        }
        let mut near = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "[::1]".to_owned()];
        if !bound.ip().is_unspecified() {
            near.push(match bound {
                SocketAddr::V4(address) => address.ip().to_string(),
                SocketAddr::V6(address) => format!("[{}]", address.ip()),
            });
        }
        let port = bound.port();
        let mut allowed: Vec<String> = near.iter().map(|name| format!("{name}:{port}")).collect();
        // Browsers leave out the port that http has anyway.
        if port == 80 {
            allowed.extend(near);
        }
        let near = allowed.len();
        let mut admitted: Vec<String> = allowed.iter().map(|host| format!("http://{host}")).collect();
        let scheme = if https { "https" } else { "http" };
        for host in hosts {
            let host = host.to_ascii_lowercase();
            if !is_host(&host) {
                return Err(unusable(&format!(
                    "The host `{}` is not a name, or a name and a port, as in `flows.example:8443`",
                    shown(host.as_bytes())
                )));
            }
            admitted.push(format!("{scheme}://{host}"));
            allowed.push(host);
        }
        for origin in origins {
            admitted.push(Self::origin(origin).ok_or_else(|| no_origin(origin))?);
        }
        Ok(Self { hosts: allowed, near, origins: admitted, redflow_ui: None })
    }

    /// The same place, where pages of the Redflow UI's origin are told from others. `bound` is as in [`Origins::new`].
    ///
    /// Such pages need no token, and any program can say that it is one. So other machines must not get here: neither
    /// by the address, nor by a configured host, at which such a page is one like any other.
    ///
    /// # Errors
    /// `CONFIG_FILE_INVALID` if others than this machine can reach `bound`, and for what is no origin or one of ours.
    pub fn with_redflow_ui(self, bound: SocketAddr, origin: &str) -> Result<Self, ApiError> {
        if !bound.ip().is_loopback() {
            return Err(unusable(
                "The Redflow UI is let in without a token, which other machines must not reach: listen at 127.0.0.1 or \
                 [::1], or leave `redflow_ui` out",
            ));
        }
        let known = Self::origin(origin).ok_or_else(|| no_origin(origin))?;
        if self.hosts.iter().take(self.near).any(|host| known == format!("http://{host}")) {
            return Err(unusable(&format!(
                "`{known}` is where the sidecar itself is: `redflow_ui` is where the pages of the Redflow UI are"
            )));
        }
        Ok(Self { redflow_ui: Some(known), ..self })
    }

    /// An origin as a browser sends it: lower case, and without the port that its scheme has anyway. None for what is
    /// no origin of a web page.
    #[must_use]
    pub fn origin(text: &str) -> Option<String> {
        parse_origin(&text.to_ascii_lowercase())
    }

    /// Whether the request was sent here: exactly one `Host`, on the list; and if the request line names a host as
    /// well, that too.
    ///
    /// # Errors
    /// `HOST_REFUSED`.
    pub fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.as_bytes(),
            (None, _) => return Err(host_refused("The request does not say which host it is sent to")),
            (Some(_), Some(_)) => return Err(host_refused("The request names several hosts")),
        };
        let target = uri.authority().map(|authority| authority.as_str().as_bytes());
        for asked in std::iter::once(host).chain(target) {
            if !self.hosts.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(asked)) {
                return Err(host_refused(&format!("This sidecar does not answer to `{}`", shown(asked))));
            }
        }
        Ok(())
    }

    /// Which page the request comes from, if it is one that is admitted.
    ///
    /// # Errors
    /// `ORIGIN_REFUSED`.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<Page, ApiError> {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(Page::Unnamed),
            (Some(_), Some(_)) => Err(origin_refused("The request names several origins")),
            (Some(one), None) => {
                let is = |known: &String| known.as_bytes() == one.as_bytes();
                if self.redflow_ui.as_ref().is_some_and(is) && self.is_near(headers) {
                    return Ok(Page::RedflowUi);
                }
                if self.origins.iter().any(is) {
                    return Ok(Page::Admitted);
                }
                Err(origin_refused(&format!("Pages of `{}` are not admitted", shown(one.as_bytes()))))
            }
        }
    }

    /// The origin of the Redflow UI, if there is one.
    #[must_use]
    pub fn redflow_ui(&self) -> Option<&str> {
        self.redflow_ui.as_deref()
    }

    /// Whether the request was sent to a name of this machine, not to one that a proxy may answer to.
    fn is_near(&self, headers: &HeaderMap) -> bool {
        let mut near = self.hosts.iter().take(self.near);
        let host = headers.get(HOST).map(HeaderValue::as_bytes);
        host.is_some_and(|host| near.any(|known| known.as_bytes().eq_ignore_ascii_case(host)))
    }
}

/// A name or an address, in brackets if it is IPv6, and a port if there is one. Lower case.
fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (text, None),
    };
    let port_is_good = port
        .is_none_or(|port| port.parse::<u16>().is_ok_and(|number| number != 0 && number.to_string() == port));
    let name_is_good = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let good =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
            !name.is_empty() && name.len() <= 253 && name.bytes().all(good) && name != "0.0.0.0"
        }
    };
    port_is_good && name_is_good
}

/// The origin as a browser sends it: without the port that its scheme has anyway.
fn parse_origin(text: &str) -> Option<String> {
    let (scheme, host) = text.split_once("://")?;
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    is_host(host).then(|| format!("{scheme}://{}", host.strip_suffix(usual).unwrap_or(host)))
}

fn no_origin(text: &str) -> ApiError {
    unusable(&format!(
        "The origin `{}` is not a scheme and a host, as in `https://flows.example`, without a path",
        shown(text.as_bytes())
    ))
}

fn unusable(what: &str) -> ApiError {
    ApiError::new(ApiCode::ConfigFileInvalid, format!("{what}: correct the configuration."))
}

fn host_refused(what: &str) -> ApiError {
    ApiError::new(
        ApiCode::HostRefused,
        format!(
            "{what}: use the address that `redflow serve` printed, or add the host to its configuration."
        ),
    )
}

pub(crate) fn origin_refused(what: &str) -> ApiError {
    ApiError::new(
        ApiCode::OriginRefused,
        format!(
            "{what}: open the address that `redflow serve` printed, or add the origin to its configuration."
        ),
    )
}

#[cfg(test)]
#[path = "origins_tests.rs"]
mod tests;
