use super::{AddressBlock, special_address};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that must be refused: in every block of the registries, at both ends, and in every standard form.
const SPECIAL: &str = include_str!("../tests/corpus/special-addresses.txt");

/// Addresses of the public internet next to special blocks.
const PUBLIC: &str = include_str!("../tests/corpus/public-addresses.txt");

fn addresses(text: &str) -> impl Iterator<Item = IpAddr> + '_ {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(|line| line.parse().unwrap_or_else(|_| panic!("{line}")))
}

// SECURITY: egress-address
#[test]
fn every_special_address_is_found() {
    for address in addresses(SPECIAL) {
        assert!(special_address(address).is_some(), "{address}");
    }
}

#[test]
fn public_addresses_are_not_special() {
    for address in addresses(PUBLIC) {
        assert_eq!(special_address(address), None, "{address}");
    }
}

#[test]
fn link_local_and_platform_endpoints_can_only_be_named_exactly() {
    for address in [
        "169.254.169.254",
        "fe80::1",
        "168.63.129.16",
        "100.100.100.200",
        "192.80.8.124",
        "fd00:c1::a9fe:a9fe",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:a9fe:a9fe::1",
    ] {
        assert!(special_address(address.parse().unwrap()).unwrap().exact_only, "{address}");
    }
    for address in ["64:ff9b::a9fe:a9fe", "::ffff:169.254.169.254", "2002:a9fe:a9fe::"] {
        assert!(special_address(address.parse().unwrap()).unwrap().exact_only, "{address}");
    }
    for address in ["127.0.0.1", "192.168.1.1", "::1", "fd12::1", "64:ff9b::a00:1"] {
        assert!(!special_address(address.parse().unwrap()).unwrap().exact_only, "{address}");
    }
}

#[test]
fn a_block_has_no_bits_behind_its_prefix() {
    let block = |text: &str, prefix| AddressBlock::new(text.parse().unwrap(), prefix);
    assert!(block("192.168.0.0", 16).is_some());
    assert!(block("192.168.0.1", 16).is_none());
    assert!(block("10.0.0.0", 33).is_none());
    assert!(block("fd00::", 8).is_some());
    assert!(block("fd00::", 129).is_none());
    assert!(block("0.0.0.0", 0).unwrap().contains("255.1.2.3".parse().unwrap()));
    assert!(block("::", 0).unwrap().contains("ffff::".parse().unwrap()));
    assert!(!block("0.0.0.0", 0).unwrap().contains("::".parse().unwrap()));
}

/// The registries as predicates, written in another way than the table.
fn is_special_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (b == 18 || b == 19))
        || matches!((a, b, c), (192, 0, 0) | (192, 31, 196) | (192, 52, 193) | (192, 88, 99) | (192, 175, 48))
        || (a, b, c, d) == (168, 63, 129, 16)
        || (a, b) == (161, 26)
        || (a == 166 && (8..12).contains(&b))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn the_ipv4_table_equals_its_predicates(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        prop_assert_eq!(special_address(address.into()).is_some(), is_special_v4(address));
    }

    #[test]
    fn near_special_ipv4_the_table_equals_its_predicates(
        high in prop::sample::select(vec![0_u8, 10, 100, 127, 161, 166, 168, 169, 172, 192, 198, 203, 223, 224, 239, 240, 255]),
        rest: [u8; 3],
    ) {
        let address = Ipv4Addr::new(high, rest[0], rest[1], rest[2]);
        prop_assert_eq!(special_address(address.into()).is_some(), is_special_v4(address));
    }

    /// No form of IPv6 leads to a special IPv4 address.
    // SECURITY: egress-address
    #[test]
    fn special_ipv4_is_special_in_every_form(bits: u32) {
        let inner = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = inner.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
        prop_assert_eq!(special_address(nat64.into()).is_some(), is_special_v4(inner));
        let isatap = Ipv6Addr::new(0x2a00, 1, 2, 3, 0, 0x5efe, high, low);
        prop_assert_eq!(special_address(isatap.into()).is_some(), is_special_v4(inner));
        for tunnel in [
            inner.to_ipv6_mapped(),
            inner.to_ipv6_compatible(),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, 1, 2, 3, 4, !high, !low),
        ] {
            prop_assert!(special_address(tunnel.into()).is_some(), "{}", tunnel);
        }
    }

    #[test]
    fn only_global_unicast_is_public(segments: [u16; 8]) {
        let address = Ipv6Addr::from(segments);
        if special_address(address.into()).is_none() {
            let is_nat64 = segments[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
            prop_assert!(segments[0] & 0xe000 == 0x2000 || is_nat64, "{}", address);
        }
    }
}
