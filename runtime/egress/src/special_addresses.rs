//! The table behind the rule `address`: addresses that are not the public internet.
//!
//! Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries with RFC 6890, the IANA multicast registries,
//! RFC 6052 and RFC 8215 (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo), RFC 5214 (ISATAP), and the pages of cloud
//! vendors about the endpoints that their machines see.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpecialAddress {
    /// What the address is.
    pub(crate) kind: &'static str,
    /// Whether only its exact address can be made private, because a block or a name would allow it by accident.
    pub(crate) exact_only: bool,
}

/// A block of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressBlock {
    first: IpAddr,
    prefix: u8,
}

impl AddressBlock {
    /// A block, if its first address has no bit behind the prefix.
    pub(crate) fn new(first: IpAddr, prefix: u8) -> Option<Self> {
        let block = Self { first, prefix };
        let width = if first.is_ipv4() { 32 } else { 128 };
        (prefix <= width && block.first_of(first) == bits(first)).then_some(block)
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4() && self.first_of(address) == bits(self.first)
    }

    pub(crate) fn is_within(self, other: Self) -> bool {
        self.prefix >= other.prefix && other.contains(self.first)
    }

    /// The first address of the block of this size that an address is in.
    fn first_of(self, address: IpAddr) -> u128 {
        let width: u32 = if address.is_ipv4() { 32 } else { 128 };
        let free = width.saturating_sub(u32::from(self.prefix));
        bits(address).checked_shr(free).unwrap_or(0).checked_shl(free).unwrap_or(0)
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

const LINK_LOCAL_V4: AddressBlock = v4(169, 254, 0, 0, 16);
const LINK_LOCAL_V6: AddressBlock = v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10);

/// IANA's IPv4 registry, and multicast.
const SPECIAL_V4: &[(AddressBlock, &str)] = &[
    (v4(0, 0, 0, 0, 8), "an address of \"this network\""),
    (v4(10, 0, 0, 0, 8), "a private address"),
    (v4(100, 64, 0, 0, 10), "a shared address behind a provider's NAT"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 0, 0, 0, 24), "an address of IETF protocols"),
    (v4(192, 0, 2, 0, 24), "an address for documentation"),
    (v4(192, 31, 196, 0, 24), "an address of the AS112 service"),
    (v4(192, 52, 193, 0, 24), "an address of multicast tunnels"),
    (v4(192, 88, 99, 0, 24), "an address of 6to4 relays"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(192, 175, 48, 0, 24), "an address of the AS112 service"),
    (v4(198, 18, 0, 0, 15), "an address for benchmarks"),
    (v4(198, 51, 100, 0, 24), "an address for documentation"),
    (v4(203, 0, 113, 0, 24), "an address for documentation"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    (v4(240, 0, 0, 0, 4), "a reserved address"),
];

/// The only IPv6 addresses that are public: global unicast, less the blocks below.
const GLOBAL_UNICAST: AddressBlock = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The blocks of IANA's IPv6 registry. Those outside of global unicast only have better texts.
const SPECIAL_V6: &[(AddressBlock, &str)] = &[
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "the unspecified address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "an IPv4 address mapped into IPv6"),
    (v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), "an IPv4 address translated into IPv6"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "an IPv4-compatible address"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "an address of a local NAT64"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 63), "a discarded or dummy address"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "an address of a Teredo tunnel"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "an address of IETF protocols"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "an address for documentation"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "an address of a 6to4 tunnel"),
    (v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), "an address of the AS112 service"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "an address for documentation"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "a segment routing address"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private address"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a site-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

/// Metadata and platform endpoints of clouds that are not link-local.
const PLATFORM: &[(AddressBlock, &str)] = &[
    // Alibaba Cloud: metadata, and the services in 100.100.0.0/16 beside it.
    (v4(100, 100, 100, 200, 32), "the metadata endpoint of Alibaba Cloud"),
    // Equinix Metal, formerly Packet: metadata, a public address.
    (v4(192, 80, 8, 124, 32), "the metadata endpoint of Equinix Metal"),
    // Microsoft Azure: the host agent ("WireServer"), a public address.
    (v4(168, 63, 129, 16, 32), "the platform endpoint of Azure"),
    // Oracle Cloud Classic: metadata.
    (v4(192, 0, 0, 192, 32), "the metadata endpoint of Oracle Cloud"),
    // IBM Cloud: services of the private network (DNS, mirrors, storage), public addresses.
    (v4(161, 26, 0, 0, 16), "a platform endpoint of IBM Cloud"),
    (v4(166, 8, 0, 0, 14), "a platform endpoint of IBM Cloud"),
    // Amazon EC2: metadata, name server, time, and the credentials of EKS.
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32), "a platform endpoint of AWS"),
    // Akamai, formerly Linode: metadata.
    (v6([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1], 128), "the metadata endpoint of Akamai"),
    // Google Cloud: metadata.
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0], 32), "the metadata endpoint of Google Cloud"),
    // Oracle Cloud: metadata.
    (v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128), "the metadata endpoint of Oracle Cloud"),
    // Scaleway: metadata.
    (v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128), "the metadata endpoint of Scaleway"),
];

/// Whether an address is anything else than a public address of the internet.
pub(crate) fn special_address(address: IpAddr) -> Option<SpecialAddress> {
    let special = |kind, exact_only| Some(SpecialAddress { kind, exact_only });
    if is_link_local(address) {
        return special("a link-local address, where clouds serve metadata and keys", true);
    }
    if let Some(kind) = find(PLATFORM, address) {
        return special(kind, true);
    }
    match address {
        IpAddr::V4(_) => find(SPECIAL_V4, address).and_then(|kind| special(kind, false)),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v6(address: Ipv6Addr) -> Option<SpecialAddress> {
    let embedded = embedded_v4(address);
    // A network with NAT64 only knows IPv4 hosts by these addresses.
    if let (Some(inner), true) = (embedded, is_nat64(address)) {
        return special_address(IpAddr::V4(inner));
    }
    // Also an IPv4 address that cannot be reached this way: `private` must not open a second way to it.
    let exact_only = embedded
        .is_some_and(|inner| special_address(IpAddr::V4(inner)).is_some_and(|special| special.exact_only));
    if let Some(kind) = find(SPECIAL_V6, IpAddr::V6(address)) {
        return Some(SpecialAddress { kind, exact_only });
    }
    if !GLOBAL_UNICAST.contains(IpAddr::V6(address)) {
        return Some(SpecialAddress { kind: "no address of the public internet", exact_only });
    }
    embedded.and_then(|inner| special_address(IpAddr::V4(inner)))
}

/// Whether an address is valid on one network segment only.
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    LINK_LOCAL_V4.contains(address) || LINK_LOCAL_V6.contains(address)
}

/// Whether every address of a block can only be made private one by one.
pub(crate) fn is_exact_only(block: AddressBlock) -> bool {
    let platform = PLATFORM.iter().map(|(block, _)| *block);
    platform.chain([LINK_LOCAL_V4, LINK_LOCAL_V6]).any(|exact| block.is_within(exact))
}

/// The IPv4 address inside of an IPv6 address, in every standard form.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let joined = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match s {
        // Compatible, mapped, translated.
        [0, 0, 0, 0, 0 | 0xffff, 0, high, low] | [0, 0, 0, 0, 0, 0xffff, high, low] => {
            Some(joined(high, low))
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(joined(high, low)),
        [0x2002, high, low, ..] => Some(joined(high, low)),
        // Teredo hides the client's address behind its complement.
        [0x2001, 0, .., high, low] => Some(joined(!high, !low)),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(joined(high, low)),
        _ => None,
    }
}

fn is_nat64(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0x64, 0xff9b, 0, 0, 0, 0, _, _])
}

fn find(table: &[(AddressBlock, &'static str)], address: IpAddr) -> Option<&'static str> {
    table.iter().find(|(block, _)| block.contains(address)).map(|(_, kind)| *kind)
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> AddressBlock {
    AddressBlock { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
}

const fn v6(segments: [u16; 8], prefix: u8) -> AddressBlock {
    let [a, b, c, d, e, f, g, h] = segments;
    AddressBlock { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
}

#[cfg(test)]
#[path = "special_addresses_tests.rs"]
mod tests;
