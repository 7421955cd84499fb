//! Rules for the HTTP requests that a node configures: methods, headers and patterns of hosts.

use core::net::{Ipv4Addr, Ipv6Addr};

/// The most bytes of a host name.
const MAX_NAME_BYTES: usize = 253;

/// The most bytes of a label of a host name.
const MAX_LABEL_BYTES: usize = 63;

/// Headers that belong to the connection or to the form of the message. Only the HTTP client sets them.
const TRANSPORT_HEADERS: [&str; 13] = [
    "host",
    "content-length",
    "transfer-encoding",
    "content-encoding",
    "accept-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
    "proxy-connection",
];

/// Whether only the HTTP client may set a header.
#[must_use]
pub fn is_transport_header(name: &str) -> bool {
    TRANSPORT_HEADERS.iter().any(|known| is_same_header(known, name))
}

/// Whether a server may take two names for the same header: many read `_` as `-`.
#[must_use]
pub fn is_same_header(one: &str, other: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    one.bytes().map(plain).eq(other.bytes().map(plain))
}

/// Whether a header's value has `${NAME}` or `$(NAME)`, which would be sent as it is.
#[must_use]
pub fn has_reference(value: &str) -> bool {
    let is_closed = |begin: &str, end: char| {
        let mut rest = value.match_indices(begin).map(|(at, _)| &value[at + begin.len()..]);
        rest.any(|rest| rest.find(end).is_some_and(|length| length > 0))
    };
    is_closed("${", '}') || is_closed("$(", ')')
}

/// Whether a text can be the name of a header.
#[must_use]
pub fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Whether a text can be the value of a header. A line feed would begin another header.
#[must_use]
pub fn is_header_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

/// Why a text is no pattern of hosts. A pattern is `api.example.org`, `*.example.org` for the names below it, an
/// IP address, and any of them with a port.
///
/// # Errors
/// What is wrong.
///
/// ```
/// use redflow_contract::http_rules::check_host_pattern;
///
/// assert!(check_host_pattern("*.example.org:8443").is_ok());
/// assert!(check_host_pattern("https://example.org").is_err());
/// ```
pub fn check_host_pattern(pattern: &str) -> Result<(), &'static str> {
    if pattern.contains(['/', '@', '?', '#', '\\']) {
        return Err("it must be a host without scheme, user or path");
    }
    let (host, port) = split_port(pattern);
    if let Some(port) = port {
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || port.starts_with('0') || port.parse::<u16>().is_err() {
            return Err("its port must be a number from 1 to 65535");
        }
    }
    if let Some(address) = host.strip_prefix('[') {
        let inner = address.strip_suffix(']').unwrap_or_default();
        let is_usual = inner.parse::<Ipv6Addr>().is_ok_and(|address| address.to_string() == inner);
        return is_usual.then_some(()).ok_or("it is no IPv6 address in its usual form, in brackets");
    }
    if host.parse::<Ipv4Addr>().is_ok() {
        return Ok(());
    }
    check_name(host.strip_prefix("*.").unwrap_or(host))
}

fn split_port(pattern: &str) -> (&str, Option<&str>) {
    let after_address = pattern.rfind(']').map_or(0, |end| end + 1);
    match pattern[after_address..].rfind(':') {
        Some(colon) => {
            let colon = after_address + colon;
            (&pattern[..colon], Some(&pattern[colon + 1..]))
        }
        None => (pattern, None),
    }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if !name.is_ascii() {
        return Err("it must be written in ASCII, other alphabets as `xn--`");
    }
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let fits = |label: &str| (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.bytes().all(is_legal);
    if name.len() > MAX_NAME_BYTES || !name.split('.').all(fits) {
        return Err("it must be a host name, with `*.` only at its beginning");
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X") {
        return Err("it is neither a host name nor an IP address in its usual form");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        check_host_pattern, has_reference, is_header_name, is_header_value, is_same_header,
        is_transport_header,
    };

    #[test]
    fn host_patterns() {
        let long = format!("{}.example.org", "a".repeat(63));
        for good in [
            "api.example.org",
            "API.Example.org",
            "*.example.org",
            "nas.lan:8123",
            "nas",
            "localhost:1880",
            "192.168.1.5",
            "192.168.1.5:8123",
            "[::1]",
            "[fd00::5]:8123",
            "xn--bcher-kva.example",
            "my_host.example",
            long.as_str(),
        ] {
            assert_eq!(check_host_pattern(good), Ok(()), "{good}");
        }
        let (label, name) = (format!("{}.org", "a".repeat(64)), "a.".repeat(130) + "org");
        for bad in [
            "",
            "*",
            "*.",
            "a.*.org",
            "*a.org",
            "**.org",
            "https://example.org",
            "example.org/path",
            "user@example.org",
            "example.org.",
            "example..org",
            ".example.org",
            "example.org:",
            "example.org:0",
            "example.org:080",
            "example.org:65536",
            "example.org:http",
            "exa mple.org",
            "bücher.example",
            "127.1",
            "0177.0.0.1",
            "2130706433",
            "example.0x7f",
            "example.0X7F",
            "::1",
            "[::1",
            "[fe80::1%25eth0]",
            "[0:0::1]",
            "[::1]x",
            "%61.example.org",
            label.as_str(),
            name.as_str(),
        ] {
            assert!(check_host_pattern(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers() {
        for (name, legal) in
            [("X-Api-Key", true), ("x_y.z!", true), ("", false), ("a b", false), ("a:", false)]
        {
            assert_eq!(is_header_name(name), legal, "{name}");
        }
        for (value, legal) in [("", true), ("a\tb ~", true), ("a\nb", false), ("a\r", false), ("ü", false)] {
            assert_eq!(is_header_value(value), legal, "{value:?}");
        }
        assert!(is_transport_header("Transfer-Encoding") && !is_transport_header("Accept"));
        assert!(is_transport_header("transfer_encoding"));
        assert!(is_same_header("X_Api-Key", "x-api_key") && !is_same_header("x-a", "x-ab"));
        for value in ["${A}", "Bearer ${A}", "${} ${A}", "$(B)", "${A"] {
            assert_eq!(has_reference(value), value != "${A", "{value}");
        }
        assert!(!has_reference("$5 ${} (a)"));
    }
}
