//! Checks addresses with placeholders. Their host is fixed, so that a model cannot choose where a key goes.

use redflow_contract::http_rules::check_host_pattern;
use redflow_contract::secret::is_secret_parameter;
use redflow_contract::template::TextTemplate;

/// The longest address, in bytes.
const MAX_ADDRESS_BYTES: usize = 2048;

/// What belongs in a place, and what is there. Neither repeats the text, which may have a password.
type Mismatch = (&'static str, String);

/// What an address belongs to. It decides where a key belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressOwner {
    Tool,
    Server,
}

/// Checks the address of a tool or of an MCP server.
pub(super) fn check_address(url: &str, owner: AddressOwner) -> Result<(), Mismatch> {
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
        let expected = match owner {
            AddressOwner::Tool => "an address without a user name and a password; use `credential`",
            AddressOwner::Server => "an address without a user name and a password; use `auth`",
        };
        return mismatch(expected, "a user name");
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
    if query.split('&').any(has_key) {
        let expected = match owner {
            AddressOwner::Tool => "a query without a key; use `credential`",
            AddressOwner::Server => "a query without a key; use `auth`",
        };
        return mismatch(expected, "a fixed value of a secret parameter");
    }
    check_template(url)
}

/// Whether a pair of the query gives a secret parameter a value that is not just a placeholder.
fn has_key(pair: &str) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let is_given = |value: &str| TextTemplate::parse(value).is_ok_and(|value| value.single().is_some());
    is_secret_parameter(&decode(name)) && !value.is_empty() && !is_given(value)
}

/// A name of the query as a server reads it.
fn decode(name: &str) -> String {
    let mut decoded = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        decoded.push_str(before);
        let code = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(code.map_or('%', char::from));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    decoded + rest
}

fn mismatch(expected: &'static str, found: &str) -> Result<(), Mismatch> {
    Err((expected, found.to_owned()))
}

/// Checks the placeholders of a text.
pub(super) fn check_template(text: &str) -> Result<(), Mismatch> {
    let parsed = TextTemplate::parse(text).map(drop);
    parsed.map_err(|problem| ("only placeholders such as `{{input.city}}`", problem))
}
