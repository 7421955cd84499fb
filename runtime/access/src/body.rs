//! Checks that a request body is declared as plain JSON, or as plain bytes.

use crate::printable_excerpt;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::route::BYTES_BODY;

/// Accepts `Content-Type: application/json`, at most with `charset=utf-8`, and no compression. Call it for
/// every request with a body: pages of other sites cannot send this type without a CORS preflight, and a
/// small compressed body could become a large one.
///
/// # Errors
/// `CONTENT_TYPE_REFUSED`.
pub fn json_only(headers: &HeaderMap) -> Result<(), ApiError> {
    only(headers, is_json, "send JSON with `Content-Type: application/json`, not compressed")
}

/// Accepts `Content-Type: application/octet-stream`, and no compression. Pages of other sites cannot send this type
/// without a CORS preflight either.
///
/// # Errors
/// `CONTENT_TYPE_REFUSED`.
pub fn bytes_only(headers: &HeaderMap) -> Result<(), ApiError> {
    let is_bytes = |text: &str| text.trim().eq_ignore_ascii_case(BYTES_BODY);
    only(headers, is_bytes, "send the bytes with `Content-Type: application/octet-stream`, not compressed")
}

fn only(headers: &HeaderMap, is_accepted: impl Fn(&str) -> bool, remedy: &str) -> Result<(), ApiError> {
    let refused =
        |problem: String| Err(ApiError::new(ApiCode::ContentTypeRefused, format!("{problem}: {remedy}.")));
    for coding in headers.get_all(CONTENT_ENCODING) {
        if !coding.as_bytes().eq_ignore_ascii_case(b"identity") {
            return refused(format!("The body is encoded as `{}`", printable_excerpt(coding.as_bytes())));
        }
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    match (types.next(), types.next()) {
        (None, _) => refused("The body has no type".to_owned()),
        (Some(_), Some(_)) => refused("The body has several types".to_owned()),
        (Some(one), None) if one.to_str().is_ok_and(is_accepted) => Ok(()),
        (Some(one), None) => refused(format!("The body is of type `{}`", printable_excerpt(one.as_bytes()))),
    }
}

fn is_json(text: &str) -> bool {
    let mut parts = text.split(';').map(str::trim);
    parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/json")) && parts.all(is_utf8)
}

fn is_utf8(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, value)| {
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        name.eq_ignore_ascii_case("charset") && value.eq_ignore_ascii_case("utf-8")
    })
}

#[cfg(test)]
mod tests {
    use super::{bytes_only, json_only};
    use http::{HeaderMap, HeaderName, HeaderValue};
    use redflow_contract::api::ProblemCode;
    use redflow_contract::code::ApiCode;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    // SECURITY: json-only
    #[test]
    fn accepts_json_and_nothing_else() {
        let good = [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "application/json ; charset=\"utf-8\"",
        ];
        for one in good {
            assert_eq!(json_only(&headers(&[("content-type", one)])), Ok(()), "{one}");
        }
        let identity = [("content-type", "application/json"), ("content-encoding", "Identity")];
        assert_eq!(json_only(&headers(&identity)), Ok(()));

        let bad: &[&[(&str, &str)]] = &[
            &[],
            &[("content-type", "")],
            &[("content-type", "text/plain")],
            &[("content-type", "application/jsonp")],
            &[("content-type", "application/json, text/plain")],
            &[("content-type", "application/json; charset=utf-16")],
            &[("content-type", "application/json; boundary=x")],
            &[("content-type", "application/json;")],
            &[("content-type", "application/json; charset")],
            &[("content-type", "application/x-www-form-urlencoded")],
            &[("content-type", "application/json"), ("content-type", "application/json")],
            &[("content-type", "application/json"), ("content-encoding", "gzip")],
            &[("content-type", "application/json"), ("content-encoding", "identity, gzip")],
            &[("content-type", "application/json"), ("content-encoding", "")],
        ];
        for pairs in bad {
            let error = json_only(&headers(pairs)).unwrap_err();
            assert_eq!(error.code, ProblemCode::Api(ApiCode::ContentTypeRefused), "{pairs:?}");
        }
    }

    #[test]
    fn accepts_bytes_and_nothing_else() {
        for one in ["application/octet-stream", "Application/Octet-Stream"] {
            assert_eq!(bytes_only(&headers(&[("content-type", one)])), Ok(()), "{one}");
        }
        let bad: &[&[(&str, &str)]] = &[
            &[],
            &[("content-type", "text/plain")],
            &[("content-type", "application/json")],
            &[("content-type", "multipart/form-data; boundary=x")],
            &[("content-type", "application/octet-stream"), ("content-type", "text/plain")],
            &[("content-type", "application/octet-stream"), ("content-encoding", "gzip")],
        ];
        for pairs in bad {
            let error = bytes_only(&headers(pairs)).unwrap_err();
            assert_eq!(error.code, ProblemCode::Api(ApiCode::ContentTypeRefused), "{pairs:?}");
        }
    }
}
