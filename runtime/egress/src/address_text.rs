//! The rules `text` and `authority`: reads an address only if every program would read it alike.
//!
//! Parsers differ in what they trim, decode and repair. So this module repairs nothing, and compares what it read with
//! what the crate `url` reads.

use crate::host::{Host, split_port};
use crate::origin::Origin;
use crate::{Refusal, Rule};
use std::net::IpAddr;
use url::Url;

/// The longest address.
pub(crate) const MAX_URL_BYTES: usize = 2048;

/// An address whose spelling has one meaning.
#[derive(Debug, Clone)]
pub(crate) struct AddressText {
    pub(crate) scheme: &'static str,
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// Without fragment, and without the trailing dot of a name.
    pub(crate) url: Url,
}

impl AddressText {
    pub(crate) fn read(text: &str) -> Result<Self, Refusal> {
        check_characters(text)?;
        let (scheme, default_port, rest) = split_scheme(text)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = &rest[..end];
        if authority.is_empty() {
            return Err(Refusal::new(Rule::Text, "the address has no host"));
        }
        if authority.contains(['@', '%']) {
            return Err(Refusal::new(Rule::Authority, "the host part has a user name, a password or a `%`"));
        }
        let refused = |reason: &'static str| Refusal::new(Rule::Authority, reason);
        let (host, port) = split_port(authority).map_err(refused)?;
        let host = Host::parse(host).map_err(refused)?;
        let mut read = Self {
            scheme,
            host,
            port: port.unwrap_or(default_port),
            url: Url::parse(text).map_err(|_| refused("the host cannot be read"))?,
        };
        if !read.is_understood_alike() {
            return Err(refused("the host has more than one meaning"));
        }
        read.url.set_fragment(None);
        if let Host::Name(name) = &read.host
            && read.url.host_str().is_some_and(|host| host.ends_with('.'))
        {
            read.url.set_host(Some(name)).map_err(|_| refused("the host cannot be read"))?;
        }
        Ok(read)
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin { is_https: self.scheme == "https", host: self.host.clone(), port: self.port }
    }

    /// Whether both addresses have the same scheme, host and port.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.host == other.host && self.port == other.port
    }

    fn is_understood_alike(&self) -> bool {
        let is_same_host = match (self.url.host(), &self.host) {
            (Some(url::Host::Domain(name)), Host::Name(own)) => name.strip_suffix('.').unwrap_or(name) == own,
            (Some(url::Host::Ipv4(address)), Host::Address(own)) => IpAddr::V4(address) == *own,
            (Some(url::Host::Ipv6(address)), Host::Address(own)) => IpAddr::V6(address) == *own,
            _ => false,
        };
        is_same_host
            && self.url.scheme() == self.scheme
            && self.url.port_or_known_default() == Some(self.port)
            && self.url.username().is_empty()
            && self.url.password().is_none()
    }
}

/// Whether a text has only characters that no parser trims or changes.
pub(crate) fn check_characters(text: &str) -> Result<(), Refusal> {
    if text.len() > MAX_URL_BYTES {
        return Err(Refusal::new(
            Rule::Text,
            format!("the address has more than {MAX_URL_BYTES} characters"),
        ));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        let reason = "the address has a space, a backslash, a control character or a character outside of ASCII; \
                      write it percent-encoded, and a host name as xn--";
        return Err(Refusal::new(Rule::Text, reason));
    }
    Ok(())
}

fn split_scheme(text: &str) -> Result<(&'static str, u16, &str), Refusal> {
    let with = |scheme, port| move |rest| (scheme, port, rest);
    text.strip_prefix("https://")
        .map(with("https", 443))
        .or_else(|| text.strip_prefix("http://").map(with("http", 80)))
        .ok_or_else(|| Refusal::new(Rule::Text, "the address does not begin with `https://` or `http://`"))
}

#[cfg(test)]
#[path = "address_text_tests.rs"]
mod tests;
