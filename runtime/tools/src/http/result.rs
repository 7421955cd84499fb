//! The result of a call: `{status, headers, body}`.

use super::exchange::Answer;
use http::header::{CONTENT_TYPE, HeaderName, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use redflow_contract::scrub::Scrubber;
use serde_json::{Map, Value};

/// The most bytes of headers in a result. Later ones are left out.
const MAX_RESULT_HEADER_BYTES: usize = 32 * 1024;

/// Makes the output of a call that was answered.
pub(crate) fn output(answer: Answer, scrubber: &Scrubber) -> Value {
    let Answer { status, headers, body } = answer;
    let content_type = content_type_of(&headers);
    let mut output = Map::new();
    output.insert("status".to_owned(), Value::from(status.as_u16()));
    output.insert("headers".to_owned(), Value::Object(show_headers(&headers)));
    output.extend(body.show(content_type.as_deref(), scrubber));
    Value::Object(output)
}

/// The type of an answer's body; none if the server does not say.
pub(crate) fn content_type_of(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).map(text_of)
}

/// Headers by name. Values of one name are joined with commas. Cookies are left out, because they can be sessions.
fn show_headers(headers: &HeaderMap) -> Map<String, Value> {
    let mut shown = Map::new();
    let mut bytes = 0;
    for name in headers.keys().filter(|name| !is_cookie(name)) {
        let values: Vec<String> = headers.get_all(name).iter().map(text_of).collect();
        let value = Value::from(values.join(", "));
        bytes += name.as_str().len() + value.to_string().len();
        if bytes > MAX_RESULT_HEADER_BYTES {
            break;
        }
        shown.insert(name.to_string(), value);
    }
    shown
}

fn is_cookie(name: &HeaderName) -> bool {
    name == SET_COOKIE || name == "set-cookie2"
}

/// The text of a value: UTF-8, else Latin-1.
fn text_of(value: &HeaderValue) -> String {
    let bytes = value.as_bytes();
    std::str::from_utf8(bytes).map_or_else(|_| bytes.iter().copied().map(char::from).collect(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{MAX_RESULT_HEADER_BYTES, output};
    use crate::http::body::KeptBody;
    use crate::http::exchange::Answer;
    use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
    use redflow_contract::scrub::Scrubber;
    use serde_json::{Value, json};

    fn headers(rows: &[(&'static str, &[u8])]) -> HeaderMap {
        let row = |(name, value): &(&'static str, &[u8])| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap())
        };
        rows.iter().map(row).collect()
    }

    fn output_of(rows: &[(&'static str, &[u8])]) -> Value {
        let (status, headers, body) = (StatusCode::IM_A_TEAPOT, headers(rows), KeptBody::new(10));
        output(Answer { status, headers, body }, &Scrubber::default())
    }

    #[test]
    fn shows_status_and_headers_without_cookies() {
        let rows: [(&'static str, &[u8]); 6] = [
            ("x-a", b"1"),
            ("set-cookie", b"session=1"),
            ("set-cookie2", b"session=2"),
            ("x-a", b"2"),
            ("x-latin", b"gr\xfcn"),
            ("x-utf8", "grün".as_bytes()),
        ];
        let expected = json!({"status": 418, "headers": {"x-a": "1, 2", "x-latin": "grün", "x-utf8": "grün"}, "body": ""});
        assert_eq!(output_of(&rows), expected);
    }

    #[test]
    fn headers_are_bounded() {
        let long = vec![b'x'; MAX_RESULT_HEADER_BYTES];
        let shown = output_of(&[("x-a", b"1"), ("x-long", &long), ("x-b", b"2")]);
        assert_eq!(shown["headers"], json!({"x-a": "1"}));
    }
}
