//! Hosts as written: names, addresses, patterns of hosts and private hosts.

use crate::special_addresses::{AddressBlock, is_exact_only};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// A host: a name as A-labels in lower case, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Reads a host as it stands in an address: IPv6 in brackets. One trailing dot of a name is dropped.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(rest) = text.strip_prefix('[') {
            let inner = rest.strip_suffix(']').ok_or("the host has a bracket too few or too many")?;
            let address: Ipv6Addr = inner.parse().map_err(|_| "the host in brackets is no IPv6 address")?;
            // Another spelling may mean another address to another program.
            let is_canonical = address.to_string() == inner;
            return is_canonical
                .then_some(Self::Address(IpAddr::V6(address)))
                .ok_or("the IPv6 address is not in its usual spelling");
        }
        if let Some(address) = canonical_v4(text) {
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err("the host is missing");
        }
        if name.len() > MAX_NAME_BYTES {
            return Err("the name of the host has more than 253 characters");
        }
        for label in name.split('.') {
            if label.is_empty() || label.len() > MAX_LABEL_BYTES {
                return Err("a part of the host name is empty or has more than 63 characters");
            }
            if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
                return Err(
                    "the host has a character that names do not have; other alphabets are written as xn--",
                );
            }
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err("the host is a number, but no IPv4 address in its usual spelling");
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }

    /// `HOST:PORT`, with brackets around IPv6.
    pub(crate) fn with_port(&self, port: u16) -> String {
        format!("{}:{port}", Bracketed(self))
    }
}

/// Without brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

struct Bracketed<'a>(&'a Host);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            host => host.fmt(f),
        }
    }
}

/// Reads an IPv4 address in its usual spelling: four decimal numbers without leading zeros.
fn canonical_v4(text: &str) -> Option<Ipv4Addr> {
    text.parse().ok()
}

/// Whether a program may read a label as a number: decimal, octal or hexadecimal.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Splits `HOST` or `HOST:PORT`. The port has digits only, without leading zeros.
pub(crate) fn split_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    let after_host = if text.starts_with('[') { text.find(']').map_or(text.len(), |at| at + 1) } else { 0 };
    let Some(colon) = text[after_host..].find(':') else { return Ok((text, None)) };
    let (host, port) = text.split_at(after_host + colon);
    let digits = &port[1..];
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let port = is_plain.then(|| digits.parse().ok()).flatten();
    port.map(|port| (host, Some(port))).ok_or("the port is no number from 1 to 65535")
}

/// A host or its subdomains: `api.example.org`, `*.example.org` (without the bare name) or an address, each with an
/// optional port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: PatternHost,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternHost {
    Exact(Host),
    /// The suffix, with its dot.
    Subdomains(String),
}

impl HostPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|problem| {
            format!(
                "{problem}; write a host such as `api.example.org`, `*.example.org` or `api.example.org:8443`"
            )
        })
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        let (host, port) = split_port(text)?;
        let host = match host.strip_prefix("*.") {
            None => PatternHost::Exact(Host::parse(host)?),
            Some(suffix) => match Host::parse(suffix)? {
                Host::Name(name) => PatternHost::Subdomains(format!(".{name}")),
                Host::Address(_) => return Err("an address has no subdomains"),
            },
        };
        Ok(Self { host, port })
    }

    pub(crate) fn matches(&self, host: &Host, port: u16) -> bool {
        let matches_host = match (&self.host, host) {
            (PatternHost::Exact(exact), host) => exact == host,
            (PatternHost::Subdomains(suffix), Host::Name(name)) => name.ends_with(suffix.as_str()),
            (PatternHost::Subdomains(_), Host::Address(_)) => false,
        };
        matches_host && self.port.is_none_or(|wanted| wanted == port)
    }
}

/// A host and port of the operator's own network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrivateHost {
    target: PrivateTarget,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PrivateTarget {
    Host(Host),
    Block(AddressBlock),
}

impl PrivateHost {
    /// Reads `HOST:PORT`. The host is a name, an address or a block such as `192.168.0.0/16`; IPv6 is in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (host, port) = split_port(text)?;
        let port = port.ok_or("the port is missing")?;
        let Some((first, prefix)) = host.trim_matches(['[', ']']).split_once('/') else {
            return Ok(Self { target: PrivateTarget::Host(Host::parse(host)?), port });
        };
        let first: IpAddr = first.parse().map_err(|_| "the part before `/` is no address")?;
        if first.is_ipv6() != host.starts_with('[') {
            return Err("a block of IPv6 addresses needs brackets, a block of IPv4 addresses has none");
        }
        let prefix = prefix.parse().map_err(|_| "the part behind `/` is no length of a prefix")?;
        let block = AddressBlock::new(first, prefix).ok_or("the address has bits behind its prefix")?;
        if is_exact_only(block) {
            return Err("link-local addresses and endpoints of clouds can only be allowed one by one");
        }
        Ok(Self { target: PrivateTarget::Block(block), port })
    }

    /// Whether it names this host and port.
    pub(crate) fn names(&self, host: &Host, port: u16) -> bool {
        self.port == port
            && match (&self.target, host) {
                (PrivateTarget::Host(named), host) => named == host,
                (PrivateTarget::Block(block), Host::Address(address)) => block.contains(*address),
                (PrivateTarget::Block(_), Host::Name(_)) => false,
            }
    }

    /// Whether it names exactly this address and port.
    pub(crate) fn names_exactly(&self, address: IpAddr, port: u16) -> bool {
        self.port == port && self.target == PrivateTarget::Host(Host::Address(address))
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
