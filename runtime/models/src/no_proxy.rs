//! The hosts that are reached without a proxy. The list has the form that curl takes.

use crate::address::is_within;
use std::net::IpAddr;
use url::{Host, Url};

/// Hosts that are reached without a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    /// None for every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    /// Every host.
    All,
    /// A name and its subdomains.
    Domain(String),
    /// The addresses that begin with these bits.
    Network(IpAddr, u32),
}

impl NoProxy {
    /// Reads a list of names, IP addresses and blocks of addresses, perhaps with a port each, or `*`. None if an entry
    /// is something else.
    #[must_use]
    pub fn parse(entries: &[String]) -> Option<Self> {
        entries.iter().map(|entry| Entry::parse(entry.trim())).collect::<Option<_>>().map(Self)
    }

    /// Whether the host of an address is in the list.
    #[must_use]
    pub fn contains(&self, url: &Url) -> bool {
        let Some(host) = url.host() else { return false };
        let port = url.port_or_known_default();
        self.0
            .iter()
            .any(|entry| entry.hosts.contain(&host) && entry.port.is_none_or(|own| port == Some(own)))
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self { hosts: Hosts::All, port: None });
        }
        if let Some((address, bits)) = text.split_once('/') {
            let (address, bits) = (parse_address(address)?, bits.parse().ok()?);
            let is_valid = bits <= bit_count(address);
            return is_valid.then_some(Self { hosts: Hosts::Network(address, bits), port: None });
        }
        if let Some(address) = parse_address(text) {
            return Some(Self { hosts: Hosts::address(address), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text, None),
        };
        if let Some(address) = parse_address(host) {
            return Some(Self { hosts: Hosts::address(address), port });
        }
        let name = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let name = name.strip_prefix('.').unwrap_or(name);
        match Host::parse(name.strip_suffix('.').unwrap_or(name)).ok()? {
            Host::Domain(name) if name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) => {
                Some(Self { hosts: Hosts::Domain(name), port })
            }
            _ => None,
        }
    }
}

impl Hosts {
    fn address(address: IpAddr) -> Self {
        Self::Network(address, bit_count(address))
    }

    fn contain(&self, host: &Host<&str>) -> bool {
        let address = match *host {
            Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                return match self {
                    Self::All => true,
                    Self::Domain(domain) => is_within(name, &[domain.as_str()]),
                    Self::Network(..) => false,
                };
            }
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => address.to_canonical(),
        };
        match self {
            Self::All => true,
            Self::Domain(_) => false,
            Self::Network(network, bits) => begins_alike(address, *network, *bits),
        }
    }
}

/// An address, of IPv6 perhaps in brackets.
fn parse_address(text: &str) -> Option<IpAddr> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address: IpAddr = inner.unwrap_or(text).parse().ok()?;
    (inner.is_none() || address.is_ipv6()).then_some(address)
}

fn bit_count(address: IpAddr) -> u32 {
    if address.is_ipv4() { u32::BITS } else { u128::BITS }
}

/// Whether two addresses of one kind have the same first bits.
fn begins_alike(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (one.to_bits() ^ other.to_bits()).checked_shr(u32::BITS - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            (one.to_bits() ^ other.to_bits()).checked_shr(u128::BITS - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "no_proxy_tests.rs"]
mod tests;
