use super::RequestTemplate;
use http::header::CONTENT_TYPE;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use redflow_contract::manifest::ManifestTool;
use serde_json::{Value, json};

fn tool(more: &Value) -> ManifestTool {
    let mut tool = json!({"id": "weather.current", "kind": "http", "description": "d", "inputSchema": {"type": "object"},
        "url": "https://api.shop.com/v1/{{input.city}}?units={{input.units}}&lang=en"});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(tool).unwrap()
}

fn template(more: &Value) -> RequestTemplate {
    RequestTemplate::read(&tool(more)).unwrap()
}

fn url(template: &RequestTemplate, input: &Value) -> Result<String, String> {
    template.fill(input.as_object().unwrap()).map(|request| request.url)
}

#[test]
fn values_stand_in_their_segment_or_pair() {
    let template = template(&json!({}));
    assert_eq!(template.host, "api.shop.com:443");
    for (input, expected) in [
        (json!({"city": "Oslo", "units": "C"}), "https://api.shop.com/v1/Oslo?units=C&lang=en"),
        (
            json!({"city": "São/Paulo?x=1#y", "units": "a&b=c d"}),
            "https://api.shop.com/v1/S%C3%A3o%2FPaulo%3Fx%3D1%23y?units=a%26b%3Dc%20d&lang=en",
        ),
        (json!({"city": 5, "units": true}), "https://api.shop.com/v1/5?units=true&lang=en"),
        (
            json!({"city": "@evil.com:80\\", "units": ""}),
            "https://api.shop.com/v1/%40evil.com%3A80%5C?units=&lang=en",
        ),
        // A pair whose value is missing is left out.
        (json!({"city": "Oslo"}), "https://api.shop.com/v1/Oslo?lang=en"),
        (json!({"city": "Oslo", "units": null}), "https://api.shop.com/v1/Oslo?lang=en"),
        (json!({"city": "...", "units": "x"}), "https://api.shop.com/v1/...?units=x&lang=en"),
        (json!({"city": "%2e%2e"}), "https://api.shop.com/v1/%252e%252e?lang=en"),
    ] {
        assert_eq!(url(&template, &input).as_deref(), Ok(expected));
    }
    for (input, problem) in [
        (json!({}), "the input has no `city`"),
        (json!({"city": ""}), "a value in the path is empty; give one"),
        (json!({"city": "."}), "a value would become `.` or `..` in the path; use another"),
        (json!({"city": ".."}), "a value would become `.` or `..` in the path; use another"),
    ] {
        assert_eq!(url(&template, &input), Err(problem.to_owned()));
    }
    let joined = self::template(&json!({"url": "http://nas.lan:8123/.{{input.a}}{{input.b}}"}));
    assert_eq!(joined.host, "nas.lan:8123");
    assert!(url(&joined, &json!({"a": ".", "b": "x"})).is_ok());
    assert!(
        url(&self::template(&json!({"url": "https://h.com/%2e{{input.a}}"})), &json!({"a": "."})).is_err()
    );
    assert_eq!(
        url(&self::template(&json!({"url": "https://h.com"})), &json!({})).as_deref(),
        Ok("https://h.com/")
    );
}

#[test]
fn bodies_and_headers_are_filled() {
    let filled = |more: &Value, input: &Value| template(more).fill(input.as_object().unwrap());
    let input = json!({"city": "Oslo", "n": 5, "list": [1]});
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for (more, body) in [
        (json!({}), ""),
        (json!({"method": "DELETE"}), ""),
        (json!({"method": "POST"}), r#"{"city":"Oslo","n":5,"list":[1]}"#),
        (
            json!({"method": "PUT", "body": {"q": "in {{input.city}}", "n": "{{input.n}}", "x": "{{input.x}}"}}),
            r#"{"q":"in Oslo","n":5}"#,
        ),
        (json!({"method": "POST", "body": "{{input.list}}"}), "[1]"),
        (json!({"method": "POST", "body": "{{input.city}}"}), r#""Oslo""#),
    ] {
        let request = filled(&more, &input).unwrap();
        assert_eq!(text(&request.body), body);
        let content_type = request.headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap());
        assert_eq!(content_type, (!body.is_empty()).then_some("application/json"));
    }
    let headers = json!({"headers": {"X-City": "c={{input.city}}", "X-Maybe": "{{input.x}}"}});
    let request = filled(&headers, &input).unwrap();
    assert_eq!(request.headers.get("x-city").unwrap(), "c=Oslo");
    assert!(request.headers.get("x-maybe").is_none());
    let split = filled(&headers, &json!({"city": "a\r\nHost: evil.com"}));
    assert_eq!(split.unwrap_err(), "the value for the header `x-city` must be printable ASCII in one line");
}

#[test]
fn all_problems_are_reported_at_once() {
    let wrong = json!({"url": "https://{{input.host}}/", "headers": {"Host": "x", "A": "{{x}}"}, "body": ["{{input"]});
    assert_eq!(RequestTemplate::read(&tool(&wrong)).unwrap_err().len(), 4);
    for bad in [
        "ftp://h.com/",
        "h.com",
        "https://",
        "https:///x",
        "https://user@h.com/",
        "https://h.com:0/",
        "https://*.h.com/",
        "https://h{{input.x}}.com/",
        "https://h.com:{{input.x}}/",
        "https://h.com{{input.x}}/",
        "https://h.com/a b",
        "https://h.com/#{{input.x}}",
        "https://h.com\\@evil.com/",
        "https://h.com/a/../b",
        "https://h.com/%2E%2e/b",
        "https://h.com/?{{input.x}}=1",
        "https://h.com/?{{input.x}}",
        "https://h.com/{{input.x",
        "https://h.com/{{x}}",
        "https://bücher.com/",
        "https://127.1/",
    ] {
        assert!(RequestTemplate::read(&tool(&json!({"url": bad}))).is_err(), "{bad}");
    }
}

/// Any text, and texts of characters that mean something in an address.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), r"[./%?#&=@:+;\\\r\n\t a-e0-9{}]{0,12}"]
}

proptest! {
    /// No value changes the host, the depth of the path or the names of the query.
    // SECURITY: tool-template
    #[test]
    fn values_stay_in_their_place(city in text(), units in text()) {
        let template = template(&json!({}));
        let Ok(request) = template.fill(json!({"city": city, "units": units}).as_object().unwrap()) else {
            return Ok(());
        };
        let parsed = url::Url::parse(&request.url).unwrap();
        prop_assert_eq!(parsed.as_str(), &request.url);
        prop_assert_eq!((parsed.host_str(), parsed.port(), parsed.username()), (Some("api.shop.com"), None, ""));
        prop_assert!(parsed.fragment().is_none());
        let segments: Vec<&str> = parsed.path_segments().unwrap().collect();
        prop_assert_eq!(segments.len(), 2);
        let pairs: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
        prop_assert_eq!(&pairs, &[("units".to_owned(), units), ("lang".to_owned(), "en".to_owned())]);
    }
}
