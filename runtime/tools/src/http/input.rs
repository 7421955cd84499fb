//! Reads the input of a call: address, method, headers and body.

use super::headers::read_headers;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use redflow_contract::Message;
use redflow_contract::manifest::HttpMethod;
use redflow_contract::node::EffectClass;
use serde_json::{Map, Value};

/// The most bytes of a request's body.
const MAX_REQUEST_BODY_BYTES: usize = 1024 * 1024;

/// A request as the model wants it.
pub(crate) struct HttpInput {
    pub(crate) url: String,
    pub(crate) method: HttpMethod,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Reads the input of a call. `taken` are the headers that the model cannot set.
///
/// # Errors
/// A sentence for the model that says what to change.
pub(crate) fn read_input(
    input: &Message,
    methods: &[HttpMethod],
    taken: &[HeaderName],
) -> Result<HttpInput, String> {
    let Some(method) = method_of(input).filter(|method| methods.contains(method)) else {
        let allowed: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
        return Err(format!("this tool allows other methods; use {}", allowed.join(", ")));
    };
    let Some(url) = input.get("url").and_then(Value::as_str) else {
        return Err("`url` is missing; give the whole address, such as https://example.org/path".to_owned());
    };
    let empty = Map::new();
    let headers = match input.get("headers") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(headers)) => headers,
        Some(_) => return Err("`headers` must be an object of names and texts".to_owned()),
    };
    let mut headers = read_headers(headers, taken)?;
    let body = read_body(input.get("body"), method, &mut headers)?;
    Ok(HttpInput { url: url.to_owned(), method, headers, body })
}

/// The method of a call; none if the tool does not know it.
fn method_of(input: &Message) -> Option<HttpMethod> {
    HttpMethod::parse(input.get("method").and_then(Value::as_str)?)
}

/// What a call does, by its method.
pub(crate) fn effect_of(input: &Message) -> EffectClass {
    method_of(input).map_or(EffectClass::AtMostOnce, HttpMethod::effect)
}

/// The method as the HTTP client has it.
pub(crate) fn client_method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Delete => Method::DELETE,
    }
}

/// The bytes of a body. A text goes as it is, all else as JSON.
fn read_body(body: Option<&Value>, method: HttpMethod, headers: &mut HeaderMap) -> Result<Bytes, String> {
    let Some(body) = body.filter(|body| !is_empty(body, method)) else { return Ok(Bytes::new()) };
    if method == HttpMethod::Get {
        return Err("a GET request has no body; leave `body` out, or use another method".to_owned());
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let (bytes, usual_type) = match body {
        Value::String(text) => (Bytes::from(text.clone()), "text/plain; charset=utf-8"),
        _ if content_type.is_some_and(|content_type| !is_json_type(content_type)) => {
            return Err(
                "`body` is sent as JSON, but `content-type` says otherwise; write the body as a text"
                    .to_owned(),
            );
        }
        other => (Bytes::from(other.to_string()), "application/json"),
    };
    if bytes.len() > MAX_REQUEST_BODY_BYTES {
        return Err(format!("`body` is too long; send at most {MAX_REQUEST_BODY_BYTES} bytes"));
    }
    headers.entry(CONTENT_TYPE).or_insert_with(|| HeaderValue::from_static(usual_type));
    Ok(bytes)
}

/// Models write an empty body for requests without one.
fn is_empty(body: &Value, method: HttpMethod) -> bool {
    match body {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        // An API may ask for an object without properties.
        Value::Object(map) => map.is_empty() && matches!(method, HttpMethod::Get | HttpMethod::Delete),
        _ => false,
    }
}

/// Whether a `content-type` announces JSON.
pub(crate) fn is_json_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(essence.as_str(), "application/json" | "text/json") || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::{MAX_REQUEST_BODY_BYTES, effect_of, read_input};
    use http::header::CONTENT_TYPE;
    use redflow_contract::manifest::HttpMethod;
    use redflow_contract::node::EffectClass;
    use serde_json::{Value, json};

    /// The content type and the body, or the problem.
    fn read(input: &Value) -> Result<(Option<String>, String), String> {
        let input = read_input(
            input.as_object().unwrap(),
            &[HttpMethod::Get, HttpMethod::Post, HttpMethod::Delete],
            &[],
        )?;
        let content_type = input.headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap().to_owned());
        Ok((content_type, String::from_utf8(input.body.to_vec()).unwrap()))
    }

    #[test]
    fn a_text_goes_as_it_is_and_all_else_as_json() {
        let (text, json) = (Some("text/plain; charset=utf-8"), Some("application/json"));
        for (method, body, headers, content_type, bytes) in [
            ("POST", json!("a=1&b=ü"), json!({}), text, "a=1&b=ü"),
            ("POST", json!("<a/>"), json!({"Content-Type": "text/xml"}), Some("text/xml"), "<a/>"),
            ("POST", json!({"a": [1, null]}), json!({}), json, r#"{"a":[1,null]}"#),
            (
                "POST",
                json!([1]),
                json!({"content-type": "application/x+json"}),
                Some("application/x+json"),
                "[1]",
            ),
            ("POST", json!(5), json!({}), json, "5"),
            ("POST", json!(false), json!(null), json, "false"),
            ("POST", json!([]), json!({}), json, "[]"),
            ("POST", json!({}), json!({}), json, "{}"),
            ("DELETE", json!({}), json!({}), None, ""),
            ("POST", json!(null), json!({}), None, ""),
            ("GET", json!(""), json!({}), None, ""),
            ("GET", json!({}), json!({}), None, ""),
            ("DELETE", json!("x"), json!({}), text, "x"),
        ] {
            let input =
                json!({"url": "https://example.org", "method": method, "body": body, "headers": headers});
            let expected = (content_type.map(str::to_owned), bytes.to_owned());
            assert_eq!(read(&input), Ok(expected), "{input}");
        }
    }

    #[test]
    fn problems_say_what_to_change() {
        let long = "x".repeat(MAX_REQUEST_BODY_BYTES + 1);
        for (input, part) in [
            (json!({"url": "u", "method": "PUT"}), "use GET, POST, DELETE"),
            (json!({"url": "u"}), "use GET, POST, DELETE"),
            (json!({"method": "GET"}), "`url` is missing"),
            (json!({"url": "u", "method": "GET", "body": {"a": 1}}), "leave `body` out"),
            (json!({"url": "u", "method": "GET", "headers": ["a"]}), "must be an object"),
            (json!({"url": "u", "method": "GET", "headers": {"Host": "a"}}), "leave it out"),
            (
                json!({"url": "u", "method": "POST", "headers": {"Content-Type": "text/csv"}, "body": {"a": 1}}),
                "write the body as a text",
            ),
            (json!({"url": "u", "method": "POST", "body": long}), "too long"),
        ] {
            let error = read(&input).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_call_has_the_effect_of_its_method() {
        for (method, effect) in [
            ("GET", EffectClass::Read),
            ("PUT", EffectClass::Idempotent),
            ("DELETE", EffectClass::Idempotent),
            ("POST", EffectClass::AtMostOnce),
            ("PATCH", EffectClass::AtMostOnce),
        ] {
            assert_eq!(effect_of(json!({"method": method}).as_object().unwrap()), effect, "{method}");
        }
    }
}
