//! Checks addresses with placeholders. Their host is fixed, so that a model cannot choose where a key goes.

/// The longest address, in bytes.
const MAX_ADDRESS_BYTES: usize = 2048;

/// What belongs in a place, and what is there. Neither repeats the text, which may have a password.
type Mismatch = (&'static str, &'static str);

/// Checks the address of a tool.
pub(super) fn check_address(url: &str) -> Result<(), Mismatch> {
    if url.len() > MAX_ADDRESS_BYTES || !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return Err(("at most 2048 printable ASCII characters without spaces and `\\`", "another text"));
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.ok_or(("an address that begins with `https://` or `http://`", "another beginning"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains(['{', '}']) {
        return Err(("a host without placeholders, and `/` after it", "a placeholder in the host"));
    }
    if authority.contains('@') {
        return Err(("an address without a user name and a password; use `credential`", "a user name"));
    }
    if !is_authority(authority) {
        return Err(("a host such as `api.example.org`, and perhaps a port", "another text"));
    }
    check_template(url).map_err(|found| ("only placeholders such as `{{input.city}}`", found))
}

fn is_authority(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => {
            // The guard of outgoing requests reads the address itself.
            let is_address =
                host.contains(':') && host.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
            (if is_address { "ipv6" } else { "" }, port)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// Checks the placeholders of a text. Says what is wrong with the first bad one.
pub(super) fn check_template(text: &str) -> Result<(), &'static str> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("{{") {
        let (inner, behind) = after.split_once("}}").ok_or("`{{` without `}}`")?;
        let path = inner.trim().strip_prefix("input.").ok_or("another placeholder")?;
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        };
        if !path.split('.').all(is_name) {
            return Err("another placeholder");
        }
        rest = behind;
    }
    Ok(())
}
