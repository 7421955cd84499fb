//! Which version of an entry a request expects: `If-Match` and `If-None-Match`.

use crate::request::invalid;
use crate::response::Problem;
use axum::http::{HeaderMap, header};

/// Which version a request expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// Any, or none.
    None,
    /// There is no such entry.
    Absent,
    /// There is such an entry.
    Present,
    /// This version.
    Version(u32),
}

impl Condition {
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, Problem> {
        let wrong_match = || invalid("`If-Match` must be one version in quotes, such as \"3\", or `*`.");
        let wrong_none = || invalid("`If-None-Match` must be `*`.");
        let value = |name: header::HeaderName, wrong: &dyn Fn() -> Problem| {
            let mut values = headers.get_all(name).iter();
            let first = values.next().map(|value| value.to_str().map_err(|_| wrong())).transpose()?;
            if values.next().is_some() { Err(wrong()) } else { Ok(first.map(str::trim)) }
        };
        let expected = value(header::IF_MATCH, &wrong_match)?;
        let absent = value(header::IF_NONE_MATCH, &wrong_none)?;
        match (expected, absent) {
            (None, None) => Ok(Self::None),
            (None, Some("*")) => Ok(Self::Absent),
            (None, Some(_)) => Err(wrong_none()),
            (Some("*"), None) => Ok(Self::Present),
            (Some(tag), None) => parse_tag(tag).map(Self::Version).ok_or_else(wrong_match),
            (Some(_), Some(_)) => Err(invalid("Only one of `If-Match` and `If-None-Match` can be given.")),
        }
    }
}

/// The version of a tag. A weak tag is none, because it may stand for another version.
fn parse_tag(tag: &str) -> Option<u32> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|version| is_plain && *version > 0)
}

#[cfg(test)]
mod tests {
    use super::Condition;
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    fn read(pairs: &[(&'static str, &str)]) -> Option<Condition> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        Condition::from_headers(&headers).ok()
    }

    #[test]
    fn a_condition_is_one_version_or_a_star() {
        let tag = |tag| read(&[("if-match", tag)]);
        assert_eq!(read(&[]), Some(Condition::None));
        assert_eq!(tag("\"3\""), Some(Condition::Version(3)));
        assert_eq!(tag(" * "), Some(Condition::Present));
        assert_eq!(read(&[("if-none-match", "*")]), Some(Condition::Absent));
        for wrong in ["3", "W/\"3\"", "\"3\", \"4\"", "\"0\"", "\"+3\"", "\"\"", "", "\"4294967296\"", "\""] {
            assert_eq!(tag(wrong), None, "{wrong}");
        }
        assert_eq!(read(&[("if-none-match", "\"3\"")]), None);
        assert_eq!(read(&[("if-match", "\"3\""), ("if-match", "\"3\"")]), None);
        assert_eq!(read(&[("if-match", "*"), ("if-none-match", "*")]), None);
    }
}
