//! Where requests may be sent to, and from which pages.
//!
//! Owns the exact lists. Never resolves a name: a name an attacker points at this machine is not on the list.

use crate::shown;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use std::net::SocketAddr;

/// The most hosts and the most origins that can be configured.
const MAX_CONFIGURED: usize = 64;

/// The hosts that are answered to, and the origins that are admitted.
#[derive(Debug, Clone)]
pub struct Place {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Place {
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
            admitted.push(parse_origin(&origin.to_ascii_lowercase()).ok_or_else(|| {
                unusable(&format!(
                    "The origin `{}` is not a scheme and a host, as in `https://flows.example`, without a path",
                    shown(origin.as_bytes())
                ))
            })?);
        }
        Ok(Self { hosts: allowed, origins: admitted })
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

    /// Whether the page the request comes from is admitted; false if it names none, as programs and a browser's own
    /// address line do not.
    ///
    /// # Errors
    /// `ORIGIN_REFUSED`.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<bool, ApiError> {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(false),
            (Some(_), Some(_)) => Err(origin_refused("The request names several origins")),
            (Some(one), None) => {
                if self.origins.iter().any(|known| known.as_bytes() == one.as_bytes()) {
                    return Ok(true);
                }
                Err(origin_refused(&format!("Pages of `{}` are not admitted", shown(one.as_bytes()))))
            }
        }
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
#[path = "place_tests.rs"]
mod tests;
