//! The address of the program at the other end of a connection.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// The address of a client, or of the proxy before it. The listener adds it to each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

impl PeerAddress {
    /// The network that counts as one peer. For IPv6 it has 64 bits, because one machine can use all its addresses.
    pub(crate) fn network(self) -> Arc<str> {
        let network = match self.0.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        };
        network.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::PeerAddress;

    // SECURITY: sign-in-rate
    #[test]
    fn one_machine_is_one_peer() {
        for (address, network) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::ffff", "2001:db8:1:2::"),
            ("2001:db8:1:3::ffff", "2001:db8:1:3::"),
            ("::1", "::"),
        ] {
            assert_eq!(&*PeerAddress(address.parse().unwrap()).network(), network, "{address}");
        }
    }
}
