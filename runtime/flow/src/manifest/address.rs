//! Checks addresses with placeholders. Their host is fixed, so that a model cannot choose where a key goes.

use redflow_contract::http_rules::check_host_pattern;
use redflow_contract::template::TextTemplate;

/// The longest address, in bytes.
const MAX_ADDRESS_BYTES: usize = 2048;

/// What belongs in a place, and what is there. Neither repeats the text, which may have a password.
type Mismatch = (&'static str, String);

/// Checks the address of a tool.
pub(super) fn check_address(url: &str) -> Result<(), Mismatch> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'#');
    if url.len() > MAX_ADDRESS_BYTES || !url.bytes().all(is_plain) {
        return mismatch(
            "at most 2048 printable ASCII characters without spaces, `\\` and `#`",
            "another text",
        );
    }
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return mismatch("an address that begins with `https://` or `http://`", "another beginning");
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.contains(['{', '}', '*']) {
        return mismatch("a fixed host, and `/` after it", "a placeholder in the host");
    }
    if authority.contains('@') {
        return mismatch("an address without a user name and a password; use `credential`", "a user name");
    }
    if let Err(problem) = check_host_pattern(authority) {
        return mismatch("a host such as `api.example.org`, and perhaps a port", problem);
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if path
        .split('/')
        .any(|segment| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."))
    {
        return mismatch("a path without the segments `.` and `..`", "one of them");
    }
    if query.split('&').any(|pair| pair.split('=').next().is_some_and(|name| name.contains("{{"))) {
        return mismatch("placeholders only as values of the query", "a placeholder as a name");
    }
    check_template(url)
}

fn mismatch(expected: &'static str, found: &str) -> Result<(), Mismatch> {
    Err((expected, found.to_owned()))
}

/// Checks the placeholders of a text.
pub(super) fn check_template(text: &str) -> Result<(), Mismatch> {
    let parsed = TextTemplate::parse(text).map(drop);
    parsed.map_err(|problem| ("only placeholders such as `{{input.city}}`", problem))
}
