//! Which headers a model may set.

use http::{HeaderMap, HeaderName, HeaderValue};
use redflow_contract::http_rules::{is_header_name, is_header_value, is_same_header, is_transport_header};
use serde_json::{Map, Value};

/// The most headers that a model may set in one call.
pub(crate) const MAX_HEADERS: usize = 32;

/// The most bytes of the names and values of these headers.
pub(crate) const MAX_HEADER_BYTES: usize = 8 * 1024;

/// Families of headers that a model may not set, by the beginning of their names.
const REFUSED_FAMILIES: [&str; 15] = [
    // Of browsers and proxies.
    "proxy-",
    "sec-",
    // What a proxy says about the client.
    "x-forwarded",
    "x-original-",
    "x-originating-",
    "x-remote-",
    "x-proxyuser-",
    "x-azure-",
    "cf-connecting-",
    "x-rewrite-",
    "x-envoy-",
    // What the metadata services of clouds ask for.
    "metadata",
    "x-aws-ec2-metadata-",
    "x-google-metadata-",
    // Another method than the one that was judged.
    "x-http-method",
];

/// Single headers that a model may not set, for the same reasons.
const REFUSED_NAMES: [&str; 19] = [
    // The trace of the call.
    "traceparent",
    "tracestate",
    "cookie",
    "cookie2",
    "forwarded",
    "via",
    "client-ip",
    "x-client-ip",
    "x-real-ip",
    "x-cluster-client-ip",
    "x-host",
    "true-client-ip",
    "fastly-client-ip",
    "x-method-override",
    "x-identity-header",
    "x-ms-metadata",
    "secret",
    "idempotency-key",
    "http-host",
];

/// Reads the headers that a model wrote. `taken` are those that the node or its credential sets.
///
/// # Errors
/// A sentence for the model that says what to change.
pub(crate) fn read_headers(headers: &Map<String, Value>, taken: &[HeaderName]) -> Result<HeaderMap, String> {
    if headers.len() > MAX_HEADERS {
        return Err(format!("there are {} headers; send at most {MAX_HEADERS}", headers.len()));
    }
    let mut read = HeaderMap::new();
    let mut bytes = 0;
    for (name, value) in headers {
        let shown: String = name.chars().take(64).collect();
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().filter(|_| is_header_name(name));
        let Some(parsed) = parsed else {
            return Err(format!("`{shown}` cannot be the name of a header; use letters, digits and `-`"));
        };
        let is_taken = taken.iter().any(|taken| is_same_header(taken.as_str(), name));
        if is_refused(&parsed.as_str().replace('_', "-")) || is_taken {
            return Err(format!("the header `{shown}` cannot be set here; leave it out"));
        }
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(format!("the value of the header `{shown}` must be a text")),
        };
        bytes += name.len() + value.len();
        if bytes > MAX_HEADER_BYTES {
            return Err(format!("the headers are too long; send at most {MAX_HEADER_BYTES} bytes of them"));
        }
        let legal = HeaderValue::from_str(&value).ok().filter(|_| is_header_value(&value));
        let Some(legal) = legal else {
            return Err(format!(
                "the value of the header `{shown}` must be printable ASCII in one line; encode other characters"
            ));
        };
        if read.keys().any(|earlier: &HeaderName| is_same_header(earlier.as_str(), name)) {
            return Err(format!("the header `{shown}` is set twice; set it once"));
        }
        read.insert(parsed, legal);
    }
    Ok(read)
}

/// Whether a name with `-` for `_` is refused: many servers read both alike.
fn is_refused(name: &str) -> bool {
    is_transport_header(name)
        || REFUSED_NAMES.contains(&name)
        || REFUSED_FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::{MAX_HEADER_BYTES, MAX_HEADERS, read_headers};
    use http::HeaderName;
    use serde_json::{Map, Value, json};

    fn read(headers: &Value) -> Result<Vec<(String, String)>, String> {
        let taken = [HeaderName::from_static("x-api-key"), HeaderName::from_static("x-tenant")];
        let headers = read_headers(headers.as_object().unwrap(), &taken)?;
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        Ok(headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect())
    }

    #[test]
    fn ordinary_headers_are_sent() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = json!({"Accept": "text/html", "X-Count": 5, "X-Dry-Run": true, "Authorization": "x y",
            "Referer": "", "User-Agent": "me", "Content-Type": "text/csv", "X-Secretary": "1"});
        let expected = [
            pair("accept", "text/html"),
            pair("x-count", "5"),
            pair("x-dry-run", "true"),
            pair("authorization", "x y"),
            pair("referer", ""),
            pair("user-agent", "me"),
            pair("content-type", "text/csv"),
            pair("x-secretary", "1"),
        ];
        assert_eq!(read(&headers).unwrap(), expected);
    }

    // SECURITY: tool-headers
    #[test]
    fn refused_headers_say_what_to_change() {
        for name in [
            "Host",
            "Content-Length",
            "Transfer-Encoding",
            "Content-Encoding",
            "Accept-Encoding",
            "Connection",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Expect",
            "Proxy-Authorization",
            "Proxy-Connection",
            "Proxy-Anything",
            "Sec-Fetch-Site",
            "Sec-WebSocket-Key",
            "Cookie",
            "COOKIE2",
            "Forwarded",
            "Via",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X-Real-IP",
            "X-Client-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "CF-Connecting-IPv6",
            "X-Originating-IP",
            "X-Remote-Addr",
            "X-ProxyUser-Ip",
            "X-Azure-ClientIP",
            "X_Forwarded_For",
            "Transfer_Encoding",
            "X-Real_IP",
            "IDEMPOTENCY_KEY",
            "X_Api-Key",
            "x_tenant",
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-Http-Method-Override",
            "X-Method-Override",
            "Metadata",
            "Metadata-Flavor",
            "X-aws-ec2-metadata-token",
            "X-aws-ec2-metadata-token-ttl-seconds",
            "X-Google-Metadata-Request",
            "X-Identity-Header",
            "Secret",
            "Idempotency-Key",
            "X-Api-Key",
            "x-TENANT",
        ] {
            let error = read(&json!({name: "1"})).unwrap_err();
            assert_eq!(error, format!("the header `{name}` cannot be set here; leave it out"));
        }
    }

    // SECURITY: tool-headers
    #[test]
    fn a_header_cannot_begin_another_one() {
        for (headers, part) in [
            (json!({"a b": "1"}), "name of a header"),
            (json!({"": "1"}), "name of a header"),
            (json!({"a\r\nHost": "1"}), "name of a header"),
            (json!({"a:": "1"}), "name of a header"),
            (json!({"ü": "1"}), "name of a header"),
            (json!({"a": "1\r\nHost: x"}), "printable ASCII"),
            (json!({"a": "1\n"}), "printable ASCII"),
            (json!({"a": "\u{0}"}), "printable ASCII"),
            (json!({"a": "ü"}), "printable ASCII"),
            (json!({"a": ["1"]}), "must be a text"),
            (json!({"a": null}), "must be a text"),
            (json!({"Accept": "1", "accept": "2"}), "is set twice"),
            (json!({"X-City": "1", "x_city": "2"}), "is set twice"),
        ] {
            let error = read(&headers).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn headers_are_bounded() {
        let many = |count: usize| -> Value {
            (0..count).map(|n| (format!("x-{n}"), json!("v"))).collect::<Map<_, _>>().into()
        };
        assert!(read(&many(MAX_HEADERS)).is_ok());
        assert!(read(&many(MAX_HEADERS + 1)).unwrap_err().contains("at most 32"));
        assert!(read(&json!({"x": "y".repeat(MAX_HEADER_BYTES - 1)})).is_ok());
        assert!(read(&json!({"x": "y".repeat(MAX_HEADER_BYTES)})).unwrap_err().contains("too long"));
    }
}
