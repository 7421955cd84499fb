//! The table behind the rule `name`: names that mean something inside of a network.
//!
//! Sources: the IANA registry of Special-Use Domain Names (RFC 6761, 6762, 7686, 8375, 9476), RFC 2606, ICANN's
//! reservation of `internal`, the names that home routers, container systems and directories use, and the pages of
//! cloud vendors about their metadata service.

/// Suffixes of whole labels. A name that is or ends with one of them is refused.
const LOCAL_SUFFIXES: &[&str] = &[
    // Special-use and reserved names.
    "alt",
    "arpa",
    "example",
    "invalid",
    "local",
    "localhost",
    "onion",
    "test",
    "internal",
    // Habits of routers, companies and containers.
    "consul",
    "corp",
    "domain",
    "home",
    "intern",
    "intra",
    "intranet",
    "lan",
    "localdomain",
    "localdomain4",
    "localdomain6",
    "localnet",
    "mail",
    "private",
    "svc",
    "workgroup",
    // Public names of metadata services.
    "metadata.goog",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
];

/// The local or reserved suffix of a name in lower case.
pub(crate) fn local_suffix(name: &str) -> Option<&'static str> {
    let is_suffix = |suffix: &&&str| {
        name.strip_suffix(**suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    LOCAL_SUFFIXES.iter().find(is_suffix).copied()
}

#[cfg(test)]
mod tests {
    use super::local_suffix;

    #[test]
    fn finds_local_suffixes_at_label_borders() {
        for name in [
            "a.local",
            "x.y.localhost",
            "nas.lan",
            "1.0.0.127.in-addr.arpa",
            "metadata.google.internal",
            "db.prod.svc",
        ] {
            assert!(local_suffix(name).is_some(), "{name}");
        }
        for name in ["a.locale.org", "alan.org", "lan.example.org", "xinternal.com", "example.com", "goog"] {
            assert_eq!(local_suffix(name), None, "{name}");
        }
    }
}
